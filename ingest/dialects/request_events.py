"""Events of parsed request lines: one function per API. States what the line says and interprets nothing.

`generation_id` of a JOIN is that of the answer, because its request has none. The two hot ones, HEARTBEAT and FETCH,
are written out; the others share `_event`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from ingest.dialects import Reading
from ingest.dialects import request_shapes as shapes
from ingest.dialects.consumer_protocol import assignment_of_base64, fingerprint
from ingest.dialects.quiet_text import Quiet
from kardia.events import ALL_SHARDS, QUEUED_MS, Event, Kind, shard_of
from kardia.slowness import SLOW_MS
from kardia.stretches import EXACT_MAX

CONNECTION = re.compile(r"(.+:\d+)-(.+):\d+(?:-\d+)?-\d+", re.DOTALL)
"""Two addresses, then one number (up to 3.9) or two; from the right, because an IPv6 address is full of colons."""

MAX_CONNECTION = 256
MAX_TOPICS = 1_000
"""Topic names of one subscription that are kept; the group epoch counts its changes, whatever they are."""
_CACHE_MAX = 8_192
_HEARTBEAT = int(Kind.HEARTBEAT)
_TELL_QUEUES = frozenset((Kind.JOIN, Kind.SYNC, Kind.LEAVE, Kind.COMMIT, Kind.MODERN_HEARTBEAT))
"""Kinds, beside HEARTBEAT, whose detail says how long a request stood in the queue."""

_new_event = tuple.__new__
Builder = Callable[[Any, str, int, int, float], Reading]


def from_follower(request: Any) -> bool:
    """Whether a broker sent this FETCH."""
    replica = request.replica_state
    return bool(request.replica_id >= 0 or (replica is not None and replica.replica_id >= 0))


def fetched_bytes(response: Any) -> int:
    """Size of the records in the answer to a FETCH."""
    size = 0
    for topic in response.responses:
        for partition in topic.partitions or topic.partition_responses:
            size += partition.records_size_in_bytes + partition.record_set_size_in_bytes
    return size


class RequestEvents:
    """Builds the events of one log; remembers shards of groups and addresses of connections."""

    def __init__(self, offsets_partitions: int) -> None:
        """`offsets_partitions`: partitions of `__consumer_offsets` in this cluster."""
        self._offsets_partitions = offsets_partitions
        self._shards: dict[str, int] = {}
        self._hosts: dict[str, str] = {}
        self.by_api: dict[int, tuple[type, Builder]] = {
            1: (shapes.FetchLine, self._fetch),
            8: (shapes.CommitLine, self._commit),
            11: (shapes.JoinLine, self._join),
            12: (shapes.HeartbeatLine, self._heartbeat),
            13: (shapes.LeaveLine, self._leave),
            14: (shapes.SyncLine, self._sync),
            28: (shapes.CommitLine, self._txn_commit),
            42: (shapes.DeleteGroupsLine, self._delete_groups),
            68: (shapes.ModernLine, self._consumer_heartbeat),
            72: (shapes.TelemetryLine, self._telemetry),
            76: (shapes.ModernLine, self._share_heartbeat),
            88: (shapes.ModernLine, self._streams_heartbeat),
        }
        """Shape of the line and its function, by number of the API; every other API says nothing about groups."""

    def _shard(self, group_id: str) -> int:
        shard = self._shards.get(group_id)
        if shard is None:
            if len(self._shards) >= _CACHE_MAX:
                self._shards.clear()
            shard = self._shards[group_id] = shard_of(group_id, self._offsets_partitions)
        return shard

    def _host(self, connection: str) -> str:
        host = self._hosts.get(connection)
        if host is None:
            if len(self._hosts) >= _CACHE_MAX:
                self._hosts.clear()
            match = CONNECTION.fullmatch(connection) if len(connection) <= MAX_CONNECTION else None
            host = self._hosts[connection] = match[2] if match else ""
        return host

    def _heartbeat(self, line: shapes.HeartbeatLine, source: str, start: int, end: int, at_ms: float) -> Event:
        request: Any = line.request
        arrived = at_ms - line.total_time_ms
        handled = arrived + line.request_queue_time_ms + line.local_time_ms
        group_id = request.group_id
        connection = line.connection
        header = line.request_header
        client = line.client_information
        name = client.software_name
        return _new_event(
            Event,
            (
                3,
                self._shards.get(group_id) or self._shard(group_id),
                source,
                start,
                end,
                at_ms,
                arrived,
                handled,
                handled + line.remote_time_ms,
                group_id,
                request.member_id,
                request.group_instance_id or "",
                header.client_id or "",
                self._hosts.get(connection) or self._host(connection),
                connection,
                "" if name == "unknown" else f"{name}/{client.software_version}",
                header.request_api_version,
                line.response.error_code,  # type: ignore[union-attr]
                request.generation_id,
                _with_queue(
                    {"throttle_ms": line.throttle_time_ms} if line.throttle_time_ms else None,
                    line.request_queue_time_ms,
                ),
            ),
        )

    def quiet_text(self, quiet: Quiet, start: int, end: int, at_ms: float) -> Event | None:
        """The event of a text line that says no more than that somebody is alive; None if a number is out of range or
        the broker was slow, for which the line is to be read as any other."""
        kind, key, total_ms, queue_ms, local_ms, after_ms, size = quiet
        source, version, connection, software, software_version, client_id, *names = key
        arrived = at_ms - total_ms
        handled = arrived + queue_ms + local_ms
        waited_ms = total_ms - queue_ms - local_ms - after_ms
        decided = handled + waited_ms if waited_ms > 0.0 else handled
        if total_ms >= SLOW_MS and (kind == _HEARTBEAT or queue_ms + local_ms >= SLOW_MS):
            return None
        group_id, generation, member_id, instance_id = names if names else ("", "-1", "", "")
        generation_id = int(generation)
        if not -1 <= generation_id < 2**31 or len(group_id) >= 2**15:
            return None
        return _new_event(
            Event,
            (
                kind,
                self._shards.get(group_id) or self._shard(group_id) if names else ALL_SHARDS,
                source,
                start,
                end,
                at_ms,
                arrived,
                handled,
                decided,
                group_id,
                member_id,
                "" if instance_id == "null" else instance_id,
                client_id,
                self._hosts.get(connection) or self._host(connection),
                connection,
                "" if software is None or software == "unknown" else f"{software}/{software_version}",
                version,
                0,
                generation_id,
                _with_queue(None, queue_ms) if names else {"bytes": min(size, EXACT_MAX)},
            ),
        )

    def _event(
        self,
        kind: Kind,
        line: shapes.Envelope,
        place: tuple[str, int, int, float],
        group_id: str,
        member_id: str,
        group_instance_id: str | None,
        error_code: int,
        generation_id: int,
        detail: dict[str, Any] | None,
        shard: int | None = None,
    ) -> Event:
        source, start, end, at_ms = place
        arrived = at_ms - line.total_time_ms
        handled = arrived + line.request_queue_time_ms + line.local_time_ms
        connection = line.connection
        header = line.request_header
        client = line.client_information
        name = client.software_name
        return _new_event(
            Event,
            (
                int(kind),
                self._shard(group_id) if shard is None else shard,
                source,
                start,
                end,
                at_ms,
                arrived,
                handled,
                handled + line.remote_time_ms,
                group_id,
                member_id,
                group_instance_id or "",
                header.client_id or "",
                self._hosts.get(connection) or self._host(connection),
                connection,
                "" if name == "unknown" else f"{name}/{client.software_version}",
                header.request_api_version,
                error_code,
                generation_id,
                _with_queue(detail, line.request_queue_time_ms) if kind in _TELL_QUEUES else detail,
            ),
        )

    def _fetch(self, line: shapes.FetchLine, source: str, start: int, end: int, at_ms: float) -> Event | str:
        request: Any = line.request
        if from_follower(request):
            return "other_api"  # a follower replicates; its FETCH says nothing about a consumer
        response: Any = line.response
        size = fetched_bytes(response)
        arrived = at_ms - line.total_time_ms
        handled = arrived + line.request_queue_time_ms + line.local_time_ms
        connection = line.connection
        header = line.request_header
        client = line.client_information
        name = client.software_name
        return _new_event(
            Event,
            (
                7,
                ALL_SHARDS,  # names no group: the router finds its shards
                source,
                start,
                end,
                at_ms,
                arrived,
                handled,
                handled + line.remote_time_ms,
                "",
                "",
                "",
                header.client_id or "",
                self._hosts.get(connection) or self._host(connection),
                connection,
                "" if name == "unknown" else f"{name}/{client.software_version}",
                header.request_api_version,
                response.error_code,
                -1,
                {"bytes": min(size, EXACT_MAX)},
            ),
        )

    def _commit(self, line: shapes.CommitLine, source: str, start: int, end: int, at_ms: float) -> Event:
        return self._any_commit(Kind.COMMIT, line, (source, start, end, at_ms))

    def _txn_commit(self, line: shapes.CommitLine, source: str, start: int, end: int, at_ms: float) -> Event:
        return self._any_commit(Kind.TXN_COMMIT, line, (source, start, end, at_ms))

    def _any_commit(self, kind: Kind, line: shapes.CommitLine, place: tuple[str, int, int, float]) -> Event:
        request: Any = line.request
        response: Any = line.response
        error_of = {
            (topic.name or topic.topic_id, partition.partition_index): partition.error_code
            for topic in response.topics
            for partition in topic.partitions
        }
        offsets = [
            [name, index, partition.committed_offset, error_of.get((name, index), 0)]
            for topic in request.topics
            for name in (topic.name or topic.topic_id,)
            for partition in topic.partitions
            for index in (partition.partition_index,)
        ]
        # The broker checks the member once for the request, so one partition that went well means it was accepted.
        codes = list(error_of.values())
        error_code = 0 if not codes or 0 in codes else codes[0]
        generation_id = max(request.generation_id, request.generation_id_or_member_epoch)
        if generation_id == -1:
            generation_id = min(request.generation_id, request.generation_id_or_member_epoch)
        detail = {"offsets": offsets}
        return self._event(
            kind,
            line,
            place,
            request.group_id,
            request.member_id,
            request.group_instance_id,
            error_code,
            generation_id,
            detail,
        )

    def _join(self, line: shapes.JoinLine, source: str, start: int, end: int, at_ms: float) -> Event:
        request: Any = line.request
        response: Any = line.response
        rebalance_timeout_ms = request.rebalance_timeout_ms
        if rebalance_timeout_ms is None or line.request_header.request_api_version == 0:
            rebalance_timeout_ms = request.session_timeout_ms
        detail = {
            "session_timeout_ms": request.session_timeout_ms,
            "rebalance_timeout_ms": rebalance_timeout_ms,
            "protocol_type": request.protocol_type,
            "protocols": [
                [protocol.name, "" if protocol.metadata is None else fingerprint(protocol.metadata)]
                for protocol in request.protocols
            ],
            "reason": request.reason or "",
            "assigned_member_id": response.member_id,
            "leader": response.leader,
            "protocol_name": response.protocol_name or "",
            "members": [[member.member_id, member.group_instance_id or ""] for member in response.members],
            "skip_assignment": response.skip_assignment,
        }
        if line.release:
            detail["release"] = line.release
        return self._event(
            Kind.JOIN,
            line,
            (source, start, end, at_ms),
            request.group_id,
            request.member_id,
            request.group_instance_id,
            response.error_code,
            response.generation_id,
            detail,
        )

    def _sync(self, line: shapes.SyncLine, source: str, start: int, end: int, at_ms: float) -> Event:
        request: Any = line.request
        response: Any = line.response
        protocol_type = response.protocol_type or request.protocol_type or "consumer"
        decoded = assignment_of_base64 if protocol_type == "consumer" else _no_assignment
        detail = {
            "protocol_name": response.protocol_name or request.protocol_name or "",
            "assignments": [[entry.member_id, decoded(entry.assignment)] for entry in request.assignments],
            "assignment": decoded(response.assignment),
        }
        return self._event(
            Kind.SYNC,
            line,
            (source, start, end, at_ms),
            request.group_id,
            request.member_id,
            request.group_instance_id,
            response.error_code,
            request.generation_id,
            detail,
        )

    def _leave(self, line: shapes.LeaveLine, source: str, start: int, end: int, at_ms: float) -> Event:
        request: Any = line.request
        response: Any = line.response
        error_code = response.error_code
        if request.members is None:  # versions 0 to 2: one member, answered by the code of the whole
            members = [[request.member_id or "", "", "", error_code]]
        else:
            answered = [member.error_code for member in response.members or ()]
            answered += [error_code] * (len(request.members) - len(answered))
            members = [
                [member.member_id, member.group_instance_id or "", member.reason or "", error_code or code]
                for member, code in zip(request.members, answered, strict=False)
            ]
        member_id, instance_id = "", ""
        if len(members) == 1:
            member_id, instance_id, _, error_code = members[0]
        place = (source, start, end, at_ms)
        detail = {"members": members}
        return self._event(Kind.LEAVE, line, place, request.group_id, member_id, instance_id, error_code, -1, detail)

    def _telemetry(self, line: shapes.TelemetryLine, source: str, start: int, end: int, at_ms: float) -> Event:
        request: Any = line.request
        response: Any = line.response
        from ingest.dialects import telemetry  # brings protobuf and codecs: most logs have no such line

        pushed = telemetry.read(request.metrics, request.compression_type)
        detail: dict[str, Any] = {
            "bytes": len(request.metrics) * 3 // 4,
            "compression": request.compression_type,
            "client_instance_id": request.client_instance_id,
        }
        if pushed.last_poll_s is not None:
            detail["last_poll_s"] = pushed.last_poll_s
        if pushed.unreadable:
            detail["unreadable"] = pushed.unreadable
        return self._event(
            Kind.TELEMETRY,
            line,
            (source, start, end, at_ms),
            pushed.group_id,
            pushed.member_id,
            pushed.group_instance_id,
            response.error_code,
            -1,
            detail,
            None if pushed.group_id else ALL_SHARDS,
        )

    def _delete_groups(
        self, line: shapes.DeleteGroupsLine, source: str, start: int, end: int, at_ms: float
    ) -> list[Event] | str:
        """One event per group. They share the line, so each gets bytes of its own from it: identity is a position."""
        request: Any = line.request
        response: Any = line.response
        codes = {result.group_id: result.error_code for result in response.results}
        names = request.groups_names[: max(end - start, 1)]
        last = len(names) - 1
        return [
            self._event(
                Kind.DELETE_GROUPS,
                line,
                (source, start + at, end if at == last else start + at + 1, at_ms),
                name,
                "",
                None,
                codes.get(name, 0),
                -1,
                {},
            )
            for at, name in enumerate(names)
        ]

    def _consumer_heartbeat(self, line: shapes.ModernLine, source: str, start: int, end: int, at_ms: float) -> Event:
        return self._modern("consumer", line, (source, start, end, at_ms))

    def _share_heartbeat(self, line: shapes.ModernLine, source: str, start: int, end: int, at_ms: float) -> Event:
        return self._modern("share", line, (source, start, end, at_ms))

    def _streams_heartbeat(self, line: shapes.ModernLine, source: str, start: int, end: int, at_ms: float) -> Event:
        return self._modern("streams", line, (source, start, end, at_ms))

    def _modern(self, protocol: str, line: shapes.ModernLine, place: tuple[str, int, int, float]) -> Event:
        """What a heartbeat does not say, and most say nothing, is not in its detail."""
        request: Any = line.request
        response: Any = line.response
        detail: dict[str, Any] = {
            "protocol": protocol,
            "member_epoch": request.member_epoch,
            "answered_epoch": response.member_epoch,
            "interval_ms": response.heartbeat_interval_ms,
        }
        if request.rebalance_timeout_ms > 0:
            detail["rebalance_timeout_ms"] = request.rebalance_timeout_ms
        if request.rack_id is not None:
            detail["rack"] = request.rack_id
        if request.subscribed_topic_names is not None:
            detail["topics"] = request.subscribed_topic_names[:MAX_TOPICS]
        if request.subscribed_topic_regex is not None:
            detail["regex"] = request.subscribed_topic_regex
        owned = request.topic_partitions if protocol != "streams" else request.active_tasks
        if owned is not None:
            detail["owned"] = _partitions(owned)
        if protocol == "streams" and response.active_tasks is not None:
            detail["assigned"] = _partitions(response.active_tasks)
        elif response.assignment is not None:
            detail["assigned"] = _partitions(response.assignment.topic_partitions)
        if response.status:
            detail["status"] = [one.status_code for one in response.status]
        if line.throttle_time_ms:
            detail["throttle_ms"] = line.throttle_time_ms
        return self._event(
            Kind.MODERN_HEARTBEAT,
            line,
            place,
            request.group_id,
            request.member_id or response.member_id or "",
            request.instance_id,
            response.error_code,
            response.member_epoch if response.error_code == 0 else request.member_epoch,
            detail,
        )


def _with_queue(detail: dict[str, Any] | None, queue_ms: float) -> dict[str, Any] | None:
    """The detail of a request, with how long it stood in the queue if that was long."""
    return detail if queue_ms <= QUEUED_MS else {**(detail or {}), "queued_ms": queue_ms}


def _partitions(entries: list[shapes.Assigned]) -> list[list[object]]:
    return [[entry.topic_id or entry.subtopology_id, entry.partitions] for entry in entries]


def _no_assignment(_: str) -> list[list[object]]:
    return []
