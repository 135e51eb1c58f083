"""A block of lines looked at all at once, and requests that are being put into stretches, in columns: who sent each of
them, and its numbers. They are made into stretches at the end, those of all senders at once.

It must not know what a line says. A row costs `WIDTH` numbers and one for its sender, whatever the line was.
"""

from __future__ import annotations

from array import array
from collections.abc import Hashable, Iterable
from typing import Any, NamedTuple

import numpy as np

from kardia.events import Event
from kardia.stretches import START, Stretch

Numbers = np.ndarray[Any, np.dtype[np.float64]]
"""`kardia.stretches.FIELDS` of some requests, a row each; or one of the columns."""
Places = np.ndarray[Any, np.dtype[np.int64]]
"""Numbers of lines in a block, bytes in it, or numbers of senders."""


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
    """Rows by sender, in any order."""

    __slots__ = ("_heads", "_rows", "_senders", "place_of")

    def __init__(self) -> None:
        """Begin with nobody."""
        self.place_of: dict[Hashable, int] = {}
        """What the lines of a sender have in common -> its number."""
        self._heads: list[Event] = []
        self._senders: list[Places] = []
        self._rows: list[Numbers] = []

    def begin(self, key: Hashable, head: Event) -> int:
        """A sender that was not met before, with its first request."""
        place = self.place_of[key] = len(self._heads)
        self._heads.append(head)
        return place

    def add(self, senders: Places, rows: Numbers) -> None:
        """Rows and the number of the sender of each. Those of a sender come in the order of the log."""
        self._senders.append(senders)
        self._rows.append(rows)

    def rows(self) -> int:
        """Rows that are held."""
        return sum(map(len, self._senders))

    def take(self) -> list[Stretch]:
        """Stretches in the order of their first lines; all is forgotten."""
        if not self._rows:
            return []
        senders, rows = np.concatenate(self._senders), np.concatenate(self._rows)
        rows = rows[np.argsort(senders, kind="stable")]
        counts = np.bincount(senders, minlength=len(self._heads))  # nobody has none: begun with a row
        ends = np.cumsum(counts)
        begins = ends - counts
        in_order = np.argsort(rows[begins, START], kind="stable")
        stretches = [
            Stretch(self._heads[place], array("d", rows[begin:end].tobytes()))
            for place, begin, end in zip(
                in_order.tolist(), begins[in_order].tolist(), ends[in_order].tolist(), strict=True
            )
        ]
        self.place_of, self._heads, self._senders, self._rows = {}, [], [], []
        return stretches
