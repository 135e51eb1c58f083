"""A line is recognised only if it decodes to what the pattern says of it: whatever its bytes are, and whatever numbers
stand in it. Patterns are few, and where they do not help they are left alone."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest.dialects import compiled, line_patterns
from ingest.dialects import request_shapes as shapes
from ingest.dialects.line_patterns import PATTERNS_MAX, PAUSE_BLOCKS, Patterns, Recognised
from ingest.dialects.quiet_columns import Block
from tests.ingest.lines import VERSIONS, body, recorded

HEARTBEAT, FETCH = 3, 7
PARTITION = {
    "partitionIndex": 0,
    "errorCode": 0,
    "highWatermark": 12,
    "lastStableOffset": 12,
    "logStartOffset": 0,
    "abortedTransactions": [],
    "preferredReadReplica": -1,
    "recordsSizeInBytes": 110,
}


def heartbeat(**changes: Any) -> bytes:
    return _text(body(17, **changes))


def fetch(*partitions: dict[str, Any], **changes: Any) -> bytes:
    topics = [{"topicId": "5nBrKJUIQ2-WOq2rXDYDoQ", "partitions": list(partitions)}] if partitions else []
    parts = {
        "requestHeader": {**body(17)["requestHeader"], "requestApiKey": 1, "requestApiKeyName": "FETCH"},
        "request": {"maxWaitMs": 500, "sessionId": 7, "sessionEpoch": 3, "topics": [], "rackId": ""},
        "response": {"throttleTimeMs": 0, "errorCode": 0, "sessionId": 7, "responses": topics},
    }
    return _text(body(17, **{**parts, **changes}))


def _text(line: dict[str, Any]) -> bytes:
    return json.dumps(line, separators=(",", ":")).encode()


def learned(kind: int, *lines: bytes) -> Patterns:
    patterns = Patterns()
    for line in lines:
        patterns.learn(kind, line, lambda _: True)
    return patterns


def recognised(patterns: Patterns, kind: int, *lines: bytes) -> Recognised:
    found = patterns.recognise(kind, Block(b"\n".join(lines) + b"\n"), np.arange(len(lines)), (0, 0))
    assert found is not None
    return found


def said(patterns: Patterns, kind: int, line: bytes) -> tuple[list[float], int, dict[str, str]] | None:
    found = recognised(patterns, kind, line)
    if not found.chosen[0]:
        return None
    return found.times[0].tolist(), int(found.sizes[0]), patterns.sender(found.keys[0])


def decoded(kind: int, line: bytes) -> tuple[list[float], int, dict[str, str]]:
    """What `said` is to say of a line; raises if it is not what is recognised."""
    shape: Any = shapes.QuietFetch if kind == FETCH else shapes.QuietHeartbeat
    one = msgspec.json.decode(line, type=shape)
    assert one.response.error_code == 0
    assert not one.throttle_time_ms
    sender = {"connection": one.connection, "requestApiVersion": str(one.request_header.request_api_version)}
    named = {"clientId": one.request_header.client_id}
    size = 0
    if kind == FETCH:
        partitions = [partition for topic in one.response.responses for partition in topic.partitions or ()]
        size = sum(partition.records_size_in_bytes for partition in partitions)
    else:
        request = one.request
        named |= {"groupId": request.group_id, "generationId": str(request.generation_id)}
        named |= {"memberId": request.member_id, "groupInstanceId": request.group_instance_id}
    times = [one.total_time_ms, one.request_queue_time_ms, one.local_time_ms, one.remote_time_ms]
    return times, size, sender | {name: text for name, text in named.items() if text is not None}


LINES = {
    HEARTBEAT: [heartbeat(), heartbeat(request={**body()["request"], "groupInstanceId": "i-1"})],
    FETCH: [fetch(), fetch(PARTITION), fetch(PARTITION, PARTITION)],
}


@pytest.mark.parametrize("kind", LINES)
def test_other_numbers_and_names_are_the_same_structure(kind: int) -> None:
    patterns = learned(kind, *LINES[kind])
    for line in LINES[kind]:
        other = line.replace(b"17", b"2147483647").replace(b"2.5", b"12345.678").replace(b"110", b"9", 1)
        other = other.replace(b"c-1", b"").replace(b"10.0.0.7", b"10.0.11.12").replace(b"m-1", b"consumer-3-x")
        assert said(patterns, kind, other) == decoded(kind, other)


@pytest.mark.parametrize(
    ("was", "now"),
    [
        (b'"errorCode":0', b'"errorCode":27'),
        (b'"throttleTimeMs":0,"resp', b'"throttleTimeMs":1,"resp'),
        (b'"clientId":"c-1"', b'"clientId":null'),
        (b'"clientId":"c-1"', b'"clientId":"c\\u002d1"'),
        (b'"clientId":"c-1"', b'"clientId":"c\t1"'),
        (b'"totalTimeMs":2.5', b'"totalTimeMs":2.5e0'),
        (b'"totalTimeMs":2.5', b'"totalTimeMs":-2.5'),
        (b'"totalTimeMs":2.5', b'"totalTimeMs":02.5'),
        (b'"totalTimeMs":2.5', b'"totalTimeMs":2.'),
        (b'"totalTimeMs":2.5', b'"totalTimeMs":.5'),
        (b'"totalTimeMs":2.5', b'"totalTimeMs":'),
        (b'"totalTimeMs":2.5', b'"totalTimeMs":0.1234567890123456'),
        (b'"correlationId":17', b'"correlationId":"17"'),
        (b'"correlationId":17', b'"correlationId":--17'),
        (b'"correlationId":17', b'"correlationId":12345678901234567'),
        (b'"requestApiVersion":4', b'"requestApiVersion":4.0'),
        (b'"isForwarded":false', b'"isForwarded":true'),
        (b'4.1.1"}}', b'4.1.1"}'),
        (b'4.1.1"}}', b'4.1.1"}} '),
    ],
)
def test_a_line_that_says_more_is_left_to_the_decoder(was: bytes, now: bytes) -> None:
    for kind, lines in LINES.items():
        patterns = learned(kind, *lines)
        for line in lines:
            assert was in line
            assert said(patterns, kind, line) is not None
            assert said(patterns, kind, line.replace(was, now, 1)) is None


@st.composite
def edits(draw: st.DrawFn) -> tuple[int, bytes]:
    kind = draw(st.sampled_from(sorted(LINES)))
    line = draw(st.sampled_from(LINES[kind]))
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(line)))
        piece = draw(
            st.sampled_from([b"", b"0", b"7", b"-", b".5", b"e1", b'"', b"\\", b",", b"}", b"\x01", b"x", b"null"])
        )
        line = line[:at] + piece + line[at + draw(st.integers(0, 3)) :]
    return kind, line


@given(edits())
@settings(max_examples=1_500)
def test_whatever_is_recognised_decodes_to_the_same(edited: tuple[int, bytes]) -> None:
    kind, line = edited
    told = said(learned(kind, *LINES[kind]), kind, line)
    assert told is None or told == decoded(kind, line)


@given(st.decimals(0, 10**10, allow_nan=False, places=3), st.integers(0, 10**15 - 1))
def test_numbers_are_what_python_reads(time_ms: Any, size: int) -> None:
    line = fetch({**PARTITION, "recordsSizeInBytes": size}).replace(b"2.5", str(time_ms).encode(), 1)
    assert said(learned(FETCH, LINES[FETCH][1]), FETCH, line) == decoded(FETCH, line)


@pytest.mark.parametrize("version", VERSIONS)
def test_recorded_lines_are_recognised_by_their_own_pattern(version: str) -> None:
    lines = [line[line.index(b"{") : line.rindex(b"}") + 1] for _, line in recorded(version)]
    quiet = [line for line in lines if b'"requestApiKey":12,' in line and b'"errorCode":0' in line]
    assert quiet
    for line in quiet:
        assert said(learned(HEARTBEAT, line), HEARTBEAT, line) == decoded(HEARTBEAT, line)


def test_who_is_null_and_who_is_named_are_two_senders() -> None:
    nobody = {**body()["requestHeader"], "clientId": None}
    lines = [*LINES[HEARTBEAT], heartbeat(requestHeader=nobody)]
    patterns = learned(HEARTBEAT, *lines)
    assert len(set(recognised(patterns, HEARTBEAT, *lines).keys)) == 3


def test_a_line_whose_pattern_says_something_else_is_not_learned() -> None:
    patterns = Patterns()
    line = LINES[HEARTBEAT][0]
    patterns.learn(HEARTBEAT, line, lambda _: False)
    assert patterns.recognise(HEARTBEAT, Block(line + b"\n"), np.arange(1), (0, 0)) is None


def test_patterns_are_few_and_those_that_fit_stay() -> None:
    usual, odd = fetch(), [fetch(*[PARTITION] * count) for count in range(1, 3 * PATTERNS_MAX)]
    patterns = learned(FETCH, usual)
    for one in odd:
        recognised(patterns, FETCH, *[usual] * 5)
        patterns.learn(FETCH, one, lambda _: True)
    found = recognised(patterns, FETCH, usual, *odd).chosen
    assert found[0]
    assert found.sum() == PATTERNS_MAX


def test_slots_have_the_numbers_that_the_loop_gives_them() -> None:
    for name in ("END", "TEXT", "KEY_TEXT", "NUMBER", "KEY_NUMBER", "SIZE", "TOTAL"):
        assert getattr(line_patterns, f"_{name}") == getattr(compiled, name)


def test_code_that_cannot_be_kept_is_compiled_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    njit: Any = numba.njit

    def refused(*functions: Any, **options: bool) -> Any:  # parts of numba that load late use it as well
        if options.get("cache") and not functions:
            raise RuntimeError("cannot cache function: no locator available")
        return njit(*functions, **options)

    monkeypatch.setattr(numba, "njit", refused)
    assert compiled._compiled(lambda number: number + 1)(1) == 2


def test_where_nothing_is_alike_nothing_is_looked_for_in_some_blocks() -> None:
    lines = [fetch(*[PARTITION] * count) for count in range(3 * PATTERNS_MAX)]
    patterns = learned(FETCH, *lines)
    block = Block(b"\n".join(lines) + b"\n")
    looked = [
        patterns.recognise(FETCH, block, np.arange(len(lines)), (0, 0)) is not None for _ in range(PAUSE_BLOCKS + 2)
    ]
    assert looked == [True, *[False] * PAUSE_BLOCKS, True]
