"""The request log of Kafka 2.0 to 2.7 as its brokers write it: text, in which nothing is quoted.

Field names and their order follow the broker's family (2.0 to 2.2, 2.3, 2.4 to 2.7) and the version of the request, as
in recorded lines; what is bytes is shown by its length alone. Nothing here reads what it wrote.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from kardia.coordinator.classic.operations import Answer, Commit, DeleteGroups, Heartbeat, Join, Leave, Operation, Sync
from kardia.kafka.releases import version_of
from tests.truth.fleet.lines import Sender, Times, stamp_of

TEXT_BEFORE = (2, 8, 0)
"""From this release on lines are JSON."""


class Release(NamedTuple):
    """Highest versions of JOIN, SYNC, HEARTBEAT, LEAVE, COMMIT, FETCH and DELETE_GROUPS from a release on."""

    first: tuple[int, int, int]
    versions: tuple[int, int, int, int, int, int]
    delete_groups: int


RELEASES = (
    Release((2, 0, 0), (3, 2, 2, 2, 4, 8), 1),
    Release((2, 1, 0), (3, 2, 2, 2, 6, 10), 1),
    Release((2, 2, 0), (4, 2, 2, 2, 6, 10), 1),
    Release((2, 3, 0), (5, 3, 3, 2, 7, 11), 1),
    Release((2, 4, 0), (6, 4, 4, 4, 8, 11), 2),
    Release((2, 5, 0), (7, 5, 4, 4, 8, 11), 2),
    Release((2, 7, 0), (7, 5, 4, 4, 8, 12), 2),
)

FLEXIBLE = {"JOIN_GROUP": 6, "SYNC_GROUP": 4, "HEARTBEAT": 4, "LEAVE_GROUP": 4, "OFFSET_COMMIT": 8, "FETCH": 12}
"""Version from which on every struct ends in its (no) tagged fields. DELETE_GROUPS: 2."""

Fields = list[tuple[str, Any]]
"""Of a struct: names and values, in their order."""


def is_text(kafka_version: str) -> bool:
    """Whether a release writes text."""
    return version_of(kafka_version) < TEXT_BEFORE


def most_versions(kafka_version: str) -> tuple[int, int, int, int, int, int]:
    """The highest versions that a broker of one of these releases knows, in the order of `Release.versions`."""
    return _release(kafka_version).versions


class TextLog:
    """Writes lines as brokers of one release do."""

    def __init__(self, kafka_version: str) -> None:
        """`kafka_version`: before 2.8."""
        self._version = version_of(kafka_version)
        self._old = self._version < (2, 3, 0)
        self._names_software = self._version >= (2, 5, 0)
        release = _release(kafka_version)
        self.leave_group, self.delete_groups = release.versions[3], release.delete_groups
        """The highest versions of these two."""

    def line(
        self,
        at_ms: float,
        version: int,
        number: int,
        sender: Sender,
        operation: Operation | None,
        answer: Answer | None,
        times: Times,
        fetched_bytes: int = 0,
    ) -> bytes:
        """One line, with its end. Without an operation it is a FETCH."""
        api, request, response = self._of(version, operation, answer, fetched_bytes)
        flexible = version >= FLEXIBLE.get(api, 2)
        head = f"RequestHeader(apiKey={api}, apiVersion={version}, clientId={sender.client_id}, correlationId={number})"
        spent = (
            f"totalTime:{times.total:.3f},requestQueueTime:{times.queue:.3f},localTime:{times.local:.3f},"
            f"remoteTime:{times.remote:.3f},throttleTime:{'0' if self._version >= (2, 6, 0) else '0.0'},"
            f"responseQueueTime:{times.response_queue:.3f},sendTime:{times.send:.3f}"
        )
        software = ""
        if self._names_software:
            name, release = sender.software
            software = f",clientInformation:ClientInformation(softwareName={name}, softwareVersion={release})"
        return (
            f"[{stamp_of(at_ms)}] DEBUG Completed request:{head} -- {_struct(request, flexible)},response:"
            f"{_struct(response, flexible)} from connection {sender.connection};{spent},securityProtocol:PLAINTEXT,"
            f"principal:User:ANONYMOUS,listener:PLAINTEXT{software} (kafka.request.logger)\n"
        ).encode()

    def _of(
        self, version: int, operation: Operation | None, answer: Answer | None, fetched_bytes: int
    ) -> tuple[str, Fields, Fields]:
        if operation is None or answer is None:
            return "FETCH", *self._fetch(version, fetched_bytes)
        match operation:
            case Join():
                return "JOIN_GROUP", *self._join(version, operation, answer)
            case Sync():
                return "SYNC_GROUP", *self._sync(version, operation, answer)
            case Heartbeat():
                asked: Fields = [
                    ("group_id", operation.group_id),
                    ("generation_id", operation.generation_id),
                    ("member_id", operation.member_id),
                    *_when(version >= 3, ("group_instance_id", operation.group_instance_id)),
                ]
                return "HEARTBEAT", asked, _answered(version >= 1, answer.error_code)
            case Leave():
                return "LEAVE_GROUP", *self._leave(version, operation, answer)
            case Commit():
                return "OFFSET_COMMIT", *self._commit(version, operation, answer)
            case DeleteGroups():
                return "DELETE_GROUPS", *self._delete(operation, answer)
        raise AssertionError(f"{operation}: a kind of operation that no client sends")

    def _join(self, version: int, join: Join, answer: Answer) -> tuple[Fields, Fields]:
        old = self._old
        metadata = "protocol_metadata" if old else "metadata"
        protocols = [[("protocol_name" if old else "name", name), (metadata, data)] for name, data in join.protocols]
        asked: Fields = [
            ("group_id", join.group_id),
            ("session_timeout" if old else "session_timeout_ms", join.session_timeout_ms),
            *_when(version >= 1, ("rebalance_timeout" if old else "rebalance_timeout_ms", join.rebalance_timeout_ms)),
            ("member_id", join.member_id),
            *_when(version >= 5, ("group_instance_id", join.group_instance_id)),
            ("protocol_type", join.protocol_type),
            ("group_protocols" if old else "protocols", protocols),
        ]
        members = [
            [
                ("member_id", one),
                *_when(version >= 5, ("group_instance_id", instance_id)),
                ("member_metadata" if old else "metadata", data),
            ]
            for one, instance_id, data in answer.members
        ]
        failed = answer.error_code != 0
        no_generation = 0 if self._version < (2, 2, 0) else -1
        named = answer.protocol_name if version >= 7 else answer.protocol_name or ""
        said: Fields = [
            *_when(version >= 2, ("throttle_time_ms", 0)),
            ("error_code", answer.error_code),
            ("generation_id", no_generation if failed else answer.generation_id),
            *_when(version >= 7, ("protocol_type", None if failed else join.protocol_type)),
            ("group_protocol" if old else "protocol_name", named),
            ("leader_id" if old else "leader", answer.leader),
            ("member_id", answer.member_id),
            ("members", members),
        ]
        return asked, said

    def _sync(self, version: int, sync: Sync, answer: Answer) -> tuple[Fields, Fields]:
        old = self._old
        one_assignment = "member_assignment" if old else "assignment"
        assignments = [[("member_id", one), (one_assignment, data)] for one, data in sync.assignments]
        asked: Fields = [
            ("group_id", sync.group_id),
            ("generation_id", sync.generation_id),
            ("member_id", sync.member_id),
            *_when(version >= 3, ("group_instance_id", sync.group_instance_id)),
            *_when(version >= 5, ("protocol_type", sync.protocol_type), ("protocol_name", sync.protocol_name)),
            ("group_assignment" if old else "assignments", assignments),
        ]
        right = answer.error_code == 0
        named = (("protocol_type", sync.protocol_type), ("protocol_name", sync.protocol_name))
        nothing = (("protocol_type", None), ("protocol_name", None))
        said: Fields = [
            *_answered(version >= 1, answer.error_code),
            *_when(version >= 5, *(named if right else nothing)),
            (one_assignment, answer.assignment),
        ]
        return asked, said

    def _leave(self, version: int, leave: Leave, answer: Answer) -> tuple[Fields, Fields]:
        if version < 3:
            asked: Fields = [("group_id", leave.group_id), ("member_id", leave.members[0].member_id)]
            return asked, _answered(version >= 1, answer.error_code)
        members = [
            [("member_id", one.member_id), ("group_instance_id", one.group_instance_id)] for one in leave.members
        ]
        left = [
            [("member_id", one), ("group_instance_id", instance_id), ("error_code", error)]
            for one, instance_id, error in answer.left
        ]
        return (
            [("group_id", leave.group_id), ("members", members)],
            [*_answered(True, answer.error_code), ("members", left)],
        )

    def _commit(self, version: int, commit: Commit, answer: Answer) -> tuple[Fields, Fields]:
        old = self._old
        partition: Fields = [
            ("partition" if old else "partition_index", commit.partition),
            ("offset" if old else "committed_offset", commit.offset),
            *_when(version >= 6, ("leader_epoch" if old else "committed_leader_epoch", -1)),
            ("metadata" if old else "committed_metadata", ""),
        ]
        retention = "retention_time" if old else "retention_time_ms"
        topic = "topic" if old else "name"
        asked: Fields = [
            ("group_id", commit.group_id),
            ("generation_id", commit.generation_id),
            ("member_id", commit.member_id),
            *_when(version >= 7, ("group_instance_id", commit.group_instance_id)),
            *_when(2 <= version <= 4, (retention, commit.retention_ms)),
            ("topics", [[(topic, commit.topic), ("partitions", [partition])]]),
        ]
        told: Fields = [
            ("partition" if old else "partition_index", commit.partition),
            ("error_code", answer.error_code),
        ]
        answered = [[(topic, commit.topic), ("partition_responses" if old else "partitions", [told])]]
        said: Fields = [
            *_when(version >= 3, ("throttle_time_ms", 0)),
            ("responses" if old else "topics", answered),
        ]
        return asked, said

    def _delete(self, delete: DeleteGroups, answer: Answer) -> tuple[Fields, Fields]:
        new = self._version >= (2, 4, 0)
        parts = answer.parts or tuple((one, answer.error_code) for one in delete.group_ids)
        results = [[("group_id", one), ("error_code", error)] for one, error in parts]
        return (
            [("groups_names" if new else "groups", list(delete.group_ids))],
            [("throttle_time_ms", 0), ("results" if new else "group_error_codes", results)],
        )

    def _fetch(self, version: int, size: int) -> tuple[Fields, Fields]:
        flat = self._version >= (2, 7, 0)
        first = self._version < (2, 1, 0)
        partition: Fields = [
            ("partition", 0),
            *_when(version >= 9, ("current_leader_epoch", -1)),
            ("fetch_offset", 0),
            *_when(version >= 12, ("last_fetched_epoch", -1)),
            ("log_start_offset", -1),
            ("max_bytes" if first else "partition_max_bytes", 1048576),
        ]
        asked: Fields = [
            ("replica_id", -1),
            ("max_wait_ms" if flat else "max_wait_time", 500),
            ("min_bytes", 1),
            ("max_bytes", 52428800),
            ("isolation_level", 0),
            ("session_id", 7),
            ("epoch" if first else "session_epoch", 1),
            ("topics", [[("topic", "orders"), ("partitions", [partition])]]),
            ("forgotten_topics_data", []),
            *_when(version >= 11, ("rack_id", "")),
        ]
        header: Fields = [
            ("partition", 0),
            ("error_code", 0),
            ("high_watermark", 19),
            ("last_stable_offset", 19),
            ("log_start_offset", 0),
            ("aborted_transactions", []),
            *_when(version >= 11, ("preferred_read_replica", -1)),
        ]
        records = ("record_set", _Raw(self._records(size)))
        told: Fields = [*header, records] if flat else [("partition_header", _Struct(header)), records]
        said: Fields = [
            ("throttle_time_ms", 0),
            ("error_code", 0),
            ("session_id", 7),
            ("responses", [[("topic", "orders"), ("partition_responses", [told])]]),
        ]
        return asked, said

    def _records(self, size: int) -> str:
        with_size = self._version >= (2, 4, 0)
        if not size:
            empty = "MemoryRecords(size=0, buffer=java.nio.HeapByteBuffer[pos=0 lim=0 cap=0])"
            return empty if with_size else "[]"
        file = "DATADIR/orders-0/00000000000000000000.log"
        if with_size:
            return f"FileRecords(size={size}, file={file}, start=0, end={size})"
        return f"FileRecords(file= {file}, start=0, end={size})"


class _Raw(str):
    """Written as it is."""

    __slots__ = ()


class _Struct(tuple[tuple[str, Any], ...]):
    """A struct that is a value."""

    __slots__ = ()


def _release(kafka_version: str) -> Release:
    version = version_of(kafka_version)
    return [one for one in RELEASES if one.first <= version][-1]


def _when(there: bool, *fields: tuple[str, Any]) -> Fields:
    return list(fields) if there else []


def _answered(throttled: bool, error_code: int) -> Fields:
    return [*_when(throttled, ("throttle_time_ms", 0)), ("error_code", error_code)]


def _struct(fields: Fields | _Struct, flexible: bool) -> str:
    parts = [f"{name}={_value(value, flexible)}" for name, value in fields]
    return "{" + ",".join([*parts, *(["_tagged_fields={}"] if flexible else [])]) + "}"


def _value(value: Any, flexible: bool) -> str:
    if value is None:
        return "null"
    if isinstance(value, bytes):
        return f"java.nio.HeapByteBuffer[pos=0 lim={len(value)} cap={len(value)}]"
    if isinstance(value, _Struct):
        return _struct(value, flexible)
    if isinstance(value, list):
        structs = (_struct(one, flexible) if isinstance(one, list) else _value(one, flexible) for one in value)
        return "[" + ",".join(structs) + "]"
    return str(value)
