"""Each event of a source once, whatever a collector sends again. Pure: what has been archived is asked through `Past`.

A collector sends the events of a source in the order of their positions. One that died between sending and saving its
positions goes back and sends a stretch again, and then a FETCH may be for a shard that its client was not known to
speak for before: a new event among old ones. So an event is new if

    it has not been met in this batch         (8 bytes for each event of a batch), and
    it lies above the mark of its source, or the table does not have it

The mark of a source is the highest start that the batches before have archived. It only saves questions, and may be
forgotten: a source without one is asked for.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from heapq import merge
from typing import NamedTuple, Protocol

import msgspec

from ingest.wire.batches import MAX_PARTITIONS
from kardia.events import Event

STRAYS = 65_536
"""Events behind their place that are kept apart before they are sorted in."""

MAX_MARKS = 1_000
"""Marks kept per lane, those that moved last: a hundred brokers with ten rotated files each. A mark that was dropped
costs one look into the table when its source speaks again, and no row; it is counted (`Moved`)."""


class Mark(msgspec.Struct, array_like=True):
    """How far one source has come in one lane: the highest start that is archived."""

    start: int


Marks = dict[str, Mark]
"""Marks of one lane by source; those that moved last are at the end."""


class Past(Protocol):
    """What the batches before have archived."""

    def highest(self, source: str) -> int:
        """Highest start of a source, -1 if there is none."""

    def starts(self, source: str, lowest: int, highest: int) -> set[tuple[int, int]]:
        """(start, shard) of the events of a source from one start to another, both included."""


class Nothing:
    """The past of a table without rows."""

    def highest(self, source: str) -> int:  # noqa: ARG002
        """Nothing."""
        return -1

    def starts(self, source: str, lowest: int, highest: int) -> set[tuple[int, int]]:  # noqa: ARG002
        """Nothing."""
        return set()


class _Met:
    """Positions of one source that have been met: most come in order, the others are sorted in by the heap."""

    __slots__ = ("_keys", "_strays")

    def __init__(self) -> None:
        self._keys = array("Q")
        self._strays: set[int] = set()

    def add(self, start: int, shard: int) -> bool:
        """Whether it had not been met before."""
        key = start * (MAX_PARTITIONS + 1) + shard + 1  # below 2**64, see `ingest.wire.batches`
        keys = self._keys
        if not keys or key > keys[-1]:
            keys.append(key)
            return True
        if key in self._strays or keys[bisect_left(keys, key)] == key:
            return False
        self._strays.add(key)
        if len(self._strays) >= STRAYS:
            self._keys = array("Q", merge(keys, sorted(self._strays)))
            self._strays.clear()
        return True


class Once:
    """Repeats of one lane within one batch."""

    def __init__(self, marks: Marks, past: Past) -> None:
        """`marks` are those after the batch before; they are not changed."""
        self._past = past
        self._marks = {source: mark.start for source, mark in marks.items()}
        self._met: dict[str, _Met] = {}

    def new(self, events: Sequence[Event]) -> Iterator[Event]:
        """Those of a record that are not archived yet. The table is asked once for each source, for their stretch."""
        known = {
            source: self._past.starts(source, lowest, highest)
            for source, (lowest, highest) in self._behind(events).items()
        }
        for event in events:
            met = self._met.setdefault(event.source, _Met())
            if met.add(event.start, event.shard) and (event.start, event.shard) not in known.get(event.source, ()):
                yield event

    def _behind(self, events: Iterable[Event]) -> dict[str, tuple[int, int]]:
        """Lowest and highest start at or below the mark, by source."""
        found: dict[str, tuple[int, int]] = {}
        for event in events:
            source, start = event.source, event.start
            mark = self._marks.get(source)
            if mark is None:
                mark = self._marks[source] = self._past.highest(source)
            if start <= mark:
                lowest, highest = found.get(source, (start, start))
                found[source] = min(lowest, start), max(highest, start)
        return found


class Moved(NamedTuple):
    """Marks after a batch."""

    marks: Marks
    forgotten: int
    """Marks that were dropped because there were more than `MAX_MARKS`."""


def moved(marks: Marks, starts: Iterable[tuple[str, int]]) -> Moved:
    """Marks after a batch that archived these (source, start): the last moved at the end, `MAX_MARKS` at most."""
    after = dict(marks)
    for source, start in starts:
        before = after.pop(source, Mark(-1))
        after[source] = Mark(max(before.start, start))
    kept = dict(list(after.items())[-MAX_MARKS:])
    return Moved(kept, len(after) - len(kept))
