"""Long work in a thread beside the event loop that leaves the interpreter to the requests two of three milliseconds.

Two threads that both compute share the interpreter by taking it from each other, and whoever reads or writes a socket
gives it up each time. A request does that three or four times: beside a thread that never rests it waited for its turn
each time, and those behind it as well; in a look or a scrape of a large fleet for tens of ms in the end. What takes
less than a burst never rests.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from threading import Lock
from time import perf_counter, sleep
from typing import TypeVar

Item = TypeVar("Item")

BURST_S = 0.001
"""Work without a rest."""

REST_S = 0.002
"""How long requests then have the interpreter for themselves, whatever other threads have to do."""


class Turns:
    """Bursts of all threads, one after the other with a rest between them: two threads that rest, each on its own,
    leave nothing of their rests."""

    def __init__(self) -> None:
        self._lock = Lock()
        self.booked_to_s = 0.0
        """When the next burst may begin, on the clock of `perf_counter`."""

    def wait(self) -> float:
        """Rest until the next burst may begin; gives its end."""
        with self._lock:
            begin_s = max(perf_counter() + REST_S, self.booked_to_s)
            self.booked_to_s = begin_s + BURST_S + REST_S
        sleep(max(0.0, begin_s - perf_counter()))
        return perf_counter() + BURST_S


_TURNS = Turns()


def resting(items: Iterable[Item]) -> Iterator[Item]:
    """The items, with rests between them; only for a thread of its own."""
    rest_at_s = perf_counter() + BURST_S
    for item in items:
        yield item
        if perf_counter() >= rest_at_s:
            rest_at_s = _TURNS.wait()


class RestingList(list[Item]):
    """A list for somebody else's code, which rests whenever that goes through it."""

    def __iter__(self) -> Iterator[Item]:
        """The items, with rests between them."""
        return resting(super().__iter__())
