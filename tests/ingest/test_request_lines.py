"""The dialect of JSON request logs: every recorded line, hostile ids, damaged and foreign lines, bounds.

Goal: no line is misread, none is half-read, none raises. Method: recorded lines against goldens, and one built line
that is bent in one place at a time.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest.dialects import EXCERPT_CHARS, Asked, Reading
from ingest.dialects.request_json import RequestJson
from ingest.dialects.text_layout import whole
from ingest.stamps import zone_named
from kardia.events import ALL_SHARDS, IGNORE_REASONS, REJECT_REASONS, Event, Kind, event_id, shard_of
from tests.ingest.golden import GOLDEN, readings
from tests.ingest.lines import (
    CONTROLLERS,
    DATA,
    START_MS,
    STORIES,
    VERSIONS,
    body,
    fetched_by_a_controller,
    fetched_by_a_follower,
    line,
    recorded,
)


def read(data: bytes, zone: str = "UTC") -> Reading:
    return RequestJson(zone_named(zone)).read(data, "b/request/i", 100, 100 + len(data) + 1)


def event(data: bytes) -> Event:
    reading = read(data)
    assert isinstance(reading, Event)
    return reading


def refused(data: bytes) -> dict[str, Any]:
    reading = event(data)
    assert reading.kind == Kind.REJECTED
    assert reading.shard == ALL_SHARDS
    detail = reading.detail or {}
    assert detail["reason"] in REJECT_REASONS
    return detail


def header(**changes: Any) -> dict[str, Any]:
    parts: dict[str, Any] = body()["requestHeader"]
    return {**parts, **changes}


def request(**changes: Any) -> dict[str, Any]:
    parts: dict[str, Any] = body()["request"]
    return {**parts, **changes}


# --- recorded lines --------------------------------------------------------------------------------------------------


def test_every_recorded_line_reads_as_its_golden() -> None:
    assert readings() == json.loads(GOLDEN.read_text(encoding="utf-8"))


@pytest.mark.parametrize("version", VERSIONS)
def test_every_group_api_of_the_version_gives_its_kind(version: str) -> None:
    kinds = {
        "FETCH": Kind.FETCH,
        "OFFSET_COMMIT": Kind.COMMIT,
        "JOIN_GROUP": Kind.JOIN,
        "HEARTBEAT": Kind.HEARTBEAT,
        "LEAVE_GROUP": Kind.LEAVE,
        "SYNC_GROUP": Kind.SYNC,
        "TXN_OFFSET_COMMIT": Kind.TXN_COMMIT,
        "PUSH_TELEMETRY": Kind.TELEMETRY,
        "CONSUMER_GROUP_HEARTBEAT": Kind.MODERN_HEARTBEAT,
        "SHARE_GROUP_HEARTBEAT": Kind.MODERN_HEARTBEAT,
        "STREAMS_GROUP_HEARTBEAT": Kind.MODERN_HEARTBEAT,
    }
    for title, data in recorded(version):
        wanted = kinds.get(title.split()[0])
        reading = read(data)
        assert reading == "other_api" if wanted is None else isinstance(reading, Event) and reading.kind == wanted, (
            title
        )


@pytest.mark.parametrize("path", sorted(STORIES.glob("*/kafka-request*.log.gz")), ids=lambda path: path.parent.name)
def test_no_line_of_a_recorded_story_is_refused(path: Path) -> None:
    dialect = RequestJson(zone_named("UTC"))
    events = 0
    with gzip.open(path) as lines:
        for data in whole(lines.read().split(b"\n")[:-1]):
            reading = dialect.read(data, "b/request/i", 0, len(data) + 1)
            if isinstance(reading, str):
                assert reading == "other_api"
            for event in [reading] if isinstance(reading, Event) else reading:
                events += 1
                assert isinstance(event, str) or event.kind != Kind.REJECTED
    assert events > 0


def test_every_line_of_the_big_sample_is_understood() -> None:
    for data in (DATA / "kafka-request-4.1.1.log").read_bytes().splitlines():
        reading = read(data)
        assert reading == "other_api" or (isinstance(reading, Event) and reading.kind != Kind.REJECTED)


def test_instants_follow_from_the_times_of_the_line() -> None:
    got = event(line(7))
    assert got.logged_at_ms == START_MS + 7
    assert got.arrived_at_ms == START_MS + 7 - 2.5
    assert got.handled_at_ms == START_MS + 7 - 2.5 + 0.25 + 0.5
    assert got.decided_at_ms == START_MS + 7 - 2.5 + 0.25 + 0.5 + 1.0
    assert (got.start, got.shard) == (100, shard_of("g-1"))


def test_same_line_same_id_and_other_place_other_id() -> None:
    data = line()
    dialect = RequestJson(zone_named("UTC"))
    first = dialect.read(data, "b/request/i", 0, 10)
    again = dialect.read(data, "b/request/i", 0, 10)
    moved = dialect.read(data, "b/request/i", 10, 20)
    assert isinstance(first, Event)
    assert isinstance(again, Event)
    assert isinstance(moved, Event)
    assert event_id(first) == event_id(again) != event_id(moved)


# --- connections -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("connection", "host", "broker"),
    [
        ("127.0.0.1:9092-10.1.2.3:5555-5", "10.1.2.3", "127.0.0.1:9092"),
        ("127.0.0.1:9092-10.1.2.3:5555-1-5", "10.1.2.3", "127.0.0.1:9092"),
        ("0:0:0:0:0:0:0:1:9092-fe80:0:0:0:1:2:3:4:5555-5", "fe80:0:0:0:1:2:3:4", "0:0:0:0:0:0:0:1:9092"),
        ("fe80:0:0:0:1:2:3:4%br-lan:9092-fe80:0:0:0:9:8:7:6%br-lan:5-2-7", "fe80:0:0:0:9:8:7:6%br-lan", ""),
        ("nonsense", "", ""),
        ("1:1-" * 500, "", ""),
    ],
)
def test_the_remote_address_is_taken_from_the_right(connection: str, host: str, broker: str) -> None:
    data = line(connection=connection)
    assert event(data).client_host == host
    if broker:
        assert RequestJson(zone_named("UTC")).broker_of(data) == (broker, Asked.BY_CLIENTS)


@pytest.mark.parametrize(
    ("data", "listener"),
    [
        (fetched_by_a_controller(), (CONTROLLERS, Asked.BY_ANYBODY)),
        (fetched_by_a_follower(), ("10.0.0.1:9092", Asked.BY_BROKERS)),
        (line(), ("10.0.0.1:9092", Asked.BY_CLIENTS)),
    ],
    ids=["raft", "follower", "heartbeat"],
)
def test_a_line_shows_who_asks_on_its_listener(data: bytes, listener: tuple[str, Asked]) -> None:
    assert RequestJson(zone_named("UTC")).broker_of(data) == listener


def test_no_recorded_line_of_a_client_is_taken_for_one_of_a_controller() -> None:
    for version in VERSIONS:
        for title, data in recorded(version):
            found = RequestJson(zone_named("UTC")).broker_of(data)
            if title.startswith(("FETCH", "HEARTBEAT", "JOIN_GROUP", "SYNC_GROUP", "OFFSET_COMMIT")):
                assert found is not None, title
                assert found.asked is Asked.BY_CLIENTS, title


# --- hostile ids -----------------------------------------------------------------------------------------------------

HOSTILE = (
    "\n[2026-11-20 10:47:18,113] DEBUG Completed request:{",
    '"},"requestHeader":{"requestApiKey":13',
    '{"isForwarded":false,"requestHeader":{"requestApiKey":13,',
    "\x1b[2J\x1b[31m",
    "} (kafka.request.logger)",
    "a\u202eb\u0000c",
    "\\",
    "группа-∞-🦜",
    "x" * 40_000,
)


@pytest.mark.parametrize("text", HOSTILE)
def test_a_hostile_client_id_is_only_a_client_id(text: str) -> None:
    got = event(line(requestHeader=header(clientId=text)))
    assert (got.kind, got.client_id, got.group_id, got.member_id) == (Kind.HEARTBEAT, text, "g-1", "m-1")


@settings(max_examples=200, deadline=None)
@given(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=60), st.text(st.characters(exclude_categories=["Cs"]))
)
def test_ids_are_opaque(group: str, member: str) -> None:
    got = event(line(request=request(groupId=group, memberId=member)))
    assert (got.group_id, got.member_id, got.shard) == (group, member, shard_of(group))


def test_an_excerpt_is_bounded_and_harmless() -> None:
    detail = refused(b"[2026-11-20 10:47:18,113] DEBUG Completed request:\x1b[2J\xff\xfe" + b"x" * 5000)
    assert len(detail["excerpt"]) <= EXCERPT_CHARS
    assert detail["excerpt"].isprintable()


# --- what is refused, and why ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "reason", "where"),
    [
        ({"request": ""}, "unknown_shape", "request"),
        ({"request": None}, "unknown_shape", "request"),
        ({"response": ""}, "unknown_shape", "response"),
        ({"request": {"groupId": "g"}}, "unknown_shape", "$.request"),
        ({"request": request(generationId="5")}, "unknown_shape", "$.request.generationId"),
        ({"request": request(generationId=-2)}, "out_of_range", "$.request.generationId"),
        ({"request": request(generationId=2**31)}, "out_of_range", "$.request.generationId"),
        ({"request": request(generationId=2**63)}, "out_of_range", "$.request.generationId"),
        ({"request": request(generationId=10**30)}, "out_of_range", "$.request.generationId"),
        ({"request": request(groupId="g" * 2**15)}, "out_of_range", "$.request.groupId"),
        ({"response": {"errorCode": 2**15}}, "out_of_range", "$.response.errorCode"),
        ({"totalTimeMs": -1}, "out_of_range", "$.totalTimeMs"),
        ({"requestHeader": header(requestApiVersion=-1)}, "out_of_range", "$.requestHeader.requestApiVersion"),
    ],
)
def test_what_cannot_be_is_refused_with_its_place(changes: dict[str, Any], reason: str, where: str) -> None:
    detail = refused(line(**changes))
    assert detail["reason"] == reason
    assert where in detail["expected"]


@pytest.mark.parametrize("generation", [-1, 0, 2**31 - 1])
def test_bounds_are_inclusive(generation: int) -> None:
    assert event(line(request=request(generationId=generation))).generation_id == generation


def join(**changes: Any) -> bytes:
    asked: dict[str, Any] = {
        "groupId": "g-1",
        "sessionTimeoutMs": 10_000,
        "rebalanceTimeoutMs": 60_000,
        "memberId": "",
        "protocolType": "consumer",
        "protocols": [],
    }
    answered: dict[str, Any] = {
        "errorCode": 79,
        "generationId": -1,
        "protocolName": None,
        "leader": "",
        "memberId": "m",
        "members": [],
    }
    return line(
        requestHeader=header(requestApiKey=11, requestApiVersion=5), request={**asked, **changes}, response=answered
    )


def test_session_timeout_of_zero_is_refused_and_of_one_is_not() -> None:
    assert refused(join(sessionTimeoutMs=0))["reason"] == "out_of_range"
    assert (event(join(sessionTimeoutMs=1)).detail or {})["session_timeout_ms"] == 1


def test_a_join_of_version_0_has_no_rebalance_timeout_of_its_own() -> None:
    data = (
        join().replace(b'"requestApiVersion":5', b'"requestApiVersion":0').replace(b'"rebalanceTimeoutMs":60000,', b"")
    )
    assert (event(data).detail or {})["rebalance_timeout_ms"] == 10_000


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (line()[:-40], "bad_json"),
        (line().replace(b'"errorCode":0', b'"errorCode":NaN'), "bad_json"),
        (line()[:200] + line(), "bad_json"),
        (line().replace(b"m-1", b"m\xff1"), "bad_encoding"),
        (line().replace(b"User:ANONYMOUS", b"User:\xc3"), "bad_encoding"),
        (line().replace(b"[2026", b"[20x6"), "bad_timestamp"),
        (line().replace(b"-21 ", b"-41 ", 1).replace(b"2026-11-1", b"2026-13-1", 1), "bad_timestamp"),
        (line().replace(b"Completed request:{", b"Completed request:[{"), "unknown_shape"),
        (line().replace(b'"requestApiKey":12', b'"requestApiKey":"12"'), "unknown_shape"),
        (b"[2026-11-20 10:47:18,113] DEBUG Completed request:RequestHeader(apiKey=HEARTBEAT, x", "unknown_shape"),
        (line(request=json.loads("[" * 400 + "]" * 400)), "unknown_shape"),
        (line().replace(b'"request":{', b'"request":' + b'{"a":' * 5000 + b"{"), "bad_json"),
    ],
)
def test_damaged_and_foreign_lines_have_a_reason(data: bytes, reason: str) -> None:
    if reason == "bad_timestamp" and read(data) != "other_api" and b"-41 " not in data and b"20x6" not in data:
        data = data.replace(data[1:11], b"2026-13-45")
    assert refused(data)["reason"] == reason


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "blank"),
        (b"   ", "blank"),
        (b"\tat kafka.server.KafkaApis.handle(KafkaApis.scala:1)", "continuation"),
        (b"[2026-11-20 10:47:18,113] INFO something else (kafka.Kafka)", "other_logger"),
        (line(requestHeader=header(requestApiKey=9)), "other_api"),
        (line(requestHeader=header(requestApiKey=999)), "other_api"),
        (line().replace(b'"isForwarded":false', b'"isForwarded":true').replace(b":12,", b":3,", 1), "other_api"),
    ],
)
def test_what_says_nothing_about_groups_is_ignored(data: bytes, reason: str) -> None:
    assert reason in IGNORE_REASONS
    assert read(data) == reason


@pytest.mark.parametrize("cut", range(0, line().rindex(b"}") + 1, 7))
def test_no_line_that_is_cut_within_its_object_is_half_read(cut: int) -> None:
    reading = read(line()[:cut])
    assert isinstance(reading, str) or (isinstance(reading, Event) and reading.kind == Kind.REJECTED)


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=300), st.integers(0, len(line())))
def test_no_bytes_raise(noise: bytes, at: int) -> None:
    whole = line()
    read(whole[:at] + noise + whole[at:])
    read(noise)


def test_other_layouts_of_the_line_are_read_as_well() -> None:
    plain = event(line())
    text = line()
    variants = (
        text.replace(b" DEBUG ", b" INFO "),
        text.replace(b" DEBUG ", b" TRACE "),
        text.replace(b" DEBUG ", b" DEBUG [data-plane-network-thread-1] "),
        text.replace(b" (kafka.request.logger)", b""),
        text.replace(b",000]", b".000]"),
        text.replace(b'"isForwarded":false', b'"isForwarded":true'),
    )
    for variant in variants:
        assert event(variant)._replace(end=0) == plain._replace(end=0)


# --- meaning of single fields ----------------------------------------------------------------------------------------


def commit(errors: list[int], **changes: Any) -> Event:
    parts = [{"partitionIndex": at, "committedOffset": 10 + at} for at in range(len(errors))]
    answer = [{"partitionIndex": at, "errorCode": error} for at, error in enumerate(errors)]
    asked = {"groupId": "g-1", "memberId": "m-1", "topics": [{"name": "t", "partitions": parts}], **changes}
    return event(
        line(
            requestHeader=header(requestApiKey=8),
            request=asked,
            response={"topics": [{"name": "t", "partitions": answer}]},
        )
    )


@pytest.mark.parametrize(("errors", "code"), [([], 0), ([0], 0), ([25, 25], 25), ([22, 0], 0), ([27, 25], 27)])
def test_a_commit_went_well_when_one_partition_did(errors: list[int], code: int) -> None:
    got = commit(errors)
    assert got.error_code == code
    assert (got.detail or {})["offsets"] == [["t", at, 10 + at, error] for at, error in enumerate(errors)]


@pytest.mark.parametrize("name", ["generationId", "generationIdOrMemberEpoch"])
@pytest.mark.parametrize("value", [-1, 0, 7])
def test_the_generation_of_a_commit_has_two_names(name: str, value: int) -> None:
    assert commit([0], **{name: value}).generation_id == value


def test_a_commit_of_a_departed_modern_member_keeps_its_epoch() -> None:
    assert commit([0], generationIdOrMemberEpoch=-2).generation_id == -2


@pytest.mark.parametrize("changes", [{"replicaId": 2}, {"replicaState": {"replicaId": 2, "replicaEpoch": 1}}])
def test_a_fetch_of_a_follower_is_no_poll(changes: dict[str, Any]) -> None:
    asked = {"maxWaitMs": 500, "sessionEpoch": 0, **changes}
    data = line(requestHeader=header(requestApiKey=1), request=asked, response={"errorCode": 0, "responses": []})
    assert read(data) == "other_api"
    consumer = data.replace(b'"replicaId":2', b'"replicaId":-1')
    assert event(consumer).kind == Kind.FETCH
    assert event(consumer).shard == ALL_SHARDS


def test_deleted_groups_share_a_line_and_have_ids_of_their_own() -> None:
    data = line(
        requestHeader=header(requestApiKey=42, requestApiVersion=2),
        request={"groupsNames": ["a", "b", "c"]},
        response={"results": [{"groupId": "a", "errorCode": 0}, {"groupId": "b", "errorCode": 68}]},
    )
    got = read(data)
    assert isinstance(got, list)
    assert [(one.group_id, one.error_code, one.shard) for one in got] == [
        ("a", 0, shard_of("a")),
        ("b", 68, shard_of("b")),
        ("c", 0, shard_of("c")),
    ]
    assert [one.start for one in got[1:]] == [one.end for one in got[:-1]]
    assert (got[0].start, got[-1].end) == (100, 101 + len(data))


def test_leave_versions_0_to_2_name_one_member() -> None:
    data = line(
        requestHeader=header(requestApiKey=13, requestApiVersion=1),
        request={"groupId": "g-1", "memberId": "m-9"},
        response={"errorCode": 25},
    )
    got = event(data)
    assert (got.member_id, got.error_code, got.detail) == ("m-9", 25, {"members": [["m-9", "", "", 25]]})


def test_leave_of_several_members_keeps_each_answer() -> None:
    data = line(
        requestHeader=header(requestApiKey=13, requestApiVersion=5),
        request={
            "groupId": "g-1",
            "members": [
                {"memberId": "m-1", "groupInstanceId": None, "reason": "bye"},
                {"memberId": "", "groupInstanceId": "i-2", "reason": None},
            ],
        },
        response={"errorCode": 0, "members": [{"memberId": "m-1", "errorCode": 0}, {"memberId": "", "errorCode": 25}]},
    )
    got = event(data)
    assert (got.member_id, got.error_code) == ("", 0)
    assert (got.detail or {})["members"] == [["m-1", "", "bye", 0], ["", "i-2", "", 25]]


def test_an_unknown_library_is_the_empty_string() -> None:
    unknown = line(clientInformation={"softwareName": "unknown", "softwareVersion": "unknown"})
    assert event(unknown).software == ""
    assert event(line()).software == "apache-kafka-java/4.1.1"
