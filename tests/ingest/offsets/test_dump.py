"""What Kafka's own tools print of `__consumer_offsets`, read like a capture."""

from __future__ import annotations

from base64 import b64encode
from pathlib import Path

import msgspec
import pytest

from ingest.archives.kinds import Kind as FileKind
from ingest.archives.kinds import kind_of
from ingest.archives.ranges import read_offsets_file
from ingest.offsets.dump import dump_events
from kardia.events import Event, Kind, shard_of
from tests.ingest.lines import DATA

MEMBER = "consumer-my-group-1-75802c25-7e83-44cb-8249-a7d2e3197e32"
OTHER = "a,b-11111111-2222-3333-4444-555555555555"
AT_MS = 1664531116553
ASSIGNMENT = bytes.fromhex("000100000001000174000000020000000000000001ffffffff")
"""Partitions 0 and 1 of topic t."""


def told(*lines: str) -> list[Event]:
    return list(dump_events(iter([line.encode() + b"\n" for line in lines])))


def dumped(key: str, payload: str = "", offset: int = 7) -> str:
    head = f"| offset: {offset} CreateTime: {AT_MS} keySize: 12 valueSize: 257 sequence: -1 headerKeys: [] key: {key}"
    return head + (f" payload: {payload}" if payload else "")


def test_a_dump_as_people_post_it_is_a_capture() -> None:
    path = DATA / "dump-of-offsets-3.x.txt"
    assert kind_of(path).kind is FileKind.OFFSETS
    first, commit, last = read_offsets_file(path)
    assert (first.kind, first.shard, first.start, first.logged_at_ms) == (Kind.GROUP_RECORD, 12, 0, AT_MS)
    assert (first.group_id, first.generation_id) == ("my-group", 1)
    assert (first.detail or {})["members"] == [[MEMBER, "", "", "", -1, -1, [["wc-input", [0]]]]]
    assert (commit.kind, commit.logged_at_ms, (commit.detail or {})["offset"]) == (Kind.OFFSET_RECORD, 1664531387354, 1)
    assert (last.generation_id, (last.detail or {})["members"], last.logged_at_ms) == (2, [], 1664531557631)


def test_members_are_told_apart_whatever_they_are_called() -> None:
    assignment = f"{{{MEMBER}=[t-0, t-1, u-v-3],{OTHER}=[]}}"
    payload = msgspec.json.encode(
        {"protocolType": "consumer", "protocol": "range", "generationId": 3, "assignment": assignment}
    ).decode()
    (event,) = told(dumped("group_metadata::group=g", payload))
    assert [[one[0], one[6]] for one in (event.detail or {})["members"]] == [
        [MEMBER, [["t", [0, 1]], ["u-v", [3]]]],
        [OTHER, []],
    ]
    assert event.shard == shard_of("g")  # the line about the file is missing


@pytest.mark.parametrize(
    ("key", "payload", "kind"),
    [
        ("group_metadata::group=g", "<DELETE>", Kind.GROUP_RECORD),
        ("group_metadata::group=g", "", Kind.GROUP_RECORD),
        ("offset_commit::group=g,partition=t-0", "<DELETE>", Kind.OFFSET_RECORD),
        ('{"type":"2","data":{"group":"g"}}', "<NULL>", Kind.GROUP_RECORD),
        ('{"type":"5","data":{"groupId":"g","memberId":"m"}}', "", Kind.OTHER_RECORD),
    ],
)
def test_a_tombstone_is_one(key: str, payload: str, kind: Kind) -> None:
    (event,) = told(dumped(key, payload))
    assert (event.kind, event.group_id, (event.detail or {})["tombstone"]) == (kind, "g", True)


def test_commits_of_all_forms_say_the_same() -> None:
    commit = {"offset": 42, "leaderEpoch": -1, "metadata": "m", "commitTimestamp": AT_MS}
    value = msgspec.json.encode({"version": "3", "data": commit}).decode()
    forms = [
        dumped("offset_commit::group=g,partition=my-topic-0", "offset=42"),
        dumped("offset_commit::group=g,partition=my-topic-0", "offset=42,metadata=x"),
        dumped("offset::g:my-topic:0", "42"),
        dumped('{"type":"1","data":{"group":"g","topic":"my-topic","partition":0}}', value),
        f'{{"key":{{"type":1,"data":{{"group":"g","topic":"my-topic","partition":0}}}},"value":{value}}}',
        f"[g,my-topic,0]::OffsetAndMetadata(offset=42, leaderEpoch=Optional[0], metadata=, commitTimestamp={AT_MS}, "
        "expireTimestamp=None)",
        f"[g,my-topic,0]::[OffsetMetadata[42,NO_METADATA],CommitTime {AT_MS},ExpirationTime 1664617516553]",
    ]
    for form in forms:
        (event,) = told(form)
        detail = event.detail or {}
        assert (event.kind, event.group_id, event.logged_at_ms) == (Kind.OFFSET_RECORD, "g", AT_MS), form
        assert (detail["topic"], detail["partition"], detail["offset"]) == ("my-topic", 0, 42), form


@pytest.mark.parametrize(
    "assignment",
    [b64encode(ASSIGNMENT).decode(), {"assignedPartitions": [{"topic": "t", "partitions": [0, 1]}], "userData": None}],
    ids=["4.x", "3.8"],
)
def test_a_group_in_json_has_all_that_a_capture_has(assignment: object) -> None:
    member = {
        "memberId": MEMBER,
        "groupInstanceId": "i-1",
        "clientId": "c",
        "clientHost": "/10.0.0.1",
        "rebalanceTimeout": 300_000,
        "sessionTimeout": 45_000,
        "subscription": "",
        "assignment": assignment,
    }
    value = {
        "version": "3",
        "data": {
            "protocolType": "consumer",
            "generation": 4,
            "protocol": "range",
            "leader": MEMBER,
            "currentStateTimestamp": AT_MS,
            "members": [member],
        },
    }
    payload = msgspec.json.encode(value).decode()
    for form in (
        dumped('{"type":"2","data":{"group":"g"}}', payload),
        f'{{"key":{{"type":2,"data":{{"group":"g"}}}},"value":{payload}}}',
    ):
        (event,) = told(form)
        assert (event.kind, event.generation_id, event.logged_at_ms) == (Kind.GROUP_RECORD, 4, AT_MS)
        expected = [MEMBER, "i-1", "c", "10.0.0.1", 45_000, 300_000, [["t", [0, 1]]]]
        assert (event.detail or {})["members"] == [expected]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("my-group::GroupMetadata(groupId=my-group, generation=1, protocolType=Some(consumer))", "bad_timestamp"),
        (dumped("group_metadata::group=a payload: b", '{"x":1}'), "ambiguous"),
        (dumped("group_metadata::group=g", '{"generationId":'), "bad_record"),
        (dumped("group_metadata::group=g", '{"protocolType":"consumer","assignment":"{x}"}'), "ambiguous"),
        (dumped("something::else", "1"), "bad_record"),
        (dumped("offset_commit::group=g,partition=t-0", "offset=x"), "bad_record"),
        ('{"key":{"type":3,"data":{"groupId":"g"}},"value":{"version":0,"data":{"epoch":1}}}', "bad_timestamp"),
        ('{"key":', "bad_record"),
        (dumped("group_metadata::group=g", "{}").replace(str(AT_MS), "99999999999999"), "out_of_range"),
    ],
)
def test_what_cannot_be_told_is_refused(line: str, reason: str) -> None:
    (event,) = told(line)
    assert event.kind == Kind.REJECTED
    assert (event.detail or {})["reason"] == reason


def test_lines_of_the_file_itself_are_no_records() -> None:
    assert not told(
        "$ kafka-dump-log.sh --offsets-decoder \\",
        "  --files /tmp/kafka-logs/__consumer_offsets-12/00000000000000000000.log",
        "Dumping /tmp/kafka-logs/__consumer_offsets-12/00000000000000000000.log",
        "Starting offset: 0",
        "baseOffset: 0 lastOffset: 0 count: 1 isControl: false position: 0 CreateTime: 1664531116553 isvalid: true",
        "| offset: 2 CreateTime: 1664531387381 keySize: 4 endTxnMarker: COMMIT coordinatorEpoch: 0",
        "",
    )


def test_it_is_known_by_its_content(tmp_path: Path) -> None:
    for number, line in enumerate(
        (dumped("group_metadata::group=g", "{}"), '{"key":{"type":1,"data":{}},"value":null}')
    ):
        path = tmp_path / f"{number}.txt"
        path.write_text(line + "\n")
        assert kind_of(path).kind is FileKind.OFFSETS
