"""Records of `__consumer_offsets` as Kafka's own tools print them, as events: read like a capture.

    kafka-dump-log.sh --offsets-decoder      text up to 3.x, JSON from 3.8 on; with partition, offset and time stamp
    kafka-console-consumer.sh --formatter    JSON of 4.x, text of commits before; the time stands in the value

Where the tool leaves out the time of a record (the text formatter of groups) nothing can be told, and the line is
refused. What the text form leaves out of a member (its host, its time-outs) stays unknown. Truth: `DumpLogSegments` and
the formatters of Kafka 2.0 to 4.4.
"""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Iterator
from typing import Any

import msgspec

from ingest.dialects import excerpt
from ingest.dialects.consumer_protocol import assignment_of_bytes
from ingest.dialects.sentence import UUID, UUID_IN_BASE64
from ingest.offsets.records import MAX_AT_MS, SOURCE, commit_event, group_event, other_event
from ingest.offsets.schema import LAYOUTS
from kardia.events import ALL_SHARDS, Event, Kind, shard_of

HEAD_BYTES = 256 * 1024
"""What is looked at to know such a file."""

_DUMPING = re.compile(r"Dumping .{0,4096}?__consumer_offsets-(?P<partition>[0-9]{1,9})[/\\]")
_RECORD = re.compile(
    r"(?:\| |baseOffset: [0-9]+ )?offset: (?P<offset>[0-9]{1,18}) .{0,1000}?\b(?:Create|LogAppend)Time: "
    r"(?P<at>[0-9]{1,14}) .{0,2000}?\bkey: (?P<key>.*)\Z",
    re.DOTALL,
)
_BATCH = re.compile(
    r"baseOffset: |Starting offset: |Dumping |(?:\| )?offset: .{0,2000}?(?:endTxnMarker: |isControl: true)|\$ |  --"
)
"""Lines that hold no record: of the file, of a batch, of a transaction, of whoever called the tool."""
_PAYLOAD = " payload: "
_COMMIT = re.compile(
    r"offset_commit::group=(?P<group>.*),partition=(?P<topic>[\w.-]{1,249})-(?P<partition>[0-9]{1,9})"
    r"|offset::(?P<group_2_0>.*):(?P<topic_2_0>[\w.-]{1,249}):(?P<partition_2_0>[0-9]{1,9})",
    re.DOTALL,
)
_GROUP = re.compile(r'group_metadata::group=(?P<group>.*)|(?P<json>\{"metadata" ?: ?".*"\})', re.DOTALL)
_OFFSET = re.compile(r"(?:offset=)?(?P<offset>[0-9]{1,19})(?:,metadata=.*)?", re.DOTALL)
_MEMBER = re.compile(
    rf"(?P<member>{UUID_IN_BASE64}|.+?{UUID})=(?:\[(?P<partitions>[^\]]*)\](?::[^,]*)?|[0-9a-fA-F]*)(?:,|\Z)", re.DOTALL
)
_FORMATTED = re.compile(
    r"\[(?P<group>.*),(?P<topic>[\w.-]{1,249}),(?P<partition>[0-9]{1,9})\]::(?:OffsetAndMetadata\(offset=|\[OffsetMetadata\[)"
    r"(?P<offset>[0-9]{1,19}).*?(?:commitTimestamp=|,CommitTime )(?P<at>[0-9]{1,14})\b.*",
    re.DOTALL,
)
_LOOK = re.compile(
    rb"__consumer_offsets-[0-9]+[/\\]|\bkey: (?:group_metadata::|offset_commit::|offset::|\{\"metadata\":|"
    rb"\{\"type\" ?: ?\"?[0-9]+\"? ?, ?\"data\")|^\{\"key\" ?: ?\{\"(?:type|version)\" ?: ?|"
    rb"^\[[^\n]{1,600},[0-9]+\]::\[?Offset|::GroupMetadata\(",
    re.MULTILINE,
)
_TOMBSTONES = ("<DELETE>", "<NULL>", "null", "NULL")
_GROUP_METADATA = 2
_TIMES = ("commitTimestamp", "currentStateTimestamp")
_NO_TIME = "a time beside the record; kafka-dump-log.sh --offsets-decoder prints it, `kardia capture` keeps it"
_decode = msgspec.json.Decoder().decode


class _UnreadError(Exception):
    """A line that is no record; the reason, and what was expected."""

    def __init__(self, reason: str, expected: str) -> None:
        super().__init__(expected)
        self.reason = reason


def is_dump(head: bytes) -> bool:
    """Whether a file begins as one of these tools writes."""
    return _LOOK.search(head[:HEAD_BYTES]) is not None


def dump_events(lines: Iterator[bytes]) -> Iterator[Event]:
    """Events of such a file, line by line in its order."""
    partition, at_byte = -1, 0
    for number, line in enumerate(lines):
        start, at_byte = at_byte, at_byte + len(line)
        text = line.decode("utf-8", "replace").rstrip("\r\n")
        dumping = _DUMPING.search(text)
        if dumping is not None:
            partition = int(dumping["partition"])
        if not text.strip():
            continue
        try:
            event = _event(text, partition, number)
        except (_UnreadError, msgspec.DecodeError, KeyError, TypeError, ValueError, RecursionError) as error:
            reason = error.reason if isinstance(error, _UnreadError) else "bad_record"
            detail = {"reason": reason, "excerpt": excerpt(line.strip()), "expected": str(error)[:200]}
            place = (f"{SOURCE}/file", start, at_byte, 0.0, 0.0, 0.0, 0.0)
            yield Event(int(Kind.REJECTED), ALL_SHARDS, *place, detail=detail)
            continue
        if event is not None:
            yield event


def _event(text: str, partition: int, number: int) -> Event | None:
    """The event of a line; None for one that holds no record."""
    record = _RECORD.match(text)
    if record is not None:
        return _dumped(record["key"], partition, int(record["offset"]), _checked(int(record["at"])))
    if text.startswith("{"):
        document = _decode(text)
        return _of_json(document["key"], document.get("value"), -1, number, -1)
    formatted = _FORMATTED.fullmatch(text)
    if formatted is not None:
        keys: dict[str, Any] = {"group": formatted["group"], "topic": formatted["topic"]}
        keys["partition"] = int(formatted["partition"])
        at_ms = _checked(int(formatted["at"]))
        values = {"offset": int(formatted["offset"]), "commitTimestamp": at_ms}
        return commit_event(_base(keys["group"], -1, number, at_ms), keys, values)
    if "::GroupMetadata(" in text:
        raise _UnreadError("bad_timestamp", _NO_TIME)
    if _BATCH.match(text) or " key: " not in text:
        return None
    raise _UnreadError("bad_record", "a record as kafka-dump-log.sh --offsets-decoder prints it")


def _checked(at_ms: int) -> int:
    if not 0 <= at_ms <= MAX_AT_MS:
        raise _UnreadError("out_of_range", "epoch milliseconds of a year before 2200")
    return at_ms


def _base(group_id: str, partition: int, offset: int, at_ms: int) -> Event:
    shard = shard_of(group_id) if partition < 0 else partition  # what begins in the middle names no partition
    at = float(at_ms)
    source = f"{SOURCE}/{shard}"
    return Event(int(Kind.OTHER_RECORD), shard, source, offset, offset + 1, at, at, at, at, group_id)


def _dumped(text: str, partition: int, offset: int, at_ms: int) -> Event | None:
    """A record of a dump: `KEY payload: VALUE`, of which a tombstone may have no second part."""
    if text.count(_PAYLOAD) > 1 and not text.startswith("{"):
        raise _UnreadError("ambiguous", "a record with one meaning; a name in it looks like the end of the key")
    key, _, payload = text.partition(_PAYLOAD)
    is_tombstone = not payload or payload in _TOMBSTONES
    if key.startswith('{"type"'):
        return _of_json(_decode(key), None if is_tombstone else _decode(payload), partition, offset, at_ms)
    commit = _COMMIT.fullmatch(key)
    if commit is not None:
        found = {name.removesuffix("_2_0"): value for name, value in commit.groupdict().items() if value is not None}
        keys: dict[str, Any] = {**found, "partition": int(found["partition"])}
        value = None if is_tombstone else _OFFSET.fullmatch(payload)
        if value is None and not is_tombstone:
            raise _UnreadError("bad_record", "offset=NUMBER")
        values = None if value is None else {"offset": int(value["offset"]), "commitTimestamp": at_ms}
        return commit_event(_base(keys["group"], partition, offset, at_ms), keys, values)
    group = _GROUP.fullmatch(key)
    if group is not None:
        group_id = group["group"] if group["json"] is None else _decode(group["json"])["metadata"]
        return group_event(_base(group_id, partition, offset, at_ms), None if is_tombstone else _text_group(payload))
    raise _UnreadError("bad_record", "a key that is known: group_metadata, offset_commit, or JSON")


def _text_group(payload: str) -> dict[str, Any]:
    """What the text says of a group: its generation, and who has which partitions."""
    values = _decode(payload)
    listed = values["assignment"]
    inner, at = listed[1:-1], 0
    members: list[list[Any]] = []
    while at < len(inner):
        found = _MEMBER.match(inner, at)
        if found is None:
            raise _UnreadError("ambiguous", "members by their ids, each with the partitions that it has")
        members.append([found["member"], "", "", "", -1, -1, _assignment(found["partitions"] or "")])
        at = found.end()
    return {
        "protocol_type": values["protocolType"],
        "generation": int(values["generationId"]),
        "protocol_name": values["protocol"] or "",
        "leader": "",
        "state_at_ms": -1,
        "members": members,
    }


def _assignment(text: str) -> list[list[Any]]:
    """`topic-0, topic-1` by topic."""
    topics: dict[str, list[int]] = {}
    for one in filter(None, text.split(", ")):
        topic, _, partition = one.rpartition("-")
        topics.setdefault(topic, []).append(int(partition))
    return [[topic, partitions] for topic, partitions in topics.items()]


def _of_json(
    key: dict[str, Any], value: dict[str, Any] | None, partition: int, offset: int, at_ms: int
) -> Event | None:
    kind = int(key.get("type", key.get("version", -1)))
    layout = LAYOUTS.get(kind)
    if layout is None:
        return None
    names = {"groupId": "group", "memberId": "member"}
    keys = {names.get(name, name): one for name, one in key["data"].items()}
    values = None if value is None else value["data"]
    if at_ms < 0:
        stamped = next((values[name] for name in _TIMES if values and values.get(name, -1) >= 0), None)
        if stamped is None:
            raise _UnreadError("bad_timestamp", _NO_TIME)
        at_ms = _checked(int(stamped))
    base = _base(keys["group"], partition, offset, at_ms)
    if kind == _GROUP_METADATA:
        return group_event(base, None if values is None else _json_group(values))
    if kind < _GROUP_METADATA:
        return commit_event(base, keys, values)
    return other_event(base, kind, layout, keys, values)


def _json_group(values: dict[str, Any]) -> dict[str, Any]:
    consumer = values["protocolType"] == "consumer"
    return {
        "protocol_type": values["protocolType"],
        "generation": int(values["generation"]),
        "protocol_name": values["protocol"] or "",
        "leader": values["leader"] or "",
        "state_at_ms": values.get("currentStateTimestamp", -1),
        "members": [
            [
                member["memberId"],
                member.get("groupInstanceId") or "",
                member["clientId"],
                member["clientHost"].rpartition("/")[2],
                int(member["sessionTimeout"]),
                int(member.get("rebalanceTimeout", member["sessionTimeout"])),
                _json_assignment(member.get("assignment")) if consumer else [],
            ]
            for member in values["members"]
        ],
    }


def _json_assignment(value: Any) -> list[list[Any]]:
    """An assignment in bytes (base64), or as the tools of 3.8 and 3.9 write it out."""
    if isinstance(value, str):
        return assignment_of_bytes(b64decode(value))
    return [[one["topic"], one["partitions"]] for one in (value or {}).get("assignedPartitions", ())]
