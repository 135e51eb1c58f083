"""Timers of a busy broker fire late, and it goes on answering meanwhile: what ended, and why, stays known; when, within
bounds that the rows say. Each scene with a timer on time, 60 ms, 150 ms and 0.9 s late."""

from __future__ import annotations

from typing import Any

import pytest

from kardia.observe.state.group import NEVER
from kardia.tolerances import LATE_MS
from tests.observe.test_scenes import stable
from tests.support.scene import START, Known, Scene
from tests.support.stories import named, standing

LATE = pytest.mark.parametrize("late", [0, 60, 150, 900])


def row_of(known: Known, member: str) -> dict[str, Any]:
    """The row of `members` that stands."""
    return next(row for row in standing("members", known.rows["members"]) if row["member_id"] == member)


def between(row: dict[str, Any], at: str = "at_ms") -> tuple[int, int | None]:
    """The instants between which something was."""
    begin, bound = row[at] - int(START), row["at_bound_ms"]
    return begin, None if bound is None else begin + bound


@LATE
def test_a_session_ends_late_and_others_are_answered_meanwhile(late: int) -> None:
    """b was due at 16,000. a and c heartbeat often: 0 until the timer fires, 27 from then on."""
    scene = stable("a", "b", "c")
    scene.heartbeat(6_000, "b")
    fires = 16_000 + late
    scene.heartbeats(6_000, fires, "a", every=100)
    scene.heartbeats(6_050, fires, "c", every=100)
    scene.heartbeat(fires + 20, "a", error=27)
    scene.heartbeat(fires + 30, "c", error=27)
    scene.joined(fires + 60, 2, {"a": fires + 25, "c": fires + 60})
    scene.synced(fires + 65, "a", "c")
    scene.tick(fires + 3_000)
    known = scene.known()
    assert {member: end[1:] for member, end in known.ended().items()} == {"b": ("session_expired", "exact")}
    rows = known.rebalances()
    assert [(row["generation_before"], row["trigger"], row["trigger_member_id"]) for row in rows] == [
        (0, "member_joined", "a"),
        (1, "session_expired", "b"),
    ]
    for row in (row_of(known, "b"), rows[-1]):
        begin, end = between(row)
        assert begin <= fires <= (end or 0)
        assert (end or 0) - begin <= 130  # from the last answer 0 to the first 27
    assert known.divergences() == 0


@LATE
def test_a_heartbeat_before_the_timer_fires_renews(late: int) -> None:
    """b comes back a moment after its deadline, and is answered 0: it never was gone."""
    scene = stable("a", "b")
    scene.heartbeats(6_000, 22_000, "a")
    scene.heartbeat(6_000, "b")
    scene.heartbeats(16_000 + late, 22_000, "b")
    scene.tick(22_500)
    known = scene.known()
    assert not known.ended()
    assert len(known.rebalances()) == 1
    assert known.states()[-1][1] == "Stable"
    assert known.divergences() == 0


@LATE
def test_a_member_alone_comes_back_before_the_timer_fires(late: int) -> None:
    scene = stable("a")
    scene.heartbeat(6_000, "a")
    scene.heartbeats(16_000 + late, 22_000, "a")
    scene.tick(22_500)
    known = scene.known()
    assert not known.ended()
    assert [row["generation_before"] for row in known.rebalances()] == [0]


def test_what_silence_said_is_taken_back_if_a_timer_is_later_than_any_was_seen_to_be() -> None:
    """a, alone, was taken for evicted 1 s after its deadline and is answered 0 another second later."""
    scene = stable("a")
    scene.heartbeat(6_000, "a")
    scene.heartbeats(18_000, 22_000, "a")
    scene.heartbeats(26_000, 30_000, "a")
    scene.tick(30_500)
    known = scene.known()
    assert known.alive() == {"a"}
    assert [row["generation_before"] for row in known.rebalances()] == [0]
    withdrawn = [row for row in named("rebalances", known.rows["rebalances"]) if row["withdrawn"]]
    assert [row["started_at_ms"] - START for row in withdrawn] == [16_000]


@LATE
def test_the_phase_of_a_rebalance_ends_late(late: int) -> None:
    """b heartbeats and never rejoins: it is dropped when the timer of 9 s fires, and nothing else would have."""
    scene = Scene()
    scene.joined(3_000, 1, {"a": 0.0, "b": 1.0}, first=("a", "b"), rebalance_ms=9_000)
    scene.synced(3_010, "a", "b")
    fires = 15_000 + late
    scene.heartbeats(4_000, 6_000, "a", "b", every=1_000)
    scene.heartbeat(6_500, "a", error=27)
    scene.heartbeats(7_000, fires, "b", every=1_000, error=27)
    scene.joined(fires, 2, {"a": 6_510, "n": 6_000}, first=("n",), rebalance_ms=9_000)
    scene.synced(fires + 10, "a", "n")
    scene.tick(fires + 3_000)
    known = scene.known()
    assert known.ended() == {"b": (fires, "rebalance_timeout", "exact")}
    assert known.rebalances()[-1]["stragglers"][0]["member_id"] == "b"


@LATE
def test_the_time_for_sync_group_is_over_late(late: int) -> None:
    scene = Scene()
    scene.joined(3_000, 1, {"a": 0.0, "b": 1.0}, first=("a", "b"), session_ms=30_000, rebalance_ms=9_000)
    scene.synced(3_010, "a")
    fires = 12_000 + late
    scene.heartbeats(6_000, fires, "a", every=500)
    scene.heartbeat(fires + 50, "a", error=27)
    scene.joined(fires + 60, 2, {"a": fires + 55})
    scene.synced(fires + 65, "a")
    scene.tick(fires + 3_000)
    known = scene.known()
    row = row_of(known, "b")
    begin, end = between(row)
    assert row["end_cause"] == "sync_timeout"
    assert begin <= fires <= (end or 0)
    assert [row["trigger"] for row in known.rebalances()] == ["member_joined", "sync_timeout"]


@LATE
def test_followers_that_are_sent_back_tell_the_instant(late: int) -> None:
    """c leads and never syncs; b waits in a SyncGroup, which is answered 27 when the timer of c fires."""
    scene = Scene()
    fires = 13_000 + late
    scene.joined(3_000, 1, {"c": 0.0, "b": 1.0}, first=("b", "c"), session_ms={"c": 10_000, "b": 30_000}, leader="c")
    scene._event(
        scene_kind(), fires, since=3_100, member_id="b", generation_id=scene.generation, error_code=27, detail={}
    )
    scene.joined(fires + 30, 2, {"b": fires + 10})
    scene.synced(fires + 40, "b")
    scene.tick(fires + 3_000)
    known = scene.known()
    assert known.ended() == {"c": (fires, "session_expired", "exact")}
    assert between(row_of(known, "c")) == (fires, fires)


def scene_kind() -> Any:
    """A SyncGroup."""
    from kardia.events import Kind

    return Kind.SYNC


@LATE
def test_a_client_that_the_coordinator_does_not_know_any_more_bounds_its_end(late: int) -> None:
    """b alone is heard of again: it is told 25 at 16,950."""
    scene = stable("a", "b")
    scene.heartbeat(6_000, "b")
    scene.heartbeats(6_000, 16_000 + late, "a", every=3_000)
    scene.heartbeat(16_950, "b", error=25)
    scene.heartbeat(18_000, "a", error=27)
    scene.joined(18_100, 2, {"a": 18_050})
    scene.synced(18_110, "a")
    scene.tick(20_000)
    known = scene.known()
    assert known.ended()["b"] == (16_000, "session_expired", "exact")
    assert between(row_of(known, "b")) == (16_000, 16_950)
    assert known.rebalances()[-1]["trigger"] == "session_expired"


@LATE
def test_the_record_of_an_empty_group_tells_when_its_last_member_went(late: int) -> None:
    scene = stable("a")
    scene.heartbeat(6_000, "a")
    scene.empty_record(16_000 + late, 2)
    scene.tick(20_000)
    known = scene.known()
    assert known.ended()["a"] == (16_000, "session_expired", "exact")
    assert between(row_of(known, "a")) == (16_000, 16_000 + late)
    assert known.states()[-1] == (16_000 + late, "Empty")
    assert len(known.rebalances()) == 2


def test_who_was_told_of_a_rebalance_before_it_joined_did_not_begin_it() -> None:
    """Nothing shows what began it; the leader, which was told, joins 10 ms later and is no cause."""
    scene = stable("a", "b")
    scene.heartbeats(6_000, 12_000, "a", "b")
    scene.heartbeat(12_000, "a", error=27)
    scene.heartbeat(12_005, "b", error=27)
    scene.joined(12_100, 2, {"a": 12_010, "b": 12_020})
    scene.synced(12_110, "a", "b")
    scene.tick(14_000)
    row = scene.known().rebalances()[-1]
    assert (row["trigger"], row["certainty"]) == ("unknown", "unknown")


@pytest.mark.parametrize("after", [200, 900])
def test_a_newcomer_that_joined_while_the_timer_may_have_been_late_makes_the_cause_provisional(after: int) -> None:
    """n joined before anybody was told: it, or b's session, which was due before."""
    scene = stable("a", "b")
    scene.heartbeat(6_000, "b")
    scene.heartbeats(6_000, 16_000, "a", every=3_000)
    scene.heartbeat(18_000, "a", error=27)
    scene.joined(18_100, 2, {"a": 18_050, "n": 16_000.0 + after}, first=("n",))
    scene.synced(18_110, "a", "n")
    scene.tick(20_000)
    known = scene.known()
    row = known.rebalances()[-1]
    assert (row["trigger"], row["certainty"]) == ("session_expired", "provisional")
    assert known.ended()["b"][1:] == ("session_expired", "exact")
    assert between(row_of(known, "b")) == (16_000, 18_100)


def test_a_newcomer_that_joined_later_than_a_timer_is_late_did_not_begin_it() -> None:
    scene = stable("a", "b")
    scene.heartbeat(6_000, "b")
    scene.heartbeats(6_000, 16_000, "a", every=3_000)
    scene.heartbeat(18_000, "a", error=27)
    scene.joined(18_100, 2, {"a": 18_050, "n": 16_000.0 + LATE_MS + 100}, first=("n",))
    scene.synced(18_110, "a", "n")
    scene.tick(20_000)
    row = scene.known().rebalances()[-1]
    assert (row["trigger"], row["certainty"]) == ("session_expired", "exact")


@LATE
def test_a_static_member_is_back_while_its_timer_may_be_late(late: int) -> None:
    """Another process takes its place in a rebalance: replaced, or evicted a moment before? It is not said for sure."""
    scene = Scene()
    instances = {"a": "ia", "b": "ib"}
    scene.joined(3_000, 1, {"a": 0.0, "b": 1.0}, first=("a", "b"), instances=instances)
    scene.synced(3_010, "a", "b")
    scene.heartbeats(4_000, 12_000, "a")
    scene.heartbeat(5_000, "b")
    scene.heartbeat(13_000, "a", error=27)
    taken = 15_000.0 + late
    scene.joined(
        18_000, 2, {"a": 18_000, "n": 12_500, "b2": taken}, first=("n", "b2"), instances={"a": "ia", "b2": "ib"}
    )
    scene.synced(18_010, "a", "n", "b2")
    scene.tick(21_000)
    at, cause, certainty = scene.known().ended()["b"]
    assert cause in ("session_expired", "static_replaced")
    assert certainty == "provisional"
    assert at <= taken


def test_a_rebalance_begun_by_a_late_timer_has_the_bounds_of_the_end_that_began_it() -> None:
    """b's timer is late: a is answered 0 at 16,050. Another process with b's instance id joins at 16,170 and waits."""
    scene = Scene()
    scene.joined(3_000, 1, {"a": 0.0, "b": 1.0}, first=("a", "b"), instances={"a": "ia", "b": "ib"})
    scene.synced(3_010, "a", "b")
    scene.heartbeat(6_000, "b")
    scene.heartbeats(6_050, 17_050, "a", every=1_000)
    scene.heartbeat(17_100, "a", error=27)
    scene.joined(18_000, 2, {"a": 18_000, "b2": 16_170.0}, first=("b2",), instances={"a": "ia", "b2": "ib"})
    scene.synced(18_010, "a", "b2")
    scene.tick(21_000)
    known = scene.known()
    row = known.rebalances()[-1]
    assert (row["trigger"], row["trigger_member_id"], row["certainty"]) == ("session_expired", "b", "provisional")
    assert between(row) == between(row_of(known, "b")) == (16_050, 16_170)


@LATE
def test_a_prediction_comes_true_in_the_instant_in_which_the_join_phase_ends(late: int) -> None:
    """n joins, a rejoins, b is silent since 6,000: with the end of its session the join phase is over."""
    scene = stable("a", "b")
    scene.heartbeat(6_000, "b")
    scene.heartbeats(6_000, 12_500, "a", every=1_000)
    scene.heartbeat(13_000, "a", error=27)
    scene.joined(16_000 + late, 2, {"a": 13_100, "n": 12_500}, first=("n",))
    scene.synced(16_010 + late, "a", "n")
    scene.tick(21_000)
    known = scene.known()
    assert known.ended()["b"][1] == "session_expired"
    assert ("b", "session", "came_true") in known.predictions()
    assert ("b", "session", "averted") not in known.predictions()


def test_a_member_alone_that_is_told_later_that_it_is_gone_went_at_any_time_before() -> None:
    """That the group became Empty with it was concluded, and no sign of when: its timer may have been late."""
    scene = stable("a")
    scene.heartbeat(6_000, "a")
    scene.tick(20_000)
    scene.heartbeat(25_000, "a", error=25)
    scene.tick(30_000)
    known = scene.known()
    assert known.ended()["a"] == (16_000, "session_expired", "exact")
    assert between(row_of(known, "a")) == (16_000, 25_000)


@LATE
def test_a_rebalance_that_is_known_from_its_end_only_has_a_bound_in_its_transition_too(late: int) -> None:
    """b was due at 16,000, nobody asked anything until a joined by itself, which ended the join phase."""
    scene = Scene()
    scene.joined(3_000, 1, {"a": 0.0, "b": 1.0}, first=("a", "b"), session_ms={"a": 30_000, "b": 10_000})
    scene.synced(3_010, "a", "b")
    scene.heartbeat(6_000, "b")
    scene.heartbeat(6_500, "a")
    scene.joined(17_500, 2, {"a": 17_500}, session_ms=30_000)
    scene.synced(17_510, "a")
    scene.tick(21_000)
    known = scene.known()
    rows = named("transitions", known.rows["transitions"])
    prepared = [row for row in rows if row["to_state"] == "PreparingRebalance"][-1]
    begin, end = between(prepared)
    assert prepared["cause"] == "session_expired"
    assert begin <= 16_000 + late <= (end or 0)


def test_who_joins_in_a_rebalance_does_not_make_it_longer() -> None:
    """c left at 10,000; the highest rebalance timeout was 20 s then. n, which allows 60 s, joined later; b never."""
    scene = Scene()
    scene.joined(3_000, 1, {"b": 0.0, "c": 1.0}, first=("b", "c"), session_ms=30_000, rebalance_ms=20_000)
    scene.synced(3_010, "b", "c")
    scene.leave(10_000, "c")
    scene.heartbeats(11_000, 30_000, "b", error=27)
    both = {"b": 20_000, "n": 60_000}
    scene.joined(30_001, 2, {"n": 12_000}, first=("n",), session_ms=30_000, rebalance_ms=both)
    scene.synced(30_010, "n")
    scene.tick(33_000)
    known = scene.known()
    assert known.ended()["b"] == (30_001, "rebalance_timeout", "exact")
    assert known.rebalances()[-1]["stragglers"][0]["member_id"] == "b"


def test_whose_session_ends_in_a_rebalance_made_it_as_long_as_it_is() -> None:
    """c allowed 60 s when n began it at 10,000. That its session ended at 16,000 changes nothing: b has until 70,000,
    and is gone at 43,000 because its own session is over."""
    scene = Scene()
    timeouts = {"b": 20_000, "c": 60_000, "n": 20_000}
    sessions = {"b": 30_000, "c": 10_000, "n": 90_000}
    scene.joined(3_000, 1, {"b": 0.0, "c": 1.0}, first=("b", "c"), session_ms=sessions, rebalance_ms=timeouts)
    scene.synced(3_010, "b", "c")
    scene.heartbeat(6_000, "c")
    scene.heartbeats(6_000, 10_000, "b")
    scene.heartbeat(13_000, "b", error=27)
    scene.joined(43_000, 2, {"n": 10_000}, first=("n",), session_ms=sessions, rebalance_ms=timeouts)
    scene.synced(43_010, "n")
    scene.tick(46_000)
    known = scene.known()
    assert {member: end[1] for member, end in known.ended().items()} == {"b": "session_expired", "c": "session_expired"}


@pytest.mark.parametrize("told", [True, False])
@pytest.mark.parametrize("began", [NEVER, 11_000.0])
def test_who_let_the_time_for_sync_group_pass_was_not_replaced_by_who_came_later(began: float, told: bool) -> None:
    """b, static, never sends SyncGroup and is due at 12,000; a is not heard from 5,000 on, and may be told. Another
    process with b's instance id joins at 20,000. If n had begun a rebalance at 11,000, b would have been replaced."""
    scene = Scene()
    instances = {"a": "ia", "b": "ib", "b2": "ib"}
    scene.joined(
        3_000, 1, {"a": 0.0, "b": 1.0}, first=("a", "b"), instances=instances, session_ms=30_000, rebalance_ms=9_000
    )
    scene.synced(3_010, "a")
    scene.heartbeat(5_000, "a")
    if told:
        scene.heartbeat(20_900, "a", error=27)
    newcomers = {"b2": 20_000.0} | ({"n": began} if began >= 0 else {})
    scene.joined(21_000, 2, {"a": 21_000, **newcomers}, first=tuple(newcomers), instances=instances, session_ms=30_000)
    scene.synced(21_010, "a", *newcomers)
    scene.tick(25_000)
    known = scene.known()
    at, cause, certainty = known.ended()["b"]
    assert certainty in ("inferred", "provisional")
    row = known.rebalances()[-1]
    if began >= 0:
        assert (at, cause) == (20_000, "static_replaced")
        assert (row["trigger"], row["trigger_member_id"]) == ("member_joined", "n")
    else:
        assert (at, cause) == (12_000, "sync_timeout")
        assert between(row_of(known, "b")) == (12_000, 20_900 if told else 20_000)
        assert (row["trigger"], row["trigger_member_id"]) == ("sync_timeout", "b")


def test_what_is_told_right_after_a_deadline_may_have_begun_before_it() -> None:
    """n was handed an id, joined at 15,900 and waits, unseen; b is due at 16,000, and its timer fires at 16,500. That a
    was told of a rebalance at 16,200 does not say that b was gone by then."""
    scene = stable("a", "b")
    scene.heartbeat(6_000, "b")
    scene.heartbeats(6_000, 15_800, "a", every=1_000)
    scene.member_id_required(15_890, "n")
    scene.heartbeat(16_200, "a", error=27)
    scene.joined(16_500, 2, {"a": 16_250, "n": 15_900})
    scene.synced(16_510, "a", "n")
    scene.tick(20_000)
    known = scene.known()
    rows = [row for row in named("members", known.rows["members"]) if row["member_id"] == "b" and row["ended_at_ms"]]
    for row in rows:
        begin, end = between(row)
        assert row["certainty"] == "provisional" or begin <= 16_500 <= (end or 20_000)
    assert known.ended()["b"] == (16_000, "session_expired", "exact")
    assert known.rebalances()[-1]["trigger_member_id"] == "n"


def test_an_end_that_was_another_one_takes_back_that_its_prediction_came_true() -> None:
    """b was told to be evicted at 16,050, by silence; another process had its place at 15,900, and waits."""
    scene = Scene()
    scene.joined(3_000, 1, {"a": 0.0, "b": 1.0}, first=("a", "b"), instances={"a": "ia", "b": "ib"})
    scene.synced(3_010, "a", "b")
    scene.heartbeat(6_000, "b")
    scene.heartbeats(6_000, 15_800, "a", every=1_000)
    scene.heartbeat(17_100, "a", error=27)
    scene.joined(18_000, 2, {"a": 18_000, "b2": 15_900.0}, first=("b2",), instances={"a": "ia", "b2": "ib"})
    scene.synced(18_010, "a", "b2")
    scene.tick(21_000)
    known = scene.known()
    assert known.ended()["b"][:2] == (15_900, "static_replaced")
    assert [outcome for member, _, outcome in known.predictions() if member == "b"] == ["averted"]


def test_a_prediction_is_scored_by_the_line_that_tells_when_its_member_failed() -> None:
    """b's session is over at 16,000, which silence shows at 17,000; the broker says at 17,500 that it failed then."""
    scene = stable("b")
    scene.heartbeat(6_000, "b")
    for at in range(6_500, 17_500, 500):
        scene.fetch(at, "stranger")
    scene.failed(17_500, "b")
    scene.fetch(18_000, "stranger")
    scene.tick(19_000)
    known = scene.known_step_by_step()
    assert known.ended()["b"] == (17_500, "session_expired", "exact")
    rows = [row for row in standing("predictions", known.rows["predictions"]) if row["kind"] == "session"]
    assert [(row["outcome"], row["outcome_at_ms"] - START) for row in rows] == [("came_true", 17_500)]


def test_who_was_told_of_the_rebalance_before_let_the_time_for_sync_group_pass_all_the_same() -> None:
    """b joins again when it is told at 6,100 and never syncs: that time is over at 15,200, its session at 16,200.
    Nobody is heard until somebody new is let in, when the session of a is over."""
    scene = Scene()
    scene.joined(1_000, 1, {"a": 0.0, "b": 0.0}, rebalance_ms=9_000)
    scene.synced(1_010, "a", "b")
    scene.heartbeats(4_000, 4_100, "a", "b")
    for member in ("a", "b"):
        scene.heartbeat(6_100, member, error=27)
    scene.joined(6_200, 2, {"a": 6_150.0, "b": 6_150.0, "c": 6_000.0}, rebalance_ms=9_000)
    scene.synced(6_300, "a", "c")
    scene.joined(16_300, 3, {"n": 15_600.0}, rebalance_ms=9_000)
    scene.synced(16_310, "n")
    scene.tick(20_000)
    known = scene.known()
    assert known.ended()["b"][:2] == (15_200, "sync_timeout")
    row = known.rebalances()[-1]
    assert (row["started_at_ms"] - int(START), row["trigger"]) == (15_200, "sync_timeout")
