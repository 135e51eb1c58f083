"""Batches: round trip, bounds, and bytes that are none."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.errors import BatchError
from ingest.wire.batches import (
    FORMAT,
    MAX_AT_MS,
    MAX_BYTES,
    MAX_EVENTS,
    MAX_PARTITIONS,
    MAX_POSITION,
    batches,
    check_format,
    decode_batch,
    encode_batch,
)
from kardia.events import FORMAT_VERSION, Event, Kind

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
EVENT = Event(int(Kind.HEARTBEAT), 3, "b/request/i", 0, 9, 1.5, 1.0, 1.25, 1.25, "g", "m")
INT64 = st.integers(-(2**63), 2**63 - 1)
EVENTS = st.builds(
    Event,
    kind=st.sampled_from([int(kind) for kind in Kind]),
    shard=st.integers(-1, 49),
    source=TEXT,
    start=st.integers(0, MAX_POSITION),
    end=st.just(MAX_POSITION),
    logged_at_ms=st.floats(-1, MAX_AT_MS),
    arrived_at_ms=st.floats(-1, MAX_AT_MS),
    handled_at_ms=st.floats(-1, MAX_AT_MS),
    decided_at_ms=st.floats(-1, MAX_AT_MS),
    group_id=TEXT,
    member_id=TEXT,
    group_instance_id=st.just(""),
    client_id=TEXT,
    client_host=st.just("10.0.0.7"),
    connection=st.just(""),
    software=st.just(""),
    api_version=st.integers(-1, 20),
    error_code=st.integers(-(2**15), 2**15 - 1),
    generation_id=st.integers(-(2**31), 2**31 - 1),
    detail=st.none() | st.dictionaries(TEXT, INT64 | TEXT | st.lists(TEXT, max_size=3), max_size=3),
)


@given(st.lists(EVENTS, max_size=10))
def test_round_trip(events: list[Event]) -> None:
    assert decode_batch(encode_batch(events)) == events


@pytest.mark.parametrize("count", [0, 1, MAX_EVENTS - 1, MAX_EVENTS, MAX_EVENTS + 1, 2 * MAX_EVENTS + 1])
def test_a_record_holds_a_bounded_number(count: int) -> None:
    events = [EVENT._replace(start=at, end=at) for at in range(count)]
    made = list(batches(events))
    assert [event for data, _ in made for event in decode_batch(data)] == events
    assert all(number <= MAX_EVENTS for _, number in made)
    assert len(made) == -(-count // MAX_EVENTS)


def test_a_record_has_a_bounded_size_and_order_stays() -> None:
    events = [EVENT._replace(start=at, end=at, detail={"metrics": "x" * (MAX_BYTES // 10)}) for at in range(35)]
    made = list(batches(events))
    assert all(len(data) <= MAX_BYTES for data, _ in made)
    assert [event.start for data, _ in made for event in decode_batch(data)] == list(range(35))


def test_an_event_over_the_bound_travels_alone() -> None:
    large = EVENT._replace(start=1, detail={"metrics": "x" * (MAX_BYTES + 1)})
    events = [EVENT, large, EVENT._replace(start=2)]
    assert [number for _, number in batches(events)] == [1, 1, 1]


@pytest.mark.parametrize("data", [b"", b"x", b"\xc0", b"\x91\x01", encode_batch([EVENT])[:-1], b"\x91" * 5000])
def test_what_is_no_batch_is_refused(data: bytes) -> None:
    with pytest.raises(BatchError, match="not a batch"):
        decode_batch(data)


def changed(event: Event, field: str, value: int) -> Event:
    values: dict[str, Any] = {**event._asdict(), field: value}
    return Event(**values)


@pytest.mark.parametrize(
    ("field", "highest", "over"),
    [
        ("start", MAX_POSITION, MAX_POSITION + 1),
        ("start", 0, -1),
        ("end", MAX_POSITION, MAX_POSITION + 1),
        ("shard", MAX_PARTITIONS - 1, MAX_PARTITIONS),
        ("shard", -1, -2),
    ],
)
def test_a_position_has_bounds(field: str, highest: int, over: int) -> None:
    at = changed(EVENT._replace(end=MAX_POSITION), field, highest)
    assert decode_batch(encode_batch([at])) == [at]
    with pytest.raises(BatchError, match="no position"):
        decode_batch(encode_batch([changed(at, field, over)]))


def test_the_copies_of_a_line_stay_in_one_record() -> None:
    lines = [EVENT._replace(start=9 * at, end=9 * at + 9) for at in range(MAX_EVENTS - 3)]
    copies = [EVENT._replace(start=10**6, end=10**6 + 9, shard=shard) for shard in range(50)]
    assert [number for _, number in batches([*lines, *copies, EVENT])] == [MAX_EVENTS + 47, 1]
    large = {"metrics": "x" * (MAX_BYTES // 40)}
    halves = [number for _, number in batches([one._replace(detail=large) for one in [*lines[:5], *copies]])]
    assert halves == [5, 50]


@given(st.binary(max_size=200))
def test_no_bytes_raise_anything_else(data: bytes) -> None:
    try:
        decode_batch(data)
    except BatchError as error:
        assert error.next_step  # noqa: PT017


@pytest.mark.parametrize(
    "header", [None, b"", b"json/1", b"msgpack/", b"msgpack/x", b"msgpack/%d" % (FORMAT_VERSION + 1)]
)
def test_a_newer_or_foreign_format_is_refused(header: bytes | None) -> None:
    with pytest.raises(BatchError, match="announces"):
        check_format(header)
    check_format(FORMAT.encode())
