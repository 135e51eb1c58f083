"""From a full topic to committed tables: the real job, a real broker; baseline: the same job with an idle model.

Two numbers: "all" has the start of the query in it, "steady" leaves out the first two batches. Every record is decoded
in both runs; the identity gives one row of progress per lane and batch.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from confluent_kafka import Producer

from bench.fleet import Fleet
from bench.lines import write_log
from bench.result import Result, Usage, memory_mb
from demo.broker import Broker
from ingest.archives.ranges import parse_range, plan, route
from ingest.blocks import Gathered
from ingest.quiet_requests import Rows
from ingest.router import Directory
from ingest.wire.batches import FORMAT_HEADER, format_of
from ingest.wire.folded_batch import Outgoing
from ingest.wire.outgoing import encoded, routed
from kardia.events import DEFAULT_LANES, Event
from kardia.follow.self_test import SelfTest
from kardia.observe import ObserverSettings
from kardia.stretches import Stretch
from kardia.tables import LIVE_TABLES, PROGRESS, Row
from spark_jobs import stream, topic
from spark_jobs.checkpoint.checkpoint_directory import Agreement, open_checkpoint
from spark_jobs.jvm import jars, java
from spark_jobs.lane_model import LaneModel, ModelFactory, ObserverFactory
from spark_jobs.spark import session
from spark_jobs.writers.delta_rs import DeltaRsWriter

EVENTS = 4_000_000
TOPIC = "kardia.events"
WARM_BATCHES = 2
BATCH_RECORDS = 250
"""Records of a batch, fewer than the job takes by default: with those all there is would be two batches."""
FLUSH_BYTES = 64 << 20
"""Bytes of a log that a collector reads in `ingest.collector.BEHIND_MS` at 110,000 lines per second."""


class Identity:
    """A model that takes events and says how many they were."""

    files_forgotten = 0

    def __init__(self, lane: int) -> None:
        """Begin a lane."""
        self._lane = lane

    def step(self, events: list[Event], stretches: Sequence[Stretch] = (), /) -> dict[str, list[Row]]:
        """Give one row of progress."""
        progress: Row = (
            *("bench", "", -1, 0, 0, "exact", self._lane, "bench/request", 0),
            len(events) + sum(map(len, stretches)),
            *[0] * (len(PROGRESS.names) - 1 - PROGRESS.names.index("events")),
        )
        return {"progress": [progress]}

    def finish(self) -> dict[str, list[Row]]:
        """Give nothing."""
        return {}

    def snapshot(self) -> Any:
        """Remember nothing."""
        return None


@dataclass(frozen=True)
class IdentityFactory:
    """Makes identities."""

    def new(self, lane: int) -> LaneModel:
        """Make one."""
        return Identity(lane)

    def restore(self, lane: int, state: Any) -> LaneModel:  # noqa: ARG002
        """Make one."""
        return Identity(lane)

    def self_test(self) -> SelfTest | None:
        """Without."""
        return None


def fill(bootstrap: str, log: Path) -> int:
    """Send what a log says to the topic, as a collector that catches up does: what is quiet folded, in flushes of as
    many lines as it reads meanwhile; gives the number of events."""
    producer = Producer({"bootstrap.servers": bootstrap, "compression.type": "lz4", "linger.ms": 5, "log_level": 0})
    directory = Directory()
    sent = 0
    for piece in plan([log], range_bytes=FLUSH_BYTES):
        parsed = parse_range(piece, fold=True)
        directory.merge(parsed.directory)
        gathered = Gathered(DEFAULT_LANES, directory)
        stretches = [stretch for lane in parsed.stretches for stretch in lane]
        stretches += [stretch for _, _, folded in parsed.unrouted_stretches for stretch in folded]
        gathered.quiet = Rows.of(stretches)
        folded = routed(gathered, directory, DEFAULT_LANES)
        counts: dict[int, int] = {}
        for lane, events in route(parsed, directory).items():
            events.sort(key=lambda event: event.start)
            counts[lane] = len(events) + len(folded[lane].senders)
            sent += counts[lane]
            _send(producer, lane, [Outgoing(events, folded[lane])])
        for lane, tick in enumerate(parsed.ticks(counts)):
            _send(producer, lane, [tick])
    producer.flush(120)
    return sent


def _send(producer: Producer, lane: int, told: list[Event | Outgoing]) -> None:
    for value in encoded(told):
        headers: list[tuple[str, str | bytes | None]] = [(FORMAT_HEADER, format_of(value).encode())]
        while True:
            try:
                producer.produce(TOPIC, value, key=str(lane).encode(), partition=lane, headers=headers)
                break
            except BufferError:
                producer.poll(0.1)
        producer.poll(0)


@dataclass
class _Run:
    start_s: float
    all_s: float
    steady_rate: float
    cpu_s: float
    memory: dict[str, float]


def _drain(spark: Any, bootstrap: str, home: Path, factory: ModelFactory, events: int) -> _Run:
    checkpoint = open_checkpoint(
        home / "checkpoint", home / "tables", Agreement(stream.NAME, "bench", TOPIC, DEFAULT_LANES), LIVE_TABLES
    )
    writer = DeltaRsWriter(home / "tables", checkpoint.generation.app_id)
    writer.prepare()
    moments: list[float] = []
    memory: dict[str, float] = {}

    def committed(_batch: stream.Committed) -> None:
        moments.append(time.perf_counter())
        for name, size in memory_mb().items():
            memory[name] = max(size, memory.get(name, 0.0))

    usage, started = Usage(), time.perf_counter()
    sink = stream.Sink(writer, 0, committed)
    query = stream.start_query(
        topic.parts(spark, bootstrap, TOPIC, DEFAULT_LANES, session.LANE_TASKS, max_records=BATCH_RECORDS),
        factory,
        checkpoint,
        sink,
        until_available=True,
    )
    query.awaitTermination()
    seconds = time.perf_counter() - started
    writer.close()
    records = [progress["numInputRows"] for progress in query.recentProgress if progress["numInputRows"]]
    share = sum(records[WARM_BATCHES:]) / max(1, sum(records))
    steady_s = moments[-1] - moments[WARM_BATCHES - 1] if len(moments) > WARM_BATCHES else seconds
    rate = events * (share if len(moments) > WARM_BATCHES else 1.0) / steady_s
    return _Run(moments[0] - started, seconds, rate, usage.cpu_s(), memory)


def backlog_stage(directory: Path, scale: float) -> list[Result]:
    """Drain a backlog twice: with the identity, then with the observer."""
    log = directory / "kafka-request.log"
    write_log(log, int(EVENTS * scale), Fleet.for_rate())
    with Broker(directory / "broker") as broker:
        broker.create_topic(TOPIC, DEFAULT_LANES)
        events = fill(broker.bootstrap, log)
        log.unlink()
        began = time.perf_counter()
        spark = session.start_session("kardia-bench", "local[2]", jars.ensure("spark"), java.find().home)
        session_s = time.perf_counter() - began
        try:
            identity = _drain(spark, broker.bootstrap, directory / "identity", IdentityFactory(), events)
            factory = ObserverFactory(ObserverSettings(cluster_id="bench"), tests_itself=True)
            observed = _drain(spark, broker.bootstrap, directory / "observer", factory, events)
        finally:
            spark.stop()
    each = observed.cpu_s / events * 1e6
    return [
        Result("start-up", "Spark session", session_s, "s"),
        Result("start-up", "query to its first batch", identity.start_s, "s", more={"cold": "yes"}),
        Result(
            "backlog",
            "topic to tables, steady",
            observed.steady_rate,
            "events/s",
            identity.steady_rate,
            "identity in place of the observer",
            each,
            150_000,
            {"events": f"{events:,}", "CPU µs of the identity": round(identity.cpu_s / events * 1e6, 2)},
        ),
        Result(
            "backlog",
            "topic to tables, start of the query included",
            events / observed.all_s,
            "events/s",
            events / identity.all_s,
            "identity in place of the observer",
        ),
        *(
            Result("memory", f"{name} processes, highest", size, "MB", identity.memory.get(name), "identity")
            for name, size in sorted(observed.memory.items())
        ),
    ]
