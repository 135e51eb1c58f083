"""The ZooKeeper that a broker before 2.8 needs beside it: one standalone server on the loopback address.

It comes from the broker's own set of jars. In that of 2.3 and older it is 3.5.9 in place of their own 3.4: a class of
that one takes host names out of the text of an address, which Java writes otherwise since 14. Kafka's side of it is the
release's own. It holds what the brokers of these releases keep there, and decides nothing.
"""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

from supervise import process
from supervise.process import ProcessError

HOST = "127.0.0.1"

READY_TIMEOUT_S = 60.0
"""Below a second on a free core; a machine with five other JVMs may take ten."""

STOP_PATIENCE_S = 5.0

_START_TRIES = 3
"""A port that the system offered may be taken by somebody else before the server binds it."""

_ANSWER_TIMEOUT_S = 2.0


class ZooKeeper:
    """One server from start to stop; what it holds stays in its directory, and so does its port."""

    def __init__(self, directory: Path, free_port: Callable[[], int]) -> None:
        """`free_port` gives a port that nobody listens on."""
        self.directory = directory
        self._free_port = free_port
        self._process: subprocess.Popen[str] | None = None
        self.port = 0

    @property
    def address(self) -> str:
        """`host:port` for a broker."""
        return f"{HOST}:{self.port}"

    @property
    def running(self) -> bool:
        """Whether the process is there."""
        return self._process is not None and self._process.poll() is None

    def start(self, java: Sequence[str], class_path: str) -> None:
        """Start it and return when it answers; nothing if it runs. `java`: the executable with its options."""
        if self.running:
            return
        self.directory.mkdir(parents=True, exist_ok=True)
        log = self.directory / "console.log"
        for _ in range(_START_TRIES):
            self.port = self.port or self._free_port()
            command = [*java, *self._options(), "-cp", class_path]
            command += ["org.apache.zookeeper.server.ZooKeeperServerMain", str(self._write_configuration())]
            self._process = started = process.spawn(command, log=log, cwd=self.directory)
            if self._settled(started, log):
                return
            self.port = 0
        raise ProcessError(f"ZooKeeper ended before it was ready. {log} ends:\n{process.tail(log)}")

    def stop(self) -> None:
        """Ask it to stop and wait; nothing if it does not run."""
        if self._process is not None:
            process.stop(self._process, STOP_PATIENCE_S)

    def _options(self) -> list[str]:
        logging = self.directory / "log4j.properties"
        logging.write_text(
            "log4j.rootLogger=WARN, console\n"
            "log4j.appender.console=org.apache.log4j.ConsoleAppender\n"
            "log4j.appender.console.layout=org.apache.log4j.PatternLayout\n"
            "log4j.appender.console.layout.ConversionPattern=[%d] %p %m (%c)%n\n",
            encoding="utf-8",
        )
        return [f"-Dlog4j.configuration=file:{logging}", "-Dzookeeper.jmx.log4j.disable=true"]

    def _write_configuration(self) -> Path:
        path = self.directory / "zookeeper.properties"
        properties = {
            "dataDir": str(self.directory / "data"),
            "clientPort": str(self.port),
            "clientPortAddress": HOST,
            "tickTime": "2000",
            "admin.enableServer": "false",
        }
        path.write_text("".join(f"{key}={value}\n" for key, value in properties.items()), encoding="utf-8")
        return path

    def _settled(self, started: subprocess.Popen[str], log: Path) -> bool:
        """Wait until it answers or has ended; whether it answers."""
        process.until(
            lambda: started.poll() is not None or self._answers(),
            READY_TIMEOUT_S,
            lambda: f"ZooKeeper was not ready after {READY_TIMEOUT_S:.0f} s. {log} ends:\n{process.tail(log)}",
        )
        return started.poll() is None

    def _answers(self) -> bool:
        """Whether it serves: a port that is merely open may be somebody else's."""
        try:
            with socket.create_connection((HOST, self.port), _ANSWER_TIMEOUT_S) as one:
                one.sendall(b"srvr")
                return b"Mode: standalone" in b"".join(iter(lambda: one.recv(4096), b""))
        except OSError:
            return False
