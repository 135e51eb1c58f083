"""A coordinator whose records are not replicated in time answers COORDINATOR_NOT_AVAILABLE after seconds, and goes on.

Met beside three brokers of which one was down and one slow (`tests/night`): the answer was taken for that of a broker
that leads nothing, and a member that had been evicted came back by a load that was none. The write stays, and whoever
waited was served: `offsets.commit.timeout.ms`, `CoordinatorRuntime.OperationTimeout`, `DelayedProduce.onExpiration`.
"""

from __future__ import annotations

import pytest

from tests.observe.test_scenes import stable
from tests.support.scene import Scene
from tests.support.stories import named

NOT_AVAILABLE = 15


def loads(scene: Scene) -> list[object]:
    rows = named("transitions", scene.known().rows["transitions"])
    return [row for row in rows if row["cause"] == "coordinator_loaded"]


def slow() -> Scene:
    """b falls silent and is evicted, as server.log says, while nothing that is written is replicated."""
    scene = stable("a", "b")
    scene.heartbeats(6_000, 15_000, "a", "b")
    scene.heartbeat(15_000, "a")
    scene.commit(23_000, "a", 5, error=NOT_AVAILABLE, since=18_000)
    scene.failed(22_000, "b")
    scene.prepares(22_000, 1, "removing member b on heartbeat expiration", "b")
    scene.heartbeat(24_000, "a", error=NOT_AVAILABLE, since=19_000)
    scene.commit(24_500, "a", 6, since=23_100)
    scene.heartbeat(24_500, "a", error=27, since=24_100)
    scene.joined(25_000, 2, {"a": 24_900})
    scene.synced(25_010, "a")
    scene.heartbeats(28_000, 34_000, "a")
    scene.tick(34_000)
    return scene


def test_who_was_evicted_stays_evicted_while_nothing_is_replicated() -> None:
    scene = slow()
    assert scene.known().ended() == {"b": (22_000, "session_expired", "exact")}
    assert loads(scene) == []


def test_one_that_was_answered_late_that_way_was_heard() -> None:
    """Whether its session was renewed nobody says; it was not silent."""
    scene = stable("a", "b")
    scene.heartbeats(6_000, 15_000, "a", "b")
    for at in (15_000, 18_000, 21_000, 24_000):
        scene.heartbeat(at, "b")
        scene.heartbeat(at + 5_001, "a", error=NOT_AVAILABLE, since=at)
    scene.heartbeats(27_000, 33_000, "a", "b")
    scene.tick(33_000)
    assert scene.known().ended() == {}
    assert loads(scene) == []


@pytest.mark.parametrize("error", [14, 16, NOT_AVAILABLE])
def test_a_broker_that_refuses_at_once_may_not_lead_the_group(error: int) -> None:
    scene = stable("a", "b")
    scene.heartbeats(6_000, 15_000, "a", "b")
    scene.heartbeat(15_000, "a", error=error)
    scene.heartbeats(18_000, 24_000, "a", "b")
    scene.tick(24_000)
    assert loads(scene)


def test_a_client_that_tries_by_several_connections_meets_no_restart() -> None:
    """Whatever it had asked is answered in one instant, the later connection first: the number of the other is lower,
    as it was accepted earlier. Recorded with 4.4.0, where a restart was made of it, and an eviction missed."""
    scene = stable("a", "b")
    first, second, third = (f"10.0.0.1:9092-10.0.0.9:{port}-0-{number}" for port, number in ((1, 5), (2, 15), (3, 17)))
    scene.connection = first
    scene.heartbeats(6_000, 12_000, "a", "b")
    scene.heartbeat(17_000, "a", error=NOT_AVAILABLE, since=12_000)
    scene.connection = second
    scene.heartbeat(18_500, "a", error=NOT_AVAILABLE, since=13_400)
    scene.connection = third
    scene.heartbeat(19_000, "a", since=18_990)
    scene.connection = second
    scene.heartbeat(19_001, "a", since=18_991)
    scene.heartbeats(20_000, 33_000, "a", "b")
    scene.tick(33_000)
    assert loads(scene) == []
    assert scene.known().observer.restarted_at == {}


def test_who_left_before_a_generation_was_formed_without_it_begins_no_rebalance_of_that() -> None:
    """Its answers wait for what is stored, and are read when the next generation is there. a left 40 ms before the join
    phase ended, which looks as if its time to rejoin had been over."""
    scene = Scene()
    scene.joined(3_000, 1, {"a": 0.0, "b": 0.0}, first=("a", "b"), rebalance_ms=1_450)
    scene.synced(3_010, "a", "b")
    scene.heartbeats(6_000, 9_001, "a", "b")
    scene.member_id_required(9_500, "c")
    scene.joined(11_000, 2, {"b": 9_600.0, "c": 9_510.0}, leader="b", rebalance_ms=1_450)
    scene.tick(12_500)
    scene.heartbeat(14_000, "a", error=27, generation=1, since=10_000)
    scene.leave(14_001, "a", reason="the consumer is being closed")
    event = scene.events[-1]
    scene.events[-1] = event._replace(
        handled_at_ms=event.handled_at_ms - 3_041, arrived_at_ms=event.arrived_at_ms - 3_041
    )
    scene.synced(14_020, "b", "c", since=11_010)
    scene.heartbeats(15_000, 20_000, "b", "c")
    scene.tick(20_000)
    known = scene.known_step_by_step()
    assert known.ended() == {"a": (10_960, "left", "exact")}
    assert [row["generation_before"] for row in known.rebalances()] == [0, 1]
    assert known.states()[-1] == (14_020, "Stable")
