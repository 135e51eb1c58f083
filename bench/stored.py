"""Tables in an object store: what a commit takes, and a look of the API that finds it; baseline: the same on a disk.

The store is a real server on this machine, once as quick as it is and once with 20 ms added to every request, which is
about what a bucket across a network takes. A batch has a second of a fleet of a thousand groups; what is timed is the
writer's commit of all its tables, then a look of the API that finds it, as `kardia serve` does both.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from api.settings import ApiSettings
from api.store import Store as Looked
from bench.crowd import Crowd
from bench.result import Result
from demo.object_store import ObjectStore, ObjectStoreSettings
from spark_jobs.schemas import to_tables
from spark_jobs.writers.delta_rs import DeltaRsWriter
from stores.locations import Folder, folder

GROUPS = 1_000
BATCHES = 30
AFAR_MS = 20
"""Added to each request where the store is said to be far."""


def stored_stage(directory: Path, scale: float) -> list[Result]:
    """Disk, store, far store, one after the other."""
    here = _measured(directory / "tables", scale)
    results = []
    for what, latency_ms in (("store", 0), (f"store {AFAR_MS} ms away", AFAR_MS)):
        server = ObjectStore(directory / f"store-{latency_ms}", ObjectStoreSettings(latency_ms=latency_ms))
        with server as store, _environment(store.environ):
            there = _measured(folder(f"{store.bucket('bench')}/tables"), scale)
        for name, values in there.items():
            results += [
                Result("store", f"{name}, {what}, {at}", _at(values, at), "ms", _at(here[name], at), "on a disk")
                for at in ("p50", "p95")
            ]
    return results


def _measured(tables: Folder, scale: float) -> dict[str, list[float]]:
    """Milliseconds of each batch's commit, of the look that finds it, and of a look that finds nothing."""
    crowd = Crowd(max(10, int(GROUPS * scale)), 1, hours=1)
    at_ms = time.time_ns() // 1_000_000
    writer = DeltaRsWriter(tables, "bench/1")
    writer.prepare()
    writer.write(0, to_tables(crowd.present(at_ms), 0))
    looked = Looked(ApiSettings(tables=tables), lambda: time.time_ns() // 1_000_000)
    looked.refresh()
    times: dict[str, list[float]] = {"commit": [], "refresh": [], "idle look": []}
    for number in range(1, BATCHES + 1):
        rows = to_tables(crowd.second(at_ms + 1_000 * number, number), number)
        began = time.perf_counter()
        writer.write(number, rows)
        committed = time.perf_counter()
        behind = looked.is_behind()
        looked.refresh()
        seen = time.perf_counter()
        if not behind or looked.current.batch_id != number:
            raise RuntimeError(f"batch {number} was committed and is not shown by the next look at {tables}")
        looked.is_behind()
        idle = time.perf_counter()
        for name, seconds in (("commit", committed - began), ("refresh", seen - committed), ("idle look", idle - seen)):
            times[name].append(1_000 * seconds)
    writer.close()
    return times


def _at(values: list[float], at: str) -> float:
    return statistics.median(values) if at == "p50" else statistics.quantiles(values, n=20)[-1]


@contextmanager
def _environment(values: dict[str, str]) -> Iterator[None]:
    """Keys and address of the store, for this process, as a service has them."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
