"""Of several things that may have begun a rebalance, or ended a member, the first: by deadlines where timers are late,
within bounds where a request is never logged, provisionally where nothing shows the order. Each led to a wrong answer
in a run of the simulated fleet; instants in ms from the start of a scene."""

from __future__ import annotations

from typing import Any

import pytest

from kardia.doubts import certainty_of
from kardia.events import Kind
from tests.observe.test_scenes import stable
from tests.support.scene import START, Known, Scene
from tests.support.stories import named, standing

UNKNOWN_MEMBER = 25


def life(known: Known, member: str) -> dict[str, Any]:
    """The row of `members` that stands."""
    return next(row for row in standing("members", known.rows["members"]) if row["member_id"] == member)


def without_b_and_c(*, last_of_c: float, told_at: float) -> Known:
    """b is last heard at 6,000; a goes on, is told (27) of the rebalance, and is alone in the next generation."""
    scene = stable("a", "b", "c")
    scene.heartbeat(6_000, "b")
    scene.heartbeat(last_of_c, "c")
    scene.heartbeats(6_050, told_at, "a", every=2_000)
    scene.heartbeat(told_at, "a", error=27)
    scene.joined(told_at + 10, 2, {"a": told_at + 10})
    scene.synced(told_at + 20, "a")
    scene.tick(20_000)
    return scene.known()


def test_two_sessions_that_end_late_end_in_the_order_of_their_deadlines() -> None:
    """b is due at 16,000, c at 16,020; a is still answered 0 at 16,050. Both go when the timer thread is back."""
    known = without_b_and_c(last_of_c=6_020, told_at=18_050)
    row = known.rebalances()[-1]
    assert (row["trigger"], row["trigger_member_id"], row["certainty"]) == ("session_expired", "b", "exact")
    assert life(known, "b")["ended_at_ms"] - START == 16_050
    assert life(known, "c")["ended_at_ms"] - START == 16_050


def test_of_two_sessions_within_the_width_of_a_stamp_neither_is_surely_the_first() -> None:
    known = without_b_and_c(last_of_c=6_001, told_at=16_050)
    row = known.rebalances()[-1]
    assert (row["trigger"], row["certainty"]) == ("session_expired", "provisional")
    assert {life(known, member)["certainty"] for member in ("b", "c")} == {"exact"}


def test_a_join_by_another_connection_than_its_id_may_have_been_asked_before() -> None:
    """n was handed its id at 20,000 and its connection broke. A JoinGroup that it sent by that one waits, has begun the
    rebalance, and is never answered, because another one took its place at 23,000."""
    scene = stable("a", "b")
    scene.heartbeats(6_000, 20_000, "a", "b")
    scene.member_id_required(20_000, "n")
    known_by, scene.connection = scene.connection, f"{scene.connection[:-1]}7"
    scene.events[-1] = scene.events[-1]._replace(client_id="n")
    new = scene.connection
    scene.connection = known_by
    scene.heartbeat(24_000, "a", error=27)
    scene.heartbeat(24_000, "b", error=27)
    scene.joined(24_100, 2, {"a": 24_050, "b": 24_060, "n": 23_000})
    scene.events[-1] = scene.events[-1]._replace(connection=new)
    scene.synced(24_110, "a", "b", "n")
    scene.tick(26_000)
    known = scene.known()
    row = known.rebalances()[-1]
    assert (row["trigger"], row["trigger_member_id"]) == ("member_joined", "n")
    assert (row["started_at_ms"] - START, row["at_bound_ms"]) == (20_000, 3_000)
    assert life(known, "n")["certainty"] == "inferred"
    begun = [
        (one["at_ms"] - START, one["at_bound_ms"])
        for one in named("transitions", known.rows["transitions"])
        if one["member_id"] == "n"
    ]
    assert begun == [(20_000, 3_000)]


def test_the_time_to_rejoin_runs_from_the_session_that_began_the_phase() -> None:
    """b goes at 16,000, unseen, and begins a phase of 9 s. d is not back when it is over, and its session would be over
    14 ms later: it was dropped, or, where the timers of both are late, evicted."""
    scene = Scene()
    sessions = {"b": 10_000, "d": 19_000}
    scene.joined(3_000, 1, {"b": 0.0, "d": 1.0}, first=("b", "d"), session_ms=sessions, rebalance_ms=9_000)
    scene.synced(3_010, "b", "d")
    scene.heartbeat(6_000, "b")
    scene.heartbeat(6_014, "d")
    scene.member_id_required(18_000, "n")
    scene.joined(25_060, 2, {"n": 18_010}, rebalance_ms=9_000)
    scene.synced(25_070, "n")
    scene.tick(28_000)
    known = scene.known()
    assert known.ended()["b"] == (16_000, "session_expired", "exact")
    assert known.ended()["d"] == (25_060, "rebalance_timeout", "provisional")
    assert known.rebalances()[-1]["trigger_member_id"] == "b"


def test_a_phase_that_ends_to_the_ms_with_a_session_ended_by_that_rather_than_by_its_own_timer_late() -> None:
    """The same, and the phase is over at 25,014, when the session of d is: its own timer would have been 14 ms late."""
    scene = Scene()
    sessions = {"b": 10_000, "d": 19_000}
    scene.joined(3_000, 1, {"b": 0.0, "d": 1.0}, first=("b", "d"), session_ms=sessions, rebalance_ms=9_000)
    scene.synced(3_010, "b", "d")
    scene.heartbeat(6_000, "b")
    scene.heartbeat(6_014, "d")
    scene.member_id_required(18_000, "n")
    scene.joined(25_014, 2, {"n": 18_010}, rebalance_ms=9_000)
    scene.synced(25_020, "n")
    scene.tick(28_000)
    assert scene.known().ended()["d"] == (25_014, "session_expired", "provisional")


def test_who_is_left_of_a_deserted_group_is_dropped_when_the_time_to_rejoin_is_over() -> None:
    """Both fall silent. b goes at 16,000; a, whose session would last until 36,000, has 9 s from then."""
    scene = Scene()
    sessions = {"a": 30_000, "b": 10_000}
    scene.joined(3_000, 1, {"a": 0.0, "b": 1.0}, first=("a", "b"), session_ms=sessions, rebalance_ms=9_000)
    scene.synced(3_010, "a", "b")
    scene.heartbeat(6_000, "a")
    scene.heartbeat(6_000, "b")
    for at in range(6_500, 60_000, 500):
        scene.fetch(at, "somebody")
    scene.tick(60_000)
    known = scene.known()
    ended = {member: end[:2] for member, end in known.ended().items()}
    assert ended == {"a": (25_000, "rebalance_timeout"), "b": (16_000, "session_expired")}
    assert known.states()[-1] == (25_000, "Empty")
    sure = [row for row in named("health", known.rows["health"]) if row["at_ms"] > START + 25_000]
    assert not any(row["certainty"] == "exact" and row["status"] != "ended" for row in sure)


def test_nobody_waits_for_the_sync_of_who_took_a_place_again_in_a_stable_group() -> None:
    """s2 took the place of s at 20,000, long after the time for SyncGroup was over, never syncs and falls silent."""
    scene = Scene()
    statics = {"s": "seat"}
    scene.joined(3_000, 1, {"a": 0.0, "s": 1.0}, first=("a", "s"), rebalance_ms=9_000, instances=statics)
    scene.synced(3_010, "a", "s")
    scene.heartbeats(6_000, 20_000, "a", "s")
    scene.replaced(20_000, "s2", "seat")
    scene.heartbeats(21_000, 29_000, "a", every=2_000)
    scene.heartbeat(29_000, "a", error=27)
    scene.joined(30_500, 2, {"a": 29_010, "n": 28_000}, first=("n",), rebalance_ms=9_000)
    scene.synced(30_510, "a", "n")
    scene.tick(33_000)
    known = scene.known()
    assert known.ended()["s"] == (20_000, "static_replaced", "exact")
    assert known.ended()["s2"] == (30_000, "session_expired", "exact")
    assert known.rebalances()[-1]["trigger"] == "member_joined"


def test_a_static_member_that_comes_right_after_the_assignment_is_none_of_the_join_phase() -> None:
    scene = Scene(coordinator="java")
    statics = {"s": "seat"}
    scene.joined(3_000, 1, {"a": 0.0, "s": 1.0}, first=("a", "s"), instances=statics)
    scene.synced(3_008, "a", "s")
    scene.replaced(3_020, "s2", "seat")
    scene.synced(3_030, "s2")
    scene.heartbeats(6_000, 12_000, "a", "s2")
    scene.tick(13_000)
    known = scene.known()
    assert known.ended() == {"s": (3_020, "static_replaced", "exact")}
    assert known.alive() == {"a", "s2"}
    assert known.divergences() == 0


def test_who_is_not_known_any_more_when_the_time_to_rejoin_is_over_was_dropped_by_it() -> None:
    scene = Scene()
    scene.joined(3_000, 1, {"a": 0.0, "b": 1.0}, first=("a", "b"), rebalance_ms=9_000)
    scene.synced(3_010, "a", "b")
    scene.heartbeats(6_000, 16_000, "a", "b")
    scene.leave(16_000, "b", reason="the consumer is being closed")
    scene.heartbeats(18_000, 25_000, "a", error=27)
    scene.heartbeat(26_000, "a", error=UNKNOWN_MEMBER)
    scene.tick(30_000)
    known = scene.known()
    assert known.ended()["a"] == (25_000, "rebalance_timeout", "inferred")
    assert known.states()[-1] == (25_000, "Empty")


def test_what_somebody_else_began_does_not_tell_when_a_session_ended() -> None:
    """n, handed an id at 15,000, begins the rebalance at 15,050, which a is told at 16,030. b, due at 16,000, is gone
    when it is back at 19,000: its timer may have fired after a was told."""
    scene = stable("a", "b")
    scene.heartbeat(6_000, "b")
    scene.heartbeats(6_100, 16_000, "a", every=2_400)
    scene.member_id_required(15_000, "n")
    scene.heartbeat(16_030, "a", error=27)
    scene.heartbeat(19_000, "b", error=UNKNOWN_MEMBER)
    scene.joined(20_000, 2, {"a": 19_500, "n": 15_050})
    scene.synced(20_010, "a", "n")
    scene.tick(23_000)
    known = scene.known()
    assert (known.rebalances()[-1]["trigger"], known.rebalances()[-1]["trigger_member_id"]) == ("member_joined", "n")
    for row in named("members", known.rows["members"]):
        if row["member_id"] == "b" and row["certainty"] == "exact" and row["ended_at_ms"] is not None:
            assert row["ended_at_ms"] - START == 16_000
            assert row["at_bound_ms"] >= 3_000


def test_a_timer_that_is_late_and_a_leave_of_which_either_may_have_begun_the_end_of_a_group() -> None:
    """b is due at 16,000, a leaves at 16,070, c is silent for longer: nobody is left to show what came first."""
    scene = stable("a", "b", "c")
    scene.heartbeat(6_000, "b")
    scene.heartbeat(9_000, "c")
    scene.heartbeats(6_070, 15_000, "a", every=2_000)
    scene.leave(16_070, "a", reason="the consumer is being closed")
    for at in range(16_500, 40_000, 500):
        scene.fetch(at, "somebody")
    scene.tick(40_000)
    row = scene.known().rebalances()[-1]
    assert (row["trigger"], row["trigger_member_id"], row["certainty"]) == ("session_expired", "b", "provisional")


def test_a_deadline_is_exact_as_far_as_the_log_goes() -> None:
    """A commit renews a session when it is handled and is logged when its record is written: a deadline later than the
    last line is concluded from silence."""
    scene = stable("a", "b")
    scene.heartbeats(6_000, 9_001, "a", "b")
    scene.tick(9_200, last_line=9_000)
    scene.commit(9_600, "a", 5, since=9_050)
    scene.tick(9_700, last_line=9_600)
    rows = named("health", scene.known_step_by_step().rows["health"])
    by_instant = {(row["at_ms"] - START, row["member_id"]): row["certainty"] for row in rows}
    assert by_instant[9_125.0, "a"] == "inferred"


def test_a_load_brings_nobody_back_whom_the_stored_generation_lacks() -> None:
    """b had gone when generation 2 was stored; the broker dies later, and loads that."""
    scene = stable("a", "b")
    scene.heartbeats(6_000, 16_000, "a", every=2_000)
    scene.heartbeat(6_000, "b")
    scene.heartbeat(16_050, "a", error=27)
    scene.joined(16_060, 2, {"a": 16_060})
    scene.synced(16_070, "a")
    scene.heartbeats(18_000, 24_000, "a", every=2_000)
    scene.tick(24_100, last_line=22_000)
    scene._event(Kind.HEARTBEAT, 40_000, member_id="a", generation_id=2, error_code=14)
    scene.heartbeats(41_000, 50_000, "a", every=2_000)
    scene.tick(50_000, first_line=40_000, last_line=49_000)
    known = scene.known()
    assert known.alive() == {"a"}


def test_whoever_takes_the_place_of_a_member_thought_gone_shows_that_the_group_was_never_left() -> None:
    """Silence said that s had gone and left the group empty, in generation 2. s2 takes its place in generation 1."""
    scene = Scene()
    scene.joined(3_000, 1, {"s": 0.0}, first=("s",), instances={"s": "seat"})
    scene.synced(3_010, "s")
    scene.heartbeat(6_000, "s")
    for at in range(6_500, 30_000, 500):
        scene.fetch(at, "somebody")
    scene.tick(30_000)
    scene.replaced(30_500, "s2", "seat")
    scene.events[-1] = scene.events[-1]._replace(
        detail={**(scene.events[-1].detail or {}), "leader": "s2", "members": [["s2", "seat"]]}
    )
    scene.synced(30_510, "s2")
    scene.heartbeats(33_000, 40_000, "s2")
    scene.tick(40_500)
    known = scene.known()
    assert known.alive() == {"s2"}
    assert [row["generation_before"] for row in known.rebalances()] == [0]


def test_a_session_that_ended_when_its_broker_woke_may_have_begun_what_somebody_joined_then() -> None:
    """The broker stands still from 12,000 to 30,000, over the deadline of b. At the wake a is answered 0, n joins 2 ms
    later, and b is gone: its timer or n began the rebalance."""
    scene = stable("a", "b")
    scene.heartbeats(5_000, 12_001, "a", every=1_000)
    scene.heartbeats(5_000, 7_001, "b", every=1_000)
    scene.tick(12_100, last_line=12_000)
    scene.heartbeat(30_000, "a")
    scene.heartbeat(30_003, "a", error=27)
    scene.heartbeat(30_020, "b", error=UNKNOWN_MEMBER)
    scene.joined(31_000, 2, {"a": 30_100, "n": 30_002}, first=("n",))
    scene.synced(31_010, "a", "n")
    scene.tick(33_000, first_line=30_000, last_line=31_010)
    row = scene.known().rebalances()[-1]
    assert row["certainty"] == "provisional"
    assert row["trigger_member_id"] in ("b", "n")


def test_a_prediction_comes_true_when_the_session_ends_however_late() -> None:
    """a dies before its broker stands still; the timer of the session that was foretold fires at the wake."""
    scene = stable("a", "b")
    scene.heartbeats(5_000, 14_001, "b", every=1_000)
    scene.heartbeats(5_000, 6_001, "a", every=1_000)
    scene.tick(14_100, last_line=14_000)
    scene.heartbeat(30_000, "b", error=27)
    scene.joined(30_100, 2, {"b": 30_050})
    scene.synced(30_110, "b")
    scene.tick(33_000, first_line=30_000, last_line=30_110)
    known = scene.known()
    assert known.ended()["a"][1] == "session_expired"
    assert {member: outcome for member, _, outcome in known.predictions()}["a"] == "came_true"


def test_an_id_whose_time_was_over_is_used_by_whoever_waited_with_it() -> None:
    """n was handed its id at 20,000 and joined at 20,050 by a connection that broke. It comes again at 40,000, when an
    id that nobody had joined with would be unknown; a, told of the rebalance 1 ms before it asked, did not begin it."""
    scene = stable("a", "b")
    scene.heartbeats(6_000, 20_000, "a", "b")
    scene.member_id_required(20_000, "n")
    scene.heartbeat(22_000, "a", error=27)
    scene.heartbeats(22_500, 41_000, "b", error=27)
    scene.joined(41_000, 2, {"a": 22_001, "b": 40_990, "n": 40_000})
    scene.synced(41_010, "a", "b", "n")
    scene.tick(43_000)
    row = scene.known().rebalances()[-1]
    assert (row["trigger"], row["trigger_member_id"]) == ("member_joined", "n")
    assert (row["started_at_ms"] - START, row["at_bound_ms"]) == (20_000, 2_000)


def test_the_time_to_rejoin_is_that_of_those_who_were_there_when_it_began() -> None:
    """b and c leave; a, dead, is the only one left, with 9 s of its own. The phase began with 20 s, by c's, and a's
    session is over before that."""
    scene = Scene()
    rebalance = {"a": 9_000, "b": 9_000, "c": 20_000}
    members = dict.fromkeys("abc", 0.0)
    scene.joined(3_000, 1, members, first=("a", "b", "c"), session_ms=15_000, rebalance_ms=rebalance)
    scene.synced(3_010, "a", "b", "c")
    scene.heartbeats(5_000, 12_000, "a", "b", "c", every=2_000)
    scene.leave(12_000, "b", reason="the consumer is being closed")
    scene.leave(12_030, "c", reason="the consumer is being closed")
    for at in range(12_500, 60_000, 500):
        scene.fetch(at, "somebody")
    scene.empty_record(26_010, 2)
    scene.tick(60_000)
    assert scene.known().ended()["a"][:2] == (26_000, "session_expired")


def test_an_answer_that_waited_for_its_record_shows_a_stable_group_when_it_was_handled() -> None:
    """s2 takes the place of s at 15,990 and is answered at 16,050. b, due at 16,000, was evicted between."""
    scene = Scene()
    statics = {"s": "seat"}
    scene.joined(3_000, 1, {"a": 0.0, "b": 0.0, "s": 1.0}, first=("a", "b", "s"), instances=statics)
    scene.synced(3_010, "a", "b", "s")
    scene.heartbeats(6_000, 15_000, "a", "s", every=2_000)
    scene.heartbeat(6_000, "b")
    scene.replaced(16_050, "s2", "seat")
    scene.events[-1] = scene.events[-1]._replace(arrived_at_ms=START + 15_989, handled_at_ms=START + 15_990)
    scene.heartbeat(17_000, "a", error=27)
    scene.joined(17_100, 2, {"a": 17_010, "s2": 17_050})
    scene.synced(17_110, "a", "s2")
    scene.tick(20_000)
    known = scene.known()
    assert known.ended()["b"][:2] == (16_000, "session_expired")


def test_whose_session_and_whose_time_for_sync_end_together_went_by_either() -> None:
    """n, of a session of 15 s, never synced; the time for SyncGroup is 15 s as well."""
    scene = Scene()
    sessions = {"a": 30_000, "n": 15_000}
    scene.joined(3_000, 1, {"a": 0.0, "n": 1.0}, first=("a", "n"), session_ms=sessions, rebalance_ms=15_000)
    scene.synced(3_010, "a")
    scene.heartbeats(6_000, 18_000, "a", every=2_000)
    scene.heartbeat(18_020, "a", error=27)
    scene.joined(18_100, 2, {"a": 18_050})
    scene.synced(18_110, "a")
    scene.tick(20_000)
    assert life(scene.known(), "n")["certainty"] == "provisional"


def test_whose_end_a_join_phase_waited_for_did_not_begin_the_next_one() -> None:
    """b began a phase at 6,100, in whose first ms a was answered 0; it ended with the session of c, at 16,000. Nobody
    synced, c is told that it is gone at 24,900, and d joins at 25,000."""
    scene = stable("a", "b", "c")
    scene.heartbeat(6_000, "c")
    scene.heartbeat(6_100.4, "a")
    scene.heartbeat(9_000, "a", error=27)
    scene.joined(16_000, 2, {"b": 6_100, "a": 9_010})
    scene.heartbeat(24_900, "c", error=UNKNOWN_MEMBER, generation=1)
    scene.joined(25_100, 3, {"d": 25_000, "a": 25_050, "b": 25_060}, first=("d",))
    scene.synced(25_110, "d", "a", "b")
    scene.tick(27_000)
    known = scene.known()
    assert known.ended()["c"][:2] == (16_000, "session_expired")
    row = known.rebalances()[-1]
    assert (row["started_at_ms"] - START, row["trigger"]) == (25_000, "member_joined")


def taken_after_its_session(*, began: float, told: float, taken: float, session_ms: int) -> Known:
    """s, static, never syncs, which it may until 23,000, and is not heard. n joins at `began`, a is `told` of that, and
    another process takes the place of s when its session is over."""
    scene = Scene()
    sessions = {"a": 30_000, "s": session_ms}
    members = {"a": 0.0, "s": 1.0}
    scene.joined(3_000, 1, members, session_ms=sessions, rebalance_ms=20_000, instances={"s": "seat"}, first=("a", "s"))
    scene.synced(3_010, "a")
    scene.heartbeats(5_000, began, "a", every=2_000)
    scene.member_id_required(began - 10, "n")
    scene.heartbeat(told, "a", error=27)
    later = {"s2": taken, "n": began, "a": told + 10}
    scene.joined(taken + 1_000, 2, later, leader="a", first=("s2",), instances={"s2": "seat"})
    scene.synced(taken + 1_010, "a", "n", "s2")
    scene.tick(taken + 3_000)
    return scene.known()


def test_once_a_rebalance_is_told_nobody_is_removed_for_a_missing_sync() -> None:
    known = taken_after_its_session(began=16_000, told=17_000, taken=24_000, session_ms=15_000)
    assert known.ended()["s"][:2] == (18_000, "session_expired")


def test_nor_once_it_has_begun_which_its_answers_show_later() -> None:
    known = taken_after_its_session(began=22_000, told=24_000, taken=26_000, session_ms=22_000)
    assert known.ended()["s"][:2] == (25_000, "session_expired")
    row = known.rebalances()[-1]
    assert (row["started_at_ms"] - START, row["trigger_member_id"]) == (22_000, "n")


def test_who_came_after_the_time_for_sync_was_not_removed_for_it() -> None:
    """x1 joins at 24,000, when the time for SyncGroup is over since 23,000, and x2 takes its place at 26,000."""
    scene = Scene()
    scene.joined(3_000, 1, {"a": 0.0, "b": 1.0}, first=("a", "b"), session_ms=30_000, rebalance_ms=20_000)
    scene.synced(3_010, "a", "b")
    scene.heartbeats(6_000, 23_000, "a", "b")
    scene.heartbeat(25_000, "a", error=27)
    scene.heartbeat(25_000, "b", error=27)
    detail = {"assigned_member_id": "x1", "session_timeout_ms": 10_000, "rebalance_timeout_ms": 20_000}
    scene._event(Kind.JOIN, 26_000, since=24_000, client_id="x", group_instance_id="seat", error_code=82, detail=detail)
    members = {"a": 25_010.0, "b": 25_020.0, "x2": 26_000.0}
    scene.joined(28_000, 2, members, first=("x2",), instances={"x2": "seat"}, rebalance_ms=20_000)
    scene.synced(28_010, "a", "b", "x2")
    scene.tick(30_000)
    known = scene.known()
    assert known.ended()["x1"] == (26_000, "static_replaced", "exact")
    row = known.rebalances()[-1]
    assert (row["trigger"], row["trigger_member_id"]) == ("member_joined", "x1")


def test_a_deadline_is_not_sure_where_a_gap_hides_who_may_have_begun_a_rebalance() -> None:
    """b may be gone, for all that is known since the gap, and with it the time that a has to rejoin."""
    scene = Scene()
    scene.joined(3_000, 1, {"a": 0.0, "b": 1.0}, first=("a", "b"), session_ms=30_000, rebalance_ms=9_000)
    scene.synced(3_010, "a", "b")
    scene.gap(6_000, 7_000)
    scene.heartbeat(8_000, "a")
    for at in range(8_500, 25_000, 500):
        scene.fetch(at, "stranger")
        scene.tick(at + 10)
    known = scene.known_step_by_step()
    said = [
        (row["at_ms"] - START, row["certainty"])
        for row in named("health", known.rows["health"])
        if row["member_id"] == "a"
    ]
    assert "exact" in {certainty for at, certainty in said if 8_000 <= at < 17_000}
    assert {certainty for at, certainty in said if at >= 17_500} == {"provisional"}


def test_an_id_that_was_handed_out_may_have_begun_what_a_missing_sync_seems_to() -> None:
    scene = Scene()
    scene.joined(3_000, 1, {"a": 0.0, "b": 1.0}, first=("a", "b"), session_ms=30_000, rebalance_ms=20_000)
    scene.member_id_required(20_000, "n", session_ms=30_000)
    scene._event(Kind.SYNC, 24_500, member_id="b", client_id="b", generation_id=1, error_code=27)
    scene.tick(26_000)
    ends = [row for row in named("members", scene.known().rows["members"]) if row["end_cause"]]
    assert [row["certainty"] for row in ends] == ["provisional"]


def test_a_seat_that_was_taken_within_bounds_runs_from_the_end_of_its_handling() -> None:
    scene = Scene()
    scene.joined(3_000, 1, {"a": 0.0, "s": 1.0}, first=("a", "s"), instances={"s": "seat"})
    scene.synced(3_010, "a", "s")
    scene.heartbeats(6_000, 10_000, "a", "s", every=2_000)
    scene.replaced(10_033, "s2", "seat")
    scene.events[-1] = scene.events[-1]._replace(arrived_at_ms=START + 10_000, handled_at_ms=START + 10_019)
    scene.heartbeats(12_000, 20_000, "a", every=2_000)
    scene.heartbeat(20_100, "a", error=27)
    scene.joined(20_200, 2, {"a": 20_110})
    scene.synced(20_210, "a")
    scene.tick(22_000)
    known = scene.known()
    assert known.ended()["s"][:2] == (10_000, "static_replaced")
    assert known.ended()["s2"][:2] == (20_019, "session_expired")


def test_being_told_of_it_does_not_say_which_of_two_timers_began_a_rebalance() -> None:
    """The same two timers of n, at 18,000, seen by silence first: a is told at 19,500."""
    scene = Scene()
    sessions = {"a": 30_000, "n": 15_000}
    scene.joined(3_000, 1, {"a": 0.0, "n": 1.0}, first=("a", "n"), session_ms=sessions, rebalance_ms=15_000)
    scene.synced(3_010, "a")
    scene.heartbeats(6_000, 17_900, "a", every=2_000)
    for at in (18_100, 18_600, 19_100, 19_300):
        scene.fetch(at, "stranger")
    scene.heartbeat(19_500, "a", error=27)
    scene.tick(19_600)
    scene.tick(20_700)
    group = scene.known().observer.groups["g"]
    assert group.rebalance is not None
    assert group.rebalance.cause is not None
    assert group.rebalance.cause.trigger == "sync_timeout"
    assert certainty_of(group.rebalance.cause.doubts) == "provisional"


@pytest.mark.parametrize("sent_back_at", [12_000, 12_700])
def test_who_had_not_synced_is_dropped_later_if_somebody_had_joined_unseen_before_the_time_for_it(
    sent_back_at: int,
) -> None:
    """n joins at 8,000, unseen, and begins a rebalance of 9 s. The time for SyncGroup is over at 12,000, and a, told 27
    then or when it syncs a little later, seems to have been by b, who has not. b is dropped at 17,000."""
    scene = Scene()
    scene.joined(3_000, 1, {"a": 0.0, "b": 1.0}, first=("a", "b"), session_ms=30_000, rebalance_ms=9_000)
    scene.member_id_required(7_990, "n")
    scene._event(Kind.SYNC, sent_back_at, since=sent_back_at - 40, member_id="a", generation_id=1, error_code=27)
    scene.tick(13_500)
    both = {"n": 8_000.0, "a": sent_back_at + 10.0}
    scene.joined(17_000, 2, both, leader="a", session_ms=30_000, rebalance_ms=9_000)
    scene.synced(17_010, "a", "n")
    scene.tick(19_000)
    known = scene.known()
    assert known.ended()["b"] == (17_000, "rebalance_timeout", "provisional")
    last = known.rebalances()[-1]
    assert (last["trigger"], last["trigger_member_id"]) == ("member_joined", "n")


def test_a_follower_that_leaves_in_the_ms_in_which_it_has_its_assignment_shows_that_it_was_stored() -> None:
    """The line of the leader's SyncGroup, answered in the same instant, comes behind its LeaveGroup."""
    scene = stable("a", "b")
    scene.heartbeats(6_000, 8_000, "a", "b")
    scene.joined(9_000, 2, {"a": 8_500.0, "b": 8_990.0})
    scene._event(Kind.SYNC, 9_200, since=9_010, member_id="b", generation_id=2, detail={"assignments": []})
    scene.leave(9_200.4, "b", reason="the consumer is being closed")
    scene._event(Kind.SYNC, 9_200.6, since=9_150, member_id="a", generation_id=2, detail={"assignments": []})
    scene.heartbeat(10_000, "a", error=27)
    scene.joined(10_100, 3, {"a": 10_050.0})
    scene.synced(10_110, "a")
    scene.tick(13_000)
    known = scene.known()
    completed = {row["generation_after"]: row["completed_at_ms"] for row in known.rebalances()}
    assert completed[2] == START + 9_200
    assert [at for at, state in known.states() if state == "Stable"] == [3_010, 9_200, 10_110]
    assert known.ended() == {"b": (9_200, "left", "exact")}


def test_of_static_members_that_all_expired_the_first_began_it_whoever_is_told_so() -> None:
    """z is due last. It had come under a new id, z1, which ended another life. When it comes back it is answered 25,
    and joins alone, two generations later."""
    scene = Scene()
    instances = {"x": "ix", "y": "iy", "z": "iz"}
    scene.joined(3_000, 1, dict.fromkeys(instances, 0.0), first=("x", "y", "z"), instances=instances, session_ms=6_000)
    scene.synced(3_010, "x", "y", "z")
    scene.heartbeats(5_000, 9_000, "x", "y", "z", every=2_000)
    scene.heartbeat(9_040, "x")
    scene.heartbeat(9_080, "y")
    scene.replaced(11_000, "z1", "iz", session_ms=6_000)
    scene.tick(17_200)
    scene.heartbeat(17_300, "z1", error=UNKNOWN_MEMBER)
    scene.joined(17_310, 3, {"z2": 17_310}, first=("z2",), instances={"z2": "iz"}, session_ms=6_000)
    scene.synced(17_320, "z2")
    scene.tick(20_000)
    known = scene.known_step_by_step()
    assert {member: life(known, member)["ended_at_ms"] - START for member in ("x", "y", "z", "z1")} == {
        "x": 15_040,
        "y": 15_080,
        "z": 11_000,
        "z1": 17_000,
    }
    rows = [row for row in known.rebalances() if row["started_at_ms"] > START + 10_000]
    assert [(row["started_at_ms"] - START, row["trigger"], row["trigger_member_id"]) for row in rows] == [
        (15_040, "session_expired", "x"),
        (17_310, "member_joined", "z2"),
    ]


def test_of_a_member_that_was_never_heard_nothing_is_reckoned_about_the_others() -> None:
    """A record names a and b, the log begins with b, and b's session is over when the group is Empty. a had ended at
    some time before, so b may have run out of its time to rejoin as well."""
    scene = Scene()
    scene.group_record(3_000, 1, {"a": 6_000, "b": 6_000})
    scene.generation = 1
    scene.heartbeats(17_000, 20_001, "b")
    scene.empty_record(26_001, 2)
    scene.tick(30_000)
    row = life(scene.known(), "b")
    assert (row["ended_at_ms"] - START, row["end_cause"], row["certainty"]) == (
        26_000,
        "session_expired",
        "provisional",
    )
    assert life(scene.known(), "a")["end_cause"] == "unknown"


@pytest.mark.parametrize(
    ("second", "certainty"), [(9_000.0, "provisional"), (9_000.6, "provisional"), (9_003.0, "exact")]
)
def test_of_two_that_join_within_a_stamp_either_may_have_begun_it(second: float, certainty: str) -> None:
    scene = Scene(coordinator="scala")
    scene.joined(1_000, 1, {"a": 900})
    scene.synced(1_100, "a")
    scene.heartbeats(2_000, 9_000, "a")
    scene.joined(10_000, 2, {"x": 9_000.0, "y": second, "a": 9_900}, first=("x", "y"), leader="a")
    scene.synced(10_010, "a", "x", "y")
    scene.tick(12_000)
    row = scene.known().rebalances()[-1]
    assert (row["trigger"], row["trigger_member_id"], row["certainty"]) == ("member_joined", "x", certainty)
