"""A stretch: requests of one kind by one member or client that differ only in position and time. Folds and unfolds
them.

Nearly every line of a request log is a HEARTBEAT answered without error or a FETCH. A stretch keeps who sent them once
and seven numbers for each, so that reading, storing and applying them costs a fraction of an object per line. Nothing
is lost on the way: `events()` gives back what was folded, as far as the observer looks at it.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator
from operator import itemgetter
from typing import Any

from kardia.events import Event, Kind, for_shard

EXACT_MAX = 1 << 53
"""Largest whole number that the columns hold exactly; a damaged line may name a larger size, which means no more."""

FIELDS = ("start", "end", "logged_at_ms", "arrived_at_ms", "handled_at_ms", "decided_at_ms", "bytes")
"""The numbers of one request in this order; `bytes` is the size of the records in the answer to a FETCH, else 0."""

WIDTH = len(FIELDS)
START, END, LOGGED, ARRIVED, HANDLED, DECIDED, BYTES = range(WIDTH)

_FETCH = int(Kind.FETCH)

sender_of = itemgetter(*(place for place, name in enumerate(Event._fields) if name not in (*FIELDS, "detail")))
"""What all requests of a stretch have in common: kind, source, and who sent them, how. The `detail` of a FETCH is its
size, which is among the numbers."""


INSTANTS = slice(LOGGED, DECIDED + 1)
"""The four instants of a request among its `FIELDS`."""

BEFORE, BEHIND = slice(Event._fields.index(FIELDS[0])), slice(Event._fields.index("group_id"), -1)
"""What a head has before the numbers of a request and behind them, but for the detail."""


def unfolding(head: Event) -> Callable[..., Event]:
    """What makes a request of a head of its `FIELDS`."""
    values: tuple[Any, ...] = tuple(head)
    before, behind, fetches, make = values[BEFORE], values[BEHIND], head.kind == _FETCH, Event._make

    def unfold(
        start: float, end: float, logged: float, arrived: float, handled: float, decided: float, size: float
    ) -> Event:
        detail = {"bytes": int(min(size, EXACT_MAX))} if fetches else None
        return make((*before, int(start), int(end), logged, arrived, handled, decided, *behind, detail))

    return unfold


class Stretch:
    """Who, and `FIELDS` of each request one after the other. The head's own position, instants and detail say
    nothing."""

    __slots__ = ("head", "numbers")

    def __init__(self, head: Event, numbers: array[float]) -> None:
        """`numbers` has `WIDTH` entries for each request, in the order of the log."""
        self.head = head
        self.numbers = numbers

    def __len__(self) -> int:
        """Requests."""
        return len(self.numbers) // WIDTH

    def column(self, field: int) -> array[float]:
        """One of `FIELDS` for every request."""
        return self.numbers[field::WIDTH]

    def events(self) -> Iterator[Event]:
        """The requests one by one."""
        numbers, unfold = self.numbers, unfolding(self.head)
        return (unfold(*numbers[at : at + WIDTH]) for at in range(0, len(numbers), WIDTH))

    def for_shard(self, shard: int) -> Stretch:
        """The same requests as events of another shard. The numbers are shared: nobody changes them."""
        return Stretch(for_shard(self.head, shard), self.numbers)
