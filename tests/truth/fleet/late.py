"""How late a broker's timers fire: mostly within 3 ms, by 30 to 150 ms under load, sometimes by up to 900.

A timer thread that does not get the processor fires nothing meanwhile and everything that came due when it is back, by
deadline. The handler threads go on: a heartbeat that is handled before the timer of its session fires renews it. Up to
3.9 sessions and phases have a thread each, from 4.0 one thread has both (`DelayedOperationPurgatory`, `SystemTimer`).
Seen on real brokers beside a busy neighbour: 30 to 150 ms.
"""

from __future__ import annotations

import random
from bisect import bisect_right

from kardia.coordinator.timers import TimerKind

SESSIONS = (TimerKind.SESSION, TimerKind.EXPIRE)
PHASES = (TimerKind.JOIN, TimerKind.SYNC)

SCALA_THREADS: tuple[tuple[TimerKind, ...], ...] = (SESSIONS, PHASES)
JAVA_THREADS: tuple[tuple[TimerKind, ...], ...] = ((*SESSIONS, *PHASES),)

USUAL_MS = 3.0
"""A timer of a broker with nothing else to do is that late at most."""

CALM_MS, LOADED_MS = 30_000.0, 4_000.0
"""Mean lengths of the stretches without and with load."""


class TimerThread:
    """One thread of one broker that fires timers. Its chance is its own: a function of seed, broker and thread."""

    def __init__(self, seed: str, begin_ms: float) -> None:
        """`begin_ms`: nothing is due before."""
        self._chance = random.Random(seed)
        self._planned_to_ms = begin_ms
        self._begins: list[float] = []
        self._ends: list[float] = []

    def fires_at_ms(self, due_ms: float) -> float:
        """When the thread gets to a timer that is due at an instant; never goes back as `due_ms` grows."""
        while self._planned_to_ms <= due_ms:
            self._plan()
        place = bisect_right(self._begins, due_ms) - 1
        return max(due_ms, self._ends[place]) if place >= 0 else due_ms

    def jitter_ms(self) -> float:
        """What comes on top of it from one look at the clock to the next."""
        return min(self._chance.expovariate(1.5), USUAL_MS)

    def _plan(self) -> None:
        """One stretch without load and one with: there the thread waits again and again."""
        at_ms = self._planned_to_ms + self._chance.expovariate(1 / CALM_MS)
        loaded_to_ms = at_ms + self._chance.expovariate(1 / LOADED_MS)
        while at_ms < loaded_to_ms:
            rare = self._chance.random() < 0.03
            waits_ms = self._chance.uniform(150, 900) if rare else self._chance.uniform(30, 150)
            self._begins.append(at_ms)
            self._ends.append(at_ms + waits_ms)
            at_ms += waits_ms + self._chance.uniform(5, 100)
        self._planned_to_ms = at_ms
