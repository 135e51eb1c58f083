"""JoinGroups that waited and were refused: what they show of a rebalance that began before anything else told it."""

from __future__ import annotations

import pytest

from kardia.events import Kind
from tests.support.scene import START, Scene
from tests.support.stories import named


def stable(*members: str, instances: dict[str, str] | None = None) -> Scene:
    """A Stable group of generation 1 since 3,010 ms."""
    scene = Scene()
    scene.joined(3_000, 1, dict.fromkeys(members, 0.0), instances=instances)
    scene.synced(3_010, *members)
    return scene


def refused(
    scene: Scene, at: float, since: float, member: str, error: int, *, instance: str = "", assigned: str = ""
) -> None:
    """A JoinGroup that was handled at `since` and refused at `at`; `assigned`: the id that a first one was given."""
    detail = {
        "assigned_member_id": assigned,
        "session_timeout_ms": 10_000,
        "rebalance_timeout_ms": 400_000,
        "protocol_type": "consumer",
    }
    scene._event(
        Kind.JOIN,
        at,
        since=since,
        member_id=member,
        client_id=member or assigned,
        group_instance_id=instance,
        error_code=error,
        detail=detail,
    )


def test_a_new_member_that_waited_for_five_minutes_was_one_and_began_the_rebalance() -> None:
    scene = stable("a", "b")
    scene.heartbeat(6_000, "a")
    scene.heartbeats(12_000, 309_000, "a", "b", error=27)
    refused(scene, 310_000, 10_000, "c", 25)
    scene.joined(310_100, 2, {"a": 310_050.0, "b": 310_060.0})
    scene.tick(312_000)
    known = scene.known()
    assert known.ended() == {"c": (310_000, "join_timeout", "exact")}
    (_, second) = known.rebalances()
    assert (second["started_at_ms"] - START, second["trigger"]) == (10_000, "member_joined")
    assert second["trigger_member_id"] == "c"


def test_whoever_was_refused_at_once_was_nobody_and_began_nothing() -> None:
    scene = stable("a")
    scene.heartbeat(6_000, "a")
    refused(scene, 7_003, 7_000, "stranger", 25)
    scene.heartbeat(9_000, "a")
    scene.tick(12_000)
    known = scene.known()
    assert known.ended() == {}
    assert len(known.rebalances()) == 1


def test_whoever_waited_another_time_than_a_new_member_may_is_not_said_to_have_timed_out() -> None:
    """An admin may have removed it; all that is known is that it had been let in to wait."""
    scene = stable("a", "b")
    scene.heartbeats(12_000, 60_000, "a", "b", error=27)
    refused(scene, 61_000, 10_000, "c", 25)
    scene.joined(61_100, 2, {"a": 61_050.0, "b": 61_060.0})
    scene.tick(63_000)
    known = scene.known()
    assert known.ended() == {}
    assert known.rebalances()[1]["trigger_member_id"] == "c"


def test_the_last_to_rejoin_a_full_group_is_rejected_and_not_evicted() -> None:
    scene = stable("a", "b")
    scene.heartbeat(9_000, "a")
    scene.heartbeat(9_000, "b")
    scene.heartbeat(12_000, "b", error=27)
    refused(scene, 12_100, 12_100, "b", 81)
    scene.joined(30_000, 2, {"a": 10_000.0, "c": 11_000.0})
    scene.tick(40_000)
    assert scene.known().ended() == {"b": (12_100, "rejected", "exact")}


def test_a_static_member_that_is_replaced_while_it_waits_began_the_rebalance_with_its_own_join() -> None:
    scene = stable("a", "b", instances={"a": "one", "b": "two"})
    scene.heartbeat(9_000, "a")
    scene.heartbeat(9_000, "b")
    refused(scene, 11_000, 10_000, "b", 82, instance="two")
    scene.heartbeat(12_000, "a", error=27)
    scene.joined(12_100, 2, {"a": 12_090.0, "b2": 11_000.0}, instances={"a": "one", "b2": "two"}, first=("b2",))
    scene.tick(14_000)
    known = scene.known()
    assert known.ended()["b"][:2] == (11_000, "static_replaced")
    second = known.rebalances()[1]
    assert (second["started_at_ms"] - START, second["trigger"]) == (10_000, "metadata_changed")
    assert second["trigger_member_id"] == "b"


@pytest.mark.parametrize("waited", [30, 600])
@pytest.mark.parametrize("empty", [True, False])
def test_two_processes_with_one_static_id_come_at_once_and_the_first_began_the_rebalance(
    waited: float, empty: bool
) -> None:
    """The first waits for a moment only, until the second takes its place: it is told 82 with the id it was given."""
    scene = Scene()
    instances = {"a": "one", "x": "two", "y": "two"}
    scene.joined(3_000, 1, {"a": 0.0}, instances=instances)
    scene.synced(3_010, "a")
    scene.heartbeats(6_000, 12_000, "a")
    if empty:
        scene.leave(12_000, "a", reason="the consumer is being closed")
        scene.empty_record(12_001, 2)
    else:
        scene.heartbeats(12_000, 20_000, "a")
    second = 20_000 + waited
    refused(scene, second + 3, 20_000, "", 82, instance="two", assigned="x")
    if not empty:
        scene.heartbeat(second + 20, "a", error=27)
    others = {} if empty else {"a": second + 30}
    scene.joined(22_000, 3 if empty else 2, {"y": second, **others}, instances=instances, first=("y",))
    scene.tick(25_000)
    known = scene.known()
    row = known.rebalances()[-1]
    assert (row["started_at_ms"] - START, row["trigger"], row["trigger_member_id"]) == (20_000, "member_joined", "x")
    assert row["certainty"] == "exact"
    assert known.ended()["x"] == (second + 3, "static_replaced", "exact")
    rows = named("transitions", known.rows["transitions"])
    came = {row["member_id"]: row["cause"] for row in rows if row["to_state"] == "Member"}
    assert (came["x"], came["y"]) == ("member_joined", "static_replaced")
    assert known.alive() == ({"y"} if empty else {"a", "y"})


def test_an_id_that_leaves_unused_makes_the_java_coordinator_rebalance() -> None:
    for coordinator, count in (("java", 2), ("scala", 1)):
        scene = Scene(coordinator=coordinator)
        scene.joined(3_000, 1, {"a": 0.0})
        scene.synced(3_010, "a")
        scene.member_id_required(7_000, "b")
        scene.leave(8_000, "b")
        scene.heartbeat(9_000, "a", error=27 if coordinator == "java" else 0)
        if coordinator == "java":
            scene.joined(9_100, 2, {"a": 9_090.0})
        scene.tick(10_000)
        found = scene.known().rebalances()
        assert len(found) == count
        if count == 2:
            assert (found[1]["started_at_ms"] - START, found[1]["trigger"]) == (8_000, "member_left")


def test_a_static_member_replaced_before_it_synced_brings_a_rebalance_when_the_time_for_sync_is_over() -> None:
    scene = Scene()
    scene.joined(6_000, 1, {"a": 0.0, "b": 0.0}, rebalance_ms=30_000, instances={"a": "one", "b": "two"})
    scene.synced(6_020, "a")
    scene.replaced(12_500, "b2", "two")
    scene.synced(12_510, "b2")
    scene.heartbeats(15_000, 36_000, "a", "b2")
    scene.heartbeat(37_000, "a", error=27)
    scene.joined(38_100, 2, {"a": 37_100.0, "b2": 38_100.0}, instances={"a": "one", "b2": "two"})
    scene.tick(40_000)
    second = scene.known().rebalances()[1]
    assert (second["started_at_ms"] - START, second["trigger"], second["certainty"]) == (
        36_000,
        "sync_timeout",
        "inferred",
    )


def _full(*, answered: bool) -> Scene:
    """n began a rebalance of a full group at 10,000; c, the last to come, is refused (81) and forgotten. The Java
    coordinator does not look then whether the phase is over: a, b and n wait until its time is, at 70,000."""
    scene = stable("a", "b", "c")
    scene.heartbeats(6_000, 10_000, "a", "b", "c")
    for member in ("a", "b", "c"):
        scene.heartbeat(12_000, member, error=27)
    scene._event(Kind.JOIN, 12_500, member_id="c", error_code=81, detail={"assigned_member_id": ""})
    scene.tick(40_000)
    if answered:
        scene.joined(70_000, 2, {"a": 12_400, "b": 12_450, "n": 10_000}, first=("n",))
        scene.synced(70_010, "a", "b", "n")
    scene.tick(80_000)
    return scene


def test_who_waits_in_a_full_group_that_refused_the_last_one_is_not_gone() -> None:
    scene = _full(answered=False)
    scene.events = scene.events[: next(at for at, one in enumerate(scene.events, 1) if one.kind == Kind.TICK)]
    known = scene.known()
    assert known.ended() == {"c": (12_500, "rejected", "exact")}
    assert known.alive() == {"a", "b"}
    assert "Empty" not in {state for _, state in known.states()}


def test_a_full_group_goes_on_when_the_time_of_its_join_phase_is_over() -> None:
    known = _full(answered=True).known()
    assert known.ended() == {"c": (12_500, "rejected", "exact")}
    assert known.alive() == {"a", "b", "n"}
    row = known.rebalances()[-1]
    assert (row["trigger"], row["trigger_member_id"], row["members_after"]) == ("member_joined", "n", 3)


def test_a_full_group_is_empty_if_nobody_is_let_in_when_its_time_is_over() -> None:
    known = _full(answered=False).known()
    assert {member: end[1] for member, end in known.ended().items()} == {
        "a": "session_expired",
        "b": "session_expired",
        "c": "rejected",
    }
    assert known.states()[-1][1] == "Empty"


@pytest.mark.parametrize(("gap_at", "how_sure"), [(None, "exact"), (4_000, "provisional")])
def test_whose_place_was_taken_after_a_gap_may_have_been_gone_before(gap_at: float | None, how_sure: str) -> None:
    """A static process came back while the group prepared, and another one took its place in turn: its answer (82)
    tells of it. Whoever had the place before it was a member still, if it is known that its session was not over."""
    scene = stable("a", "b", instances={"b": "i-b"})
    if gap_at is not None:
        scene.gap(gap_at, gap_at + 500)
    else:
        scene.heartbeats(4_000, 9_000, "b")
    scene.heartbeats(4_100, 30_000, "a", error=27)
    refused(scene, 16_000, 12_000, "", 82, instance="i-b", assigned="b2")
    scene.tick(32_000)
    known = scene.known()
    assert known.ended()["b"] == (12_000, "static_replaced", how_sure)
    assert known.ended()["b2"] == (16_000, "static_replaced", "exact")


@pytest.mark.parametrize(("sent_after", "ended"), [(2, 16_000), (51, 15_949)])
def test_an_answer_that_is_sent_late_was_made_late(sent_after: float, ended: float) -> None:
    """A broker that goes on after it stood still: the place was taken 22 ms before the answer (82) was made, which was
    sent 51 ms after that."""
    scene = stable("a", "b", instances={"b": "i-b"})
    scene.heartbeats(4_000, 9_000, "b")
    scene.heartbeats(4_100, 30_000, "a", error=27)
    refused(scene, 16_000, 12_000, "", 82, instance="i-b", assigned="b2")
    scene.events[-1] = scene.events[-1]._replace(logged_at_ms=START + 16_000 + sent_after)
    scene.events.sort(key=lambda event: event.logged_at_ms)
    scene.tick(32_000)
    known = scene.known()
    assert known.ended()["b2"] == (ended, "static_replaced", "exact")
    (row,) = (row for row in named("members", known.rows["members"]) if row["member_id"] == "b2" and row["ended_at_ms"])
    assert row["at_bound_ms"] == 16_000 - ended


def test_of_two_that_took_a_seat_in_one_breath_the_second_is_told_the_id_of_the_first() -> None:
    """Scala's coordinator answers the second with what it stored for the first: that id is nobody's any more, and whose
    the seat is nobody tells."""
    scene = stable("a", "b", instances={"a": "i-a", "b": "i-b"})
    scene.heartbeats(6_000, 9_000, "a", "b")
    refused(scene, 10_002, 10_000, "", 82, instance="i-b", assigned="b2")
    scene.replaced(10_004, "b2", "i-b")
    scene.heartbeats(12_000, 18_000, "a")
    scene.tick(18_000)
    rows = named("members", scene.known().rows["members"])
    said = [row["certainty"] for row in rows if row["member_id"] == "b2" and row["ended_at_ms"] is None]
    assert set(said) == {"provisional"}


def test_who_is_said_to_have_ended_by_silence_had_its_seat_taken_before() -> None:
    """b2 takes the seat of b at 15,000 and waits until its record is stored, b3 takes it from b2 at 20,500: nothing was
    heard of either when the session of b seemed over at 19,000."""
    scene = stable("a", "b", instances={"a": "i-a", "b": "i-b"})
    scene.heartbeats(6_000, 9_000, "a", "b")
    scene.heartbeats(12_000, 18_000, "a")
    scene.heartbeat(19_900, "a", error=27)
    scene.tick(20_400)
    refused(scene, 20_500, 15_000, "", 82, instance="i-b", assigned="b2")
    scene.joined(21_000, 2, {"b3": 20_499.0, "a": 21_000.0}, first=("b3",), instances={"b3": "i-b", "a": "i-a"})
    scene.synced(21_010, "a", "b3")
    scene.tick(24_000)
    assert scene.known().ended()["b"][:2] == (15_000, "static_replaced")


@pytest.mark.parametrize(("told_at", "certainty"), [(5_191, "inferred"), (5_188, "exact")])
def test_whose_seat_was_taken_by_a_process_that_was_removed_while_it_waited_was_replaced(
    told_at: float, certainty: str
) -> None:
    """2.7.2, seen after a restart: a static member came back under a new id, and an administrator removed it, by its
    instance id, before the rebalance was over. The one before was not removed. A waiting JoinGroup of the Scala
    coordinator shows the rebalance however short it waited: a refusal at once waits for nothing."""
    scene = Scene(coordinator="scala")
    scene.joined(3_000, 1, {"a": 0.0, "b": 0.0}, first=("a", "b"), instances={"a": "seat"})
    scene.synced(3_010, "a", "b")
    if told_at > 5_190:
        scene.leave(5_190, "", instance="seat", client="admin")
    refused(scene, told_at, 5_000, "", 25, instance="seat")
    if told_at < 5_190:  # who is removed is answered before who removes
        scene.leave(5_190, "", instance="seat", client="admin")
    refused(scene, 5_192, 4_900, "c", 25)
    scene.joined(6_000, 2, {"b": 5_900.0, "d": 5_800.0}, first=("d",))
    scene.synced(6_010, "b", "d")
    scene.tick(7_000)
    known = scene.known()
    assert known.ended()["a"] == (5_000, "static_replaced", certainty)
    last = known.rebalances()[-1]
    assert last["started_at_ms"] - START == 4_900


def test_who_is_let_into_the_generation_before_shows_that_no_rebalance_had_begun() -> None:
    """While a replica stood still a was taken for evicted, b took its seat, c took it in turn, which b was told, and c
    was let into generation 1. What the JoinGroup of d, much later, ended had not begun with b."""
    scene = Scene(coordinator="scala")
    scene.joined(3_000, 1, {"a": 2_000}, first=("a",), instances={"a": "i"})
    scene.synced(3_010, "a")
    scene.heartbeats(6_000, 12_000, "a")
    scene.tick(23_200)
    refused(scene, 23_256, 20_141, "", 82, instance="i", assigned="b")
    scene.replaced(24_023, "c", "i")
    scene.events[-1] = scene.events[-1]._replace(handled_at_ms=START + 23_256, arrived_at_ms=START + 23_256)
    scene.tick(40_000)
    scene.joined(53_254, 3, {"d": 52_752}, first=("d",), instances={"d": "i"})
    scene.synced(53_300, "d")
    scene.tick(56_000)
    last = scene.known().rebalances()[-1]
    assert (last["generation_after"], last["certainty"]) == (3, "provisional")
