"""The request log of brokers 2.8 and newer: one JSON object per completed request.

    [2026-11-20 10:47:18,113] DEBUG Completed request:{"isForwarded":false,"requestHeader":{"requestApiKey":12,…} (…)

States what the line says and interprets nothing. The number of the API stands at a fixed place, so lines of other
APIs cost a look at a few bytes. What a client may choose (its ids, reasons, metadata) stands inside JSON strings,
which the broker escapes: nothing a client sends can end the line or look like the head of another one, and everything
is taken from the parsed object, never found by searching the text.

Instants: see `kardia.events`. `generation_id` of a JOIN is that of the answer, because its request has none.
Truth: Kafka `RequestConvertToJson` and the lines of eight broker versions.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import tzinfo
from typing import Any

import msgspec

from ingest.consumer_protocol import assignment_of_base64, fingerprint
from ingest.dialects import Reading, rejection
from ingest.dialects import request_shapes as shapes
from ingest.stamps import MILLIS, Stamps
from kardia.events import ALL_SHARDS, DEFAULT_OFFSETS_PARTITIONS, Event, Kind, shard_of

MARK = b"Completed request:"
_HEAD_BYTES = 256
"""`MARK` is looked for within this many bytes: a layout may print the thread before it, never anything of a client."""

_PREFIX = b'{"isForwarded":false,"requestHeader":{"requestApiKey":'
_PREFIX_AT = len(b"[2026-11-20 10:47:18,113] DEBUG ") + len(MARK)
_API_AT = _PREFIX_AT + len(_PREFIX)
_API_KEY = re.compile(rb'\{"isForwarded":(?:true|false),"requestHeader":\{"requestApiKey":(-?\d{1,5}),')
_CONNECTION = re.compile(r"(.+:\d+)-(.+):\d+(?:-\d+)?-\d+", re.DOTALL)
_MAX_CONNECTION = 256
_LOGGER = b" (kafka.request.logger)"
_LOGGER_BYTES = len(_LOGGER)
_CACHE_MAX = 8_192

_new_event = tuple.__new__
Builder = Callable[[Any, str, int, int, float], Event | list[Event] | str]


class _Head(msgspec.Struct):
    json_at: int
    api: tuple[Callable[[bytes], Any], Builder]


class RequestJson:
    """Dialect of `kafka-request.log`, JSON lines."""

    stream = "request"

    def __init__(self, zone: tzinfo, offsets_partitions: int = DEFAULT_OFFSETS_PARTITIONS) -> None:
        """`zone`: zone of the stamps. `offsets_partitions`: partitions of `__consumer_offsets` in this cluster."""
        self.stamps = Stamps(zone)
        self._offsets_partitions = offsets_partitions
        self._shards: dict[str, int] = {}
        self._hosts: dict[str, str] = {}
        self._at_ms = self.stamps.at_ms
        self._seconds = self.stamps.seconds
        table: dict[int, tuple[type, Builder]] = {
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
        self._apis: dict[bytes, tuple[Callable[[bytes], Any], Builder]] = {
            b"%d" % key: (msgspec.json.Decoder(shape).decode, build) for key, (shape, build) in table.items()
        }

        self._fast = {_PREFIX + key + b",": api for key, api in self._apis.items()}

    def stamp_ms(self, line: bytes) -> float | None:
        """Instant of the line's own stamp."""
        return self._at_ms(line)

    def broker_of(self, line: bytes) -> str:
        """`host:port` of the broker's end of the connection, empty when the line does not tell."""
        at = line.find(MARK, 0, _HEAD_BYTES)
        if at < 0:
            return ""
        try:
            named = _broker_decoder.decode(line[at + len(MARK) : line.rfind(b"}") + 1])
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return ""
        match = _CONNECTION.fullmatch(named.connection) if len(named.connection) <= _MAX_CONNECTION else None
        return match[1] if match else ""

    def read(self, line: bytes, source: str, start: int, end: int) -> Reading:
        """Read one line. See `ingest.dialects.Dialect`."""
        # The shipped layout at level DEBUG or TRACE: everything has its place. APIs of one digit first: FETCH is one.
        api = self._fast.get(line[_PREFIX_AT : _API_AT + 2]) or self._fast.get(line[_PREFIX_AT : _API_AT + 3])
        json_at = _PREFIX_AT
        if api is None:
            found = self._head(line, source, start, end)
            if not isinstance(found, _Head):
                return found
            json_at, api = found.json_at, found.api
        # A second met before costs two look-ups; everything else goes the long way.
        at_ms = self._seconds.get(line[:21])
        millis = MILLIS.get(line[21:25])
        if at_ms is not None and millis is not None:
            at_ms += millis
        else:
            at_ms = self._at_ms(line)
            if at_ms is None:
                expected = "a stamp such as [2026-11-20 10:47:18,113] at the head of the line"
                return rejection("bad_timestamp", expected, line, source, start, end, None)
        decode, build = api
        try:
            parsed = decode(line[json_at : -_LOGGER_BYTES if line.endswith(_LOGGER) else line.rfind(b"}") + 1])
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            return self._not_understood(error, line, source, start, end, at_ms)
        if not line.isascii() and not _is_utf8(line):
            return rejection("bad_encoding", "UTF-8", line, source, start, end, at_ms)
        try:
            return build(parsed, source, start, end, at_ms)
        except AttributeError:
            # `request` or `response` is a string or null.
            expected = "a request and a response; logging began while this request was on its way, or it got no answer"
            return rejection("unknown_shape", expected, line, source, start, end, at_ms)

    # --- lines that are not in the shipped layout ------------------------------------------------------------------

    def _head(self, line: bytes, source: str, start: int, end: int) -> _Head | Reading:
        at = line.find(MARK, 0, _HEAD_BYTES)
        if at < 0:
            if not line.strip():
                return "blank"
            return "continuation" if self._at_ms(line) is None else "other_logger"
        at_ms = self._at_ms(line)
        if at_ms is None:
            expected = "a stamp such as [2026-11-20 10:47:18,113] at the head of the line"
            return rejection("bad_timestamp", expected, line, source, start, end, None)
        at += len(MARK)
        match = _API_KEY.match(line, at)
        if match is None:
            if line.startswith(b"RequestHeader(", at):
                expected = "JSON lines of a broker 2.8 or newer; this is a text line of 2.0 to 2.7"
                return rejection("unsupported_version", expected, line, source, start, end, at_ms)
            expected = 'an object that begins with {"isForwarded":…,"requestHeader":{"requestApiKey":…'
            return rejection("unknown_shape", expected, line, source, start, end, at_ms)
        api = self._apis.get(match[1])
        return "other_api" if api is None else _Head(at, api)

    @staticmethod
    def _not_understood(error: Exception, line: bytes, source: str, start: int, end: int, at_ms: float) -> Event:
        """Name the reason. msgspec's sentences say what was expected and end with the path."""
        text = str(error)[:200]
        if not _is_utf8(line):
            return rejection("bad_encoding", "UTF-8", line, source, start, end, at_ms)
        if isinstance(error, msgspec.ValidationError):
            outside = " >= " in text or " <= " in text or "out of range" in text or "length <=" in text
            return rejection("out_of_range" if outside else "unknown_shape", text, line, source, start, end, at_ms)
        return rejection("bad_json", text or "JSON", line, source, start, end, at_ms)

    # --- one function per API --------------------------------------------------------------------------------------

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
            match = _CONNECTION.fullmatch(connection) if len(connection) <= _MAX_CONNECTION else None
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
                None,
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
                detail,
            ),
        )

    def _fetch(self, line: shapes.FetchLine, source: str, start: int, end: int, at_ms: float) -> Event | str:
        request: Any = line.request
        response: Any = line.response
        replica = request.replica_state
        if request.replica_id >= 0 or (replica is not None and replica.replica_id >= 0):
            return "other_api"  # a follower replicates; its FETCH says nothing about a consumer
        size = 0
        for topic in response.responses:
            for partition in topic.partitions or topic.partition_responses:
                size += partition.records_size_in_bytes + partition.record_set_size_in_bytes
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
                {"bytes": size, "max_wait_ms": request.max_wait_ms, "session_epoch": request.session_epoch},
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
            "protocols": [[protocol.name, fingerprint(protocol.metadata)] for protocol in request.protocols],
            "reason": request.reason or "",
            "assigned_member_id": response.member_id,
            "leader": response.leader,
            "protocol_name": response.protocol_name or "",
            "members": [[member.member_id, member.group_instance_id or ""] for member in response.members],
            "skip_assignment": response.skip_assignment,
        }
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
        detail = {
            "metrics": request.metrics,
            "compression": request.compression_type,
            "client_instance_id": request.client_instance_id,
        }
        place = (source, start, end, at_ms)
        return self._event(Kind.TELEMETRY, line, place, "", "", None, response.error_code, -1, detail, ALL_SHARDS)

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
        request: Any = line.request
        response: Any = line.response
        return self._event(
            Kind.MODERN_HEARTBEAT,
            line,
            place,
            request.group_id,
            request.member_id or response.member_id or "",
            request.instance_id,
            response.error_code,
            request.member_epoch,
            {"protocol": protocol, "member_epoch": request.member_epoch},
        )


class _Named(msgspec.Struct):
    connection: str = ""


_broker_decoder = msgspec.json.Decoder(_Named)


def _no_assignment(_: str) -> list[list[object]]:
    return []


def _is_utf8(line: bytes) -> bool:
    try:
        line.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True
