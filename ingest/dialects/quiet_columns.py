"""A block of lines looked at all at once, and the columns that quiet requests are gathered in, with who sent them.

It must not know what a line says. A row costs `WIDTH` numbers and one for its sender, whatever the line was.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any, NamedTuple

import numpy as np

from ingest.quiet_requests import NONE, Numbers, Places, Rows
from kardia.events import Event

SENDERS_MAX = 250_000
"""Senders that are remembered from one taking to the next, a kilobyte each; beyond them all are met anew. A member is
two of them, as it asks its coordinator and the leaders of its partitions by connections of their own."""

LINES_REMEMBERED = 50
"""After so many lines of each on average all are met anew as well: of a log that was rotated, and of clients that went,
nothing is kept for long, and whoever goes on is met at a fiftieth of its lines."""


class Folded(NamedTuple):
    """What is left of a block."""

    rest: Iterable[tuple[bytes, int, int]]
    """Lines to be read by themselves: (line, start, end)."""
    highest_at_ms: float
    """Highest stamp of the lines that were folded, or the one given."""
    silence: bool
    """Whether two folded lines are `SILENCE_MS` apart."""
    lines: int
    """Lines of the block, before any were put together."""


class Block:
    """Complete lines, and where they are: `ends` are the places of the line ends."""

    __slots__ = ("begins", "data", "ends")

    def __init__(self, data: bytes) -> None:
        """`data` ends with a line end, and has no NUL bytes."""
        self.data = data
        self.ends: Places = np.flatnonzero(np.frombuffer(data, np.uint8) == ord("\n"))
        self.begins: Places = np.concatenate((np.zeros(1, np.int64), self.ends[:-1] + 1))

    def __len__(self) -> int:
        return len(self.ends)

    def line(self, number: int) -> bytes:
        """One line, without its end."""
        return self.data[self.begins[number] : self.ends[number]]

    def cut(self, chosen: Any) -> list[tuple[bytes, int, int]]:
        """Lines that are chosen, with their begin and the begin of the next in the block."""
        begins, ends = self.begins[chosen].tolist(), self.ends[chosen].tolist()
        return [(self.data[begin:end], begin, end + 1) for begin, end in zip(begins, ends, strict=True)]

    def bytes_at(self, lines: Places, place: int, size: int) -> Any:
        """`size` bytes of each of these lines from one place on; they must be there."""
        return self._bytes(self.begins[lines] + place, size)

    def bytes_before_end(self, lines: Places, size: int) -> Any:
        """The last `size` bytes of each of these lines; they must be there."""
        return self._bytes(self.ends[lines] - size, size)

    def _bytes(self, places: Places, size: int) -> Any:
        """No copy of the block: at every byte begins a string of this size."""
        every: Any = np.ndarray((max(0, len(self.data) - size + 1),), f"S{size}", self.data, strides=(1,))
        return every[places]


class Columns:
    """Rows, and who sent each of them. A sender keeps its number from one taking to the next: of nearly all rows the
    sender is one that was met before, and its head is there."""

    __slots__ = ("_heads", "_rows", "_senders", "_taken", "number_of")

    def __init__(self) -> None:
        """Begin with nobody."""
        self.number_of: dict[Hashable, int] = {}
        """What the lines of a sender have in common -> its number."""
        self._heads: list[Event] = []
        self._senders: list[Places] = []
        self._rows: list[Numbers] = []
        self._taken = 0
        """Rows that were taken since numbers were given anew."""

    def begin(self, key: Hashable, head: Event) -> int:
        """A sender that has no number yet, with a request of it."""
        number = self.number_of[key] = len(self._heads)
        self._heads.append(head)
        return number

    def add(self, senders: Places, rows: Numbers) -> None:
        """Rows and the number of the sender of each, in the order of the log."""
        self._senders.append(senders)
        self._rows.append(rows)

    def rows(self) -> int:
        """Rows that are held."""
        return sum(map(len, self._senders))

    def take(self) -> Rows:
        """All of them, with the heads that have any, in the order of their first ones."""
        if not self._rows:
            return NONE
        used, first, places = np.unique(np.concatenate(self._senders), return_index=True, return_inverse=True)
        in_order = np.argsort(first)
        place_of = np.empty(len(used), np.int64)
        place_of[in_order] = np.arange(len(used))
        heads = [self._heads[number] for number in used[in_order].tolist()]
        taken = Rows(heads, place_of[places], np.concatenate(self._rows))
        self._senders, self._rows = [], []
        self._taken += len(places)
        if len(self._heads) > SENDERS_MAX or self._taken > LINES_REMEMBERED * len(self._heads):
            self.number_of, self._heads, self._taken = {}, [], 0
        return taken
