"""Groups with epochs: the shortest history of each thing that the simulated fleet found the observer to say wrongly.

Instants in ms from the start of a scene. The members of `pair` and `both` are a and b, settled in epoch 2.
"""

from __future__ import annotations

from typing import Any

from kardia.events import Kind
from tests.support.modern_scene import STABLE, ModernScene, both, health, pair, rebalances, since_start
from tests.support.scene import Known

JAVA_CONNECTION = "10.0.0.1:9092-10.0.0.9:50000-1-1"


def stragglers(known: Known, epoch: int) -> list[tuple[str, int]]:
    """(member, waited for so long) of the rebalance to an epoch."""
    row = next(row for row in known.rebalances() if row["generation_after"] == epoch)
    return [(one["member_id"], one["waited_ms"]) for one in row["stragglers"]]


# --- rebalances


def test_a_member_that_is_gone_was_waited_for_until_then_though_nothing_says_why_it_is_gone() -> None:
    scene = both()
    scene.record(5_000, "member", "a", rebalance_timeout_ms=8_000, topics=["t", "u"])
    scene.record(5_000, "epoch", epoch=3)
    scene.record(5_000, "computed", epoch=3)
    scene.record_current(5_000, "a", 3, STABLE, (0,))
    scene.record_gone(7_000, "b", 4)
    scene.record_current(7_100, "a", 4, STABLE, (0,))
    scene.beat(8_000, "a", 4)
    scene.tick(12_000)
    known = scene.known()
    assert rebalances(known)[2] == (3, 7_000, "metadata_changed", "a")
    assert stragglers(known, 3) == [("b", 2_000)]


def test_a_static_member_that_leaves_for_a_moment_was_waited_for_until_then() -> None:
    scene = both()
    scene.record(5_000, "member", "a", rebalance_timeout_ms=8_000, topics=["t", "u"])
    scene.record(5_000, "epoch", epoch=3)
    scene.record(5_000, "computed", epoch=3)
    scene.record_current(5_000, "a", 3, STABLE, (0,))
    scene.record_current(7_000, "b", -2, STABLE, (1,))
    scene.beat(8_000, "a", 3)
    scene.tick(9_000)
    known = scene.known()
    assert rebalances(known)[-1] == (3, 7_000, "metadata_changed", "a")
    assert stragglers(known, 3) == [("b", 2_000)]


def test_nobody_waited_for_a_static_member_that_was_away_before_the_epoch() -> None:
    """b is away when the group gets epoch 3, and gone at 7,000: a is all that the epoch waited for."""
    scene = both()
    scene.record_current(4_500, "b", -2, STABLE, (1,))
    scene.record(5_000, "member", "a", rebalance_timeout_ms=8_000, topics=["t", "u"])
    scene.record(5_000, "epoch", epoch=3)
    scene.record(6_900, "computed", epoch=3)
    scene.record_gone(7_000, "b", 4)
    scene.record(8_000, "computed", epoch=4)
    scene.record_current(8_000, "a", 4, STABLE, (0, 1))
    scene.beat(8_010, "a", 4, since=8_000)
    scene.tick(12_000)
    assert stragglers(scene.known(), 3) == [("a", 3_000)]


def test_an_epoch_is_not_over_before_it_has_a_target_though_all_who_are_left_are_away() -> None:
    """b goes at 5,000, a for a moment at 5,010: nobody is there for whom a target would be computed before a's end."""
    scene = both()
    scene.record_gone(5_000, "b", 3)
    scene.record_current(5_010, "a", -2, STABLE, (0,))
    scene.record_gone(15_000, "a", 4)
    scene.record(15_000, "computed", epoch=4)
    scene.tick(19_000)
    assert [row[:2] for row in rebalances(scene.known())[-2:]] == [(3, 15_000), (4, 15_000)]


def test_nobody_waited_for_a_member_before_it_joined() -> None:
    scene = both()
    scene.record(5_000, "member", "a", rebalance_timeout_ms=8_000, topics=["t", "u"])
    scene.record(5_000, "epoch", epoch=3)
    scene.record(5_000, "computed", epoch=3)
    scene.record_current(5_000, "a", 3, STABLE, (0,))
    scene.record_join(7_000, "c", 4)
    scene.record_current(8_000, "b", 4, STABLE, (1,))
    scene.record_current(8_000, "a", 4, STABLE, (0,))
    scene.beat(9_000, "a", 4)
    scene.tick(9_500)
    assert stragglers(scene.known(), 3) == [("b", 3_000)]


def test_who_joins_when_a_rebalance_is_over_was_no_straggler_of_it() -> None:
    """It is kept until every partition has an owner again: here 0 has none."""
    scene = both()
    scene.record_gone(5_000, "a", 3)
    scene.goes(5_010, "a", since=5_000)
    scene.record_current(5_800, "b", 3, STABLE, (1,))
    scene.record_join(9_000, "c", 4, (0,))
    scene.record_current(9_100, "b", 4, STABLE, (1,))
    scene.beat(10_000, "b", 4)
    scene.tick(11_000)
    assert stragglers(scene.known(), 3) == [("b", 800)]


def test_a_join_by_an_expression_makes_no_epoch_and_its_resolution_makes_one_that_nobody_asked_for() -> None:
    scene = pair()
    scene.comes(5_000, "c", 2, regex="t.*", topics=[])
    scene.beat(6_000, "a", 2, 3)
    scene.beat(6_100, "b", 2, 3)
    scene.beat(7_000, "c", 2, 3)
    scene.tick(8_000)
    known = scene.known()
    assert [(epoch, trigger, member) for epoch, _, trigger, member in rebalances(known)][2:] == [(3, "unknown", None)]
    # c came within the instants between which it began: whether it was counted before, nothing says.
    assert known.rebalances()[-1]["members_before"] is None


# --- ends


def test_timers_fire_in_the_order_of_their_deadlines_so_that_who_was_due_before_went_first() -> None:
    """Of c's end an answer tells, 25; a was due before it."""
    scene = pair()
    scene.comes(4_500, "c", 3)
    scene.beat(4_600, "a", 2, 3)
    scene.beat(4_700, "b", 2, 3)
    scene.beat(5_000, "c", 3)
    scene.beats(6_000, 15_000, 3, "b")
    scene.beat(15_100, "c", 3, error=25)
    scene.tick(17_000)
    known = scene.known()
    assert known.ended() == {"a": (14_600, "session_expired", "exact"), "c": (15_000, "session_expired", "exact")}
    assert [entry[0] for entry in rebalances(known) if entry[2] == "session_expired"] == [4, 5]


def test_librdkafka_does_not_say_whether_it_closed_or_was_not_polled() -> None:
    scene = ModernScene()
    scene.software = "rdkafka"
    scene.comes(1_000, "a", 1, (0, 1))
    scene.beats(3_000, 30_000, 1, "a")
    scene.beat(30_100, "a", -1)
    scene.tick(31_000)
    cause, sure = scene.known().ended()["a"][1:]
    assert (cause, sure) == ("left", "unknown")


def test_records_alone_never_say_that_a_session_ran_out() -> None:
    """Of heartbeats no record is written: 10 s without one are no silence."""
    scene = ModernScene(given_ms=10_000)
    scene.record_join(1_000, "a", 1, (0, 1))
    scene.record_join(2_000, "b", 2)
    scene.record_gone(12_000, "b", 3)
    scene._sign(Kind.TICK, 20_000, {})
    scene.events[-1] = scene.events[-1]._replace(source="offsets-topic/offsets/0")
    assert scene.known().ended() == {"b": (12_000, "unknown", "unknown")}


def test_a_session_that_a_late_timer_shows_is_taken_for_whole_seconds() -> None:
    scene = both()
    scene.beats(6_200, 14_000, 2, "a")
    scene.record_gone(14_205, "b", 3)
    scene.beat(14_300, "a", 2, 3)
    scene.tick(20_000)
    assert health(scene.known(), "a")["session_timeout_ms"] == 10_000


# --- members of the classic protocol, and groups that change


def classic(scene: ModernScene) -> None:
    """Members x and y of a classic group in generation 1, with its record."""
    scene.connection = JAVA_CONNECTION
    scene.joined(1_000, 1, {"x": 900, "y": 950})
    scene.synced(1_100, "x", "y")
    scene.group_record(1_095, 1, {"x": 10_000, "y": 10_000})


def upgraded(scene: ModernScene, at: float, *members: str, generation: int = 1) -> None:
    """The records of the operation in which a consumer joins the group of these, and its answer."""
    scene.deleted(at)
    for one in members:
        scene.record(at, "member", one, rebalance_timeout_ms=60_000, topics=["t"], classic_session_ms=10_000)
    scene.record(at, "epoch", epoch=generation)
    scene.record(at, "computed", epoch=generation)
    for one in members:
        scene.record(at, "current", one, epoch=generation, state=STABLE, assigned=[0], revoking=[])
    scene.record_join(at, "c", generation + 1)
    scene.comes(at + 10, "c", generation + 1, since=at)


def test_a_conversion_names_all_members_so_that_another_one_was_gone_before() -> None:
    scene = ModernScene()
    classic(scene)
    scene.heartbeat(1_500, "y")
    scene.heartbeats(3_000, 12_000, "x")
    upgraded(scene, 12_000, "x")
    scene.heartbeat(12_500, "x")
    scene.tick(13_000)
    known = scene.known()
    assert known.ended() == {"y": (11_500, "session_expired", "exact")}
    assert known.alive() == {"x", "c"}


def test_an_empty_classic_group_that_is_replaced_was_not_deleted() -> None:
    scene = ModernScene()
    classic(scene)
    scene.leave(2_000, "x")
    scene.leave(2_010, "y")
    scene.empty_record(2_010, 2)
    upgraded(scene, 5_000)
    scene.tick(6_000)
    assert "Dead" not in {state for _, state in scene.known().states()}


def test_what_was_answered_to_a_member_after_it_left_does_not_bring_it_back() -> None:
    """A JoinGroup of a consumer group is answered when all that was written before it is stored; here after a leave."""
    scene = ModernScene()
    classic(scene)
    upgraded(scene, 3_000, "x", "y")
    scene.leave(5_010, "y")
    detail: dict[str, Any] = {"session_timeout_ms": 10_000, "rebalance_timeout_ms": 60_000, "assigned_member_id": "y"}
    scene._event(Kind.JOIN, 5_040, since=5_000, member_id="y", generation_id=2, detail=detail)
    scene.tick(7_000)
    known = scene.known()
    assert known.alive() == {"x", "c"}
    assert known.ended()["y"][0] == 5_010


def test_a_static_member_that_comes_back_with_join_group_is_replaced() -> None:
    scene = ModernScene()
    scene.connection = JAVA_CONNECTION
    scene.record_join(1_000, "a", 1, (0, 1), instance="i")
    scene.comes(1_010, "a", 1, (0, 1), since=1_000, instance="i")
    for what in ("current", "target", "member"):
        scene.record(5_000, what, "a")
    scene.record(5_000, "computed")
    scene.record(5_000, "epoch")
    scene.group_record(5_000, 1, {"h": 10_000})
    detail = scene.events[-1].detail or {}
    detail["members"][0][1] = "i"
    scene.generation = 1
    scene.heartbeat(7_000, "h")
    scene.tick(8_000)
    known = scene.known()
    assert known.ended() == {"a": (5_000, "static_replaced", "exact")}
    assert known.alive() == {"h"}
    assert "PreparingRebalance" not in {state for _, state in known.states()}


def test_when_the_last_consumer_has_gone_silence_ends_nobody() -> None:
    """The group is a classic one again, where who is silent may wait in a JoinGroup; requests alone do not show it."""
    scene = ModernScene()
    classic(scene)
    scene.events = [event for event in scene.events if event.kind != Kind.GROUP_RECORD]
    scene.comes(3_000, "c", 2)
    scene.heartbeat(3_500, "x", generation=1, error=27)
    scene.heartbeat(3_600, "y", generation=1, error=27)
    scene.beats(5_000, 9_000, 2, "c")
    scene.goes(9_000, "c")
    scene.fetch(30_000, "z")
    scene.tick(40_000)
    known = scene.known()
    assert known.alive() == {"x", "y"}
    assert health(known, "x")["certainty"] == "provisional"


def test_the_last_row_of_a_rebalance_that_nobody_ends_any_more_has_what_came_of_it() -> None:
    """It was told after a second; then its target was computed, and the group became a classic one."""
    scene = ModernScene()
    classic(scene)
    upgraded(scene, 3_000, "x", "y")
    scene.record(5_000, "member", "c", rebalance_timeout_ms=8_000, topics=["t", "u"])
    scene.record(5_000, "epoch", epoch=3)
    scene.heartbeat(6_500, "x", generation=2)
    scene.record(7_000, "computed", epoch=3)
    for what in ("current", "target", "member"):
        scene.record(8_000, what, "c")
    for one in ("x", "y"):
        scene.record(8_000, "member", one)
    scene.record(8_000, "computed")
    scene.record(8_000, "epoch")
    scene.group_record(8_000, 3, {"x": 10_000, "y": 10_000})
    scene.heartbeat(8_500, "x", generation=3, error=27)
    scene.tick(9_000)
    row = next(row for row in scene.known().rebalances() if row["generation_after"] == 3)
    assert (since_start(row["joined_at_ms"]), row["completed_at_ms"]) == (7_000, None)
