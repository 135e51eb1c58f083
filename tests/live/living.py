"""`kardia live` over a recorded story that is written while it runs, at a virtual clock: real files, real tables.

Everything but threads and sockets is that of the product. A kill is an exception from the fault port, after which
nothing is flushed, saved or waited for.
"""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from ingest.dialects import Dialect
from ingest.dialects.request_json import RequestJson
from ingest.dialects.server_log import ServerLog
from ingest.metrics import Metrics
from ingest.stamps import zone_named
from live.ahead import Ahead
from live.metrics import LiveMetrics
from live.run import Around, Running, started
from live.settings import LiveSettings
from spark_jobs.lane import Record
from spark_jobs.writers import nothing_happens
from tests.ingest.world import ManualClock
from tests.support.stories import Story
from tests.truth.fleet.run import Run

REQUESTS, SERVER = "kafka-request.log", "server.log"

STEP_MS = 50
"""Virtual time between two rounds."""

CLUSTER = "test"


class Killed(BaseException):
    """The process is dead."""


class Logs(NamedTuple):
    """Logs of some brokers, line by line."""

    zone: str
    lines: dict[str, list[tuple[float, bytes]]]
    """NAME or BROKER/NAME of a log -> its lines, each with the instant at which it is written."""


def logs_of(story: Story) -> Logs:
    """Those of a recorded story; a line is written at the instant that it is stamped with."""
    zone = zone_named(story.zone)
    found: dict[str, list[tuple[float, bytes]]] = {}
    for name, dialect in ((REQUESTS, RequestJson(zone)), (SERVER, ServerLog(zone))):
        for path in sorted(story.folder.glob(f"{name.removesuffix('.log')}*.log.gz")):
            broker = path.name.removesuffix(".log.gz").removeprefix(name.removesuffix(".log")).removeprefix("-")
            found[f"{broker}/{name}" if broker else name] = list(_stamped(path, dialect))
    return Logs(story.zone, found)


def _stamped(path: Path, dialect: Dialect) -> Iterator[tuple[float, bytes]]:
    at_ms = 0.0
    for line in gzip.decompress(path.read_bytes()).splitlines(keepends=True):
        at_ms = dialect.stamp_ms(line) or at_ms
        if at_ms > 0:
            yield at_ms, line


def logs_of_a_run(run: Run) -> Logs:
    """Those of a simulated fleet, each broker's in a folder of its own."""
    found = {}
    for name, logs in ((REQUESTS, run.logs), (SERVER, run.server_logs)):
        for broker, lines in enumerate(logs):
            found[f"{broker}/{name}"] = [(line.written_at_ms, line.text) for line in lines]
    return Logs("UTC", found)


class Growing:
    """Logs that are written as time goes."""

    def __init__(self, directory: Path, logs: Logs) -> None:
        self.paths = {name: directory / name for name in logs.lines}
        for path in self.paths.values():
            path.parent.mkdir(exist_ok=True)
            path.touch()
        named = ((at_ms, name, line) for name, lines in logs.lines.items() for at_ms, line in lines)
        self._lines = sorted(
            ((at_ms, place, name, line) for place, (at_ms, name, line) in enumerate(named)), key=lambda one: one[:2]
        )
        self._written = 0
        self.begins_at_ms, self.ends_at_ms = self._lines[0][0], self._lines[-1][0]

    @property
    def lasts_ms(self) -> float:
        """From the first line to the last."""
        return self.ends_at_ms - self.begins_at_ms

    def named(self, name: str) -> tuple[str, ...]:
        """Paths of the logs of one name."""
        return tuple(str(path) for path in self.paths.values() if path.name == name)

    def grow(self, now_ms: float) -> bool:
        """Write the lines that are due by now; False when there are no more."""
        due: dict[str, list[bytes]] = {}
        while self._written < len(self._lines) and self._lines[self._written][0] <= now_ms:
            _, _, name, line = self._lines[self._written]
            due.setdefault(name, []).append(line)
            self._written += 1
        for name, lines in due.items():
            with self.paths[name].open("ab") as file:
                file.write(b"".join(lines))
        return self._written < len(self._lines)


class Living:
    """A story, its growing logs, and the process that follows them."""

    def __init__(self, directory: Path, told: str | Logs, lanes: int = 6) -> None:
        """`told`: the name of a recorded story, or logs."""
        logs = logs_of(Story(told)) if isinstance(told, str) else told
        self.growing = Growing(directory, logs)
        self.clock = ManualClock(self.growing.begins_at_ms)
        self.ahead = Ahead()
        self.said: list[str] = []
        self.settings = LiveSettings(
            tables=directory / "tables",
            request_log=self.growing.named(REQUESTS),
            server_log=self.growing.named(SERVER),
            log_timezone=logs.zone,
            cluster=CLUSTER,
            lanes=lanes,
        )
        self.settings.tables.mkdir()
        self.steps: dict[int, list[list[bytes]]] = {lane: [] for lane in range(lanes)}
        """What each lane took, step by step, since the first start, and kept: a batch in whose making the process died
        never was."""

    @property
    def records(self) -> dict[int, list[bytes]]:
        """The same without the steps."""
        return {lane: [record for step in steps for record in step] for lane, steps in self.steps.items()}

    @contextmanager
    def alive(self, reached: Callable[[str, int], None] = nothing_happens) -> Iterator[Running]:
        """The process, until the context ends, or until it is `Killed` at a step that `reached` kills it at."""
        self.ahead = Ahead()
        taken: list[tuple[int, list[bytes]]] = []

        def kept(step: str, batch: int) -> None:
            if step == "file:written":
                for lane, values in taken:
                    self.steps.setdefault(lane, []).append(values)
                taken.clear()
            reached(step, batch)

        around = Around(self.clock, self.ahead, self.said.append, Metrics(), LiveMetrics())
        with started(self.settings, around, kept) as running:
            take = running.engine.take

            def noted(records: Mapping[int, Sequence[Record]]) -> None:
                taken.extend((lane, [record.value or b"" for record in some]) for lane, some in records.items())
                take(records)

            running.engine.take = noted  # type: ignore[method-assign]
            yield running

    def rounds(self, running: Running, count: int = 1 << 60) -> Iterator[int]:
        """Follow while the logs grow, at most so many rounds."""
        for number in range(count):
            more = self.growing.grow(self.clock.wall_ms())
            running.source.step()
            self.clock.now_s += STEP_MS / 1000
            yield number
            if not more:
                return

    def to_the_end(self, running: Running) -> None:
        """What is left of the story, and an ordered stop."""
        for _ in self.rounds(running):
            pass
        for _ in range(60):
            running.source.step()
            self.clock.now_s += STEP_MS / 1000
        assert running.source.stop()
        running.engine.await_tables()
