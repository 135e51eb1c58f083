"""`kardia live` over a recorded story that is written while it runs, at a virtual clock: real files, real tables.

Everything but threads and sockets is that of the product. A kill is an exception from the fault port, after which
nothing is flushed, saved or waited for.
"""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

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

STEP_MS = 50
"""Virtual time between two rounds."""

CLUSTER = "test"


class Killed(BaseException):
    """The process is dead."""


class Growing:
    """The logs of a story, written as time goes."""

    def __init__(self, directory: Path, story: Story) -> None:
        zone = zone_named(story.zone)
        dialects: dict[str, Dialect] = {"kafka-request.log": RequestJson(zone), "server.log": ServerLog(zone)}
        self.paths = {name: directory / name for name in dialects}
        lines: list[tuple[float, int, str, bytes]] = []
        for name, dialect in dialects.items():
            at_ms = 0.0
            for line in gzip.decompress((story.folder / f"{name}.gz").read_bytes()).splitlines(keepends=True):
                at_ms = dialect.stamp_ms(line) or at_ms
                lines.append((at_ms, len(lines), name, line))
            self.paths[name].touch()
        self._lines = sorted(line for line in lines if line[0] > 0)
        self._written = 0
        self.begins_at_ms, self.ends_at_ms = self._lines[0][0], self._lines[-1][0]

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

    def __init__(self, directory: Path, name: str, lanes: int = 6) -> None:
        story = Story(name)
        self.growing = Growing(directory, story)
        self.clock = ManualClock(self.growing.begins_at_ms)
        self.ahead = Ahead()
        self.said: list[str] = []
        self.settings = LiveSettings(
            tables=directory / "tables",
            request_log=(str(self.growing.paths["kafka-request.log"]),),
            server_log=(str(self.growing.paths["server.log"]),),
            log_timezone=story.zone,
            cluster=CLUSTER,
            lanes=lanes,
        )
        self.settings.tables.mkdir()
        self.records: dict[int, list[bytes]] = {lane: [] for lane in range(lanes)}
        """What each lane took, since the first start."""

    @contextmanager
    def alive(self, reached: Callable[[str, int], None] = nothing_happens) -> Iterator[Running]:
        """The process, until the context ends, or until it is `Killed` at a step that `reached` kills it at."""
        self.ahead = Ahead()
        around = Around(self.clock, self.ahead, self.said.append, Metrics(), LiveMetrics())
        with started(self.settings, around, reached) as running:
            take = running.engine.take

            def noted(records: Mapping[int, Sequence[Record]]) -> None:
                for lane, some in records.items():
                    self.records[lane] += [record.value or b"" for record in some]
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
