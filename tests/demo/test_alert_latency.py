"""Where the instants of the legs are read: Delta's own log, the topic, and what may be missing in either."""

from __future__ import annotations

import time
from pathlib import Path

import pyarrow as pa
import pytest
from confluent_kafka import Producer
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake

from demo import alert_latency
from demo.alert_latency import ReadMark
from demo.broker import Broker
from ingest.wire.batches import encode_batch
from kardia.events import ALL_SHARDS, DEFAULT_LANES, Event, Kind, lane_of, shard_of


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def test_a_batch_was_committed_when_its_line_in_deltas_log_was_written(tmp_path: Path) -> None:
    table = tmp_path / "progress"
    before_ms = _now_ms()
    for batch_id in (3, 4):
        write_deltalake(
            table,
            pa.table({"batch_id": [batch_id]}),
            mode="append",
            commit_properties=CommitProperties(app_transactions=[Transaction("job", batch_id)]),
        )
    DeltaTable(table).optimize.compact()  # a commit of no batch
    found = alert_latency.commits(table)
    assert list(found) == [3, 4]
    # The clock of files may be some milliseconds behind the other one.
    assert before_ms - 100 <= found[3] <= found[4] <= _now_ms()
    assert alert_latency.commits(tmp_path / "none") == {}


@pytest.mark.parametrize(
    ("evidence_at_ms", "expected"),
    [
        (99, None),  # older than what was read: who knows when it was published
        (102, 1_100),
        (199, 1_100),
        (200, 1_100),
        (201, 1_100),  # whole milliseconds: 200.6 may be 201
        (202, 1_200),
        (900, None),
    ],
)
def test_it_was_published_with_the_first_word_that_the_log_was_read_so_far(
    evidence_at_ms: int, expected: int | None
) -> None:
    lane = lane_of(shard_of("g"), DEFAULT_LANES)
    read: dict[int, list[ReadMark]] = {number: [ReadMark(1, 1e9)] for number in range(DEFAULT_LANES)}
    read[lane] = [ReadMark(1_000, 100.0), ReadMark(1_100, 200.6), ReadMark(1_200, 300.0), ReadMark(1_300, 300.0)]
    assert alert_latency.published_at_ms(read, "g", evidence_at_ms) == expected


@pytest.mark.slow
def test_the_topic_tells_how_far_the_log_was_read_and_when(kafka: Broker) -> None:
    kafka.create_topic("legs", 3)
    producer = Producer({"bootstrap.servers": kafka.bootstrap})

    def put(lane: int, at_ms: int, value: bytes) -> None:
        producer.produce("legs", value=value, partition=lane, timestamp=at_ms)

    def tick(stream: str, at_ms: float) -> Event:
        return Event(int(Kind.TICK), ALL_SHARDS, f"b:1/{stream}/x", 0, 1, at_ms, at_ms, at_ms, at_ms)

    beat = tick("request", 77.0)._replace(kind=int(Kind.HEARTBEAT))
    put(0, 1_000, encode_batch([tick("request", 50.0)]))
    put(0, 2_000, encode_batch([beat, tick("offsets/3", 99.0), tick("request", 60.5)]))
    put(0, 2_500, encode_batch([beat]))
    put(0, 3_000, b"no batch")
    put(1, 1_000, encode_batch([beat]))
    put(2, 1_000, encode_batch([tick("request", 70.0)]))
    assert producer.flush(60) == 0
    assert alert_latency.read_marks(kafka.bootstrap, "legs", 1_500) == {0: [ReadMark(2_000, 60.5)], 1: [], 2: []}
    assert alert_latency.read_marks(kafka.bootstrap, "legs", 9_000) == {0: [], 1: [], 2: []}
    everything = alert_latency.read_marks(kafka.bootstrap, "legs", 0)
    assert everything == {0: [ReadMark(1_000, 50.0), ReadMark(2_000, 60.5)], 1: [], 2: [ReadMark(1_000, 70.0)]}
