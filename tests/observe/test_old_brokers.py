"""What brokers 2.0 to 2.7 do otherwise: 27 while the rebalance completes, no timer for SyncGroup, and the new members
that 2.4 does not time. The release is that of the JoinGroup's line, or as configured.
"""

from __future__ import annotations

import pytest

from kardia.observe import Observer, ObserverSettings
from tests.support.scene import Scene
from tests.support.stories import named, standing


def joined(release: str, *, rebalance_ms: int = 60_000) -> Scene:
    """A group of two, whose join phase ends at 1,000 ms; sessions of 10 s."""
    scene = Scene(coordinator="scala", software="")
    scene.release = release
    scene.joined(1_000, 1, {"a": 0.0, "b": 10.0}, first=("a", "b"), rebalance_ms=rebalance_ms)
    return scene


@pytest.mark.parametrize("release", ["2.0", "2.3", "2.5"])
def test_told_27_before_the_leader_has_synced_renews_nothing(release: str) -> None:
    scene = joined(release)
    scene.heartbeats(2_000, 10_001, "a", every=1_000, error=27)
    scene.heartbeat(11_500, "a", error=25)
    scene.tick(30_000)
    known = scene.known()
    assert known.ended()["a"][:2] == (11_000, "session_expired")
    assert [one["generation_before"] for one in known.rebalances()][:1] == [0]


def test_told_27_while_others_are_awaited_renews() -> None:
    """b joins again at 30 s; a heartbeats meanwhile and is a member still, longer than its session."""
    scene = joined("2.3")
    scene.synced(1_010, "a", "b")
    scene.heartbeats(3_000, 12_001, "a", "b")
    scene.heartbeats(15_000, 30_001, "a", every=3_000, error=27)
    scene.joined(30_500, 2, {"b": 13_000.0, "a": 30_400.0}, leader="b")
    scene.synced(30_510, "b", "a")
    scene.tick(32_000)
    assert scene.known().ended() == {}


@pytest.mark.parametrize(
    ("release", "cause"), [("", "sync_timeout"), ("2.3", "session_expired"), ("2.6", "session_expired")]
)
def test_nobody_is_removed_for_a_missing_sync(release: str, cause: str) -> None:
    """The time for SyncGroup would be over at 5 s, the session of b is over at 11 s."""
    scene = joined(release, rebalance_ms=4_000)
    scene.synced(1_010, "a")
    scene.heartbeats(3_000, 5_000, "a", every=1_000)
    if not release:
        scene.heartbeats(6_000, 7_000, "a", every=1_000, error=27)
        scene.joined(7_100, 2, {"a": 7_000.0})
    else:
        scene.heartbeats(5_000, 11_000, "a", every=1_000)
        scene.heartbeats(12_000, 13_000, "a", every=1_000, error=27)
        scene.joined(13_100, 2, {"a": 13_000.0})
    scene.tick(20_000)
    assert scene.known().ended()["b"][1] == cause


@pytest.mark.parametrize(("release", "version"), [("2.4", ""), ("2.3", "2.4.1")])
def test_a_new_member_that_falls_silent_is_not_timed_by_2_4(release: str, version: str) -> None:
    scene = joined(release)
    scene.synced(1_010, "a")
    scene.heartbeats(3_000, 40_001, "a")
    scene.tick(41_000)
    observer = Observer(ObserverSettings("test", version))
    rows = observer.step(scene.events)
    assert {row["member_id"]: row["end_cause"] for row in standing("members", rows["members"])} == {
        "a": None,
        "b": None,
    }
    assert not [row for row in standing("predictions", rows["predictions"]) if row["kind"] == "session"]


def test_a_new_member_that_was_heard_once_is_timed_by_2_4() -> None:
    scene = joined("2.4")
    scene.synced(1_010, "a", "b")
    scene.heartbeats(3_000, 11_000, "a")
    scene.heartbeats(12_000, 14_000, "a", every=1_000, error=27)
    scene.joined(14_100, 2, {"a": 14_000.0})
    scene.tick(30_000)
    assert scene.known().ended()["b"][:2] == (11_010, "session_expired")


@pytest.mark.parametrize(
    ("release", "heard", "sure"), [("2.3", False, "provisional"), ("2.3", True, "exact"), ("", False, "exact")]
)
def test_who_took_a_static_seat_may_have_been_forgotten_by_a_load(release: str, heard: bool, sure: str) -> None:
    """Before 2.6.1 a replacement in a Stable group is not recorded: a load brings back whom it replaced, and it is that
    one whose seat the next process takes."""
    scene = joined(release)
    scene.synced(1_010, "a", "b")
    scene.replaced(2_000, "s1", "seat")
    scene.replaced(2_500, "s2", "seat")
    scene.heartbeats(3_000, 4_001, "a", "s2", every=1_000)
    scene.loaded(5_000)
    scene.heartbeat(5_500, "a")
    if heard:
        scene.heartbeat(5_600, "s2")
    scene.replaced(8_000, "s3", "seat")
    scene.tick(9_000)
    assert scene.known().ended()["s2"] == (8_000, "static_replaced", sure)


@pytest.mark.parametrize("silent", [False, True])
@pytest.mark.parametrize("first", ["leader", "process"])
def test_who_comes_back_as_the_join_phase_ends_takes_its_own_seat(first: str, silent: bool) -> None:
    """The leader is told of the process before it, which the generation in the answer of the next one shows to be
    replaced: up to 2.3 that is answered at once while the group completes. Which line comes first says nothing.
    `silent`: the session of the process before was over, but the broker had stood still and was late to see it."""
    scene = Scene(coordinator="scala", software="")
    scene.release = "2.3"
    seat = {"s1": "seat"}
    scene.joined(1_000, 1, {"a": 0.0, "s1": 10.0}, first=("a", "s1"), instances=seat)
    scene.synced(1_010, "a", "s1")
    scene.heartbeats(3_000, 10_001 if silent else 19_000, "a", *(() if silent else ("s1",)))
    if first == "leader":
        scene.joined(20_000, 2, {"a": 19_500.0}, instances=seat, absent=("s1",))
        scene.replaced(20_001, "s2", "seat")
    else:
        scene.generation = 2
        scene.replaced(20_001, "s2", "seat")
        scene.joined(20_000, 2, {"a": 19_500.0}, instances=seat, absent=("s1",))
    scene.synced(20_030, "a", "s2")
    scene.heartbeats(21_000, 36_000, "a", "s2")
    scene.tick(36_000)
    known = scene.known()
    assert known.ended()["s1"][:2] == (20_001, "static_replaced")
    assert known.ended().keys() == {"s1"}
    assert known.alive() == {"a", "s2"}
    assert [row["members_after"] for row in known.rebalances()][-1] == 2


def test_of_two_processes_in_one_seat_within_a_stamp_the_order_is_not_known() -> None:
    scene = Scene(coordinator="scala", software="")
    scene.release = "2.3"
    seat = {"s1": "seat"}
    scene.joined(1_000, 1, {"a": 0.0, "s1": 10.0}, first=("a", "s1"), instances=seat)
    scene.synced(1_010, "a", "s1")
    scene.heartbeats(3_000, 19_000, "a", "s1")
    scene.joined(20_000, 2, {"a": 19_500.0}, instances=seat, absent=("s1",))
    scene.replaced(20_001, "s2", "seat")
    scene.replaced(20_001, "s3", "seat")
    scene.synced(20_030, "a", "s3")
    scene.heartbeats(21_000, 36_000, "a", "s3")
    scene.tick(36_000)
    known = scene.known()
    assert known.ended()["s2"] == (20_001, "static_replaced", "provisional")
    assert known.alive() == {"a", "s3"}
    rows = [row for row in named("members", known.rows["members"]) if row["member_id"] == "s2"]
    assert all(row["ended_at_ms"] is not None for row in rows), "of somebody replaced at once no row says that it stays"


@pytest.mark.parametrize(("release", "sure"), [("2.0", "provisional"), ("2.3", "inferred")])
def test_told_27_at_a_deadline_is_no_sure_sign_of_it_where_anybody_may_join_unseen(release: str, sure: str) -> None:
    """Up to 2.1 a JoinGroup without an id waits at once: nobody sees it before it is answered."""
    scene = joined(release)
    scene.synced(1_010, "a", "b")
    scene.heartbeats(3_000, 9_001, "a", "b")
    scene.heartbeats(12_000, 18_001, "a")
    scene.heartbeat(19_001, "a", error=27)
    scene.tick(19_100)
    ended = [row for row in named("members", scene.known().rows["members"]) if row["ended_at_ms"] is not None]
    assert [(row["member_id"], row["certainty"]) for row in ended[:1]] == [("b", sure)]


def test_who_was_gone_for_an_unknown_cause_may_have_begun_the_rebalance_before_whoever_joins() -> None:
    """The log begins in the middle of the life of c, which a record names: when its session began is not known."""
    scene = Scene(coordinator="scala", software="")
    scene.release, scene.generation = "2.0", 3
    scene.group_record(1_000, 3, {"a": 10_000, "b": 10_000, "c": 10_000})
    scene.heartbeats(3_000, 7_000, "a", "b")
    scene.heartbeat(9_000, "c", error=25)
    scene.heartbeat(9_030, "a", error=27)
    scene.joined(9_500, 4, {"a": 9_200.0, "b": 9_400.0, "c2": 9_002.0}, first=("c2",))
    scene.synced(9_510, "a", "b", "c2")
    scene.heartbeats(12_000, 13_000, "a", "b", "c2")
    scene.tick(14_000)
    assert [(row["trigger"], row["certainty"]) for row in scene.known().rebalances()] == [
        ("member_joined", "provisional")
    ]
