"""Up to when the partitions of a topic that never stops growing have been read.

The end of a partition is told (EOF) only when a fetch brings nothing of it, and on a busy cluster there is always one
that brings something: all of them are never at their ends at once. So each partition has an instant of its own. The
high watermark that came with a fetch is a *mark*: whatever had been appended by then lies below it, and once what is
read next lies at or behind it, the partition has been read up to the instant of the mark. Some offsets below a mark are
never delivered (markers of transactions, records that compaction took away): then EOF or the next record passes it.
Instants in ms of the caller's clock.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

UNKNOWN = -1
"""Of a watermark: no fetch has told it."""


@dataclass(slots=True)
class _Partition:
    read_to_ms: float = 0.0
    """Everything appended up to then has been read; 0 before the end was reached once."""
    at_end: bool = False
    """So it is still: nothing has come since."""
    mark: int = UNKNOWN
    marked_at_ms: float = 0.0


class Ends:
    """Ends of the partitions of a topic."""

    def __init__(self, partitions: Iterable[int]) -> None:
        """No end was reached yet."""
        self._partitions = {partition: _Partition() for partition in partitions}

    def reached(self, partition: int, now_ms: float) -> None:
        """EOF: nothing is left of a partition."""
        found = self._partitions[partition]
        found.at_end, found.read_to_ms, found.mark = True, now_ms, UNKNOWN

    def read(self, partition: int, next_offset: int, high: int, now_ms: float) -> None:
        """Records of a partition have been read, and what comes next has `next_offset` or a later one. `high` is its
        high watermark as the latest fetch said it, below 0 while that is not known."""
        found = self._partitions[partition]
        found.at_end = False
        if 0 <= found.mark <= next_offset:
            found.read_to_ms, found.mark = found.marked_at_ms, UNKNOWN
        if 0 <= high <= next_offset:
            self.reached(partition, now_ms)
        elif high >= 0 > found.mark:
            found.mark, found.marked_at_ms = high, now_ms

    @property
    def all_were_reached(self) -> bool:
        """Whether every partition has been read to an end of it once."""
        return all(found.read_to_ms > 0 for found in self._partitions.values())

    def read_to_ms(self, now_ms: float) -> float:
        """Instant up to which all partitions have been read; 0 while one was not read to its end."""
        return min((now_ms if found.at_end else found.read_to_ms for found in self._partitions.values()), default=0.0)
