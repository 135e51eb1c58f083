"""Records of `__consumer_offsets` as events: group metadata, commits, and the rest by name.

`decode_key` and `decode_value` read any record by the layouts of `ingest.offsets.schema`; `record_event` makes the
event. A null value is a tombstone. Transaction markers never reach a consumer and so never come here. What does not
follow its layout is a REJECTED event (`bad_record`, or `unsupported_version`), an unknown kind is skipped: None.

The record's own time stamp is the broker's clock at the append; all four instants of the event are that instant.
"""

from __future__ import annotations

import struct
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from ingest.dialects import excerpt
from ingest.dialects.consumer_protocol import assignment_of_bytes
from ingest.dialects.request_events import MAX_TOPICS
from ingest.errors import RecordError
from ingest.offsets.schema import LAYOUTS, Field, Layout
from kardia.events import ALL_SHARDS, Event, Kind

SOURCE = "offsets-topic/offsets"
"""`BROKER/STREAM` of these events: the topic as a whole speaks, whichever broker leads the partition."""

MAX_MEMBERS = 10_000
"""Members of one record that are kept. `group.max.size` is unlimited by default; the record must fit a message."""

_NUMBERS = {
    "int8": struct.Struct(">b"),
    "int16": struct.Struct(">h"),
    "int32": struct.Struct(">i"),
    "int64": struct.Struct(">q"),
}


_OFFSET_COMMITS = (0, 1)
_GROUP_METADATA = 2
_EXPRESSION = 16

_REVOKING = "partitionsPendingRevocation"
_TOLD = (
    ("state", "state"),
    ("rebalanceTimeoutMs", "rebalance_timeout_ms"),
    ("rackId", "rack"),
    ("subscribedTopicNames", "topics"),
    ("subscribedTopicRegex", "regex"),
)
"""Field of a record about a member -> key of `Event.detail`."""


class _Reader:
    """Position in the bytes of one key or value."""

    __slots__ = ("at", "data")

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def number(self, kind: str) -> int:
        unpacker = _NUMBERS[kind]
        if self.at + unpacker.size > len(self.data):
            raise _broken(self, f"{unpacker.size} more bytes for an {kind}")
        value: int = unpacker.unpack_from(self.data, self.at)[0]
        self.at += unpacker.size
        return value

    def varint(self) -> int:
        value = shift = 0
        while shift < 35:
            if self.at >= len(self.data):
                raise _broken(self, "another byte of a variable length number")
            byte = self.data[self.at]
            self.at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7
        raise _broken(self, "a variable length number of at most five bytes")

    def take(self, length: int) -> bytes:
        if length < 0 or self.at + length > len(self.data):
            raise _broken(self, f"{length} more bytes")
        piece = self.data[self.at : self.at + length]
        self.at += length
        return piece


def _broken(reader: _Reader, expected: str) -> RecordError:
    return RecordError(
        "a record does not follow its layout",
        f"byte {reader.at} of {len(reader.data)}",
        expected,
        "if the broker is newer than this program, update it; the record is kept in `rejected`",
    )


def _read(reader: _Reader, fields: tuple[Field, ...], version: int, flexible: bool) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for field in fields:
        if field.tag < 0 and field.since <= version <= field.until:
            values[field.name] = _field(reader, field, version, flexible)
    return values


def _tags(reader: _Reader, fields: tuple[Field, ...], version: int, values: dict[str, Any]) -> None:
    known = {field.tag: field for field in fields if field.tag >= 0 and field.since <= version <= field.until}
    for _ in range(reader.varint()):
        tag, size = reader.varint(), reader.varint()
        inner = _Reader(reader.take(size))
        field = known.get(tag)
        if field is not None:
            # In a tag a nullable struct is announced by a variable length byte, elsewhere by an int8.
            if isinstance(field.type, tuple) and not field.many and field.nullable <= version:
                present = inner.varint() != 0
                values[field.name] = _one(inner, field, version, True, nullable=False) if present else None
            else:
                values[field.name] = _field(inner, field, version, True)


def _field(reader: _Reader, field: Field, version: int, flexible: bool) -> Any:
    nullable = field.nullable <= version
    if not field.many:
        return _one(reader, field, version, flexible, nullable=nullable)
    length = reader.varint() - 1 if flexible else reader.number("int32")
    if length < 0:
        if nullable:
            return None
        raise _broken(reader, f"an array for {field.name}")
    if length > len(reader.data):
        raise _broken(reader, f"an array for {field.name} that fits into the record")
    return [_one(reader, field, version, flexible, nullable=False) for _ in range(length)]


def _one(reader: _Reader, field: Field, version: int, flexible: bool, *, nullable: bool) -> Any:
    kind = field.type
    if isinstance(kind, tuple):
        if nullable and reader.number("int8") < 0:
            return None
        values = _read(reader, kind, version, flexible)
        if flexible:
            _tags(reader, kind, version, values)
        return values
    if kind == "uuid":
        return urlsafe_b64encode(reader.take(16)).rstrip(b"=").decode("ascii")
    if kind in _NUMBERS:
        return reader.number(kind)
    length = reader.varint() - 1 if flexible else reader.number("int16" if kind == "string" else "int32")
    if length < 0:
        if nullable:
            return None
        raise _broken(reader, f"a value for {field.name}")
    piece = reader.take(length)
    if kind == "bytes":
        return piece
    try:
        return piece.decode("utf-8")
    except UnicodeDecodeError:
        raise _broken(reader, f"UTF-8 in {field.name}") from None


def decode_key(key: bytes) -> tuple[int, Layout, dict[str, Any]] | None:
    """Kind, layout and fields of a key; None for a kind that is not known. Raises `RecordError`."""
    reader = _Reader(key)
    kind = reader.number("int16")
    layout = LAYOUTS.get(kind)
    if layout is None:
        return None
    fields = _read(reader, layout.key, 0, False)
    if reader.at != len(key):
        raise _broken(reader, "the end of the key")
    return kind, layout, fields


def decode_value(layout: Layout, value: bytes) -> tuple[int, dict[str, Any]]:
    """Version and fields of a value. Raises `RecordError`."""
    reader = _Reader(value)
    version = reader.number("int16")
    if not 0 <= version <= layout.highest:
        raise RecordError(
            f"a {layout.name} record has version {version}",
            "its first two bytes",
            f"0 to {layout.highest}",
            "update this program: the broker is newer",
        )
    flexible = version >= layout.flexible
    values = _read(reader, layout.value, version, flexible)
    if not layout.open:
        if flexible:
            _tags(reader, layout.value, version, values)
        if reader.at != len(value):
            raise _broken(reader, "the end of the value")
    return version, values


def record_event(
    partition: int, offset: int, timestamp_ms: float, key: bytes | None, value: bytes | None
) -> Event | None:
    """Event of one record; None for a kind of record that is not known (to be counted)."""
    at = float(timestamp_ms)
    source = f"{SOURCE}/{partition}"
    try:
        decoded = decode_key(key or b"")
        if decoded is None:
            return None
        kind, layout, keys = decoded
        values = None if value is None else decode_value(layout, value)[1]
        base = Event(int(Kind.OTHER_RECORD), partition, source, offset, offset + 1, at, at, at, at, keys["group"])
        if kind == _GROUP_METADATA:
            return group_event(base, None if values is None else _group(values))
        if kind in _OFFSET_COMMITS:
            return commit_event(base, keys, values)
        return other_event(base, kind, layout, keys, values)
    except Exception as error:  # also a defect of ours: a reader that stops at a record never gets past it
        reason, expected = "not_applied", f"a record that Kardia can read; a defect, please report it: {error!r}"[:400]
        if isinstance(error, RecordError):
            reason = "unsupported_version" if " has version " in error.what else "bad_record"
            expected = error.expected
        shown = excerpt((key or b"").hex().encode() + b" " + (value or b"").hex().encode())
        detail = {"reason": reason, "excerpt": shown, "expected": expected}
        return Event(int(Kind.REJECTED), ALL_SHARDS, source, offset, offset + 1, at, at, at, at, detail=detail)


def group_event(base: Event, told: dict[str, Any] | None) -> Event:
    """Event of a group's record; `told`: its detail, None of a tombstone. `base` has place, time and group."""
    if told is None:
        return base._replace(kind=int(Kind.GROUP_RECORD), detail={"tombstone": True})
    detail = {"tombstone": False, **told, "members": told["members"][:MAX_MEMBERS]}
    return base._replace(kind=int(Kind.GROUP_RECORD), generation_id=told["generation"], detail=detail)


def _group(values: dict[str, Any]) -> dict[str, Any]:
    consumer = values["protocolType"] == "consumer"
    members = [
        [
            member["memberId"],
            member.get("groupInstanceId") or "",
            member["clientId"],
            _host(member["clientHost"]),
            member["sessionTimeout"],
            member.get("rebalanceTimeout", member["sessionTimeout"]),
            assignment_of_bytes(member["assignment"]) if consumer else [],
        ]
        for member in values["members"][:MAX_MEMBERS]
    ]
    return {
        "protocol_type": values["protocolType"],
        "generation": values["generation"],
        "protocol_name": values["protocol"] or "",
        "leader": values["leader"] or "",
        "state_at_ms": values.get("currentStateTimestamp", -1),
        "members": members,
    }


def commit_event(base: Event, keys: dict[str, Any], values: dict[str, Any] | None) -> Event:
    """Event of a commit; `values` None of a tombstone."""
    detail = {
        "tombstone": values is None,
        "topic": keys["topic"],
        "partition": keys["partition"],
        "offset": -1 if values is None else values["offset"],
        "commit_at_ms": -1 if values is None else values["commitTimestamp"],
    }
    if values is not None and values.get("expireTimestamp", -1) >= 0:
        detail["expire_at_ms"] = values["expireTimestamp"]
    return base._replace(kind=int(Kind.OFFSET_RECORD), detail=detail)


def other_event(base: Event, kind: int, layout: Layout, keys: dict[str, Any], values: dict[str, Any] | None) -> Event:
    """Event of any other record of a kind that is known; `values` None of a tombstone."""
    known = values or {}
    detail = {"record_type": kind, "name": layout.name, "tombstone": values is None, "protocol": layout.protocol}
    epoch = known.get("memberEpoch", known.get("epoch", known.get("assignmentEpoch", -1)))
    if values is not None:
        detail |= _told_of_member(known)
        if kind != _EXPRESSION:
            detail["epoch"] = epoch
    return base._replace(
        member_id=keys.get("member", ""),
        group_instance_id=known.get("instanceId") or "",
        client_id=known.get("clientId") or "",
        client_host=_host(known.get("clientHost") or ""),
        generation_id=epoch,
        detail=detail,
    )


def _told_of_member(known: dict[str, Any]) -> dict[str, Any]:
    """What a record says of a member, under the keys of `Event.detail`."""
    told: dict[str, Any] = {}
    for name, key in _TOLD:
        if known.get(name) is not None:
            told[key] = known[name]
    for name, key in (("topicPartitions", "assigned"), ("assignedPartitions", "assigned"), (_REVOKING, "revoking")):
        if name in known:
            told[key] = [[entry["topicId"], entry["partitions"]] for entry in known[name]]
    if known.get("classicMemberMetadata"):
        told["classic_session_ms"] = known["classicMemberMetadata"]["sessionTimeoutMs"]
    if "topics" in told:
        told["topics"] = told["topics"][:MAX_TOPICS]
    return told


def _host(text: str) -> str:
    """Java prints an address as `name/address`, the name mostly empty."""
    return text.rpartition("/")[2]


MAX_AT_MS = 7_258_118_400_000
"""Year 2200: see `ingest.stamps.YEARS`."""


_Partition = Annotated[int, Meta(ge=0, le=2**31 - 1)]
_Offset = Annotated[int, Meta(ge=0, le=2**63 - 1)]
_Stamp = Annotated[int, Meta(ge=-1, le=MAX_AT_MS)]


class _Captured(msgspec.Struct):
    partition: _Partition
    offset: _Offset
    timestamp_ms: _Stamp
    key: str | None
    value: str | None


class _Short(msgspec.Struct, rename={"partition": "p", "offset": "o", "timestamp_ms": "ts", "key": "k", "value": "v"}):
    """The same in the short names that other recorders write."""

    partition: _Partition
    offset: _Offset
    timestamp_ms: _Stamp
    key: str | None
    value: str | None


_LONG_ROW, _SHORT_ROW = msgspec.json.Decoder(_Captured), msgspec.json.Decoder(_Short)


def captured_line(partition: int, offset: int, timestamp_ms: int, key: bytes | None, value: bytes | None) -> bytes:
    """One line of the file that `kardia capture` writes and `kardia replay --offsets` reads."""
    row = {
        "partition": partition,
        "offset": offset,
        "timestamp_ms": timestamp_ms,
        "key": None if key is None else key.hex(),
        "value": None if value is None else value.hex(),
    }
    return msgspec.json.encode(row) + b"\n"


def record_events(lines: Iterator[bytes], unknown: dict[int, int] | None = None) -> Iterator[Event]:
    """Events of a captured file, line by line in its order; `unknown` counts record kinds that are skipped."""
    at_byte = 0
    for line in lines:
        start, at_byte = at_byte, at_byte + len(line)
        if not line.strip():
            continue
        try:
            row = (_SHORT_ROW if line.startswith(b'{"p":') else _LONG_ROW).decode(line)
            key = None if row.key is None else bytes.fromhex(row.key)
            value = None if row.value is None else bytes.fromhex(row.value)
        except (msgspec.DecodeError, ValueError, RecursionError) as error:
            reason = "out_of_range" if " >= " in str(error) or " <= " in str(error) else "bad_json"
            detail = {"reason": reason, "excerpt": excerpt(line.strip()), "expected": str(error)[:200]}
            yield Event(
                int(Kind.REJECTED), ALL_SHARDS, f"{SOURCE}/file", start, at_byte, 0.0, 0.0, 0.0, 0.0, detail=detail
            )
            continue
        event = record_event(row.partition, row.offset, row.timestamp_ms, key, value)
        if event is not None:
            yield event
        elif unknown is not None:
            kind = int.from_bytes((key or b"")[:2], "big")
            unknown[kind] = unknown.get(kind, 0) + 1
