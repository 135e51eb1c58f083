"""What a coordinator writes about a group that has epochs: keys and values in Kafka's own layout, in Kafka's order.

One operation writes, each with the same time stamp: what is gone, what the members are, the new epoch, the targets, the
epoch of the target, where the member of the request is now. Order and layouts were compared with recorded topics of
4.1 and 4.4. Follows `GroupCoordinatorRecordHelpers` and its callers. Nothing here reads what it wrote.
"""

from __future__ import annotations

import struct
from base64 import urlsafe_b64decode
from collections.abc import Callable, Iterable, Mapping, Sequence

from kardia.coordinator.classic.records import GroupRecord, RecordedMember
from kardia.coordinator.consumer.operations import ConsumerMemberView, ConsumerView, Partition
from kardia.coordinator.consumer.wire import read_subscription
from kardia.coordinator.happenings import Happening
from kardia.coordinator.share.operations import ShareMemberView, ShareView
from kardia.coordinator.streams.operations import StreamsMemberView, StreamsView
from kardia.kafka.releases import version_of

MemberView = ConsumerMemberView | ShareMemberView | StreamsMemberView
EpochView = ConsumerView | ShareView | StreamsView
Protocols = Sequence[tuple[str, bytes]]
"""Of the last JoinGroup of a member of the classic protocol."""

_KINDS = {"consumer": (3, 5, 6, 7, 8), "share": (11, 10, 12, 13, 14), "streams": (17, 19, 20, 21, 22)}
"""Numbers of the records of a group, a member, the epoch of the target, a target, and where a member is now."""

_GROUP, _MEMBER, _ASSIGNED, _TARGET, _CURRENT = range(5)

_STREAMS_STATES = {"STABLE": 1, "UNREVOKED_TASKS": 2, "UNRELEASED_TASKS": 3}

_STATES = {"STABLE": 0, "UNREVOKED_PARTITIONS": 1, "UNRELEASED_PARTITIONS": 2}

ENDS = ("left", "session_expired", "rebalance_timeout", "join_timeout", "sync_timeout")

_SHARE_STATES = 15


class GroupRecords:
    """Writes about one group. Remembers what it wrote, as a reader of the whole topic would."""

    def __init__(self, group_id: str, kafka_version: str, append: Callable[[bytes, bytes | None], None]) -> None:
        """`append`: takes key and value of a record, None for a tombstone."""
        self._group_id, self._append = group_id, append
        version = version_of(kafka_version)
        self._hashes, self._instants = version >= (4, 1, 0), version >= (4, 3, 0)
        self._protocol = "consumer"
        self._epoch = self._assignment_epoch = -1
        self._members: dict[str, bytes] = {}
        self._targets: dict[str, bytes] = {}
        self._current: dict[str, bytes] = {}
        self._states = b""

    # --- an operation

    def step(self, happened: Sequence[Happening], view: EpochView | None, protocols: Mapping[str, Protocols]) -> bool:
        """What a step of the coordinator writes, after which the group is so; None where it is no group of these any
        more. Whether anything was written."""
        before = self._written
        if view is None:
            self._bury()
            return self._written > before
        kinds = {ShareView: "share", StreamsView: "streams"}
        self._protocol = kinds.get(type(view), "consumer")
        members: dict[str, MemberView] = {one.member_id: one for one in view.members}
        gone: list[str] = []
        for one in happened:
            if one.kind in ENDS:
                gone.append(one.member_id)
            elif one.kind == "member_replaced":
                self._forget([one.detail])
            elif one.kind == "epoch":
                self._forget(gone)
                gone.clear()
                self._tell_members(members, protocols)
                self._tell_epoch(int(one.detail))
                if not view.members and view.assignment_epoch == int(one.detail):
                    self._tell_assigned(view.assignment_epoch, 0)  # from 4.4 on an empty group needs no target
            elif one.kind == "assigned":
                self._tell_targets(members, int(one.detail), view.assigned_at_ms)
        self._forget(gone)
        self._tell_members(members, protocols)
        self._tell_current(members)
        self._tell_states(view)
        return self._written > before

    def converted(
        self,
        before: GroupRecord,
        generation: int,
        assigned: Mapping[str, Sequence[Partition]],
        view: ConsumerView,
        protocols: Mapping[str, Protocols],
    ) -> None:
        """A classic group has become one of these, with the members it had, before anything else is done to it. They
        are told as they are now, whatever its record had; who is none any more, as recorded. `generation`: of the
        group, which is its epoch now; a later one than that of the record, if its assignment never came
        (`ConsumerGroup.fromClassicGroup`)."""
        recorded = {one.member_id: one for one in before.members}
        now = {one.member_id: one for one in view.members}
        for member_id in assigned:
            if member_id in now:
                value = _member(now[member_id], protocols.get(member_id, ()))
            else:
                value = _converted(recorded[member_id], before.protocol_name or "")
            self._put(5, self._members, member_id, value)
        self._tell_epoch(generation)
        for member_id, partitions in assigned.items():
            self._put(7, self._targets, member_id, _value(_partitions(partitions)))
        self._tell_assigned(generation, 0)
        for member_id, partitions in assigned.items():
            body = struct.pack(">iib", generation, generation, 0)
            body += _held([(one, generation) for one in partitions], self._instants) + _held([], False)
            self._put(8, self._current, member_id, _value(body))

    # --- parts of it

    _written = 0

    def _write(self, kind: int, member_id: str | None, value: bytes | None) -> None:
        key = struct.pack(">h", kind) + _text(self._group_id) + (b"" if member_id is None else _text(member_id))
        self._append(key, value)
        self._written += 1

    def _kind(self, what: int) -> int:
        return _KINDS[self._protocol][what]

    def _put(self, kind: int, known: dict[str, bytes], member_id: str, value: bytes) -> None:
        if known.get(member_id) != value:
            known[member_id] = value
            self._write(kind, member_id, value)

    def _forget(self, gone: Iterable[str]) -> None:
        """Tombstones of members that were written."""
        for member_id in gone:
            if member_id in self._members:
                self._drop(self._kind(_CURRENT), self._current, member_id)
                self._drop(self._kind(_TARGET), self._targets, member_id)
                self._drop(self._kind(_MEMBER), self._members, member_id)

    def _drop(self, kind: int, known: dict[str, bytes], member_id: str) -> None:
        if known.pop(member_id, None) is not None:
            self._write(kind, member_id, None)

    def _bury(self) -> None:
        """The group is none of these any more."""
        for kind, known in (
            (self._kind(_CURRENT), self._current),
            (self._kind(_TARGET), self._targets),
        ):
            for member_id in sorted(known):
                self._drop(kind, known, member_id)
        if self._assignment_epoch >= 0:
            self._write(self._kind(_ASSIGNED), None, None)
        for member_id in sorted(self._members):
            self._drop(self._kind(_MEMBER), self._members, member_id)
        if self._epoch >= 0:
            self._write(self._kind(_GROUP), None, None)
        self._epoch = self._assignment_epoch = -1

    def _tell_members(self, members: Mapping[str, MemberView], protocols: Mapping[str, Protocols]) -> None:
        for member_id, one in members.items():
            self._put(self._kind(_MEMBER), self._members, member_id, _member(one, protocols.get(member_id, ())))

    def _tell_epoch(self, epoch: int) -> None:
        self._epoch = epoch
        digest = struct.pack(">q", hash((self._group_id, epoch // 3)) or 1)
        tags = _tag(0, digest) if self._hashes else b"\0"
        if self._protocol == "streams":
            tags = digest + b"\0"
        self._write(self._kind(_GROUP), None, struct.pack(">hi", 0, epoch) + tags)

    def _tell_targets(self, members: Mapping[str, MemberView], epoch: int, at_ms: int) -> None:
        for member_id, one in members.items():
            target = _tasks(one.target_active) if isinstance(one, StreamsMemberView) else _partitions(one.target)
            self._put(self._kind(_TARGET), self._targets, member_id, _value(target))
        self._tell_assigned(epoch, at_ms)

    def _tell_assigned(self, epoch: int, at_ms: int) -> None:
        self._assignment_epoch = epoch
        tags = _tag(0, struct.pack(">q", at_ms)) if self._instants and at_ms else b"\0"
        self._write(self._kind(_ASSIGNED), None, struct.pack(">hi", 0, epoch) + tags)

    def _tell_current(self, members: Mapping[str, MemberView]) -> None:
        for member_id, one in members.items():
            if isinstance(one, StreamsMemberView):
                state = _STREAMS_STATES[one.state]
                body = struct.pack(">iib", one.epoch, one.previous_epoch, state)
                body += _tasks(task for task, _ in one.active)
                body += _array(()) * 2 + _tasks(task for task, _ in one.pending_active) + _array(()) * 2
            elif isinstance(one, ShareMemberView):
                body = struct.pack(">iib", one.epoch, one.previous_epoch, 0) + _partitions(one.assigned)
            else:
                body = struct.pack(">iib", one.epoch, one.previous_epoch, _STATES[one.state])
                body += _held(one.assigned, self._instants) + _held(one.pending, self._instants)
            self._put(self._kind(_CURRENT), self._current, member_id, _value(body))

    def _tell_states(self, view: EpochView) -> None:
        if isinstance(view, ShareView) and (view.initializing or view.initialized):
            parts = [_partitions(view.initialized, named=True), _partitions(view.initializing, named=True), _count(0)]
            value = _value(b"".join(parts))
            if value != self._states:
                self._states = value
                self._write(_SHARE_STATES, None, value)


def _member(one: MemberView, protocols: Protocols) -> bytes:
    host = _compact(f"/{one.client_host}")
    if isinstance(one, ShareMemberView):
        body = _compact(one.rack_id) + _compact(one.client_id) + host + _array(map(_compact, one.names))
        return struct.pack(">h", 0) + body + b"\0"
    if isinstance(one, StreamsMemberView):
        body = _compact(one.instance_id) + _compact(one.rack_id) + _compact(one.client_id) + host
        body += struct.pack(">ii", one.rebalance_timeout_ms, one.topology_epoch) + _compact(one.process_id)
        return struct.pack(">h", 0) + body + b"\xff" + _array(()) + b"\0"
    body = _compact(one.instance_id) + _compact(one.rack_id) + _compact(one.client_id) + host
    body += _array(map(_compact, one.names)) + _compact(one.regex or "")
    body += struct.pack(">i", one.rebalance_timeout_ms) + _compact(one.assignor)
    if one.classic is None:
        return struct.pack(">h", 0) + body + b"\0"
    session_ms, names = one.classic
    known = dict(protocols)
    listed = _array(
        _compact(name) + _count(len(known.get(name, b"")) + 1) + known.get(name, b"") + b"\0" for name in names
    )
    return struct.pack(">h", 0) + body + _tag(0, b"\1" + struct.pack(">i", session_ms) + listed + b"\0")


def _converted(one: RecordedMember, protocol: str) -> bytes:
    """A member of a classic group, by its record."""
    topics = read_subscription(one.subscription).topics
    body = _compact(one.group_instance_id) + _compact(None) + _compact(one.client_id) + _compact(f"/{one.client_host}")
    body += _array(map(_compact, topics)) + _compact("") + struct.pack(">i", one.rebalance_timeout_ms) + _compact(None)
    named = _compact(protocol) + _count(len(one.subscription) + 1) + one.subscription + b"\0"
    classic = b"\1" + struct.pack(">i", one.session_timeout_ms) + _array([named]) + b"\0"
    return struct.pack(">h", 0) + body + _tag(0, classic)


def _value(body: bytes) -> bytes:
    return struct.pack(">h", 0) + body + b"\0"


def _partitions(partitions: Iterable[Partition], *, named: bool = False) -> bytes:
    by_topic: dict[str, list[int]] = {}
    for topic_id, number in sorted(partitions):
        by_topic.setdefault(topic_id, []).append(number)
    return _array(
        _uuid(topic_id) + (_compact("orders") if named else b"") + _numbers(numbers) + b"\0"
        for topic_id, numbers in by_topic.items()
    )


def _tasks(tasks: Iterable[tuple[str, int]]) -> bytes:
    by_subtopology: dict[str, list[int]] = {}
    for subtopology_id, number in sorted(tasks):
        by_subtopology.setdefault(subtopology_id, []).append(number)
    return _array(_compact(one) + _numbers(numbers) + b"\0" for one, numbers in by_subtopology.items())


def _held(partitions: Iterable[tuple[Partition, int]], with_epochs: bool) -> bytes:
    by_topic: dict[str, list[tuple[int, int]]] = {}
    for (topic_id, number), epoch in sorted(partitions):
        by_topic.setdefault(topic_id, []).append((number, epoch))
    return _array(
        _uuid(topic_id)
        + _numbers([number for number, _ in held])
        + (_tag(0, _numbers([epoch for _, epoch in held])) if with_epochs else b"\0")
        for topic_id, held in by_topic.items()
    )


def _uuid(topic_id: str) -> bytes:
    return urlsafe_b64decode(topic_id + "==")


def _numbers(numbers: Sequence[int]) -> bytes:
    return _array(struct.pack(">i", one) for one in numbers)


def _array(items: Iterable[bytes]) -> bytes:
    listed = list(items)
    return _count(len(listed) + 1) + b"".join(listed)


def _tag(number: int, data: bytes) -> bytes:
    return _count(1) + _count(number) + _count(len(data)) + data


def _compact(text: str | None) -> bytes:
    if text is None:
        return b"\0"
    data = text.encode()
    return _count(len(data) + 1) + data


def _count(value: int) -> bytes:
    found = bytearray()
    while value >= 0x80:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*found, value])


def _text(text: str) -> bytes:
    data = text.encode()
    return struct.pack(">h", len(data)) + data
