"""Tables that exist and grow: a past, a present, and one commit per second by the project's own writer, with upkeep.

`lay` writes a crowd's tables; `growing` goes on writing in a process of its own: a fifth of the members is sampled in
each second, and one group rebalances. The samples are made beforehand, so that writing them takes what a commit takes.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Event
from pathlib import Path

import pyarrow as pa

from bench.crowd import SAMPLE_EVERY_S, Crowd, moved
from kardia.tables import TABLES
from spark_jobs.schemas import to_arrow, to_tables
from spark_jobs.upkeep.maintenance import Maintenance
from spark_jobs.writers.delta_rs import DeltaRsWriter

APP_ID = "bench"
EVERY_S = 1.0
PROBE_EVERY = 3
"""A member's session is foretold to run out in one batch of so many, where anybody asks for it."""

START_S = 60.0

Proof = tuple[str, float]
"""A group of which a timeout was foretold, and when that was committed, epoch seconds."""


@dataclass
class Laid:
    """Tables as they were laid: the last instant and batch in them, and the samples of the seconds to come."""

    directory: Path
    crowd: Crowd
    at_ms: int
    batch_id: int
    samples: list[pa.Table]


def lay(directory: Path, crowd: Crowd) -> Laid:
    """Write the past hour by hour and the present, and compact them as the job does."""
    at_ms = time.time_ns() // 1_000_000
    writer = DeltaRsWriter(directory, APP_ID)
    writer.prepare()
    batch_id = -1
    for hour in crowd.hours(at_ms):
        batch_id += 1
        writer.write(batch_id, to_tables(hour, batch_id))
    batch_id += 1
    writer.write(batch_id, to_tables(crowd.present(at_ms), batch_id))
    writer.close()
    Maintenance(directory).run_once()
    return Laid(directory, crowd, at_ms, batch_id, crowd.samples(at_ms))


@contextlib.contextmanager
def growing(laid: Laid, on: set[int], probing: bool = False) -> Iterator[Queue[Proof]]:
    """Let the tables grow on some cores; gives what was foretold and committed, if that is asked for."""
    context = multiprocessing.get_context("spawn")
    stop, begun, proofs = context.Event(), context.Event(), context.Queue()
    process = context.Process(target=_grow, args=(laid, on, probing, stop, begun, proofs), name="growth")
    process.start()
    try:
        if not begun.wait(START_S):
            raise RuntimeError(
                f"no live batch was written within {START_S:.0f} s. Expected: one per second. Next: look at what else "
                "uses the processors and the disk"
            )
        yield proofs
    finally:
        stop.set()
        proofs.cancel_join_thread()
        process.join(START_S)
        if process.is_alive():
            process.kill()
            process.join()
    if process.exitcode:
        raise RuntimeError(f"the process that writes the tables ended with {process.exitcode}; its words are above")


def _grow(laid: Laid, on: set[int], probing: bool, stop: Event, begun: Event, proofs: Queue[Proof]) -> None:
    os.sched_setaffinity(0, on)
    crowd, number, batch_id = laid.crowd, 0, laid.batch_id
    calm = crowd.calm()
    writer = DeltaRsWriter(laid.directory, APP_ID)
    writer.prepare()
    upkeep = Maintenance(laid.directory, said=print)
    upkeep.start()
    began_s = time.monotonic()
    while not stop.wait(max(0.0, began_s + number * EVERY_S - time.monotonic())):
        batch_id += 1
        now_ms = time.time_ns() // 1_000_000
        rows = crowd.second(now_ms, number)
        health = [moved(laid.samples[number % SAMPLE_EVERY_S], now_ms - laid.at_ms, batch_id)]
        group = None
        if probing and number % PROBE_EVERY == PROBE_EVERY - 1:
            group = calm[number // PROBE_EVERY % len(calm)]
            in_danger, foretold = crowd.danger(group, now_ms)
            health.append(to_arrow(TABLES["health"], [in_danger], batch_id))
            rows["predictions"] = [foretold]
        writer.write(batch_id, to_tables(rows, batch_id) | {"health": pa.concat_tables(health)})
        if group is not None:
            proofs.put((group, time.time()))
        begun.set()
        number += 1
    upkeep.stop()
    writer.close()
