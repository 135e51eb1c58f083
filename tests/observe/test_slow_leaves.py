"""Members of a group with epochs that leave while what the coordinator writes is not stored in time: another replica
has gone, so that the answer to a leave comes seconds after the record that the member is gone.

Instants in ms from the start of a scene. Recorded with 4.4.0, three brokers of which one was killed.
"""

from __future__ import annotations

from typing import Any

import pytest

from kardia.kafka.states import ErrorCode
from tests.support.modern_scene import ModernScene, since_start
from tests.support.stories import standing


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
    assert not [row for row in foretold if (row["member_id"], row["kind"]) == ("a", "session")]


def test_who_was_not_answered_in_time_is_not_taken_for_silent() -> None:
    """Its last heartbeat was handled, and refused as what was written before it was not stored within five seconds."""
    scene = two(given_ms=-1)
    scene.beat(15_103, "b", 2, 0, since=10_100, error=int(ErrorCode.COORDINATOR_NOT_AVAILABLE))
    scene.record_gone(15_104, "b", 3)
    scene.beat(15_150, "a", 2, 3, since=15_120)
    scene.tick(17_500)
    assert of_b(scene)[1:] == ("unknown", "unknown")
