"""`__consumer_offsets` as the brokers write it: keys and values in Kafka's own layout, with the record's time stamp.

Group metadata in version 3, which every broker since 2.3 writes (1 in 2.0, 2 before 2.3); offset commits in version 1
in 2.0, 3 from 2.1 on, or 4 from 4.1 on. What is written and when is the coordinator model's, whose records agree with
those that Kafka's own classes leave behind. A record reaches a reader some ms after its append. Nothing here reads what
it wrote.
"""

from __future__ import annotations

import random
import struct
from typing import NamedTuple

from kardia.coordinator.classic.records import GroupRecord, RecordedMember
from kardia.events import shard_of
from kardia.kafka.releases import version_of

DAY_MS = 86_400_000
SINCE_FROM, INSTANCE_FROM = 2, 3
"""Layouts of group metadata that tell since when the group is in its state, and who is static."""


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

    def __init__(self, seed: int, kafka_version: str) -> None:
        """`kafka_version` decides the layouts."""
        version = version_of(kafka_version)
        self._group_layout = 1 if version < (2, 1, 0) else 2 if version < (2, 3, 0) else 3
        self._expires = version < (2, 1, 0)
        self.records: list[TopicRecord] = []
        self._chance = random.Random(seed)
        self._flexible = version >= (4, 1, 0)
        self._ends: dict[int, int] = {}
        self._read_at_ms: dict[int, float] = {}

    def group(self, group_id: str, record: GroupRecord | None, now_ms: float, stored_at_ms: float = 0.0) -> None:
        """The group's record was written, or its tombstone."""
        value = None if record is None else _group_value(record, self._group_layout)
        self.append(group_id, struct.pack(">h", 2) + _text(group_id), value, now_ms, stored_at_ms=stored_at_ms)

    def commit(
        self, group_id: str, topic: str, partition: int, offset: int, now_ms: float, stored_at_ms: float = 0.0
    ) -> None:
        """An offset was committed."""
        key = struct.pack(">h", 1) + _text(group_id) + _text(topic) + struct.pack(">i", partition)
        at_ms = int(now_ms)
        if self._flexible:  # lengths count from 1, and the value ends in its (no) tagged fields
            value = struct.pack(">hqiBqB", 4, offset, -1, 1, at_ms, 0)
        elif self._expires:  # a day later, which is what these releases keep offsets for
            value = struct.pack(">hq", 1, offset) + _text("") + struct.pack(">qq", at_ms, at_ms + DAY_MS)
        else:
            value = struct.pack(">hqi", 3, offset, -1) + _text("") + struct.pack(">q", at_ms)
        self.append(group_id, key, value, now_ms, stored_at_ms=stored_at_ms)

    def append(
        self,
        group_id: str,
        key: bytes,
        value: bytes | None,
        now_ms: float,
        *,
        with_last: bool = False,
        stored_at_ms: float = 0.0,
    ) -> None:
        """A record of a group; `value` None: a tombstone. `with_last`: in one batch with the record before it, which is
        read as a whole. It is not read before it is stored."""
        shard = shard_of(group_id)
        offset = self._ends.get(shard, 0)
        self._ends[shard] = offset + 1
        late_ms = 0.0
        if not with_last:
            late_ms = 2.0 + self._chance.expovariate(0.1) + (200.0 if self._chance.random() < 0.01 else 0.0)
        read_at_ms = self._read_at_ms[shard] = max(
            max(now_ms, stored_at_ms) + late_ms, self._read_at_ms.get(shard, 0.0)
        )
        self.records.append(TopicRecord(read_at_ms, shard, offset, int(now_ms), key, value))


def _text(text: str | None) -> bytes:
    if text is None:
        return struct.pack(">h", -1)
    data = text.encode()
    return struct.pack(">h", len(data)) + data


def _bytes(data: bytes) -> bytes:
    return struct.pack(">i", len(data)) + data


def _group_value(record: GroupRecord, layout: int) -> bytes:
    head = struct.pack(">h", layout) + _text(record.protocol_type or "") + struct.pack(">i", record.generation_id)
    head += _text(record.protocol_name) + _text(record.leader)
    if layout >= SINCE_FROM:
        head += struct.pack(">q", record.state_since_at_ms)
    head += struct.pack(">i", len(record.members))
    return head + b"".join(_member(one, layout) for one in record.members)


def _member(one: RecordedMember, layout: int) -> bytes:
    instance = _text(one.group_instance_id) if layout >= INSTANCE_FROM else b""
    names = _text(one.member_id) + instance + _text(one.client_id) + _text("/" + one.client_host)
    timeouts = struct.pack(">ii", one.rebalance_timeout_ms, one.session_timeout_ms)
    return names + timeouts + _bytes(one.subscription) + _bytes(one.assignment)
