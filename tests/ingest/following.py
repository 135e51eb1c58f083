"""A collector that follows the log of a recorded story while it is written, at a virtual clock, or finds it whole."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path

from ingest.dialects.request_json import RequestJson
from ingest.stamps import zone_named
from kardia.events import DEFAULT_LANES
from tests.ingest.world import ManualClock, World
from tests.support.stories import Story

STEP_MS = 50
"""Virtual time between two rounds of the collector."""


def dated_lines(story: Story) -> list[tuple[float, bytes]]:
    """Lines of the request log with their stamps; a line without one has that of the line before."""
    (path,) = story.folder.glob("kafka-request.log.gz")
    dialect, at_ms = RequestJson(zone_named(story.zone)), 0.0
    found = []
    for line in gzip.decompress(path.read_bytes()).splitlines(keepends=True):
        at_ms = dialect.stamp_ms(line) or at_ms
        found.append((at_ms, line))
    return found


class Following:
    """A story, its growing file, and the collector that follows it."""

    def __init__(self, directory: Path, story: Story, *, fold: bool = False) -> None:
        self._lines = dated_lines(story)
        self._written = 0
        self._clock = ManualClock(self._lines[0][0])
        self.world = World(directory, lanes=DEFAULT_LANES, clock=self._clock, fold=fold)

    def grow(self) -> bool:
        """Write the lines that are due by now; False when there are no more."""
        now_ms = self._clock.wall_ms()
        first = self._written
        while self._written < len(self._lines) and self._lines[self._written][0] <= now_ms:
            self._written += 1
        self.world.file.write(b"".join(line for _, line in self._lines[first : self._written]))
        return self._written < len(self._lines)

    def live(self) -> Iterator[int]:
        """Follow to the end at the story's own pace: numbers of the rounds that were done."""
        number = 0
        more = True
        while more:
            more = self.grow()
            self.world.step(1, STEP_MS / 1000)
            yield number
            number += 1

    def catch_up(self) -> Iterator[int]:
        """Find the whole file at the start: numbers of the rounds that were done."""
        self._clock.now_s += 86_400
        self.grow()
        size = self.world.path.stat().st_size
        number = 0
        while number == 0 or self.world.collector.streams[0].tail.saved()[-1].position < size:
            self.world.step(1, STEP_MS / 1000)
            yield number
            number += 1
