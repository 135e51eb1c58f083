"""The end of one partition over time: when did the record at an offset come?

What is seen is "somewhere between asking and answering, the end was E". A *run* is a stretch in which every look saw
the same end: [end, instant of the first answer, instant at which the last look was asked]. Ends only grow, so the
record at an offset came after the last look that did not have it was asked, and before the first answer that had it.
Between those two instants it is placed by interpolation; outside of what was seen nothing is placed.

An end that goes back, or a leader epoch that does, is another log under the old name (a topic made anew, or cut off by
an unclean election): what was seen of the one before says nothing about it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

RUNS_MAX = 64
"""Runs kept of a partition. When there are more, the one goes without which least is lost for its age: near instants
stay fine, old ones get coarse, and how far back it reaches has no bound."""

END, FIRST, LAST = 0, 1, 2
"""Places in a run: the end, first answered, last asked; instants in epoch milliseconds of the collector's clock."""


class Came(NamedTuple):
    """When a record came, in epoch milliseconds of the collector's clock."""

    from_ms: int | None
    """Not before; None: it was there when the partition was first seen."""
    at_ms: int | None
    """Interpolated; None without both bounds."""
    to_ms: int
    """Not after."""


@dataclass(slots=True)
class PartitionEnd:
    """One partition as it was seen."""

    runs: list[list[int]] = field(default_factory=list)
    """Ascending by end, and by instant."""
    start: int = -1
    """Log start offset, -1 where it is not known."""
    epoch: int = -1
    """Leader epoch of the last look, -1 where brokers do not tell."""
    feed: int = -1
    """Which chain of looks told it last (`book.Feed`); -1: it cannot be read."""

    @property
    def end(self) -> int | None:
        """End as it was last seen; None before."""
        return self.runs[-1][END] if self.runs else None

    def see(self, end: int, asked_ms: int, answered_ms: int, start: int = -1, epoch: int = -1) -> None:
        """Take a look in. Looks come in the order of their instants."""
        runs = self.runs
        if runs and (end < runs[-1][END] or 0 <= epoch < self.epoch):
            runs.clear()
        self.start, self.epoch = start, epoch
        if runs and runs[-1][END] == end:
            self.unchanged(asked_ms)
            return
        runs.append([end, answered_ms, asked_ms])
        # Records below the log's start are gone: nobody asks when they came.
        while len(runs) > 1 and runs[1][END] <= start:
            del runs[0]
        if len(runs) > RUNS_MAX:
            self._thin()

    def unchanged(self, asked_ms: int) -> None:
        """A later look saw the same end."""
        if self.runs and asked_ms > self.runs[-1][LAST]:
            self.runs[-1][LAST] = asked_ms

    def _thin(self) -> None:
        runs, now_ms = self.runs, self.runs[-1][FIRST]
        least, place = 2.0, 1
        for at in range(1, len(runs) - 1):
            share = (runs[at + 1][FIRST] - runs[at - 1][LAST]) / max(1, now_ms - runs[at - 1][LAST])
            if share < least:
                least, place = share, at
        del runs[place]

    def came(self, offset: int) -> Came | None:
        """When the record at an offset came; None where it has not come, as far as was seen."""
        runs = self.runs
        if not runs or offset >= runs[-1][END]:
            return None
        low, high = 0, len(runs) - 1
        while low < high:
            middle = (low + high) // 2
            if runs[middle][END] > offset:
                high = middle
            else:
                low = middle + 1
        to_ms = runs[low][FIRST]
        if low == 0:
            return Came(None, None, to_ms)
        before = runs[low - 1]
        from_ms, records = min(before[LAST], to_ms), runs[low][END] - before[END]
        # The middle of its place among the records that came between the two looks.
        at_ms = from_ms + (to_ms - from_ms) * (2 * (offset - before[END]) + 1) // (2 * records)
        return Came(from_ms, at_ms, to_ms)

    def end_at(self, at_ms: int) -> int | None:
        """End at an instant, between the looks by interpolation; None before the first look."""
        runs = self.runs
        if not runs or at_ms < runs[0][FIRST]:
            return None
        for place in range(len(runs) - 1, -1, -1):
            run = runs[place]
            if run[FIRST] <= at_ms:
                if at_ms <= run[LAST] or place == len(runs) - 1:
                    return run[END]
                after = runs[place + 1]
                since_ms = max(run[FIRST], run[LAST])
                within_ms = max(1, after[FIRST] - since_ms)
                return run[END] + (after[END] - run[END]) * max(0, at_ms - since_ms) // within_ms
        return None
