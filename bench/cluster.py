"""A backlog on a Spark standalone cluster: one worker against two, each with a core; everything in an object store.

    python -m bench.cluster [--events 1000000]

Driver, broker, store, master and workers all run on this machine, so that with two cores the second worker has to share
them: what is seen here is what a second worker costs, and on more cores what it brings. The job is `kardia stream`
itself, a process of its own; rates are of its batches as they stand in `progress`, the first two left out.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench.backlog import TOPIC, WARM_BATCHES, fill
from bench.fleet import Fleet
from bench.lines import write_log
from bench.result import Result, machine, show
from demo.broker import Broker
from demo.object_store import ObjectStore
from demo.spark_cluster import SparkCluster
from kardia.events import DEFAULT_LANES
from spark_jobs.pack import pack

EVENTS = 1_000_000
RECORDS = "150"
"""Of a batch: 150,000 events at most, so that there are some batches."""


def main() -> None:
    """Run both and show them."""
    parser = argparse.ArgumentParser(description="A backlog on one and on two workers of a Spark cluster.")
    parser.add_argument("--events", type=int, default=EVENTS)
    events = parser.parse_args().events
    around = machine()
    with tempfile.TemporaryDirectory(prefix="kardia-bench-cluster-") as name:
        show(measured(Path(name), events), around, None)


def measured(directory: Path, events: int) -> list[Result]:
    """Drain the same topic with one worker, then with two."""
    log = directory / "kafka-request.log"
    write_log(log, events, Fleet.for_rate())
    archive = directory / "executors.tar.gz"
    pack(archive)
    results: list[Result] = []
    with Broker(directory / "broker") as broker, ObjectStore(directory / "store") as store:
        broker.create_topic(TOPIC, DEFAULT_LANES)
        sent = fill(broker.bootstrap, log)
        log.unlink()
        place = store.bucket("bench")
        for workers in (1, 2):
            with SparkCluster(directory / f"cluster-{workers}", workers, store.environ) as cluster:
                rate, all_s = _drained(broker, store, cluster, archive, f"{place}/{workers}", sent, directory)
            one = results[0].value if results else None
            what = f"topic to tables, {workers} worker{'s' * (workers > 1)}"
            more = {"events": f"{sent:,}", "s with the start": round(all_s, 1)}
            results.append(Result("cluster", what, rate, "events/s", one, "one worker", more=more))
    return results


def _drained(
    broker: Broker, store: ObjectStore, cluster: SparkCluster, archive: Path, place: str, events: int, directory: Path
) -> tuple[float, float]:
    """Events per second in steady state, and seconds of the whole run."""
    command = [
        *(sys.executable, "-m", "cli.main", "stream", "--bootstrap-server", broker.bootstrap, "--topic", TOPIC),
        *("--tables", f"{place}/tables", "--checkpoint", f"{place}/checkpoint", "--cluster", "bench"),
        *("--master", cluster.master, "--executors", str(archive), "--conf", "spark.executor.memory=1g"),
        *("--no-archive", "--once"),
    ]
    environ = {**os.environ, **store.environ, "KARDIA_STREAM_MAX_RECORDS": RECORDS}
    log = directory / "driver.log"
    began = time.time()
    with log.open("ab") as output:
        done = subprocess.run(command, env=environ, stdout=output, stderr=output, check=False, timeout=1_800)
    if done.returncode != 0:
        raise RuntimeError(f"kardia stream ended with {done.returncode}: {log.read_text()[-2_000:]}")
    return _steady(store, place, events), time.time() - began


def _steady(store: ObjectStore, place: str, events: int) -> float:
    """Rate over the batches after the first ones, by the instants at which the log's entries were put."""
    folder = store.buckets / place.removeprefix("s3://") / "tables" / "progress" / "_delta_log"
    entries = [path for path in sorted(folder.glob("*.json")) if '"add"' in path.read_text()]
    moments = [path.stat().st_mtime for path in entries]
    if len(moments) <= WARM_BATCHES:
        raise RuntimeError(f"there were only {len(moments)} batches; give more --events")
    share = (len(moments) - WARM_BATCHES) / len(moments)
    return events * share / (moments[-1] - moments[WARM_BATCHES - 1])


if __name__ == "__main__":
    main()
