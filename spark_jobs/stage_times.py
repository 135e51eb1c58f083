"""Where the time of a batch goes: wall and CPU of each stage, added up over its lanes. Pure but for the clock.

A stage ends where the next one begins, so that nothing between two of them is left out. CPU is that of the thread that
does it; `write` has threads of its own, so it is counted as what the whole process used. What Spark itself needs is
seen from outside: its own durations of a batch, and the CPU of the JVM (`spark_jobs.metrics`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

STAGES: Mapping[str, str] = {
    "receive": "records of a lane come from the JVM to its Python worker; its wall time is mostly the JVM's fetching",
    "back": "a lane is read back from base and journal",
    "decode": "records become events",
    "observe": "the observer takes the events and says what follows",
    "encode": "rows become bytes",
    "keep": "the step of the journal, and now and then a base, is written",
    "wait": "the driver waits until all lanes are stepped and their state is committed",
    "merge": "rows of all lanes are put together in the driver",
    "rows": "rows become Arrow",
    "write": "the commits of the tables",
}
"""Stages in the order of a batch; the first six are of the workers, once for each lane."""

Spent = dict[str, list[float]]
"""Stage -> [seconds, seconds of CPU]."""


class Laps:
    """A clock that is read at the end of each stage."""

    def __init__(self, cpu: Callable[[], float] = time.thread_time) -> None:
        """Begin now. `cpu`: which CPU time is meant."""
        self.spent: Spent = {}
        self._cpu = cpu
        self._at_s, self._cpu_at_s = time.perf_counter(), cpu()

    def end(self, stage: str) -> None:
        """Everything since the last call was of this stage."""
        at_s, cpu_at_s = time.perf_counter(), self._cpu()
        add(self.spent, [(stage, at_s - self._at_s, cpu_at_s - self._cpu_at_s)])
        self._at_s, self._cpu_at_s = at_s, cpu_at_s


def add(spent: Spent, rows: Iterable[Sequence[Any]]) -> None:
    """Add (stage, seconds, seconds of CPU)."""
    for stage, wall_s, cpu_s in rows:
        both = spent.setdefault(stage, [0.0, 0.0])
        both[0] += wall_s
        both[1] += cpu_s


def rows_of(spent: Spent) -> list[tuple[str, float, float]]:
    """What `add` takes."""
    return [(stage, wall_s, cpu_s) for stage, (wall_s, cpu_s) in spent.items()]
