"""Settings of a collector: read once, whole, strict and frozen. Environment: `KARDIA_COLLECT_<NAME>`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field
from pydantic_settings import BaseSettings, SettingsConfigDict

from ingest.clients.settings import client_settings
from ingest.errors import SettingsError
from ingest.layouts.recogniser import layouts
from ingest.stamps import zone_named
from kardia.events import DEFAULT_LANES, DEFAULT_OFFSETS_PARTITIONS
from stores.locations import EXPECTED, LocationError, checked, local

Place = Annotated[Path, BeforeValidator(checked)]
"""A path of this machine or `file://`; another scheme is refused."""

Patterns = Annotated[tuple[str, ...], AfterValidator(lambda texts: tuple(str(local(text)) for text in texts))]
"""The same for names of logs, which may be patterns."""

MAX_LOGS = 256
"""Logs of one collector: each holds a descriptor and a look at its name 20 times a second."""


class ReadSettings(BaseSettings):
    """What is read, and how it is to be understood; for everything that follows logs and a cluster."""

    model_config = SettingsConfigDict(frozen=True, extra="forbid")

    request_log: Patterns = Field(default=(), description="request logs, or patterns such as /logs/*/kafka-request.log")
    server_log: Patterns = Field(default=(), description="server.log files, or patterns")
    bootstrap_server: str = Field(default="", description="brokers of the observed cluster, for __consumer_offsets")
    offsets: bool = Field(default=True, description="read __consumer_offsets")
    admin: bool = Field(default=False, description="sample groups by the admin API; needs nothing on a broker")
    admin_every_s: float = Field(
        default=10.0, ge=1, le=3_600, description="seconds from one sample to the next: changes are known to within so"
    )
    ends_every_s: float = Field(
        default=5.0,
        ge=0,
        le=3_600,
        description="how often the ends of partitions that groups have commits for are asked for, seconds; 0: never",
    )
    offsets_partitions: int = Field(
        default=0, ge=0, le=10_000, description="partitions of __consumer_offsets, 0: ask the cluster, else 50"
    )
    client_config: Place | None = Field(default=None, description="properties file for clients of the observed cluster")
    lanes: int = Field(default=DEFAULT_LANES, ge=1, le=1_000, description="partitions of the topic of events")
    cluster: str = Field(default="kafka", min_length=1, max_length=200, description="name of the observed cluster")
    broker: str = Field(
        default="", description="name of the broker; empty: as the lines say, of server.log alone by its node id"
    )
    log_timezone: str = Field(default="", description="zone of the brokers' JVM: IANA name, UTC or +05:30")
    log_pattern: str = Field(
        default="", max_length=500, description="conversion pattern of the logs, as the brokers' log4j file has it"
    )
    rotate_wait_s: float = Field(
        default=5.0, ge=0, le=3_600, description="a rotated file is read so long after its end"
    )

    def check(self) -> None:
        """Rules between the fields; raises `SettingsError` with what to do."""
        self.check_sources()
        self.check_stamps()

    def check_sources(self) -> None:
        """Whether there is something to read."""
        asks = (self.offsets or self.admin) and self.bootstrap_server
        if not self.request_log and not self.server_log and not asks:
            raise SettingsError(
                "there is nothing to read",
                "--request-log, --server-log, --bootstrap-server",
                "at least one log or a cluster",
                "name a request log, or give --bootstrap-server to read the offsets topic alone, or with --admin and "
                "--no-offsets to ask the admin API alone",
            )
        if self.admin and not self.bootstrap_server:
            raise SettingsError(
                "there is no cluster to ask",
                "--admin",
                "--bootstrap-server with the brokers of the observed cluster",
                "give it, or leave --admin out",
            )

    def check_stamps(self) -> None:
        """Whether the lines of the logs can be read."""
        if (self.request_log or self.server_log) and not self.log_timezone:
            raise SettingsError(
                "the time zone of the logs is not given",
                "--log-timezone",
                "the zone of the brokers' JVM, because their stamps carry none and a wrong one is wrong silently",
                "give UTC, a name such as Europe/Berlin, or an offset such as +05:30",
            )
        if self.log_timezone:
            zone_named(self.log_timezone)
        layouts(self.log_pattern)

    def partitions(self) -> int:
        """Partitions of the offsets topic when the cluster cannot be asked."""
        return self.offsets_partitions or DEFAULT_OFFSETS_PARTITIONS


class CollectSettings(ReadSettings):
    """What a collector is told: what to read, and where to send it."""

    model_config = SettingsConfigDict(env_prefix="KARDIA_COLLECT_", frozen=True, extra="forbid")

    events_bootstrap_server: str = Field(default="", description="brokers of the topic of events; empty: the same ones")
    events_client_config: Place | None = Field(
        default=None,
        description="properties file for the topic of events; the same file when it is on the same brokers",
    )
    topic: str = Field(default="kardia.events", min_length=1, max_length=249)
    positions: Place = Field(default=Path("kardia-positions"), description="directory of the positions")
    metrics_port: int = Field(default=0, ge=0, le=65_535, description="port of the counters on loopback, 0: none")

    @property
    def topic_brokers(self) -> str:
        """Brokers of the topic of events."""
        return self.events_bootstrap_server or self.bootstrap_server

    def clients(self) -> tuple[dict[str, str], dict[str, str]]:
        """Client settings: of the observed cluster, and of the topic of events."""
        observed = client_settings(self.client_config)
        if self.events_client_config is not None:
            return observed, client_settings(self.events_client_config)
        return observed, client_settings(None) if self.events_bootstrap_server else observed

    def check(self) -> None:
        """Rules between the fields; raises `SettingsError` with what to do."""
        self.check_sources()
        if not self.topic_brokers:
            raise SettingsError(
                "there is nowhere to send events",
                "--events-bootstrap-server",
                "brokers of the topic of events",
                "give it, or --bootstrap-server if the topic is to live on the observed cluster",
            )
        self.check_stamps()


def expanded(patterns: tuple[str, ...]) -> list[Path]:
    """Files that these names and patterns stand for. A name without a wildcard need not exist yet.

    A file whose name continues that of another one (`kafka-request.log.2026-11-20-10`) is its rotated part and read
    by the same tail.
    """
    paths: list[Path] = []
    for pattern in patterns:
        try:
            named = local(pattern)
        except LocationError as error:
            raise SettingsError(error.what, error.where, EXPECTED, error.next_step) from None
        path = named.absolute()
        if any(char in str(named) for char in "*?["):
            anchor = Path(path.anchor)
            paths += sorted(anchor.glob(str(path.relative_to(anchor))))
        else:
            paths.append(path)
    unique = list(dict.fromkeys(paths))
    heads = [
        path
        for path in unique
        if not any(
            path != other and path.parent == other.parent and path.name.startswith((other.name + ".", other.name + "-"))
            for other in unique
        )
    ]
    if len(heads) > MAX_LOGS:
        raise SettingsError(
            f"{len(heads)} logs are named",
            "--request-log, --server-log",
            f"at most {MAX_LOGS} for one collector",
            "run a collector beside each broker",
        )
    return heads
