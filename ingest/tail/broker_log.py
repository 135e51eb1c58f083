"""One log of one broker: its file, its dialect, the broker's name, and the ticks that say how far it has been read.

A tick per incarnation and flush: `start` is where the last one ended, so the ticks of a source cover its bytes without
a hole. While the file is behind, complete-to is the highest stamp read; at its end it is the wall clock taken just
before the read that found nothing more, because a line that is not there then will be stamped later.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import inf
from typing import NamedTuple

from ingest.blocks import AHEAD_MS, Gathered, Line, held_from, held_lines, read_cut, read_last
from ingest.dialects import UNNAMED, Asked, Dialect, Listener, better
from ingest.router import Directory
from ingest.tail.identity import Saved
from ingest.tail.incarnation import Incarnation
from ingest.tail.kubelet import is_continued
from ingest.tail.tailer import Read, Tail
from ingest.tail.wrapped import texts_in
from kardia.events import ALL_SHARDS, Event, Kind

UNNAMED_BYTES = 4 * 1024 * 1024
"""So much of a log is looked at for the listener that clients ask on; then the best that was seen names the broker."""

UNNAMED_MS = 10_000
"""And so long, where a broker has no clients: its log is known to be alive from then on only."""

FOLDED_WEIGH = 20
"""So many folded events are like one that is not: 60 bytes each, and no object."""

BEHIND_BYTES = 1024 * 1024
"""A log is behind from so many unread bytes on: what a broker with 20,000 requests per second writes in 50 ms."""

CLOCK_SET_MS = 5_000
"""A stamp that lies further back is one of a clock that was set: threads do not wait so long for the file."""


class Covered(NamedTuple):
    """What one tick speaks of."""

    source: str
    start: int
    end: int
    complete_to_ms: float
    gathered: Gathered


class LogStream:
    """A log that is being followed."""

    def __init__(
        self, tail: Tail, dialect: Dialect, lanes: int, directory: Directory, broker: str = "", key: str = ""
    ) -> None:
        """`broker` empty: its name is taken from the first line of a client, else of another broker; of a server.log
        from the first line with its node id. `key`: under which its positions are kept, the path if it is empty."""
        self.tail = tail
        self.dialect = dialect
        self.broker = broker
        self.key = key or str(tail.path)
        self._lanes = lanes
        self._directory = directory
        self._gathered: dict[str, Gathered] = {}
        self._touched: dict[str, Incarnation] = {}
        self._held: list[Read] = []
        self._held_bytes = 0
        self._held_since_ms = inf
        self._listener: Listener | None = None
        self._complete_to_ms = 0.0
        self._not_after_ms = inf
        self.waits_ms = 0.0
        """How long the last line waits for the clock of this machine, which is behind that of the broker."""

    def pump(self, clock: Callable[[], float]) -> int:
        """Read once; returns the bytes read. `clock` is the wall clock: before the read it says how far the log is
        complete, after it which lines are of the future."""
        size = 0
        wall_ms = clock()
        self.waits_ms = 0.0
        for found in self.tail.read():
            self._not_after_ms = clock() + AHEAD_MS
            read = self._without_what_is_ahead(found)
            size += len(read.cut.block) + max(read.cut.long_end - read.cut.long_start, 0)
            self._held.append(read)
            if not self.broker:
                self._look_for_listener(read)
        self._held_bytes += size
        self._not_after_ms = clock() + AHEAD_MS
        if self._held and (self.broker or self._find_broker(wall_ms)):
            for read in self._held:
                self._take(read)
            self._held, self._held_bytes = [], 0
        if self.tail.at_end and not self._held and not is_continued(self.tail.path):
            # Monotone: a wall clock that is set back does not take back what was said.
            self._complete_to_ms = max(self._complete_to_ms, wall_ms)
        return size

    def _without_what_is_ahead(self, read: Read) -> Read:
        """Without the last lines, if they are to wait for the clock of this machine: they are read again."""
        lines = read.cut.lines
        if lines:
            return self._without_lines_ahead(read, lines)
        block = read.cut.block
        place = held_from(self.dialect, block, self._not_after_ms)
        if read.rest or place == len(block):
            return read
        self.waits_ms = (self.dialect.stamp_ms(block[block.rfind(b"\n", 0, -1) + 1 :]) or 0.0) - self._not_after_ms
        read.incarnation.give_back(read.cut.start + place)
        return read._replace(cut=read.cut._replace(block=block[:place], nul_bytes=0))

    def _without_lines_ahead(self, read: Read, lines: tuple[Line, ...]) -> Read:
        place = held_lines(self.dialect, lines, self._not_after_ms)
        if read.cut.ended or place == len(lines):
            return read
        self.waits_ms = (self.dialect.stamp_ms(lines[-1].text) or 0.0) - self._not_after_ms
        read.incarnation.give_back(lines[place].start)
        block = b"".join(line.text + b"\n" for line in lines[:place])
        return read._replace(cut=read.cut._replace(block=block, lines=lines[:place]))

    def _look_for_listener(self, read: Read) -> None:
        for line in read.cut.block.split(b"\n"):
            if self._listener is not None and self._listener.asked is Asked.BY_CLIENTS:
                return
            self._listener = better(self._listener, self.dialect.broker_of(line))

    def _find_broker(self, wall_ms: float) -> bool:
        """Name the broker, if it can be named by now. The first lines of a broker that is a controller as well are
        other controllers' FETCHes on a listener that no client knows."""
        found = self._listener
        self._held_since_ms = min(wall_ms, self._held_since_ms)
        is_over = self._held_bytes >= UNNAMED_BYTES or (
            found is not None and wall_ms - self._held_since_ms >= UNNAMED_MS
        )
        if found is not None and (is_over or found.asked is Asked.BY_CLIENTS):
            self.broker = found.address
        elif is_over:
            self.broker = UNNAMED
        return bool(self.broker)

    @property
    def pending(self) -> int:
        """Events that wait for the next flush."""
        folded = self.dialect.quiet.rows() if self.dialect.quiet is not None else 0
        return sum(gathered.size() for gathered in self._gathered.values()) + -(-folded // FOLDED_WEIGH)

    @property
    def is_behind(self) -> bool:
        """Whether there is more to read than comes in a moment."""
        return self.tail.lag_bytes >= BEHIND_BYTES

    @property
    def holding(self) -> bool:
        """Whether lines are held back because the broker's name is not known yet."""
        return bool(self._held)

    @property
    def held_since_ms(self) -> float:
        """Since when, by the wall clock; infinite if none are."""
        return self._held_since_ms if self._held else inf

    def _source(self, incarnation: Incarnation) -> str:
        return f"{self.broker}/{self.dialect.stream}/{incarnation.name}"

    def _take(self, read: Read) -> None:
        source = self._source(read.incarnation)
        gathered = self._gathered.get(source)
        if gathered is None:
            gathered = self._gathered[source] = Gathered(self._lanes, self._directory)
            self._touched[source] = read.incarnation
        gathered.not_after_ms = self._not_after_ms
        read_cut(self.dialect, read.cut, source, gathered)
        if read.rest:
            read_last(self.dialect, read.rest, source, read.cut.start, gathered)
        if gathered.last_at_ms is not None:
            read.incarnation.last_at_ms = max(read.incarnation.last_at_ms, gathered.last_at_ms)

    def gaps(self, wall_ms: float) -> Iterator[Event]:
        """GAP events of what may be lost: from the last line before it to the first behind it, where that is there,
        else to now. A broker stamps a line before it writes it, and its threads write in another order: as far as
        stamps go back beside the loss, so far a lost line may lie outside of its neighbours."""
        for loss in self.tail.losses():
            source = f"{self.broker or UNNAMED}/{self.dialect.stream}/{loss.name}"
            before, behind = list(self._stamps(loss.copied)), list(self._stamps(loss.following))
            back_ms = max(_furthest_back_ms(before), _furthest_back_ms(behind))
            last_ms = max([loss.from_ms, *before])
            from_ms = last_ms - back_ms
            at = max(last_ms, next(iter(behind), wall_ms)) + (back_ms if behind else 0.0)
            detail = {"from_ms": from_ms, "to_ms": at, "reason": loss.reason}
            yield Event(int(Kind.GAP), ALL_SHARDS, source, loss.position, loss.position, at, at, at, at, detail=detail)

    def _stamps(self, data: bytes) -> Iterator[float]:
        """Stamps of the lines in some bytes of the log, of which the first and the last may be cut. None is later than
        what is believed."""
        for line in texts_in(data):
            at_ms = self.dialect.stamp_ms(line)
            if at_ms is not None and at_ms <= self._not_after_ms:
                yield at_ms

    def gap(self, from_ms: float, to_ms: float, reason: str) -> Iterator[Event]:
        """A stretch of time of which the present file says nothing, as a GAP event; none while it has no name."""
        current = self.tail.current
        if current is not None and current.name and self.broker:
            detail = {"from_ms": from_ms, "to_ms": to_ms, "reason": reason}
            source, at = self._source(current), current.position
            yield Event(int(Kind.GAP), ALL_SHARDS, source, at, at, to_ms, to_ms, to_ms, to_ms, detail=detail)

    def take_covered(self) -> list[Covered]:
        """What has been read since the last call, by incarnation; the present file always, if its name is known."""
        covered: list[Covered] = []
        current = self.tail.current
        if current is not None and current.name and self.broker and not self._held:
            source = self._source(current)
            self._touched.setdefault(source, current)
            self._gathered.setdefault(source, Gathered(self._lanes, self._directory))
        if self.dialect.quiet is not None:
            for source, rows in self.dialect.quiet.take().by_source().items():
                self._gathered[source].quiet = rows
        for source, incarnation in self._touched.items():
            if incarnation.last_at_ms > self._not_after_ms:
                incarnation.last_at_ms = 0.0  # saved by a version that believed any stamp
            complete_to_ms = incarnation.last_at_ms
            if incarnation is current:
                complete_to_ms = self._complete_to_ms = max(complete_to_ms, self._complete_to_ms)
            position = incarnation.position
            covered.append(Covered(source, incarnation.tick_end, position, complete_to_ms, self._gathered[source]))
            if complete_to_ms > 0:  # else no tick speaks of it: the next one does
                incarnation.tick_end = position
        self._touched, self._gathered = {}, {}
        return covered

    def saved(self) -> list[Saved]:
        """Positions of everything handed out so far; to be called right after `take_covered`."""
        return self.tail.saved()


def _furthest_back_ms(stamps: Sequence[float]) -> float:
    """How far the furthest stamp lies before the highest one ahead of it; a clock that was set is not counted."""
    highest = furthest_ms = 0.0
    for at_ms in stamps:
        highest = max(highest, at_ms)
        if highest - at_ms <= CLOCK_SET_MS:
            furthest_ms = max(furthest_ms, highest - at_ms)
    return furthest_ms
