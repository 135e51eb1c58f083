"""`__consumer_offsets` as the brokers write it: keys and values in Kafka's own layout, with the record's time stamp.

Group metadata in version 3, which every broker since 2.3 writes; offset commits in version 3, or in 4 from 4.1 on. What
is written and when is the coordinator model's, whose records agree with those that Kafka's own classes leave behind.
A record reaches a reader some ms after its append. Nothing here reads what it wrote.
"""

from __future__ import annotations

import random
import struct
from typing import NamedTuple

from kardia.coordinator.records import GroupRecord, RecordedMember
from kardia.events import shard_of


class TopicRecord(NamedTuple):
    """A record and when a reader of the topic gets it. `value` None: a tombstone."""

    read_at_ms: float
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes
    value: bytes | None


class OffsetsTopic:
    """The topic. Its chance is its own: a run is the same whether anybody reads the topic or not."""

    def __init__(self, seed: int, flexible_commits: bool) -> None:
        """`flexible_commits`: the release writes offset commits in version 4."""
        self.records: list[TopicRecord] = []
        self._chance = random.Random(seed)
        self._flexible = flexible_commits
        self._ends: dict[int, int] = {}
        self._read_at_ms: dict[int, float] = {}

    def group(self, group_id: str, record: GroupRecord | None, now_ms: float) -> None:
        """The group's record was written, or its tombstone."""
        value = None if record is None else _group_value(record)
        self._append(group_id, struct.pack(">h", 2) + _text(group_id), value, now_ms)

    def commit(self, group_id: str, topic: str, partition: int, offset: int, now_ms: float) -> None:
        """An offset was committed."""
        key = struct.pack(">h", 1) + _text(group_id) + _text(topic) + struct.pack(">i", partition)
        at_ms = int(now_ms)
        if self._flexible:  # lengths count from 1, and the value ends in its (no) tagged fields
            value = struct.pack(">hqiBqB", 4, offset, -1, 1, at_ms, 0)
        else:
            value = struct.pack(">hqi", 3, offset, -1) + _text("") + struct.pack(">q", at_ms)
        self._append(group_id, key, value, now_ms)

    def _append(self, group_id: str, key: bytes, value: bytes | None, now_ms: float) -> None:
        shard = shard_of(group_id)
        offset = self._ends.get(shard, 0)
        self._ends[shard] = offset + 1
        late_ms = 2.0 + self._chance.expovariate(0.1) + (200.0 if self._chance.random() < 0.01 else 0.0)
        read_at_ms = self._read_at_ms[shard] = max(now_ms + late_ms, self._read_at_ms.get(shard, 0.0))
        self.records.append(TopicRecord(read_at_ms, shard, offset, int(now_ms), key, value))


def _text(text: str | None) -> bytes:
    if text is None:
        return struct.pack(">h", -1)
    data = text.encode()
    return struct.pack(">h", len(data)) + data


def _bytes(data: bytes) -> bytes:
    return struct.pack(">i", len(data)) + data


def _group_value(record: GroupRecord) -> bytes:
    head = struct.pack(">h", 3) + _text(record.protocol_type or "") + struct.pack(">i", record.generation_id)
    head += _text(record.protocol_name) + _text(record.leader)
    head += struct.pack(">qi", record.state_since_at_ms, len(record.members))
    return head + b"".join(_member(one) for one in record.members)


def _member(one: RecordedMember) -> bytes:
    names = _text(one.member_id) + _text(one.group_instance_id) + _text(one.client_id) + _text("/" + one.client_host)
    timeouts = struct.pack(">ii", one.rebalance_timeout_ms, one.session_timeout_ms)
    return names + timeouts + _bytes(one.subscription) + _bytes(one.assignment)
