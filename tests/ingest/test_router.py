"""The directory of clients: what it learns, and what it forgets."""

from __future__ import annotations

import pytest

from ingest.router import MAX_SHARDS, Directory
from kardia.events import Event, Kind

BASE = Event(int(Kind.HEARTBEAT), 3, "s", 0, 1, 0.0, 0.0, 0.0, 0.0, "g", "m", "", "c", "h")


@pytest.mark.parametrize("kind", [Kind.JOIN, Kind.SYNC, Kind.HEARTBEAT, Kind.LEAVE, Kind.COMMIT, Kind.MODERN_HEARTBEAT])
def test_group_requests_teach(kind: Kind) -> None:
    directory = Directory()
    directory.learn(BASE._replace(kind=int(kind)))
    assert directory.shards_of(("c", "h")) == (3,)
    assert directory.shards_of(("c", "other")) == ()


@pytest.mark.parametrize("kind", [Kind.FETCH, Kind.TELEMETRY, Kind.TICK, Kind.REJECTED, Kind.COORDINATOR_LINE])
def test_other_events_do_not(kind: Kind) -> None:
    directory = Directory()
    directory.learn(BASE._replace(kind=int(kind)))
    assert len(directory) == 0


def test_members_of_a_record_teach() -> None:
    directory = Directory()
    members = [["m", "", "c1", "h1", 1, 1, []], ["n", "", "c2", "h2", 1, 1, []]]
    directory.learn(BASE._replace(kind=int(Kind.GROUP_RECORD), detail={"tombstone": False, "members": members}))
    directory.learn(BASE._replace(kind=int(Kind.GROUP_RECORD), detail={"tombstone": True}))
    assert [directory.shards_of(client) for client in (("c1", "h1"), ("c2", "h2"))] == [(3,), (3,)]


def test_a_fetch_goes_to_every_shard_of_its_client() -> None:
    directory = Directory()
    for shard in (3, 9, 3):
        directory.add(("c", "h"), shard)
    fetch = BASE._replace(kind=int(Kind.FETCH), shard=-1)
    assert [event.shard for event in directory.route(fetch)] == [3, 9]
    assert directory.route(fetch._replace(client_id="x")) == []


@pytest.mark.parametrize(("count", "forgotten"), [(9, 0), (10, 0), (11, 1)])
def test_the_clients_heard_from_longest_ago_are_forgotten(count: int, forgotten: int) -> None:
    directory = Directory(max_clients=10)
    for number in range(count):
        directory.add((f"c{number}", "h"), 1)
        directory.add(("c0", "h"), 1)  # heard from again and again
    assert (len(directory), directory.forgotten) == (min(count, 10), forgotten)
    assert directory.shards_of(("c0", "h")) == (1,)
    assert directory.shards_of(("c1", "h")) == (() if forgotten else (1,))


@pytest.mark.parametrize("count", [MAX_SHARDS - 1, MAX_SHARDS, MAX_SHARDS + 1])
def test_shards_of_a_client_are_bounded(count: int) -> None:
    directory = Directory()
    for shard in range(count):
        directory.add(("c", "h"), shard)
    shards = directory.shards_of(("c", "h"))
    assert len(shards) == min(count, MAX_SHARDS)
    assert shards[-1] == count - 1


def test_it_is_saved_and_merged() -> None:
    directory, other = Directory(), Directory()
    directory.add(("c\n", "h"), 3)
    other.add(("c\n", "h"), 5)
    other.merge(directory.entries())
    assert list(other.entries()) == [("c\n", "h", [5, 3])]
