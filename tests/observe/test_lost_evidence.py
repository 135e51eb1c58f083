"""Lines that are lost and logs that begin late: what is unknown then, since when, and until what shows it again."""

from __future__ import annotations

import pytest

from kardia.instants import to_rfc3339
from kardia.observe import Observer, ObserverSettings
from tests.observe.test_moves import health
from tests.observe.test_scenes import stable
from tests.support.scene import START, Known, Scene
from tests.support.stories import named


def test_a_gap_makes_a_stable_group_unknown_until_it_is_heard_again() -> None:
    scene = stable("a", "b")
    scene.heartbeats(6_000, 10_000, "a", "b")
    scene.gap(10_000, 14_000)
    scene.heartbeats(15_000, 19_000, "a", "b")
    scene.tick(20_000)
    known = scene.known()
    assert known.states()[-2:] == [(10_000, "Unknown"), (15_000, "Stable")]
    assert known.ended() == {}


def test_what_was_heard_inside_a_gap_is_no_last_word() -> None:
    """Of 10,000 to 14,000 some lines are there and some are not: b's heartbeat of 12,000 need not be its last."""
    scene = stable("a", "b")
    scene.heartbeats(6_000, 10_000, "a", "b")
    scene.heartbeat(12_000, "b")
    scene.gap(10_000, 14_000)
    scene.heartbeats(15_000, 26_000, "a")
    scene.tick(26_000)
    known = scene.known()
    assert known.ended() == {}
    assert [(row["status"], row["certainty"]) for row in health(known, "b")][-1] == ("unknown", "unknown")
    assert health(known, "b")[-1]["reasons"] == [f"the log has a gap since {to_rfc3339(START + 10_000)}"]


def test_lines_lost_on_the_way_are_a_gap_from_the_tick_before() -> None:
    scene = stable("a", "b")
    scene.heartbeats(6_000, 10_000, "a", "b")
    scene.tick(10_000, sent=len(scene.events))
    scene.heartbeat(12_000, "a")
    scene.tick(14_000, sent=2)
    scene.heartbeats(15_000, 26_000, "a")
    scene.tick(26_000)
    known = scene.known()
    assert known.ended() == {}
    assert health(known, "b")[-1]["status"] == "unknown"


def test_who_was_not_seen_to_sync_in_a_gap_is_not_said_to_have_missed_it() -> None:
    scene = Scene()
    scene.joined(3_000, 1, {"a": 0.0, "b": 0.0}, first=("a", "b"), rebalance_ms=8_000)
    scene.gap(3_005, 4_000)
    scene.heartbeats(5_000, 11_000, "a", "b")
    scene.heartbeat(11_500, "a", error=27)
    scene.joined(11_700, 2, {"a": 11_600, "b": 11_650, "n": 11_400}, first=("n",))
    scene.synced(11_710, "a", "b", "n")
    scene.tick(14_000)
    assert scene.known().ended() == {}


def test_a_member_known_from_a_record_only_is_unknown_and_nothing_is_said_of_its_end() -> None:
    """The record names x with its timeout; it was never heard since the log began."""
    scene = Scene()
    scene.group_record(1_000, 3, {"a": 10_000, "x": 10_000})
    scene.generation = 3
    scene.heartbeats(5_000, 30_000, "a")
    scene.tick(30_000)
    known = scene.known()
    assert known.ended() == {}
    (row,) = health(known, "x")
    assert (row["status"], row["certainty"], row["session_deadline_at_ms"]) == ("unknown", "unknown", None)


def test_a_member_known_from_a_record_only_that_is_gone_was_so_by_the_end_of_the_join_phase() -> None:
    scene = Scene()
    scene.group_record(1_000, 3, {"a": 10_000, "x": 10_000})
    scene.generation = 3
    scene.heartbeats(5_000, 12_000, "a")
    scene.heartbeat(12_500, "a", error=27)
    scene.joined(12_700, 4, {"a": 12_600})
    scene.synced(12_710, "a")
    scene.tick(15_000)
    assert scene.known().ended() == {"x": (12_700, "unknown", "unknown")}


def test_a_rebalance_seen_from_the_middle_of_a_life_follows_the_generation_before_it() -> None:
    """Somebody whom the log does not name may have gone first: what is seen first is provisional."""
    scene = Scene()
    scene.generation = 6
    scene.heartbeat(5_000, "a", error=27)
    scene.joined(5_200, 7, {"a": 5_100, "b": 5_150})
    scene.synced(5_210, "a", "b")
    scene.tick(7_000)
    (row,) = scene.known().rebalances()
    assert (row["generation_before"], row["generation_after"]) == (6, 7)
    assert row["certainty"] in ("provisional", "unknown")


def test_the_end_of_a_static_member_is_provisional_while_a_restart_may_wait_unseen() -> None:
    """b's restart waits in a JoinGroup since 15,000, so it was replaced; its session seemed to end at 16,000."""
    scene = Scene()
    instances = {"a": "ia", "b": "ib"}
    scene.joined(3_000, 1, {"a": 0.0, "b": 0.0}, first=("a", "b"), instances=instances)
    scene.synced(3_010, "a", "b")
    scene.heartbeat(6_000, "b")
    scene.heartbeats(6_000, 14_000, "a", every=2_000)
    scene.heartbeat(17_000, "a", error=27)
    scene.tick(17_500)
    assert scene.known().ended()["b"] == (16_000, "session_expired", "provisional")


def test_a_static_member_that_takes_its_place_again_after_a_gap_shows_a_stable_group() -> None:
    """The generation is known, so its join phase is over: whoever is answered with it, at once and without an id, has
    replaced somebody. Whom is not sure: another process may have had the instance id in the gap."""
    scene = Scene()
    instances = {"a": "ia", "b": "ib"}
    scene.joined(3_000, 1, {"a": 0.0, "b": 0.0}, first=("a", "b"), instances=instances)
    scene.synced(3_010, "a", "b")
    scene.heartbeats(6_000, 10_000, "a", "b")
    scene.gap(10_000, 11_000)
    scene.replaced(12_000, "b2", "ib")
    scene.heartbeats(13_000, 16_000, "a", "b2")
    scene.tick(17_000)
    known = scene.known()
    assert known.states()[-2:] == [(10_000, "Unknown"), (12_000, "Stable")]
    assert known.ended() == {"b": (12_000, "static_replaced", "provisional")}
    assert [row["generation_after"] for row in known.rebalances()] == [1]


def test_static_members_answered_at_once_where_the_log_begins_are_no_join_phase() -> None:
    """Nobody is told the members, as the leader of a new generation would be."""
    scene = Scene()
    scene.generation = 4
    scene.replaced(1_000, "a", "ia")
    scene.replaced(1_002, "b", "ib")
    scene.heartbeats(4_000, 8_000, "a", "b")
    scene.tick(9_000)
    known = scene.known()
    assert known.states() == [(1_000, "Stable")]
    assert known.rebalances() == []
    assert known.alive() == {"a", "b"}
    assert {row["certainty"] for row in health(known, "a")} <= {"inferred", "provisional"}


def test_a_leader_told_to_skip_the_assignment_has_replaced_itself_in_a_stable_group() -> None:
    scene = Scene()
    scene.generation = 4
    scene.replaced(1_000, "a", "ia")
    detail = {"leader": "a", "members": [["a", "ia"], ["b", ""]], "skip_assignment": True}
    scene.events[-1] = scene.events[-1]._replace(detail={**(scene.events[-1].detail or {}), **detail})
    scene.heartbeats(4_000, 8_000, "a", "b")
    scene.tick(9_000)
    known = scene.known()
    assert known.states() == [(1_000, "Stable")]
    assert known.rebalances() == []


def test_what_began_a_rebalance_is_not_sure_if_somebody_may_have_gone_first_in_a_gap() -> None:
    """Until when b's session ran is not known: its successor shows that it went, not when."""
    scene = Scene()
    instances = {"a": "ia", "b": "ib", "c": "ic"}
    scene.joined(3_000, 1, {"a": 0.0, "b": 0.0, "c": 0.0}, first=("a", "b", "c"), instances=instances)
    scene.synced(3_010, "a", "b", "c")
    scene.heartbeats(6_000, 10_000, "a", "b", "c")
    scene.gap(10_000, 11_000)
    scene.heartbeats(11_500, 15_000, "a", "c")
    scene.joined(
        27_000,
        2,
        {"a2": 26_900, "b2": 26_500, "c2": 26_000},
        first=("a2", "b2", "c2"),
        instances={"a2": "ia", "b2": "ib", "c2": "ic"},
    )
    scene.synced(27_010, "a2", "b2", "c2")
    scene.tick(29_000)
    (_, row) = scene.known().rebalances()
    assert row["certainty"] == "provisional"


def test_who_ended_before_a_generation_that_was_not_seen_did_not_surely_begin_the_one_after_it() -> None:
    """a and b fall silent, b last; with b the group becomes Empty, in generation 2 that nobody saw, and at 22,000 n
    begins the rebalance to generation 3. Since the gap there may be others who go on."""
    scene = stable("a", "b")
    scene.gap(5_000, 5_500)
    scene.heartbeats(6_000, 8_000, "a", "b")
    scene.heartbeat(9_000, "b")
    scene.tick(19_500)
    scene.joined(22_500, 3, {"n": 22_000}, first=("n",))
    scene.synced(22_510, "n")
    scene.tick(25_000)
    rows = [row for row in scene.known().rebalances() if row["generation_after"] == 3]
    assert [row["certainty"] for row in rows if row["trigger"] != "member_joined"].count("exact") == 0
    assert rows


def test_a_leave_from_a_group_with_a_session_that_is_not_known_may_not_have_been_first() -> None:
    """x is known from a record only; it may have been evicted a moment before b left."""
    scene = Scene()
    scene.group_record(1_000, 3, {"a": 10_000, "b": 10_000, "x": 10_000})
    scene.generation = 3
    scene.heartbeats(5_000, 12_000, "a", "b")
    scene.leave(12_500, "b", reason="the consumer is being closed")
    scene.heartbeat(13_000, "a", error=27)
    scene.tick(13_500)
    told = named("transitions", scene.known().rows["transitions"])
    rows = [row for row in told if row["to_state"] == "PreparingRebalance"]
    assert [(row["cause"], row["certainty"]) for row in rows] == [("member_left", "provisional")]


def test_a_join_timer_drops_nobody_if_the_answers_may_be_lost() -> None:
    scene = Scene()
    scene.joined(3_000, 1, {"a": 0.0, "b": 0.0}, first=("a", "b"), session_ms=60_000, rebalance_ms=8_000)
    scene.synced(3_010, "a", "b")
    scene.leave(6_000, "a", reason="the consumer is being closed")
    scene.gap(7_000, 12_000)
    scene.tick(16_000)
    assert set(scene.known().ended()) == {"a"}


def test_a_poll_timeout_is_not_sure_if_a_poll_may_be_among_what_is_lost() -> None:
    """Without a reason only the silence of its fetches says that the poll interval ran out."""
    ended = []
    for lost in (False, True):
        scene = Scene()
        scene.joined(3_000, 1, {"a": 0.0, "b": 0.0}, first=("a", "b"), rebalance_ms=9_000)
        scene.synced(3_010, "a", "b")
        scene.fetch(3_100, "a")
        scene.heartbeats(4_000, 12_000, "a", "b", every=2_000)
        if lost:
            scene.gap(7_000, 7_500)
        scene.heartbeats(12_000, 12_500, "b")
        scene.leave(12_100, "a")
        scene.tick(12_500)
        ended.append(scene.known().ended()["a"])
    assert ended == [(12_100, "poll_timeout", "inferred"), (12_100, "poll_timeout", "provisional")]


def test_who_was_unknown_to_the_coordinator_stays_gone_when_no_rebalance_was_begun() -> None:
    """b's end and the rebalance it made lie in the gap: 25 is an answer, not silence."""
    scene = stable("a", "b")
    scene.heartbeats(6_000, 10_000, "a", "b")
    scene.gap(10_000, 14_000)
    scene.heartbeat(15_000, "a")
    scene.heartbeat(16_000, "b", error=25)
    scene.heartbeats(18_000, 24_000, "a")
    scene.tick(25_000)
    known = scene.known()
    assert known.alive() == {"a"}
    assert known.ended()["b"][1:] == ("unknown", "unknown")


def test_records_before_the_log_begins_name_all_members_each_time() -> None:
    scene = Scene()
    scene.group_record(1_000, 3, {"a": 10_000, "x": 10_000})
    scene.group_record(2_000, 4, {"a": 10_000, "b": 10_000})
    scene.generation = 4
    scene.heartbeats(5_000, 9_000, "a", "b")
    scene.tick(9_000)
    known = scene.known()
    assert known.alive() == {"a", "b"}
    assert known.ended() == {"x": (2_000, "unknown", "unknown")}


def test_a_gap_is_said_of_all_members_at_once_although_the_group_is_heard_in_the_same_step() -> None:
    """Who reads `health` must not go on believing a deadline from before the gap until the next sample."""
    scene = stable("a", "b")
    scene.heartbeats(6_000, 10_000, "a", "b")
    scene.tick(10_000)
    before = len(scene.events)
    scene.gap(10_000, 11_000)
    scene.heartbeat(11_500, "a")
    scene.tick(11_700)
    observer = Observer(ObserverSettings("test"))
    first, second = (observer.step(events) for events in (scene.events[:before], scene.events[before:]))
    assert [row["status"] for row in health(Known(first, observer), "b")][-1:] == ["ok"]
    assert [row["status"] for row in health(Known(second, observer), "b")] == ["unknown"]


def test_who_is_taken_for_a_member_again_and_is_not_heard_for_another_session_was_none() -> None:
    """b falls silent, and the group stays Stable: its session was renewed by something that was not seen, once."""
    scene = stable("a", "b")
    scene.heartbeat(6_000, "b")
    scene.heartbeats(6_000, 60_000, "a")
    scene.tick(62_000)
    known = scene.known()
    returned = [row for row in named("transitions", known.rows["transitions"]) if row["cause"] == "still a member"]
    assert [row["member_id"] for row in returned] == ["b"]
    assert known.alive() == {"a"}
    assert known.ended()["b"][1:] == ("unknown", "unknown")


def test_who_is_in_a_generation_whose_list_nobody_was_told_is_not_sure() -> None:
    """The leader's JoinGroup is answered to nobody: b, which was told of the rebalance, has not joined in it, and ended
    before that was over or goes on."""
    scene = Scene()
    scene.joined(1_000, 1, {"a": 0.0, "b": 0.0}, first=("a", "b"))
    scene.synced(1_010, "a", "b")
    scene.heartbeats(4_000, 9_000, "a", "b", every=2_500)
    scene.heartbeats(10_000, 10_100, "a", "b", error=27)
    scene.joined(20_000, 2, {"c": 12_000.0, "d": 12_100.0}, leader="nobody")
    scene.heartbeats(20_500, 29_500, "c", "d", every=1_500, error=27)
    scene.joined(30_100, 3, {"c": 30_000.0, "d": 30_050.0})
    scene.synced(30_200, "c", "d")
    scene.tick(34_000)
    known = scene.known()
    assert known.ended()["b"][2] != "exact"
    said = {
        row["certainty"]
        for row in named("health", known.rows["health"])
        if row["member_id"] == "b" and START + 20_200 <= row["at_ms"] < START + 30_000
    }
    assert "exact" not in said


def lost_end(*, told: bool) -> Scene:
    """A rebalance begins at 10,000, `told` by server.log or only by a's heartbeat at 11,100; the rest of it is lost."""
    scene = stable("a", "b")
    scene.heartbeats(6_000, 10_000, "a", "b")
    if told:
        scene.prepares(10_000, 1, "Adding new member c with group instance id null", "c")
    scene.tick(11_000)
    scene.heartbeat(11_100, "a", error=27)
    scene.tick(11_500)
    scene.gap(12_000, 15_000)
    return scene


@pytest.mark.parametrize("shown", ["heartbeat", "commit", "next rebalance"])
@pytest.mark.parametrize("told", [True, False], ids=["told", "seen by its members alone"])
def test_a_rebalance_whose_end_is_lost_is_told_with_bounds(shown: str, told: bool) -> None:
    scene = lost_end(told=told)
    by_ms, scene.generation = 15_500, 2
    if shown == "commit":
        scene.commit(15_500, "a", 5)
        by_ms = 15_600  # whoever commits need not be in a Stable group
    if shown == "next rebalance":
        scene.joined(18_000, 3, {"a": 16_500, "b": 16_600, "c": 15_900})
        scene.synced(18_010, "a", "b", "c")
        by_ms = 18_000
    scene.heartbeats(by_ms if by_ms < 18_000 else 20_600, 30_000, "a", "b", "c")
    scene.tick(30_000)
    known = scene.known()
    row = next(one for one in known.rebalances() if one["generation_before"] == 1)
    assert (row["generation_after"], row["completed_at_ms"], row["withdrawn"]) == (2, None, None)
    assert row["joined_at_ms"] - START == 11_100
    assert row["joined_at_ms"] - START + row["completed_bound_ms"] == by_ms
    began = (10_000, "member_joined", None) if told else (11_100, "unknown", True)
    assert (row["started_at_ms"] - START, row["trigger"], row["began_unseen"]) == began
