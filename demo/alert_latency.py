"""How long each leg took from a line in the broker's log to a message at a receiver: instants, where they were left.

    evidence    the log, read so far, shows it          the row's `known_at_ms`, on the broker's clock
    published   the collector has told the topic        stamp of the record that says how far the log was read
    committed   it is in the tables                     when the commit of `progress` was written
    raised      the notifier decided to tell it         its CloudEvent
    pushed      the notifier's own webhook had it       the receiver's clock
    received    Alertmanager's webhook had it           the receiver's clock

All of them are of one machine and so of one clock. This module only reads: topic, Delta's own log, Prometheus.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import httpx
from confluent_kafka import Consumer, KafkaException, TopicPartition

from ingest.errors import BatchError
from ingest.wire.batches import decode_batch
from kardia.events import Kind, lane_of, shard_of
from supervise.process import ProcessError

READ_TIMEOUT_S = 60.0
"""For one answer of broker or Prometheus, on a machine that is busy."""

PROMETHEUS_POINTS_MAX = 10_000
"""Prometheus refuses a range of more than 11,000 points; a longer story is asked for in longer steps."""


@dataclass(frozen=True)
class ReadMark:
    """A record of the topic says: the request log has been read up to `complete_to_ms`. `at_ms`: the record's stamp."""

    at_ms: int
    complete_to_ms: float


def commits(table: Path) -> dict[int, int]:
    """Batch to the instant at which its commit was written, from the log of a Delta table; what was cleaned away is not
    there. Of a batch that was repeated the first commit counts."""
    found: dict[int, int] = {}
    for file in sorted((table / "_delta_log").glob("*.json")):
        try:
            at_ms = file.stat().st_mtime_ns // 1_000_000
            actions = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
        except FileNotFoundError:  # cleaned away meanwhile
            continue
        for action in actions:
            if "txn" in action:
                found.setdefault(int(action["txn"]["version"]), at_ms)
    return found


def read_marks(bootstrap: str, topic: str, from_ms: int) -> dict[int, list[ReadMark]]:
    """Lane to what its records since `from_ms` say of how far the request log has been read, in their order."""
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "kardia-demo-legs", "enable.auto.commit": False, "log_level": 0}
    )
    try:
        return _read_marks(consumer, topic, from_ms)
    except KafkaException as error:
        raise ProcessError(f"The topic {topic} at {bootstrap} cannot be read: {error.args[0]}.") from None
    finally:
        consumer.close()


def _read_marks(consumer: Consumer, topic: str, from_ms: int) -> dict[int, list[ReadMark]]:
    lanes = consumer.list_topics(topic, timeout=READ_TIMEOUT_S).topics[topic].partitions
    wanted = [TopicPartition(topic, lane, from_ms) for lane in lanes]
    starts = {place.partition: place.offset for place in consumer.offsets_for_times(wanted, timeout=READ_TIMEOUT_S)}
    ends = {
        lane: consumer.get_watermark_offsets(TopicPartition(topic, lane), timeout=READ_TIMEOUT_S)[1] for lane in lanes
    }
    # An offset below 0 says that nothing is so young.
    open_lanes = {lane for lane, start in starts.items() if 0 <= start < ends[lane]}
    consumer.assign([TopicPartition(topic, lane, starts[lane]) for lane in open_lanes])
    found: dict[int, list[ReadMark]] = {lane: [] for lane in lanes}
    while open_lanes:
        message = consumer.poll(READ_TIMEOUT_S)
        if message is None or message.error() is not None:
            raise ProcessError(f"The topic {topic} cannot be read to its end: {message and message.error()}.")
        lane = message.partition() or 0
        if (message.offset() or 0) + 1 >= ends[lane]:
            open_lanes.discard(lane)
        try:
            events = decode_batch(message.value() or b"")
        except BatchError:
            continue  # the job tells of it
        ticks = [event.logged_at_ms for event in events if event.kind == Kind.TICK and "/request/" in event.source]
        if ticks:
            found[lane].append(ReadMark(message.timestamp()[1], max(ticks)))
    return found


def published_at_ms(read: Mapping[int, Sequence[ReadMark]], group_id: str, evidence_at_ms: int) -> int | None:
    """When the topic was told that the log had been read up to the evidence; None if that is older than the marks."""
    lane = read.get(lane_of(shard_of(group_id), len(read)), ())
    # Rows have whole milliseconds, marks have not: one may be rounded up past the other.
    before = [mark for mark in lane if mark.complete_to_ms <= evidence_at_ms - 1]
    after = [mark for mark in lane if mark.complete_to_ms > evidence_at_ms - 1]
    return min(mark.at_ms for mark in after) if before and after else None


def firing_since_ms(prometheus: str, from_ms: int, to_ms: int) -> dict[tuple[str, str], list[int]]:
    """(alert, group) to the instants at which Prometheus itself began to fire it; to the second, in a short story."""
    step_s = 1 + (to_ms - from_ms) // 1000 // PROMETHEUS_POINTS_MAX
    span = {"start": str(from_ms / 1000), "end": str(to_ms / 1000), "step": f"{step_s}s"}
    try:
        answer = httpx.get(
            f"{prometheus}/api/v1/query_range",
            params=span | {"query": 'ALERTS{alertstate="firing"}'},
            timeout=READ_TIMEOUT_S,
            trust_env=False,
        )
        answer.raise_for_status()
    except httpx.HTTPError as error:
        raise ProcessError(f"Prometheus at {prometheus} does not tell what it fired: {error}.") from None
    found: dict[tuple[str, str], list[int]] = {}
    for series in answer.json()["data"]["result"]:
        key = (series["metric"]["alertname"], series["metric"].get("group", ""))
        last_s = None
        for at_s, _ in series["values"]:
            if last_s is None or at_s - last_s > 1.5 * step_s:
                found.setdefault(key, []).append(round(at_s * 1000))
            last_s = at_s
    return found
