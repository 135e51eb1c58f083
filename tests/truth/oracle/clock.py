"""Virtual time for Kafka's classes: a clock that stands still and timers that fire when they are told to.

Timers fire in the order of their deadlines, equal deadlines in the order of arming: Kafka's hierarchical wheel does the
same within one thread.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Any

import jpype

from tests.truth.oracle.jvm import MadeUp, either, jclass

SPINS = 5_000
"""Timers that may fire in one instant. A group whose members are all static, and ask for no time to rejoin, has its
join timer fire and be armed again without end when nobody rejoins: a broker is busy with it until a session is over."""

_PACKAGES = ("org.apache.kafka.server.util.timer", "kafka.utils.timer")


class SpinError(Exception):
    """Kafka's coordinator goes round in circles, and time stands still with it."""


class Clock:
    """Now, and what is due. `time` and `timer` are the Java objects to hand out."""

    def __init__(self) -> None:
        """At 0, with no timer."""
        self.now_ms = 0
        self._heap: list[tuple[int, int, Any, Callable[[], None]]] = []
        self._numbers = 0
        self._fired = 0
        """Timers in this instant."""
        # In Java from 3.6 on, before in Scala.
        self._entry = either(*(f"{package}.TimerTaskEntry" for package in _PACKAGES))
        self._millis = jclass("java.util.concurrent.atomic.AtomicLong")(0)
        self._nanos = jclass("java.util.concurrent.atomic.AtomicLong")(0)
        self.on_add: Callable[[Any, Any, int, int], None] = lambda *_: None
        """Hears of every timer that is armed: the task, its entry, its deadline and its number."""
        self.on_fire: Callable[[int], None] = lambda *_: None
        """Hears the number of every timer that fires, before it does."""
        atomic = "java.util.concurrent.atomic.AtomicLong"
        self.time = (
            MadeUp("org.apache.kafka.common.utils.Time")
            .passes("milliseconds", self._millis, atomic, "get")
            .passes("nanoseconds", self._nanos, atomic, "get")
            .make()
        )
        self.timer = jpype.JProxy(
            str(either(*(f"{package}.Timer" for package in _PACKAGES)).class_.getName()),
            dict={"add": self._add, "size": lambda: 0, "close": lambda: None, "shutdown": lambda: None},
        )

    def set(self, now_ms: int) -> None:
        """Move the clock; fires nothing."""
        if now_ms != self.now_ms:
            self.now_ms, self._fired = now_ms, 0
            self._millis.set(now_ms)
            self._nanos.set(now_ms * 1_000_000)

    def clear(self) -> None:
        """Forget all timers."""
        self._heap.clear()
        self._fired = 0

    def at(self, deadline_at_ms: int, act: Callable[[], None]) -> None:
        """Do something of our own at an instant."""
        self._numbers += 1
        heapq.heappush(self._heap, (deadline_at_ms, self._numbers, None, act))

    def next_at_ms(self) -> int | None:
        """When the next timer is due that has not been cancelled."""
        while self._heap:
            deadline_at_ms, _, entry, _ = self._heap[0]
            if entry is None or not entry.cancelled():
                return deadline_at_ms
            heapq.heappop(self._heap)
        return None

    def fire(self) -> None:
        """Fire the timer that `next_at_ms` told of, at its instant. Raises SpinError when there is no end to them."""
        deadline_at_ms, number, _, act = heapq.heappop(self._heap)
        self.set(max(deadline_at_ms, self.now_ms))
        self._fired += 1
        if self._fired > SPINS:
            raise SpinError(f"{SPINS} timers have fired at {self.now_ms}")
        self.on_fire(number)
        act()

    def _add(self, task: Any) -> None:
        delay_ms = task.delayMs
        deadline_at_ms = self.now_ms + int(delay_ms() if callable(delay_ms) else delay_ms)
        entry = self._entry(task, deadline_at_ms)
        self._numbers += 1
        heapq.heappush(self._heap, (deadline_at_ms, self._numbers, entry, task.run))
        self.on_add(task, entry, deadline_at_ms, self._numbers)
