"""Members of a group with epochs that leave while what the coordinator writes is not stored in time: another replica
has gone, so that the answer to a leave comes seconds after the record that the member is gone.

Instants in ms from the start of a scene. Recorded with 4.4.0, three brokers of which one was killed.
"""

from __future__ import annotations

from typing import Any

import pytest

from kardia.kafka.states import ErrorCode
from tests.support.modern_scene import ModernScene, since_start
from tests.support.stories import named, standing

NOT_AVAILABLE = int(ErrorCode.COORDINATOR_NOT_AVAILABLE)


def two(**options: Any) -> ModernScene:
    """a and b, settled in epoch 2 and heard every two seconds up to 8,000 and 8,100, by requests and records."""
    scene = ModernScene(version="4.4.0", **options)
    scene.record_join(1_000, "a", 1, (0, 1))
    scene.comes(1_010, "a", 1, (0, 1), since=1_000)
    scene.record_join(1_500, "b", 2)
    scene.comes(1_510, "b", 2, since=1_500)
    scene.beats(2_000, 9_000, 2, "a")
    scene.beats(2_100, 9_000, 2, "b")
    return scene


def of_b(scene: ModernScene) -> tuple[Any, ...]:
    (row,) = [row for row in standing("members", scene.known().rows["members"]) if row["member_id"] == "b"]
    return since_start(row["ended_at_ms"]), row["end_cause"], row["certainty"]


@pytest.mark.parametrize("given_ms", [10_000, -1])
def test_a_leave_that_is_answered_late_is_no_end_of_a_session(given_ms: int) -> None:
    """Seven seconds after it was heard it leaves: the length of no session, though nothing says how long one is."""
    scene = two(given_ms=given_ms)
    scene.record_gone(15_100, "b", 3)
    scene.beat(15_150, "a", 2, 3, since=15_120)
    scene.tick(17_000)
    scene.goes(18_400, "b", since=15_100)
    scene.beats(18_500, 40_000, 3, "a")
    scene.tick(41_000)
    assert of_b(scene) == (15_100, "left", "exact")
    rows = standing("rebalances", scene.known().rows["rebalances"])
    (row,) = [row for row in rows if row["generation_after"] == 3]
    assert (row["trigger"], row["trigger_member_id"]) == ("member_left", "b")


def test_a_session_that_it_would_have_shown_is_not_believed_any_more() -> None:
    """The other one is silent for nine seconds after it: it is a member all the while."""
    scene = two(given_ms=-1)
    scene.record_gone(15_100, "b", 3)
    scene.beat(15_150, "a", 2, 3, since=15_120)
    scene.tick(17_000)
    scene.goes(18_400, "b", since=15_100)
    scene.tick(27_000)
    scene.beats(27_100, 30_000, 3, "a")
    scene.tick(31_000)
    foretold = standing("predictions", scene.known().rows["predictions"])
    deadlines = {row["deadline_at_ms"] for row in foretold if (row["member_id"], row["kind"]) == ("a", "session")}
    assert deadlines <= {None}


def test_who_was_not_answered_in_time_is_not_taken_for_silent() -> None:
    """Its last heartbeat was handled, and refused as what was written before it was not stored within five seconds."""
    scene = two(given_ms=-1)
    scene.beat(15_103, "b", 2, 0, since=10_100, error=NOT_AVAILABLE)
    scene.record_gone(15_104, "b", 3)
    scene.beat(15_150, "a", 2, 3, since=15_120)
    scene.tick(17_500)
    assert of_b(scene)[1:] == ("unknown", "unknown")


@pytest.mark.parametrize(("stamp_ms", "bound_ms"), [(15_006, 0), (15_065, 65)])
def test_a_leave_took_effect_up_to_its_record_where_the_broker_was_slow(stamp_ms: int, bound_ms: int) -> None:
    """4.4.0, started anew: it had left 70 ms before its record, as the line in server.log says."""
    scene = two(given_ms=10_000)
    scene.record_gone(stamp_ms, "b", 3)
    scene.beat(15_070, "a", 2, 3, since=15_068)
    scene.goes(15_137, "b", since=15_000)
    scene.beats(17_000, 21_000, 3, "a")
    scene.tick(22_000)
    (row,) = [row for row in standing("members", scene.known().rows["members"]) if row["member_id"] == "b"]
    left_at_ms = stamp_ms - bound_ms
    assert (since_start(row["ended_at_ms"]), row["at_bound_ms"], row["end_cause"]) == (left_at_ms, bound_ms, "left")


# --- by requests alone


def by_requests() -> ModernScene:
    """The same, with nothing but requests."""
    scene = ModernScene(version="4.4.0")
    scene.comes(1_010, "a", 1, (0, 1))
    scene.comes(1_510, "b", 2)
    scene.beats(2_000, 9_000, 2, "a")
    scene.beats(2_100, 9_000, 2, "b")
    return scene


def test_who_joins_and_is_not_answered_in_time_is_a_member_since_then() -> None:
    """It asks again with the id that it has drawn, and is told the epoch that its first request made."""
    scene = by_requests()
    scene.beat(15_000, "c", 0, 0, since=10_000, error=NOT_AVAILABLE, topics=["t"], owned=())
    scene.comes(15_010, "c", 3)
    scene.beat(15_200, "a", 2, 3)
    scene.beat(15_300, "b", 2, 3)
    scene.tick(16_000)
    known = scene.known()
    (row,) = [row for row in standing("rebalances", known.rows["rebalances"]) if row["generation_after"] == 3]
    assert (since_start(row["started_at_ms"]), row["at_bound_ms"], row["trigger_member_id"]) == (10_000, 0, "c")
    (row,) = [row for row in standing("members", known.rows["members"]) if row["member_id"] == "c"]
    assert since_start(row["joined_at_ms"]) == 10_000


@pytest.mark.parametrize("epoch", [-1, -2])
def test_who_leaves_and_is_not_answered_in_time_has_left(epoch: int) -> None:
    scene = by_requests()
    scene.beat(15_000, "b", epoch, 0, since=10_000, error=NOT_AVAILABLE, topics=[], owned=())
    scene.beat(15_200, "a", 2, 3 if epoch == -1 else 2)
    scene.beats(17_000, 19_000, 3 if epoch == -1 else 2, "a")
    scene.tick(19_500)
    row = {row["member_id"]: row for row in standing("members", scene.known().rows["members"])}["b"]
    if epoch == -1:
        assert (since_start(row["ended_at_ms"]), row["end_cause"], row["certainty"]) == (10_000, "left", "inferred")
    else:
        rows = named("transitions", scene.known().rows["transitions"])
        assert {since_start(row["at_ms"]) for row in rows if row["cause"] == "static_left"} == {10_000}


# --- how sure a deadline is


@pytest.mark.parametrize(("took_ms", "sure"), [(0, "exact"), (9, "exact"), (30, "provisional")])
@pytest.mark.parametrize("records", [True, False])
def test_a_session_that_a_slow_heartbeat_renewed_ends_at_no_instant_that_is_sure(
    took_ms: int, sure: str, records: bool
) -> None:
    """The broker was slow to handle it: the session runs from any instant meanwhile."""
    scene = two(given_ms=10_000) if records else by_requests()
    scene.beat(10_000, "b", 2)
    event = scene.events[-1]
    scene.events[-1] = event._replace(arrived_at_ms=event.handled_at_ms - took_ms)
    scene.beats(10_100, 13_000, 2, "a")
    scene.tick(14_000)
    rows = [row for row in named("health", scene.known().rows["health"]) if row["member_id"] == "b"]
    assert rows[-1]["session_deadline_at_ms"] is not None
    assert (rows[-1]["certainty"] == "exact") == (sure == "exact")
