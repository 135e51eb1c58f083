"""A real Kafka broker on this machine: one node on the loopback address, started from the locked jars.

Broker and controller in one process (before 2.8 with a ZooKeeper beside it), ports that the system chooses, everything
below one directory. It is set up as a user would set up a broker for Kardia: request log on for the group APIs, the
coordinator's INFO lines on, 50 partitions of `__consumer_offsets`. Session timeouts may be as short as a second: a
story of two minutes needs it. It never listens anywhere but on 127.0.0.1.

    with Broker(directory) as broker:
        broker.bootstrap, broker.request_log, broker.server_log
"""

from __future__ import annotations

import base64
import os
import re
import secrets
import signal
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from demo import broker_logging
from demo.ports import HOST, free_ports
from demo.zookeeper import ZooKeeper
from spark_jobs.jvm import jars, java, lock
from supervise import process
from supervise.process import ProcessError

NEWEST = "4.4.0"
"""The release that is started when none is named."""

READY_TIMEOUT_S = 120.0
"""1.2 to 2.1 s on two free cores, up to 7 s beside five other JVMs, more than 60 s to recover after a kill beside
twenty busy processes."""

STOP_PATIENCE_S = 15.0
"""Kafka 4 stops in 0.4 s, 2.8 in 8 s."""

_JAR_SET = "broker-"

_START_TRIES = 3
"""A port that the system offered may be taken by somebody else before the broker binds it."""

_SMALL_HEAP = ("-Xmx128m", "-XX:TieredStopAtLevel=1")
"""Of what is small beside a broker."""

_SPARING = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
"""A broker of a demo and of tests: it starts in half the time."""

_AS_SERVED = ("-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20", "-XX:InitiatingHeapOccupancyPercent=35")
"""`KAFKA_JVM_PERFORMANCE_OPTS` of `kafka-run-class.sh`."""

WITHOUT_ZOOKEEPER = (3, 0)
"""First release that is started without: 2.8 can be, but does not start again after a kill."""

_READY = re.compile(rb"Kafka Server started|\[KafkaServer id=\d+\] started")
"""The second where ZooKeeper is beside it."""

_PORT_TAKEN = re.compile(rb"Address already in use|Failed to bind|BindException")


@dataclass(frozen=True)
class BrokerSettings:
    """What differs between uses. `extra` overrides any server property."""

    version: str = NEWEST
    offsets_partitions: int = 50
    initial_rebalance_delay_ms: int = 500
    """How long an empty group waits for more members; Kafka's default of 3 s would only stretch the story."""
    min_session_timeout_ms: int = 1_000
    heap_mb: int = 512
    rotate_kb: int = 0
    """Size at which the request log goes on in a new file; 0: never."""
    rotate_server_kb: int = 0
    """The same of server.log."""
    ports: tuple[int, int] | None = None
    """Of the broker and of its controller, where others must know them before it starts; by default free ones."""
    cluster_id: str = ""
    """22 characters of base64, the same for brokers of one cluster; by default a new one."""
    extra: Mapping[str, str] = field(default_factory=dict)
    as_served: bool = False
    """With the compilers and the collector that Kafka's own scripts choose: for what is measured, not for a demo."""
    watched_s: int = 0
    """So often it looks whether its logging configuration is another one (Kafka 4); 0: never."""


class Broker:
    """One broker from start to stop. May be stopped (or killed) and started again on the same data and port."""

    def __init__(self, directory: Path, settings: BrokerSettings | None = None) -> None:
        self.directory = directory.resolve()
        self.settings = settings or BrokerSettings()
        self.logs = self.directory / "logs"
        self.request_log = self.logs / "kafka-request.log"
        self.server_log = self.logs / "server.log"
        self.console = self.logs / "console.log"
        self.port = 0
        self._controller_port = 0
        keeper = ZooKeeper(self.directory / "zookeeper", lambda: free_ports(1)[0])
        self._zookeeper = None if _at_least(self.settings.version, *WITHOUT_ZOOKEEPER) else keeper
        self._process: subprocess.Popen[str] | None = None

    @property
    def bootstrap(self) -> str:
        """`host:port` for clients."""
        return f"{HOST}:{self.port}"

    @property
    def logging(self) -> Path:
        """Its logging configuration, written when it starts."""
        return self.directory / ("log4j2.xml" if _at_least(self.settings.version, 4) else "log4j.properties")

    @property
    def pid(self) -> int:
        """Process id of the running broker."""
        if self._process is None:
            raise ProcessError("The broker has not been started. Call start() first.")
        return self._process.pid

    @property
    def running(self) -> bool:
        """Whether the process is there."""
        return self._process is not None and self._process.poll() is None

    def __enter__(self) -> Broker:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Start and return when the broker answers. With a fresh directory its storage is formatted first."""
        if self.running:
            raise ProcessError(f"The broker in {self.directory} is running already as process {self.pid}.")
        runtime = java.find()
        class_path = os.pathsep.join(str(path) for path in jars.ensure(jar_set(self.settings.version)))
        self.logs.mkdir(parents=True, exist_ok=True)
        if self._zookeeper is not None:
            self._zookeeper.start([str(runtime.path), *_SMALL_HEAP], class_path)
        try:
            self._start(runtime, class_path)
        except BaseException:
            if self._zookeeper is not None:
                self._zookeeper.stop()
            raise

    def _start(self, runtime: java.JavaRuntime, class_path: str) -> None:
        formatted = (self.directory / "data" / "meta.properties").exists()
        for attempt in range(_START_TRIES):
            if not formatted:
                # Later versions format the controller's port into the quorum, so it is chosen first.
                self.port, self._controller_port = self.settings.ports or free_ports(2)
            properties = self._write_configuration()
            if not formatted and self._zookeeper is None:
                self._format(runtime, class_path, properties)
            formatted = True
            from_byte = self._size(self.server_log)
            self._process = process.spawn(
                [str(runtime.path), *self._jvm_options(), "-cp", class_path, "kafka.Kafka", str(properties)],
                log=self.console,
                cwd=self.directory,
            )
            if self._await_ready(from_byte, last=attempt + 1 == _START_TRIES):
                return
            formatted = False  # the ports were taken: choose others and begin anew
            (self.directory / "data" / "meta.properties").unlink(missing_ok=True)

    def stop(self) -> int:
        """Ask the broker to stop, wait, and return its exit code (143 after SIGTERM); 0 if it never ran."""
        code = process.stop(self._process, STOP_PATIENCE_S) if self._process is not None else 0
        if self._zookeeper is not None:
            self._zookeeper.stop()
        return code

    def kill(self) -> None:
        """SIGKILL, as when the machine dies."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()

    def server_log_text(self) -> str:
        """server.log whole: the files that it was rotated into, the oldest first, and what it is now."""
        older = self.logs.glob(f"{self.server_log.name}.*[0-9]")
        files = [*sorted(older, key=lambda path: -int(path.suffix[1:])), self.server_log]
        return "".join(path.read_text(encoding="utf-8", errors="replace") for path in files)

    def delete_topic(self, name: str) -> None:
        """Delete a topic, and wait until the broker no longer tells of it."""
        from confluent_kafka.admin import AdminClient

        admin = AdminClient({"bootstrap.servers": self.bootstrap, "client.id": "kardia-setup", "log_level": 0})
        admin.delete_topics([name])[name].result(READY_TIMEOUT_S)

        def gone() -> bool:
            return name not in admin.list_topics(timeout=READY_TIMEOUT_S).topics

        process.until(gone, READY_TIMEOUT_S, lambda: f"Topic {name} is still there after {READY_TIMEOUT_S:.0f} s.")

    def create_topic(self, name: str, partitions: int, config: Mapping[str, str] | None = None) -> None:
        """Create a topic with the brokers' own replication factor, and wait until every partition has a leader; one
        that exists already is left as it is."""
        from confluent_kafka import KafkaException
        from confluent_kafka.admin import AdminClient

        from ingest.wire.producer import create_topic

        admin = AdminClient({"bootstrap.servers": self.bootstrap, "client.id": "kardia-setup", "log_level": 0})
        try:
            create_topic(admin, name, partitions, config)
        except KafkaException as error:
            if error.args[0].name() != "TOPIC_ALREADY_EXISTS":
                raise

        def led() -> bool:
            topic = admin.list_topics(name, timeout=READY_TIMEOUT_S).topics[name]
            return len(topic.partitions) >= partitions and all(p.leader >= 0 for p in topic.partitions.values())

        process.until(led, READY_TIMEOUT_S, lambda: f"Topic {name} has no leader after {READY_TIMEOUT_S:.0f} s.")

    def _jvm_options(self) -> list[str]:
        version, s = self.settings.version, self.settings
        four = _at_least(version, 4)
        file = self.logging
        if four:
            text = broker_logging.log4j2_xml(self.logs, s.rotate_kb, s.rotate_server_kb, watched_s=s.watched_s)
        else:
            lines = broker_logging.JSON if _at_least(version, 2, 8) else broker_logging.TEXT
            text = broker_logging.log4j1_properties(self.logs, s.rotate_kb, s.rotate_server_kb, lines)
        file.write_text(text, encoding="utf-8")
        return [
            f"-Xmx{self.settings.heap_mb}m",
            "-Xms128m",
            *(_AS_SERVED if self.settings.as_served else _SPARING),
            "-XX:+ExitOnOutOfMemoryError",
            "-Djava.awt.headless=true",
            # The stamps of both logs carry no zone.
            "-Duser.timezone=UTC",
            f"-Dkafka.logs.dir={self.logs}",
            f"-Dlog4j2.configurationFile={file}" if four else f"-Dlog4j.configuration=file:{file}",
        ]

    def _write_configuration(self) -> Path:
        s = self.settings
        properties = self._ensemble() | {
            "advertised.listeners": f"PLAINTEXT://{HOST}:{self.port}",
            "inter.broker.listener.name": "PLAINTEXT",
            "log.dirs": str(self.directory / "data"),
            "offsets.topic.replication.factor": "1",
            "offsets.topic.num.partitions": str(s.offsets_partitions),
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "group.initial.rebalance.delay.ms": str(s.initial_rebalance_delay_ms),
            "group.min.session.timeout.ms": str(s.min_session_timeout_ms),
            # The cleaner would allocate 128 MB at start.
            "log.cleaner.dedupe.buffer.size": "2097152",
        }
        if _at_least(s.version, 4):
            properties |= {
                "share.coordinator.state.topic.replication.factor": "1",
                "share.coordinator.state.topic.min.isr": "1",
                "group.consumer.min.session.timeout.ms": str(s.min_session_timeout_ms),
                "group.consumer.min.heartbeat.interval.ms": "500",
            }
        path = self.directory / "server.properties"
        text = "".join(f"{key}={value}\n" for key, value in (properties | dict(s.extra)).items())
        path.write_text(text, encoding="utf-8")
        return path

    def _ensemble(self) -> dict[str, str]:
        """Who it is, and who leads."""
        if self._zookeeper is not None:
            return {
                "broker.id": "1",
                "zookeeper.connect": self._zookeeper.address,
                "listeners": f"PLAINTEXT://{HOST}:{self.port}",
            }
        return {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.voters": f"1@{HOST}:{self._controller_port}",
            "listeners": f"PLAINTEXT://{HOST}:{self.port},CONTROLLER://{HOST}:{self._controller_port}",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "controller.listener.names": "CONTROLLER",
        }

    def _format(self, runtime: java.JavaRuntime, class_path: str, properties: Path) -> None:
        command = [str(runtime.path), *_SMALL_HEAP, "-cp", class_path]
        command += [
            "kafka.tools.StorageTool",
            "format",
            "-t",
            self.settings.cluster_id or new_cluster_id(),
            "-c",
            str(properties),
            "--ignore-formatted",
        ]
        done = subprocess.run(command, capture_output=True, text=True, timeout=READY_TIMEOUT_S, check=False)
        if done.returncode != 0:
            raise ProcessError(
                f"The storage of the broker in {self.directory} could not be formatted:\n{done.stdout}{done.stderr}"
                "Free disk space there if it is full, or give another directory."
            )

    def _await_ready(self, from_byte: int, *, last: bool) -> bool:
        """True when ready; False if a port was taken and another try is left; else a ProcessError."""
        running = self._process
        if running is None:
            raise ProcessError("The broker has not been started. Call start() first.")

        def settled() -> str | None:
            if _READY.search(self._since(from_byte)):
                return "ready"
            return "ended" if running.poll() is not None else None

        def late() -> str:
            return f"The broker was not ready after {READY_TIMEOUT_S:.0f} s. {self.server_log} ends:\n{self._tail()}"

        try:
            outcome = process.until(settled, READY_TIMEOUT_S, late)
        except ProcessError:
            self.kill()
            raise
        if outcome == "ready" and running.poll() is None:
            return True
        if _PORT_TAKEN.search(self._since(from_byte)) and not last:
            return False
        raise ProcessError(
            f"The broker ended with exit code {running.returncode} before it was ready. {self.server_log} ends:\n"
            f"{self._tail()}\nUsual causes are a full disk, taken ports, and too little memory "
            f"({self.settings.heap_mb} MB of heap are asked for)."
        )

    def _since(self, from_byte: int) -> bytes:
        found = b""
        if self._size(self.server_log) < from_byte:  # it goes on in a new file since
            found, from_byte = self._read(self.server_log.with_name(f"{self.server_log.name}.1"), from_byte), 0
        return found + self._read(self.server_log, from_byte)

    @staticmethod
    def _read(path: Path, from_byte: int) -> bytes:
        try:
            with path.open("rb") as file:
                file.seek(from_byte)
                return file.read()
        except FileNotFoundError:
            return b""

    @staticmethod
    def _size(path: Path) -> int:
        return path.stat().st_size if path.exists() else 0

    def _tail(self) -> str:
        return process.tail(self.server_log if self._size(self.server_log) else self.console)


def jar_set(version: str) -> str:
    """Name of a release's jars in the lock."""
    return _JAR_SET + version


def releases() -> list[str]:
    """The releases that can be started: those whose jars the lock names, the newest first."""
    known = [name.removeprefix(_JAR_SET) for name in lock.sets() if name.startswith(_JAR_SET)]
    return sorted(known, key=_parts, reverse=True)


def _parts(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def _at_least(version: str, *least: int) -> bool:
    """Whether a release is this one or a later one."""
    return _parts(version) >= least


def new_cluster_id() -> str:
    """16 random bytes in base64; never with a leading dash, which the format tool takes for an option."""
    while True:
        text = base64.urlsafe_b64encode(secrets.token_bytes(16)).rstrip(b"=").decode("ascii")
        if not text.startswith("-"):
            return text
