"""The one file of `kardia up`: what to read, where to write, where to answer. Read once, whole, strict and frozen.

An unknown key is refused with the nearest known one, and all problems are reported together. Starts nothing.
"""

from __future__ import annotations

import difflib
import socket
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    HttpUrl,
    ValidationError,
    field_validator,
    model_validator,
)

from ingest.clients.settings import client_config
from ingest.errors import IngestError
from ingest.layouts.recogniser import layouts
from ingest.settings import Patterns
from ingest.settings import Place as AnyPlace
from ingest.stamps import zone_named
from kardia.retention_setting import KINDS, Keep, KeepError, age_of, shown
from spark_jobs.errors import CheckpointError
from spark_jobs.leases import table_owner
from spark_jobs.leases.table_owner import Engine


def _read(path: Path) -> Path:
    try:
        client_config(path)
    except IngestError as error:
        raise ValueError(str(error)) from None
    return path


Place = Annotated[AnyPlace, AfterValidator(Path.expanduser)]
"""`~` is the home of whoever starts it: no shell has replaced it."""

ClientFile = Annotated[Place, AfterValidator(_read)]
"""A file of client settings: read once before anything is started, and by each role for itself."""

Port = Annotated[int, Field(ge=1, le=65_535)]


class ConfigError(ValueError):
    """The file cannot be used; the text lists every problem, one per line."""


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class CollectSection(_Strict):
    """`collect`: the logs on this machine."""

    request_log: Patterns = Field(
        default=(),
        description="kafka-request.log of each broker here, or patterns; may be left out where another source is named",
    )
    server_log: Patterns | None = Field(
        default=None,
        description="server.log of each broker here, or patterns; default: the one beside each request log, where "
        "there is one. [] for none",
    )
    log_timezone: str = Field(
        default="", description="time zone of the brokers' JVM: UTC, Europe/Berlin or +05:30; needed with a log"
    )
    log_pattern: str = Field(
        default="",
        description="conversion pattern of the logs, as the brokers' log4j file has it, e.g. "
        "'%d{ISO8601} %p %m (%c) [%t]%n'; only for a layout that is not recognised",
    )
    offsets: bool = Field(default=True, description="read __consumer_offsets")
    admin: bool = Field(default=False, description="sample groups by the admin API; needs nothing on a broker")
    admin_every_s: float = Field(default=10.0, ge=1, le=3_600, description="seconds from one sample to the next")
    metrics_port: Port = Field(default=9464, description="port of the collector's own /metrics")

    @field_validator("log_timezone")
    @classmethod
    def _known_zone(cls, name: str) -> str:
        try:
            zone_named(name or "UTC")
        except IngestError:
            raise ValueError(
                f"{name!r} is no time zone; expected UTC, a name such as Europe/Berlin, or +05:30"
            ) from None
        return name

    @field_validator("log_pattern")
    @classmethod
    def _known_pattern(cls, pattern: str) -> str:
        try:
            layouts(pattern)
        except IngestError as error:
            raise ValueError(str(error)) from None
        return pattern

    @model_validator(mode="after")
    def _something_to_read(self) -> CollectSection:
        logs = bool(self.request_log or self.server_log)
        # The offsets topic alone is enough for who has said so: by default it is what a forgotten log would leave.
        alone = self.offsets and "offsets" in self.model_fields_set
        if not (logs or self.admin or alone):
            raise ValueError(
                "nothing is named to read; name request_log or server_log, or say `admin: true` to ask the admin API, "
                "or `offsets: true` for __consumer_offsets alone"
            )
        if logs and not self.log_timezone:
            raise ValueError("log_timezone is missing: the stamps of the logs carry no zone; say UTC, Europe/Berlin, …")
        return self


class StreamSection(_Strict):
    """`stream`: the job."""

    tables: Place | None = Field(default=None, description="directory of the Delta tables; default DATA/tables")
    metrics_port: Port = Field(default=9465, description="port of the job's own /metrics")
    kafka_version: str = Field(default="", description="release of the brokers, e.g. 3.9.2; recognised if empty")
    consumer_session_ms: int = Field(
        default=-1, ge=-1, description="group.consumer.session.timeout.ms of the brokers; -1: not known"
    )
    share_session_ms: int = Field(
        default=-1, ge=-1, description="group.share.session.timeout.ms of the brokers; -1: not known"
    )
    streams_session_ms: int = Field(
        default=-1, ge=-1, description="group.streams.session.timeout.ms of the brokers; -1: not known"
    )


def _age(name: str) -> Any:
    def check(text: str) -> str:
        try:
            age_of(name, text)
        except KeepError as error:
            raise ValueError(str(error)) from None
        return text

    return AfterValidator(check)


class KeepSection(_Strict):
    """`keep`: how long rows are kept, as 36h, 7d, 4w or forever; docs/sizing.md says what it costs."""

    health: Annotated[str, _age("health")] = Field(
        default=shown(KINDS["health"].default_ms), description=f"tables health, lag: {KINDS['health'].meaning}"
    )
    history: Annotated[str, _age("history")] = Field(
        default=shown(KINDS["history"].default_ms),
        description=f"{', '.join(KINDS['history'].tables)}: {KINDS['history'].meaning}",
    )
    rejected: Annotated[str, _age("rejected")] = Field(
        default=shown(KINDS["rejected"].default_ms), description=KINDS["rejected"].meaning
    )
    events: Annotated[str, _age("events")] = Field(
        default=shown(KINDS["events"].default_ms), description=KINDS["events"].meaning
    )

    @property
    def kept(self) -> Keep:
        """All of it."""
        return Keep(**{f"{name}_ms": age_of(name, getattr(self, name)) for name in KINDS})


class ServeSection(_Strict):
    """`serve`: the API."""

    host: str = Field(default="127.0.0.1", description="address to listen on")
    port: Port = Field(default=8765, description="port to listen on")
    token_file: Place | None = Field(default=None, description="bearer tokens, one per line; needed beyond loopback")
    follow_topic: bool = Field(
        default=False,
        description="answer from the topic as well, ahead of the tables, with `engine: spark` "
        "(docs/api.md); `local` does so anyway",
    )


class NotifySection(_Strict):
    """`notify`: whom to tell. The role runs if there is somebody."""

    alertmanager: tuple[HttpUrl, ...] = Field(default=(), description="addresses of Alertmanagers, all are told")
    webhook: tuple[HttpUrl, ...] = Field(default=(), description="addresses that get CloudEvents")
    kardia_url: str | None = Field(default=None, description="address in front of links; default that of the API here")
    runbooks_url: str | None = Field(default=None, description="address in front of the names of the runbooks")
    metrics_port: Port = Field(default=9466, description="port of the notifier's own /metrics")

    @property
    def wanted(self) -> bool:
        """Whether anybody is to be told."""
        return bool(self.alertmanager or self.webhook)


class UpConfig(_Strict):
    """The whole file."""

    cluster: str = Field(min_length=1, description="name of the cluster, in every row")
    bootstrap_server: str = Field(min_length=1, description="host:port of the cluster that is watched")
    events_bootstrap_server: str | None = Field(default=None, description="host:port for the topic, if another cluster")
    client_config: ClientFile | None = Field(
        default=None, description="properties file of the Kafka clients (security), in librdkafka's names or Java's"
    )
    events_client_config: ClientFile | None = Field(
        default=None,
        description="the same for the topic's cluster; default: the same file, where it is the same cluster",
    )
    topic: str = Field(default="kardia.events", min_length=1, description="topic of the events")
    engine: Literal["spark", "local"] | None = Field(
        default=None,
        description="what steps the lanes: `local` is one process that reads the logs itself, without topic and Java; "
        "`spark` reads a topic that collectors write to (docs/live.md). Default: that of the tables there are; of new "
        "ones `spark` where a key of the topic is given, else `local`. Where it is another than that of the tables, "
        "`kardia up` moves them, with all state",
    )
    data: Place = Field(description="directory for tables, checkpoint, positions and logs of the roles")
    collect: CollectSection
    stream: StreamSection = StreamSection()
    keep: KeepSection = KeepSection()
    serve: ServeSection = ServeSection()
    notify: NotifySection = NotifySection()

    @property
    def topic_client_config(self) -> Path | None:
        """Properties file of the clients of the topic of events."""
        return self.events_client_config or (None if self.events_bootstrap_server else self.client_config)

    @property
    def tables(self) -> Path:
        """Directory of the Delta tables."""
        return self.stream.tables or self.data / "tables"

    @property
    def ports(self) -> dict[str, tuple[str, int]]:
        """Addresses that the roles listen on, by key."""
        if self.engine == "local":
            return {"serve.port": (self.serve.host, self.serve.port)}
        ports = {
            "collect.metrics_port": ("127.0.0.1", self.collect.metrics_port),
            "stream.metrics_port": ("127.0.0.1", self.stream.metrics_port),
            "serve.port": (self.serve.host, self.serve.port),
        }
        if self.notify.wanted:
            ports["notify.metrics_port"] = ("127.0.0.1", self.notify.metrics_port)
        return ports

    @property
    def checkpoint(self) -> Path:
        """Directory of the checkpoint."""
        return self.data / "checkpoint"

    @property
    def positions(self) -> Path:
        """Directory of the collector's positions."""
        return self.data / "positions"

    @property
    def of_topic(self) -> list[str]:
        """Keys that are given and say where the topic is."""
        return sorted({"events_bootstrap_server", "events_client_config", "topic"} & self.model_fields_set)

    @model_validator(mode="after")
    def _ports_differ(self) -> UpConfig:
        by_port: dict[int, str] = {}
        for key, (_, port) in self.ports.items():
            other = by_port.setdefault(port, key)
            if other != key:
                raise ValueError(f"{other} and {key} are both {port}; give them different ports")
        return self


def load(path: Path) -> UpConfig:
    """Read the file, or raise ConfigError with every problem in it."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise ConfigError(f"{path} cannot be read: {reason}. Give the file of this machine with --config.") from None
    try:
        data = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ConfigError(f"{path} is not YAML: {' '.join(str(error).split())}.") from None
    if not isinstance(data, dict):
        raise ConfigError(f"{path} holds no settings; expected keys such as {', '.join(UpConfig.model_fields)}.")
    try:
        # Lists of YAML become tuples; the values themselves stay strict.
        shaped = _shaped(data)
        config = UpConfig.model_validate(shaped)
        return UpConfig.model_validate(shaped | {"engine": _engine_of(config, path)})
    except ValidationError as error:
        raise ConfigError("\n".join(f"{path}: {sentence(problem)}" for problem in error.errors())) from None


def owner_of(config: UpConfig) -> Engine | None:
    """The engine that the tables belong to; None: nobody has begun any. Positions say as much as tables: what a
    collector has sent is in the topic."""
    try:
        found = table_owner.engine_of(config.tables, None, config.checkpoint)
    except CheckpointError as error:
        raise ConfigError(str(error)) from None
    return table_owner.SPARK if found is None and (config.positions / "positions").is_file() else found


def _engine_of(config: UpConfig, path: Path) -> Engine:
    """The engine that is named; else that of the tables, so that no upgrade changes it."""
    begun = owner_of(config)
    engine = config.engine or begun or (table_owner.SPARK if config.of_topic else table_owner.LOCAL)
    if (
        engine == table_owner.LOCAL
        and config.of_topic
        and begun != table_owner.SPARK
        and table_owner.load(config.tables) is None
    ):
        # Tables that were moved, or will be, have a topic that the move has to know.
        raise ConfigError(
            f"{path}: {', '.join(config.of_topic)}: `engine: local` has no topic; leave it out, or say `engine: spark`."
        )
    return engine


def busy_ports(config: UpConfig) -> list[str]:
    """A sentence for each port that somebody else listens on already."""
    sentences = []
    for key, (host, port) in config.ports.items():
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        with socket.socket(family) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((host, port))
            except OSError as error:
                sentences.append(f"{key}: {host}:{port} cannot be had ({error.strerror}); set {key} to a free port.")
    return sentences


_LISTS = {"request_log", "server_log", "alertmanager", "webhook"}


def _shaped(data: dict[Any, Any]) -> dict[Any, Any]:
    """Texts that are meant as lists of one become that; everything else stays as it was written."""
    shaped: dict[Any, Any] = {}
    for key, value in data.items():
        if isinstance(value, dict):
            shaped[key] = _shaped(value)
        elif key in _LISTS and isinstance(value, list | str):
            shaped[key] = tuple([value] if isinstance(value, str) else value)
        else:
            shaped[key] = value
    return shaped


def sentence(problem: Any) -> str:
    """One problem of pydantic as a sentence: where, what, what was expected."""
    where = ".".join(str(part) for part in problem["loc"])
    if problem["type"] == "extra_forbidden":
        section = str(problem["loc"][0]) if len(problem["loc"]) > 1 else ""
        known = list(_fields(section))
        near = difflib.get_close_matches(str(problem["loc"][-1]), known, n=1, cutoff=0.4)
        hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(known)}."
        return f"{where} is not a known key; {hint}"
    if problem["type"] == "missing":
        description = _fields(str(problem["loc"][0]) if len(problem["loc"]) > 1 else "")[str(problem["loc"][-1])]
        return f"{where} is missing; expected the {description}."
    given = f", not {problem['input']!r}" if not isinstance(problem["input"], dict | BaseModel) else ""
    message = problem["msg"].removeprefix("Value error, ").removesuffix(".")
    return f"{where + ': ' if where else ''}{message}{given if message.startswith('Input') else ''}."


def _fields(section: str) -> dict[str, str]:
    models: dict[str, type[BaseModel]] = {"": UpConfig, "collect": CollectSection, "stream": StreamSection}
    models |= {"keep": KeepSection}
    models |= {"serve": ServeSection, "notify": NotifySection}
    return {name: info.description or f"section {name}" for name, info in models[section].model_fields.items()}
