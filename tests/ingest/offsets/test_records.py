"""Records of the offsets topic: real ones, every layout by a writer of our own, damage at every byte."""

from __future__ import annotations

import gzip
import json
import struct
from base64 import urlsafe_b64decode
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest.archives.ranges import read_offsets_file
from ingest.errors import RecordError
from ingest.offsets.records import captured_line, decode_key, decode_value, record_event
from ingest.offsets.schema import LAYOUTS, Field, Layout
from kardia.events import Event, Kind, shard_of
from tests.ingest.lines import DATA, STORIES

# --- a writer, from the same layouts but written independently of the reader -----------------------------------------


def varint(number: int) -> bytes:
    out = b""
    while number > 0x7F:
        out += bytes([number & 0x7F | 0x80])
        number >>= 7
    return out + bytes([number])


def written(fields: tuple[Field, ...], values: dict[str, Any], version: int, flexible: bool) -> bytes:
    out = b""
    tags: list[bytes] = []
    for field in fields:
        if not field.since <= version <= field.until:
            continue
        if field.tag >= 0:
            if field.name in values:
                value = values[field.name]
                data = one(field, value, version, flexible=True, in_tag=True)
                tags.append(varint(field.tag) + varint(len(data)) + data)
            continue
        out += one(field, values[field.name], version, flexible=flexible)
    if flexible:
        out += varint(len(tags)) + b"".join(tags)
    return out


def one(field: Field, value: Any, version: int, *, flexible: bool, in_tag: bool = False) -> bytes:
    if field.many:
        if value is None:
            return varint(0)
        length = varint(len(value) + 1) if flexible else struct.pack(">i", len(value))
        single = field._replace(many=False, nullable=10_000, tag=-1)
        return length + b"".join(one(single, item, version, flexible=flexible) for item in value)
    if isinstance(field.type, tuple):
        presence = b""
        if field.nullable <= version:
            presence = (varint(0 if value is None else 1)) if in_tag else struct.pack(">b", -1 if value is None else 1)
        return presence if value is None else presence + written(field.type, value, version, flexible)
    if field.type == "uuid":
        return urlsafe_b64decode(value + "==")
    sizes = {"int8": ">b", "int16": ">h", "int32": ">i", "int64": ">q"}
    if field.type in sizes:
        return struct.pack(sizes[field.type], value)
    data = None if value is None else value.encode() if field.type == "string" else value
    if flexible:
        return varint(0) if data is None else varint(len(data) + 1) + data
    return struct.pack(">h" if field.type == "string" else ">i", -1 if data is None else len(data)) + (data or b"")


NUMBERS = {"int8": 7, "int16": 15, "int32": 31, "int64": 63}


def values_of(fields: tuple[Field, ...], version: int, *, flexible: bool) -> st.SearchStrategy[dict[str, Any]]:
    required: dict[str, st.SearchStrategy[Any]] = {}
    optional: dict[str, st.SearchStrategy[Any]] = {}
    for field in fields:
        if field.since <= version <= field.until and (field.tag < 0 or flexible):
            (optional if field.tag >= 0 else required)[field.name] = value_of(field, version, flexible=flexible)
    return st.fixed_dictionaries(required, optional=optional)


def value_of(field: Field, version: int, *, flexible: bool) -> st.SearchStrategy[Any]:
    base: st.SearchStrategy[Any]
    if isinstance(field.type, tuple):
        base = values_of(field.type, version, flexible=flexible)
    elif field.type == "uuid":
        base = st.sampled_from(["3YgmX_mbSvmrZj9JlDwViQ", "AAAAAAAAAAAAAAAAAAAAAA"])
    elif field.type == "bytes":
        base = st.binary(max_size=20)
    elif field.type == "string":
        base = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
    else:
        bits = NUMBERS[field.type]
        base = st.integers(-(2**bits), 2**bits - 1)
    if field.many:
        base = st.lists(base, max_size=3)
    return base | st.none() if field.nullable <= version else base


VERSIONS = [(kind, layout, version) for kind, layout in LAYOUTS.items() for version in range(layout.highest + 1)]


@pytest.mark.parametrize(("kind", "layout", "version"), VERSIONS, ids=lambda part: getattr(part, "name", str(part)))
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_every_layout_and_version_round_trips(kind: int, layout: Layout, version: int, data: st.DataObject) -> None:
    flexible = version >= layout.flexible
    keys = data.draw(values_of(layout.key, 0, flexible=False))
    values = data.draw(values_of(layout.value, version, flexible=flexible))
    key = struct.pack(">h", kind) + written(layout.key, keys, 0, False)
    value = struct.pack(">h", version) + written(layout.value, values, version, flexible)
    assert decode_key(key) == (kind, layout, keys)
    assert decode_value(layout, value) == (version, values)


# --- real records ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", sorted(STORIES.glob("*/offsets.jsonl.gz")), ids=lambda path: path.parent.name)
def test_recorded_records_decode(path: Path) -> None:
    unknown: dict[int, int] = {}
    events = list(read_offsets_file(path, unknown))
    assert events
    assert not unknown
    assert all(event.kind in (Kind.GROUP_RECORD, Kind.OFFSET_RECORD, Kind.OTHER_RECORD) for event in events)
    assert all(event.shard == shard_of(event.group_id) for event in events)
    assert all(event.source == f"offsets-topic/offsets/{event.shard}" for event in events)


def test_a_file_in_short_names_is_the_same_file(tmp_path: Path) -> None:
    recorded = STORIES / "c01_kill-4.1.2" / "offsets.jsonl.gz"
    short = {"partition": "p", "offset": "o", "timestamp_ms": "ts", "key": "k", "value": "v"}
    rows = [json.loads(line) for line in gzip.decompress(recorded.read_bytes()).splitlines()]
    renamed = tmp_path / "offsets.jsonl"
    renamed.write_text("".join(json.dumps({short[name]: row[name] for name in short}) + "\n" for row in rows))
    found, expected = list(read_offsets_file(renamed)), list(read_offsets_file(recorded))
    assert [event.detail for event in found] == [event.detail for event in expected]
    assert len(found) == len(rows)


def test_records_of_old_brokers_say_when_a_commit_expires() -> None:
    """2.0 writes it with each commit, and drops the offset of a group that lives then; later ones write it only where
    the commit asks for a retention of its own."""
    events = list(read_offsets_file(STORIES / "o26_live_offsets-2.0.1" / "offsets.jsonl.gz"))
    kept = [event for event in events if event.kind == Kind.OFFSET_RECORD and event.group_id == "g26"]
    detail = [event.detail or {} for event in kept]
    assert [one["tombstone"] for one in detail] == [False, True]
    assert detail[0]["expire_at_ms"] - detail[0]["commit_at_ms"] == 60_000
    later = list(read_offsets_file(STORIES / "o25_odd-2.3.1" / "offsets.jsonl.gz"))
    asked = [event for event in later if "expire_at_ms" in (event.detail or {})]
    assert {event.group_id for event in asked} == {"tour-ret"}


def decoded_sample() -> list[tuple[int, int, str, dict[str, Any], dict[str, Any] | None]]:
    rows = []
    for text in (DATA / "consumer_offsets-4.1.1.decoded.txt").read_text().splitlines():
        partition, offset, _, name, rest = text.split(" ", 4)
        keys, end = json.JSONDecoder().raw_decode(rest)
        value = json.loads(rest[end:])
        rows.append((int(partition), int(offset), name, keys, value))
    return rows


NAMES = {"topics": "subscribedTopicNames", "regex": "subscribedTopicRegex", "assignor": "serverAssignor"}


@pytest.mark.parametrize("row", decoded_sample(), ids=lambda row: f"{row[0]}-{row[1]}-{row[2]}")
def test_the_decoded_sample_of_4_1_1_reads_back(
    row: tuple[int, int, str, dict[str, Any], dict[str, Any] | None],
) -> None:
    """The sample holds what another decoder made of real records: written to bytes by its values, it must read back."""
    partition, offset, name, keys, sample = row
    kind, layout = next((kind, layout) for kind, layout in reversed(LAYOUTS.items()) if layout.name == name)
    value = None
    if sample is not None:
        values = {NAMES.get(field, field): content for field, content in sample.items() if field not in ("v", "tags")}
        rename = {
            "target": "topicPartitions",
            "assigned": "assignedPartitions",
            "pendingRevocation": "partitionsPendingRevocation",
        }
        values = {rename.get(field, field): content for field, content in values.items()}
        for tag, content in (sample.get("tags") or {}).items():
            field = next(field for field in layout.value if field.tag == int(tag))
            values[field.name] = content
        for member in values.get("members", []):
            assignment = b"\0\0" + struct.pack(">i", len(member["assignment"]["partitions"]))
            for topic, partitions in member["assignment"]["partitions"]:
                assignment += struct.pack(">h", len(topic)) + topic.encode()
                assignment += struct.pack(f">i{len(partitions)}i", len(partitions), *partitions)
            member["assignment"] = assignment + struct.pack(">i", -1)
            member["subscription"] = b""
        version = sample["v"]
        value = struct.pack(">h", version) + written(layout.value, values, version, version >= layout.flexible)
    key = struct.pack(">h", kind) + written(layout.key, keys, 0, False)
    event = record_event(partition, offset, 1.5, key, value)
    assert event is not None
    assert (event.group_id, event.shard, event.start, event.end) == (keys["group"], partition, offset, offset + 1)
    assert (event.detail or {})["tombstone"] is (sample is None)
    if name == "GroupMetadata" and sample:
        members = (event.detail or {})["members"]
        assert [member[0] for member in members] == [member["memberId"] for member in sample["members"]]
        assert all(member[6] == [["orders", [0, 1, 2]]] for member in members)
    if name == "OffsetCommit" and sample:
        assert (event.detail or {})["offset"] == sample["offset"]


# --- events ----------------------------------------------------------------------------------------------------------


def group_key(group: str = "g") -> bytes:
    return struct.pack(">hh", 2, len(group)) + group.encode()


def test_a_tombstone_says_only_that() -> None:
    event = record_event(3, 9, 1000, group_key(), None)
    assert event is not None
    assert (event.kind, event.detail, event.group_id) == (Kind.GROUP_RECORD, {"tombstone": True}, "g")
    assert {event.logged_at_ms, event.arrived_at_ms, event.handled_at_ms, event.decided_at_ms} == {1000.0}


def test_an_unknown_kind_is_skipped() -> None:
    assert record_event(0, 0, 0, struct.pack(">h", 99) + b"x", b"y") is None


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        (None, None, "bad_record"),
        (b"", b"", "bad_record"),
        (group_key()[:-1], None, "bad_record"),
        (group_key() + b"x", None, "bad_record"),
        (struct.pack(">hh", 2, 1) + b"\xff", None, "bad_record"),
        (group_key(), b"", "bad_record"),
        (group_key(), struct.pack(">h", 5), "unsupported_version"),
        (group_key(), struct.pack(">h", -1), "unsupported_version"),
    ],
)
def test_what_is_no_record_is_refused(key: bytes | None, value: bytes | None, reason: str) -> None:
    event = record_event(3, 9, 1000, key, value)
    assert event is not None
    assert (event.kind, (event.detail or {})["reason"]) == (Kind.REJECTED, reason)
    assert (event.source, event.start, event.end) == ("offsets-topic/offsets/3", 9, 10)


def real_records() -> list[tuple[bytes, bytes]]:
    rows = []
    with gzip.open(next(STORIES.glob("m01*/offsets.jsonl.gz"))) as lines:
        for line in lines:
            row = json.loads(line)
            if row["value"] is not None:
                rows.append((bytes.fromhex(row["key"]), bytes.fromhex(row["value"])))
    return rows


def test_a_record_cut_at_any_byte_is_refused_and_never_raises() -> None:
    seen: set[bytes] = set()
    for key, value in real_records():
        if key[:2] in seen:
            continue
        seen.add(key[:2])
        for cut in range(len(value)):
            event = record_event(0, 0, 0, key, value[:cut])
            assert event is not None
            assert event.kind == Kind.REJECTED, (key, cut)
    assert len(seen) >= 6


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(sorted(LAYOUTS)), st.binary(max_size=80), st.binary(max_size=200))
def test_no_bytes_raise(kind: int, key: bytes, value: bytes) -> None:
    event = record_event(0, 0, 0, struct.pack(">h", kind) + key, value)
    assert isinstance(event, Event)
    with pytest.raises(RecordError):
        decode_value(LAYOUTS[2], b"\x00")


def test_a_captured_file_reads_back(tmp_path: Path) -> None:
    key, value = real_records()[0]
    path = tmp_path / "offsets.jsonl"
    lines = [captured_line(7, 1, 5, key, value), b"\n", captured_line(7, 2, 6, key, None), b"{broken\n"]
    path.write_bytes(b"".join(lines))
    events = list(read_offsets_file(path))
    assert [event.kind == Kind.REJECTED for event in events] == [False, False, True]
    assert [(event.shard, event.start, event.logged_at_ms) for event in events[:2]] == [(7, 1, 5.0), (7, 2, 6.0)]
