"""Groups that have epochs: how a member ends, by its own leave, by a timer, or by a seat that is taken.

Instants in ms from the start of a scene.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.modern_scene import (
    UNREVOKED,
    ModernScene,
    both,
    health,
    pair,
    rebalances,
    since_start,
)
from tests.support.stories import named, standing

FENCED_EPOCH, UNRELEASED_INSTANCE = 110, 111


# --- ends


def holds_on(to_ms: float, *, records: bool) -> dict[str, Any]:
    """Health of b at an instant: it was told at 6,000 to give its partition up within 8 s, and goes on with its
    heartbeats without doing so; nothing that is read shows yet whether it is a member still."""
    scene = both(10_000) if records else pair()
    if records:
        scene.record(6_000, "member", "a", rebalance_timeout_ms=8_000, topics=["t", "u"])
        scene.record(6_000, "epoch", epoch=3)
        scene.record(6_000, "computed", epoch=3)
        scene.record_current(6_000, "b", 2, UNREVOKED, (), (1,))
    scene.beat(6_010, "b", 2, 2, assigned=(), since=6_000)
    scene.beats(6_500, 13_900, 2, "a", "b", every=1_000)
    if records:
        scene.records_read(to_ms - 500)
    scene.tick(to_ms)
    rows = named("health", scene.known_live().rows["health"])
    return [row for row in rows if row["member_id"] == "b"][-1]


@pytest.mark.parametrize("records", [True, False])
def test_no_deadline_is_sure_of_a_member_whose_time_to_give_up_partitions_is_over(records: bool) -> None:
    assert holds_on(13_850, records=records)["certainty"] in ("exact", "inferred")
    assert holds_on(14_200, records=records)["certainty"] == "provisional"


def test_a_silent_member_is_evicted_one_session_after_its_last_heartbeat() -> None:
    scene = pair()
    scene.beats(6_200, 14_000, 2, "a")
    scene.beat(14_200, "a", 2, 3, assigned=(0, 1))
    scene.beat(14_300, "a", 3, 3, owned=(0, 1))
    scene.tick(20_000)
    known = scene.known()
    assert known.ended() == {"b": (14_100, "session_expired", "exact")}
    assert rebalances(known)[-1] == (3, 14_200, "session_expired", "b")
    assert known.rebalances()[-1]["partitions_moved"] == 1


def test_only_silence_shows_it_and_it_is_inferred() -> None:
    scene = pair()
    scene.beats(6_100, 17_000, 2, "b")
    scene.tick(17_000)
    known = scene.known()
    assert known.ended() == {"a": (14_200, "session_expired", "inferred")}
    assert named("members", known.rows["members"])[-1]["at_bound_ms"] is None


def test_a_member_is_not_ended_by_silence_if_nothing_says_how_long_its_session_is() -> None:
    scene = pair(given_ms=-1)
    scene.beats(6_100, 70_000, 2, "b")
    scene.tick(70_000)
    known = scene.known()
    assert known.ended() == {}
    row = health(known, "a")
    assert (row["status"], row["certainty"]) == ("overdue", "provisional")
    assert "default session timeout of 45000 ms" in row["reasons"][0]
    # That it is in danger was said, and not when: that is not known.
    assert {one["deadline_at_ms"] for one in named("predictions", known.rows["predictions"])} == {None}


def test_answers_with_the_old_epoch_long_after_it_say_that_nobody_was_evicted() -> None:
    """The session is longer than the configuration says, as a group may have one of its own."""
    scene = pair()
    scene.beats(6_100, 18_200, 2, "b")
    scene.tick(19_000)
    known = scene.known()
    assert known.alive() == {"a", "b"}
    assert rebalances(known)[-1][0] == 2
    assert known.states()[-1][1] == "Stable"


def test_a_partition_that_is_given_to_somebody_shows_that_its_owner_is_gone() -> None:
    """At some time since the last answer with the epoch before; how long a session is nobody knows."""
    scene = pair(given_ms=-1, version="4.1.2")
    scene.beats(6_200, 14_000, 2, "a")
    scene.beat(14_200, "a", 2, 3, assigned=(0, 1))
    scene.tick(15_000)
    known = scene.known()
    assert known.ended() == {"b": (12_200, "session_expired", "inferred")}
    assert named("members", known.rows["members"])[-1]["at_bound_ms"] == 2_000
    assert rebalances(known)[-1] == (3, 14_200, "session_expired", "b")


def test_a_partition_that_its_owner_gave_up_shows_nothing() -> None:
    scene = pair(given_ms=-1)
    scene.comes(5_000, "c", 3)
    scene.beat(6_100, "b", 2, 3, owned=(1,))
    scene.beat(6_200, "a", 2, 2, assigned=())
    scene.beat(6_300, "a", 2, 3, owned=())
    scene.beat(8_000, "c", 3, 3, assigned=(0,))
    scene.tick(9_000)
    known = scene.known()
    assert known.ended() == {}
    assert rebalances(known)[-1] == (3, 6_300, "member_joined", "c")


def test_a_member_that_does_not_give_up_its_partitions_is_evicted_though_it_heartbeats() -> None:
    scene = pair()
    scene.comes(5_000, "c", 3)
    scene.beat(6_100, "b", 2, 3, owned=(1,))
    scene.beat(6_200, "a", 2, 2, assigned=())
    scene.beats(8_200, 14_000, 2, "a")
    scene.beats(8_100, 14_000, 3, "b", "c")
    scene.beat(14_300, "b", 3, 4)
    scene.tick(16_000)
    known = scene.known()
    assert known.ended() == {"a": (14_200, "rebalance_timeout", "exact")}
    held = next(row for row in known.rebalances() if row["generation_after"] == 3)["stragglers"][0]
    assert (held["member_id"], held["joined"], held["partitions"]) == ("a", False, 1)


def test_the_group_waits_for_who_must_give_something_up_and_until_when() -> None:
    scene = pair()
    scene.comes(5_000, "c", 3)
    scene.beat(6_200, "a", 2, 2, assigned=())
    scene.beat(8_200, "a", 2)
    scene.tick(9_000)
    row = health(scene.known(), "a")
    assert (row["member_state"], row["partitions"], row["partitions_revoking"]) == ("unrevoked", 0, 1)
    assert (since_start(row["awaited_since_at_ms"]), since_start(row["awaited_until_at_ms"])) == (6_200, 14_200)


def test_who_gives_its_partitions_up_in_time_is_not_evicted() -> None:
    scene = pair()
    scene.comes(5_000, "c", 3)
    scene.beat(6_100, "b", 2, 3, owned=(1,))
    scene.beat(6_200, "a", 2, 2, assigned=())
    scene.beat(13_000, "a", 2, 3, owned=())
    scene.beats(8_100, 20_000, 3, "b", "c")
    scene.beats(15_000, 20_000, 3, "a")
    scene.tick(20_000)
    assert scene.known().ended() == {}


@pytest.mark.parametrize(("loads", "sure"), [(False, "inferred"), (True, "provisional")])
def test_a_poll_timeout_is_not_sure_where_a_broker_died_since_the_last_poll(loads: bool, sure: str) -> None:
    """a polled last at 2,000, as far as was seen; a broker that dies takes the lines of later fetches along."""
    scene = ModernScene(protocol="streams", given_ms=20_000)
    scene.comes(1_000, "a", 1, (0, 1), rebalance_ms=6_000)
    scene.beat(1_010, "a", 1, owned=(0, 1))
    scene.fetch(2_000, "a")
    scene.beats(2_500, 5_000, 1, "a", every=500)
    if loads:
        scene.loaded(5_000)
    scene.beats(5_100, 8_500, 1, "a", every=500)
    scene.beat(8_600, "a", -1)
    scene.tick(9_700)
    assert scene._fed([scene.events]).ended()["a"][1:] == ("poll_timeout", sure)


@pytest.mark.parametrize(("said", "cause"), [({"topics": [], "owned": ()}, "left"), ({"owned": ()}, "poll_timeout")])
def test_java_keeps_its_subscription_when_its_application_did_not_poll(said: dict[str, Any], cause: str) -> None:
    scene = pair(given_ms=45_000)
    scene.beats(6_200, 15_000, 2, "a", "b")
    scene.beat(15_000, "a", -1, **said)
    scene.tick(16_000)
    ((at, found, _),) = scene.known().ended().values()
    assert (at, found) == (15_000, cause)


def test_a_leave_begins_an_epoch() -> None:
    scene = pair()
    scene.goes(5_000, "b")
    scene.beat(6_200, "a", 2, 3, assigned=(0, 1))
    scene.tick(7_000)
    known = scene.known()
    assert known.ended() == {"b": (5_000, "left", "exact")}
    assert rebalances(known)[-1] == (3, 6_200, "member_left", "b")
    assert known.states()[-2:] == [(5_000, "Assigning"), (6_200, "Stable")]


def test_the_last_member_that_leaves_leaves_an_empty_group() -> None:
    scene = ModernScene()
    scene.comes(1_000, "a", 1, (0, 1))
    scene.goes(5_000, "a")
    scene.tick(6_000)
    known = scene.known()
    assert known.states()[-1] == (5_000, "Empty")
    assert rebalances(known)[-1] == (2, 5_000, "member_left", "a")


# --- static members


def static() -> ModernScene:
    """A static member s, and b; epoch 2."""
    scene = ModernScene()
    scene.comes(1_000, "s", 1, (0, 1), instance="i")
    scene.comes(2_000, "b", 2)
    scene.beat(3_000, "s", 1, 1, assigned=(0,), instance="i")
    scene.beat(3_050, "s", 1, 2, owned=(0,), instance="i")
    scene.beat(4_000, "b", 2, 2, assigned=(1,))
    scene.beat(4_200, "s", 2, instance="i")
    return scene


def test_a_leave_for_a_moment_begins_no_epoch_and_its_session_runs_on() -> None:
    scene = static()
    scene.goes(5_000, "s", -2, instance="i")
    scene.beats(6_000, 13_000, 2, "b")
    scene.tick(13_500)
    known = scene.known()
    assert known.alive() == {"s", "b"}
    assert known.states()[-1] == (5_000, "Reconciling")
    row = health(known, "s")
    assert (row["member_state"], since_start(row["session_deadline_at_ms"])) == ("away", 14_200)
    scene.beats(14_000, 16_000, 2, "b")
    scene.beat(16_000, "b", 2, 3, assigned=(0, 1))
    scene.tick(17_000)
    assert scene.known().ended() == {"s": (14_200, "session_expired", "exact")}


def test_a_static_member_that_comes_back_takes_its_place_without_an_epoch() -> None:
    scene = static()
    scene.goes(5_000, "s", -2, instance="i")
    scene.comes(7_000, "s2", 2, (0,), instance="i")
    scene.beats(8_000, 12_000, 2, "b", "s2")
    scene.tick(12_000)
    known = scene.known()
    assert known.ended() == {"s": (7_000, "static_replaced", "exact")}
    assert rebalances(known)[-1][0] == 2
    assert known.states()[-1] == (7_000, "Stable")


def test_a_refusal_changes_nothing_of_the_member() -> None:
    """110: another epoch; 111: the instance id is another's. Neither renews a session. Each is told, of both sides."""
    scene = static()
    scene.beat(6_000, "b", 1, error=FENCED_EPOCH)
    scene.comes(6_500, "z", 0, error=UNRELEASED_INSTANCE, instance="i")
    scene.comes(6_600, "z", 0, error=UNRELEASED_INSTANCE, instance="i")
    scene.tick(8_000)
    known = scene.known()
    assert known.alive() == {"s", "b"}
    rows = named("transitions", known.rows["transitions"])
    assert [(row["member_id"], row["cause"]) for row in rows[-4:]] == [
        ("b", "fenced"),
        ("s", "static_id_asked_for"),
        ("z", "instance_id_in_use"),
        ("s", "static_id_asked_for"),
    ]
    assert since_start(health(known, "b")["last_heard_at_ms"]) == 4_000


# --- which of two made an epoch


@pytest.mark.parametrize(("version", "certainty"), [("4.1.2", "exact"), ("", "provisional")])
def test_a_leave_that_is_answered_before_a_join_may_have_come_after_it(version: str, certainty: str) -> None:
    """c's join was handled at 6,000 and answered at 6,048 with epoch 3; b's leave was handled at 6,014 and answered at
    6,047. Where every answer has the epoch of the group, the join made that; else it may have an older target, and that
    it was handled first makes it likely only."""
    scene = pair(version=version)
    scene.beats(4_500, 6_000, 2, "a", "b", every=1_000)
    scene.goes(6_047, "b", since=6_014)
    scene.comes(6_048, "c", 3, since=6_000)
    scene.tick(7_000)
    scene.beats(7_100, 9_000, 2, "a", every=1_000)
    scene.tick(9_000)
    known = scene.known()
    [row] = [one for one in standing("rebalances", known.rows["rebalances"]) if one["generation_after"] == 3]
    assert (row["trigger"], row["certainty"]) == ("member_joined", certainty)


def test_of_two_sessions_that_end_within_two_ms_neither_surely_made_the_first_epoch() -> None:
    scene = pair()
    scene.comes(4_300, "c", 3)
    scene.beat(5_000, "a", 3)
    scene.beat(5_001, "b", 3)
    scene.beats(5_300, 15_000, 3, "c", every=1_000)
    scene.beat(15_300, "c", 3, 5, assigned=(0, 1))
    scene.beats(16_300, 18_000, 5, "c", every=1_000)
    scene.tick(18_000)
    known = scene.known()
    over = [row for row in standing("rebalances", known.rows["rebalances"]) if row["trigger"] == "session_expired"]
    assert {row["trigger_member_id"] for row in over} == {"a", "b"}
    assert {row["certainty"] for row in over} == {"provisional"}


def test_who_comes_back_when_nobody_knows_how_long_sessions_are_may_have_ended_meanwhile() -> None:
    """s left for a moment at 5,000 and is back 30 s later, with the answer that a group whose targets are computed once
    in a while gives; its session may have been over, and it joined anew."""
    scene = ModernScene(given_ms=-1)
    scene.comes(1_000, "s", 1, (0, 1), instance="i")
    scene.beat(1_010, "s", 1, owned=(0, 1), instance="i")
    scene.comes(2_000, "b", 2)
    scene.beats(2_500, 36_000, 2, "b", every=2_000)
    scene.beat(4_000, "s", 2, instance="i")
    scene.goes(5_000, "s", -2, instance="i")
    scene.comes(35_000, "s", 2, (0,), instance="i")
    scene.tick(37_000)
    rows = named("transitions", scene.known().rows["transitions"])
    [row] = [row for row in rows if row["cause"] == "static_returned"]
    assert row["certainty"] == "provisional"


def test_what_came_soon_after_a_session_was_over_may_have_come_before_its_end() -> None:
    """b was due at 14,100, and its timer fired after a had asked for another topic at 14,400."""
    scene = pair(version="4.3.1")
    scene.beats(6_200, 14_000, 2, "a")
    scene.beat(14_400, "a", 2, 3, topics=["t", "u"])
    scene.beat(16_400, "a", 3, 4, assigned=(0, 1))
    scene.tick(18_000)
    rows = {row["trigger"]: row["certainty"] for row in scene.known().rebalances()[-2:]}
    assert rows == {"session_expired": "provisional", "metadata_changed": "provisional"}
