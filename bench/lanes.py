"""Lanes alone, without Spark: what a batch costs when so many members are held. CPU only, so that a busy machine hardly
changes it.

Per size: all groups form, each member is heard; then batches of half a second of the same number of events, as the
job steps and keeps them, in one process. Told beside it: what a base costs, and the way back from base and journal.
"""

from __future__ import annotations

import gc
import time
from dataclasses import dataclass

from bench.population import CALM, Batch, Population, Shape
from bench.result import Result
from ingest.wire.batches import FORMAT, batches
from kardia.events import DEFAULT_LANES
from kardia.observe import ObserverSettings
from spark_jobs.checkpoint import journal, state_codec
from spark_jobs.checkpoint.journal import InMemory, Kept
from spark_jobs.lane import Lane, Record
from spark_jobs.lane_model import ObserverFactory
from spark_jobs.outputs import encode_step

BATCH_MS = 500.0
WARM = 10
MEASURED = 40
START_MS = 1_790_000_000_000.0


@dataclass
class Alone:
    """One size; CPU in milliseconds."""

    members: int
    batch_ms: float
    highest_ms: float
    """Of the most expensive batch."""
    bases: int
    without_ms: float
    """Of a batch in which no base was written."""
    event_us: float
    stepping_us: float
    rows_s: float
    """Rows of all tables in a second."""
    base_ms: float
    base_bytes: float
    """A member."""
    stored_bytes: float
    """Of a base, a member, compressed."""
    step_bytes: float
    """Of a journal, an event, compressed."""
    back_s: float


class _Job:
    """Six lanes and their stores."""

    def __init__(self) -> None:
        self._factory = ObserverFactory(ObserverSettings("bench"), tests_itself=True)
        self.stores = [InMemory() for _ in range(DEFAULT_LANES)]
        self.kept: list[Kept] = self.read()
        self._offsets = [0] * DEFAULT_LANES
        self._written = 0
        self._last_base = -9
        self.bases = self.rows = 0
        self.stepping_s = 0.0

    def read(self) -> list[Kept]:
        """All lanes as their stores have them."""
        return [
            journal.read(store, lambda lane=lane: Lane(self._factory, "t", lane, DEFAULT_LANES))  # type: ignore[misc]
            for lane, store in enumerate(self.stores)
        ]

    def batch(self, batch: Batch) -> float:
        """Step and keep every lane; CPU seconds."""
        records = {lane: [value for value, _ in batches(events)] for lane, events in sorted(batch.items())}
        began_s = time.process_time()
        for lane, values in records.items():
            first = self._offsets[lane]
            given = [Record(first + at, 0, FORMAT.encode(), value) for at, value in enumerate(values)]
            self._offsets[lane] += len(values)
            kept = self.kept[lane]
            stepped_s = time.process_time()
            rows = kept.lane.step(given)
            self.stepping_s += time.process_time() - stepped_s
            encode_step(rows, {})
            self.rows += sum(map(len, rows.values()))
            self._written += 1
            turn = self._written - self._last_base > DEFAULT_LANES // 2
            if journal.write(self.stores[lane], kept, given, b"", journal.MIN_BYTES, turn=turn):
                self.bases, self._last_base = self.bases + 1, self._written
        return time.process_time() - began_s


def alone(groups: int, rate: float, shape: Shape = CALM) -> Alone:
    """Measure one size."""
    gc.disable()
    try:
        population, job, at_ms = Population(groups, rate, shape=shape), _Job(), START_MS
        for formed in population.forming(at_ms):
            job.batch(formed)
        for _ in range(WARM):
            at_ms += BATCH_MS
            job.batch(population.stretch(at_ms - BATCH_MS, at_ms)[0])
        job.bases = job.rows = 0
        job.stepping_s = 0.0
        spent: list[tuple[float, bool]] = []
        events = 0
        for _ in range(MEASURED):
            at_ms += BATCH_MS
            batch, count = population.stretch(at_ms - BATCH_MS, at_ms)
            before, events = job.bases, events + count
            spent.append((job.batch(batch), job.bases > before))
        steps = [step for store in job.stores for step in store.steps.values()]
        kept_events = sum(one.journal_bytes for one in job.kept) / 175
        began_s = time.process_time()
        job.read()
        back_s = time.process_time() - began_s
        began_s = time.process_time()
        bases = [state_codec.pieces_of(one.lane.save()) for one in job.kept]
        base_ms = (time.process_time() - began_s) * 1_000
        plain = sum(len(one.lane.save()) for one in job.kept)
    finally:
        gc.enable()
    without = [used for used, base in spent if not base]
    return Alone(
        population.members,
        sum(used for used, _ in spent) / MEASURED * 1_000,
        max(used for used, _ in spent) * 1_000,
        job.bases,
        sum(without) / max(1, len(without)) * 1_000,
        sum(used for used, _ in spent) / events * 1e6,
        job.stepping_s / events * 1e6,
        job.rows / (MEASURED * BATCH_MS / 1_000),
        base_ms,
        plain / population.members,
        sum(len(piece) for pieces in bases for piece in pieces) / population.members,
        sum(map(len, steps)) / max(1.0, kept_events),
        back_s,
    )


def told(one: Alone) -> Result:
    """One line of the table."""
    more = {
        "with no base": f"{one.without_ms:.0f} ms",
        "bases": f"{one.bases} in {MEASURED} batches",
        "observer, µs": round(one.stepping_us, 2),
        "rows/s": round(one.rows_s),
        "all bases": f"{one.base_ms:.0f} ms, {one.base_bytes:.0f} B a member, {one.stored_bytes:.0f} compressed",
        "step": f"{one.step_bytes:.0f} B an event",
        "way back": f"{one.back_s:.1f} s",
    }
    what = f"{one.members // 10:,} groups of 10: six lanes alone, CPU of a batch"
    return Result("size", what, one.batch_ms, "ms", None, "", one.event_us, None, more)
