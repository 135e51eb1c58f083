"""Identity and sharding of events."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kardia.events import DETAILS, Event, Kind, broker_of, event_id, lane_of, shard_of, stream_of


def java_hash(text: str) -> int:
    """`String.hashCode` by its definition: polynomial over UTF-16 units, as a signed 32-bit number."""
    units = text.encode("utf-16-be", "surrogatepass")
    value = 0
    for unit in range(0, len(units), 2):
        value = (value * 31 + int.from_bytes(units[unit : unit + 2], "big")) % 2**32
    return value - 2**32 if value >= 2**31 else value


@given(st.text(alphabet=st.characters(exclude_categories=[]), max_size=40))
def test_shard_is_the_absolute_java_hash(group: str) -> None:
    value = java_hash(group)
    assert shard_of(group, 50) == (0 if value == -(2**31) else abs(value) % 50)


@pytest.mark.parametrize(("group", "shard"), [("g01", 20), ("warmup", 28), ("polygenelubricants", 0)])
def test_shards_seen_on_real_brokers_and_the_hash_that_has_no_absolute_value(group: str, shard: int) -> None:
    """`polygenelubricants` hashes to the lowest integer; the others stood in recorded partitions 20 and 28."""
    assert shard_of(group) == shard


def test_identity_is_the_position() -> None:
    event = Event(int(Kind.FETCH), 3, "b:1/request/x", 10, 20, 0.0, 0.0, 0.0, 0.0, client_id="c")
    assert event_id(event) == event_id(event._replace(client_id="other", logged_at_ms=5.0))
    others = [
        event._replace(start=11),
        event._replace(end=21),
        event._replace(shard=4),
        event._replace(source="b:1/request/y"),
    ]
    assert len({event_id(item) for item in (event, *others)}) == 5


def test_parts_of_a_source() -> None:
    assert stream_of("[::1]:9092/request/abc") == "[::1]:9092/request"
    assert broker_of("[::1]:9092/request/abc") == "[::1]:9092"


def test_every_kind_says_what_its_detail_holds() -> None:
    assert set(DETAILS) == set(Kind)


def test_lanes_split_the_shards() -> None:
    assert {lane_of(shard, 6) for shard in range(50)} == set(range(6))
