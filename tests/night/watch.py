"""Memory of Kardia's roles while a night lasts, and the size of their logs: what a machine would run out of.

Sampled, never asked of the roles themselves. A role is its process and everything below it. Of one that has a JVM, as
Spark has, the Python processes are judged by themselves, and the JVM by what is left in its heap after a collection
(its own log says so): a heap takes from the machine what it may have, whether it needs that or not.
"""

from __future__ import annotations

import itertools
import math
import re
import shutil
import statistics
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

EVERY_S = 2.0

ASK_S = 20.0
"""For an answer of a JVM: it answers when it has collected."""

COLLECT_EVERY_S, COLLECT_AGAIN_S = 300.0, 15.0
"""The JVM of Spark is asked so often to collect its heap, and so long after that once more, twice: what the first
collection shows to be forgotten (24,000 counters in two minutes, 40 MB) Spark lets go only then, and a task that runs
just then holds pages of 16 MB."""

SETTLED_S = 240.0
"""A Python process has its size after its first batches."""

HEAP_SETTLED_S = 600.0
"""What a JVM keeps for good, its classes' compiled form and caches of Spark among it, is there after ten minutes."""

JUDGED_S = 900.0
"""Growth is judged of a life that lasted so long after it had settled: below, noise would be taken for a trend."""

STREAM_PYTHON, STREAM_HEAP = "stream, Python", "stream, heap after collection"

LULL_S = 300.0
"""Spark forks a Python process for each batch of the archive, every two minutes, and ends it a minute later: 150 MB
that are there or not. What the job keeps is what it has in the quietest moment of so long."""

STEP_MB = {"collect": 5.0, STREAM_PYTHON: 50.0, STREAM_HEAP: 25.0, "serve": 20.0, "notify": 20.0, "live": 20.0}
"""A life that did not grow by more is flat, whatever that is in an hour: allocators take memory, and give it back, in
steps. The rows of a night of 75 minutes, written twice, one behind the other, took `kardia serve` from 193 to 198 MB;
one that was started over all of them had 266 MB, then 239, and 260 at the end of a third."""

GROWTH_MB_PER_HOUR = {
    "collect": 15.0,
    "serve": 30.0,
    "notify": 15.0,
    "live": 30.0,
    STREAM_PYTHON: 30.0,
    STREAM_HEAP: 20.0,
}
"""What is still called flat."""

CEILING_MB = {"collect": 200.0, "stream": 2_600.0, "serve": 450.0, "notify": 250.0, "live": 450.0}
"""No role is ever larger, however short it lived. Spark's JVM has a heap of at most 1 GB (`spark.driver.memory`)."""

LOG_KB_PER_HOUR = {
    "collect": 1_500.0,
    "stream": 3_000.0,
    "serve": 1_500.0,
    "notify": 1_500.0,
    "live": 3_000.0,
    "up": 200.0,
}
"""With faults every minute. A role that says the same again and again reaches it within minutes."""


@dataclass(frozen=True)
class Sample:
    """Memory of a role and its children, or of a part of them."""

    at_s: float
    role: str
    pid: int
    mb: float


class Watch:
    """Samples of a night."""

    def __init__(self) -> None:
        self.samples: list[Sample] = []
        self._next_s = self._collect_s = 0.0
        self._waits_s = itertools.cycle((COLLECT_AGAIN_S, COLLECT_AGAIN_S, COLLECT_EVERY_S))

    def look(self, roles: Mapping[str, psutil.Process]) -> None:
        """Take a sample of each role, if it is time."""
        now_s = time.monotonic()
        if now_s < self._next_s:
            return
        self._next_s = now_s + EVERY_S
        if now_s >= self._collect_s:
            self._collect_s = now_s + next(self._waits_s)
            _collect(roles)
        for role, running in roles.items():
            whole_mb, java_mb = _size_mb(running)
            if whole_mb:
                self.samples.append(Sample(now_s, role, running.pid, whole_mb))
            if java_mb:
                self.samples.append(Sample(now_s, f"{role}, Python", running.pid, whole_mb - java_mb))


def _collect(roles: Mapping[str, psutil.Process]) -> None:
    """Ask Spark's JVM to collect its heap. A JRE without `jcmd` is judged by its own collections alone."""
    jcmd = shutil.which("jcmd")
    if jcmd is None or "stream" not in roles:
        return
    with suppress(psutil.Error, subprocess.SubprocessError):
        for one in roles["stream"].children(recursive=True):
            if one.name() == "java":
                subprocess.run([jcmd, str(one.pid), "GC.run"], capture_output=True, timeout=ASK_S, check=False)


def _size_mb(running: psutil.Process) -> tuple[float, float]:
    """Of a process and all below it, and of the JVMs among them."""
    try:
        family = [running, *running.children(recursive=True)]
    except psutil.Error:
        return 0.0, 0.0
    total = java = 0
    for one in family:
        try:
            size = memory_of(one)
            java += size if one.name() == "java" else 0
        except psutil.Error:
            continue
        total += size
    return total / 1_000_000, java / 1_000_000


_COLLECTED = re.compile(r"^\[(\d+\.\d+)s\].* Pause Full .* \d+M->(\d+)M\(\d+M\)", re.MULTILINE)
"""A collection of the young alone leaves what is old, needed or not."""


def heap_samples(logs: Iterable[Path]) -> list[Sample]:
    """What was left in the heaps of Spark's JVMs after each collection of all of it, by their logs, one per life: of
    those that came soon one after the other the least, if there are any."""
    found = []
    for life, log in enumerate(logs):
        left = [
            Sample(float(at_s), STREAM_HEAP, life, float(mb) * 1.048_576) for at_s, mb in _COLLECTED.findall(_text(log))
        ]
        series = _series(left)
        settled = [one for one in series if one.at_s >= HEAP_SETTLED_S]
        found += series if settled else left
    return found


def _series(left: Sequence[Sample]) -> list[Sample]:
    """The least of each series of collections that came soon one after the other."""
    series: list[list[Sample]] = []
    for one in left:
        if series and one.at_s - series[-1][-1].at_s < 2 * COLLECT_AGAIN_S:
            series[-1].append(one)
        else:
            series.append([one])
    return [min(some, key=lambda one: one.mb) for some in series if len(some) > 1]


def _text(log: Path) -> str:
    return log.read_text(encoding="utf-8", errors="replace")


def memory_of(one: psutil.Process) -> int:
    """Bytes that a process takes from the machine. Python workers are forked and share most of their memory, and a page
    that several have counts once (Linux, proportional set size): by resident memory the five of a `kardia stream` of
    1.48 GB have 1.84 GB."""
    found = one.memory_full_info()
    return int(getattr(found, "pss", 0) or found.rss)


@dataclass(frozen=True)
class Memory:
    """What the samples of one role say. `growth` is None where no life of it was long enough to be judged."""

    role: str
    lives: int
    most_mb: float
    growth_mb_per_hour: float | None
    grown_mb: float = 0.0
    """In the life that grew fastest, from its first third to its last."""

    @property
    def faults(self) -> list[str]:
        """Sentences; none where it is flat."""
        said = []
        ceiling, most = (limits.get(self.role, math.inf) for limits in (CEILING_MB, GROWTH_MB_PER_HOUR))
        if self.most_mb > ceiling:
            said.append(f"{self.role} had {self.most_mb:.0f} MB of memory, more than {ceiling:.0f} MB")
        growth = self.growth_mb_per_hour
        if growth is not None and growth > most and self.grown_mb > STEP_MB[self.role]:
            said.append(f"{self.role} grew by {growth:.0f} MB per hour, more than {most:.0f} MB")
        return said


def memory(samples: Sequence[Sample]) -> list[Memory]:
    """Size and growth of each role over all its lives."""
    found = []
    for role in sorted({one.role for one in samples}):
        lives: dict[int, list[Sample]] = {}
        for one in samples:
            if one.role == role:
                lives.setdefault(one.pid, []).append(one)
        most_mb = max(one.mb for life in lives.values() for one in life)
        growths = [growth for life in lives.values() if (growth := _growth(life)) is not None]
        fastest, grown_mb = max(growths, default=(None, 0.0))
        found.append(Memory(role, len(lives), most_mb, fastest, grown_mb))
    return found


def _growth(life: Sequence[Sample]) -> tuple[float, float] | None:
    """(MB per hour, MB), from the median of the first third to that of the last third of a life that had settled. Of a
    heap it is the least of each: records that were just fetched are there or not."""
    settled_s = HEAP_SETTLED_S if life[0].role == STREAM_HEAP else SETTLED_S
    settled = [one for one in life if one.at_s - life[0].at_s >= settled_s]
    if life[0].role == STREAM_PYTHON:
        settled = _quietest(settled)
    if not settled or settled[-1].at_s - settled[0].at_s < JUDGED_S:
        return None
    third = len(settled) // 3
    early, late = settled[:third], settled[-third:]
    hours = (_middle(one.at_s for one in late) - _middle(one.at_s for one in early)) / 3_600
    size: Callable[[Iterable[float]], float] = min if life[0].role == STREAM_HEAP else _middle
    grown_mb = size(one.mb for one in late) - size(one.mb for one in early)
    return grown_mb / hours, grown_mb


def _quietest(samples: Iterable[Sample]) -> list[Sample]:
    """The least of each `LULL_S`."""
    lulls = itertools.groupby(samples, key=lambda one: one.at_s // LULL_S)
    return [min(some, key=lambda one: one.mb) for _, some in lulls]


def _middle(numbers: Iterable[float]) -> float:
    return statistics.median(numbers)


def log_sizes(up_log: Path, logs: Path) -> dict[str, int]:
    """Bytes of the log of `kardia up` and of each role."""
    return {"up": up_log.stat().st_size} | {path.stem: path.stat().st_size for path in sorted(logs.glob("*.log"))}


def floods(sizes: Mapping[str, int], hours: float) -> list[str]:
    """Sentences on logs that grew faster than they may. Half an hour counts at least: most is said at a start."""
    found = []
    for role, size in sizes.items():
        most = LOG_KB_PER_HOUR.get(role, min(LOG_KB_PER_HOUR.values())) * 1_000 * max(hours, 0.5)
        if size > most:
            found.append(f"the log of {role} has {size / 1_000:.0f} kB, more than {most / 1_000:.0f} kB")
    return found
