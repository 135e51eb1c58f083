"""Virtual time: a queue of things that will happen, in the order of their instants. Knows nothing of Kafka.

Instants are floats, epoch milliseconds. Nothing waits: a minute costs as much as what happens in it.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable

START_MS = 1_800_000_000_000.0
"""When every run begins."""


class World:
    """A clock, a source of chance and what is going to happen."""

    def __init__(self, seed: int) -> None:
        """`seed` decides everything that is left to chance."""
        self.now_ms = START_MS
        self.random = random.Random(seed)
        self._queue: list[tuple[float, int, Callable[[], None]]] = []
        self._number = 0

    def at(self, at_ms: float, act: Callable[[], None]) -> None:
        """Do something at an instant, now if it has passed; what is due at one instant is done in the order asked."""
        self._number += 1
        heapq.heappush(self._queue, (max(at_ms, self.now_ms), self._number, act))

    def after(self, delay_ms: float, act: Callable[[], None]) -> None:
        """Do something later."""
        self.at(self.now_ms + delay_ms, act)

    def run(self, to_ms: float) -> None:
        """Let everything happen up to an instant."""
        while self._queue and self._queue[0][0] <= to_ms:
            at_ms, _, act = heapq.heappop(self._queue)
            self.now_ms = at_ms
            act()
        self.now_ms = to_ms
