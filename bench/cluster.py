"""A backlog on a Spark standalone cluster: one worker against two, each with a core; everything in an object store.

    python -m bench.cluster [--events 1000000]

Driver, broker, store, master and workers all run on this machine, so that with two cores the second worker has to share
them: what is seen here is what a second worker costs, and on more cores what it brings. The job is `kardia stream`
itself, a process of its own; rates are of its batches, the first two left out: their events as `progress` has them, and
the instants of their commits.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from confluent_kafka import Consumer, TopicPartition
from deltalake import DeltaTable

from bench.backlog import TOPIC, WARM_BATCHES, fill
from bench.fleet import Fleet
from bench.lines import write_log
from bench.result import Result, machine, show
from demo.broker import Broker
from demo.object_store import ObjectStore
from demo.ports import HOST
from demo.spark_cluster import SparkCluster
from kardia.events import DEFAULT_LANES
from spark_jobs.executor_archive import pack

EVENTS = 1_000_000
BATCHES = 12
"""About so many batches: a share of the records in each. A record may hold one event or thousands, folded."""

TIMEOUT_S = 1_800


class Drained(NamedTuple):
    """One run of the job."""

    rate: float
    """Events per second after the first batches."""
    lowest: float
    """Of a single batch."""
    highest: float
    seconds: float
    """Of the whole run."""


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
        most = -(-_records(broker.bootstrap) // BATCHES)
        place = store.bucket("bench")
        for workers in (1, 2):
            with SparkCluster(directory / f"cluster-{workers}", workers, store.environ) as cluster:
                one = _drained(broker, store, cluster, archive, f"{place}/{workers}", most, directory)
            before = results[0].value if results else None
            what = f"topic to tables, {workers} worker{'s' * (workers > 1)}"
            more = {
                "events": f"{sent:,}",
                "a batch, events/s": f"{one.lowest:,.0f} to {one.highest:,.0f}",
                "s with the start": round(one.seconds, 1),
            }
            results.append(Result("cluster", what, one.rate, "events/s", before, "one worker", more=more))
    return results


def _records(bootstrap: str) -> int:
    """How many records the topic has."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "bench", "log_level": 0})
    try:
        ends = [consumer.get_watermark_offsets(TopicPartition(TOPIC, lane), 30) for lane in range(DEFAULT_LANES)]
    finally:
        consumer.close()
    return sum(end - begin for begin, end in ends)


def _drained(
    broker: Broker, store: ObjectStore, cluster: SparkCluster, archive: Path, place: str, most: int, directory: Path
) -> Drained:
    """Run the job to the end of the topic, at most so many records in a batch."""
    command = [
        *(sys.executable, "-m", "cli.main", "stream", "--bootstrap-server", broker.bootstrap, "--topic", TOPIC),
        *("--tables", f"{place}/tables", "--checkpoint", f"{place}/checkpoint", "--cluster", "bench"),
        *("--master", cluster.master, "--executors", str(archive), "--conf", "spark.executor.memory=1g"),
        *("--no-archive", "--once"),
    ]
    environ = {**os.environ, **store.environ, "SPARK_LOCAL_IP": HOST, "KARDIA_STREAM_MAX_RECORDS": str(most)}
    log = directory / "driver.log"
    began = time.monotonic()
    with log.open("ab") as output:
        done = subprocess.run(command, env=environ, stdout=output, stderr=output, check=False, timeout=TIMEOUT_S)
    seconds = time.monotonic() - began
    if done.returncode != 0:
        raise RuntimeError(f"kardia stream ended with {done.returncode}: {log.read_text()[-2_000:]}")
    return steady(store.buckets / place.removeprefix("s3://") / "tables" / "progress", seconds)


def steady(table: Path, seconds: float) -> Drained:
    """Rates after the first batches, of a table `progress` as it lies in the folder of the store."""
    rows = DeltaTable(str(table)).to_pyarrow_table(columns=["batch_id", "events"])
    counts = rows.group_by("batch_id").aggregate([("events", "sum")]).sort_by("batch_id")
    events = dict(zip(counts["batch_id"].to_pylist(), counts["events_sum"].to_pylist(), strict=True))
    ended = _commits(table)
    batches = [batch for batch in sorted(events) if batch in ended]
    spans = [
        (events[batch], (ended[batch] - ended[before]) / 1_000)
        for before, batch in pairwise(batches[WARM_BATCHES - 1 :])
    ]
    if not spans:
        raise RuntimeError(f"there were only {len(batches)} batches; give more --events")
    each = [count / span_s for count, span_s in spans]
    return Drained(sum(count for count, _ in spans) / sum(span_s for _, span_s in spans), min(each), max(each), seconds)


def _commits(table: Path) -> dict[int, int]:
    """Batch -> instant of its commit, in epoch milliseconds."""
    found: dict[int, int] = {}
    for entry in (table / "_delta_log").glob("*.json"):
        actions = [json.loads(line) for line in entry.read_text().splitlines()]
        at_ms = next((action["commitInfo"]["timestamp"] for action in actions if "commitInfo" in action), None)
        for action in actions:
            if "txn" in action and action["txn"]["appId"].startswith("kardia-live/") and at_ms is not None:
                found[action["txn"]["version"]] = at_ms
    return found


if __name__ == "__main__":
    main()
