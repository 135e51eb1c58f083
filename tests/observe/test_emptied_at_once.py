"""A group whose last members end in one instant: who began that is said for sure where server.log says it.

Goal: of several ends within the width of a stamp the request log does not show which was first; the coordinator's own
line about the begin of the rebalance does. Method: scenes with two ends in one instant, with and without the line, the
line before and after what it tells of.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.observe.test_scenes import stable
from tests.support.modern_scene import ModernScene
from tests.support.scene import START, Known, Scene
from tests.support.stories import standing

EXPIRED = "removing member b on heartbeat expiration"


def scene_of_two() -> Scene:
    scene = Scene()
    scene.joined(3_000, 1, {"a": 0.0, "b": 1.0}, first=("a", "b"), session_ms=10_000)
    scene.synced(3_010, "a", "b")
    scene.heartbeat(6_000, "a")
    scene.heartbeat(6_000, "b")
    return scene


def last_of(known: Known) -> dict[str, Any]:
    """The rebalance with which the group became Empty; rows of others stand as well."""
    found = [row for row in standing("rebalances", known.rows["rebalances"]) if row["generation_before"] == 1]
    assert len(found) == 1, "one row, whatever was found out later"
    return found[0]


def began(known: Known) -> tuple[str, str, str, int]:
    row = last_of(known)
    return row["trigger"], row["trigger_member_id"], row["certainty"], row["started_at_ms"] - int(START)


@pytest.mark.parametrize("named", ["a", "b"])
def test_of_two_sessions_that_end_in_one_instant_the_line_says_which_was_first(named: str) -> None:
    scene = scene_of_two()
    other = "a" if named == "b" else "b"
    scene.failed(16_002, named)
    scene.prepares(16_002, 1, f"removing member {named} on heartbeat expiration", named)
    scene.failed(16_002, other)
    scene.emptied(16_003, 2)
    scene.tick(25_000)
    known = scene.known()
    assert began(known) == ("session_expired", named, "exact", 16_002)
    assert {who: cause for who, (_, cause, _) in known.ended().items()} == dict.fromkeys("ab", "session_expired")


def test_without_the_line_it_is_not_known_which_was_first() -> None:
    scene = scene_of_two()
    scene.failed(16_002, "b")
    scene.failed(16_002, "a")
    scene.emptied(16_003, 2)
    scene.tick(25_000)
    assert began(scene.known())[2] == "provisional"


def test_a_line_of_another_generation_says_nothing_of_this_one() -> None:
    scene = scene_of_two()
    scene.prepares(2_000, 0, EXPIRED, "b")
    scene.failed(16_002, "a")
    scene.failed(16_002, "b")
    scene.emptied(16_003, 2)
    scene.tick(25_000)
    assert began(scene.known())[2] == "provisional"


@pytest.mark.parametrize(("reason", "sure"), [("the consumer is being closed", "exact"), ("", "inferred")])
@pytest.mark.parametrize("after", [0, 3])
def test_a_line_that_is_read_after_the_group_was_empty_corrects_who_began_it(
    after: int, reason: str, sure: str
) -> None:
    """Two clients leave in one instant; the line comes behind their requests, or behind the group's being empty. It
    says who was first, and not why a client left that gave no reason: its poll interval may have run out."""
    scene = scene_of_two()
    scene.leave(10_000, "a", reason=reason)
    scene.leave(10_000, "b", reason=reason)
    scene.prepares(10_000 + after, 1, "explicit LeaveGroup of member b", "b")
    scene.emptied(10_000 + after, 2)
    scene.empty_record(10_001, 2)
    scene.tick(20_000)
    trigger, member_id, certainty, at = began(scene.known())
    assert (trigger, member_id, certainty) == ("member_left", "b", sure)
    assert abs(at - 10_000) <= after


def test_a_session_that_ended_a_moment_late_began_what_the_last_leave_completed() -> None:
    """b's session was due at 16,000, and a was answered as in a Stable group at 16,020 still. When a leaves, the group
    is Empty at once, as its record says: b had gone before, between the two."""
    scene = stable("a", "b")
    scene.heartbeat(6_000, "b")
    scene.heartbeats(6_000, 16_000, "a", every=2_000)
    scene.heartbeat(16_020, "a")
    scene.leave(16_600, "a", reason="the consumer is being closed")
    scene.empty_record(16_600, 2)
    scene.tick(20_000)
    known = scene.known()
    last = known.rebalances()[-1]
    assert (last["trigger"], last["trigger_member_id"]) == ("session_expired", "b")
    assert last["started_at_ms"] == START + 16_020
    assert known.states()[-1] == (16_600, "Empty")


@pytest.mark.parametrize(("written_at", "sure"), [(15_003, True), (19_600, False)])
def test_a_record_of_an_empty_group_confirms_an_end_only_if_it_was_written_then(written_at: int, sure: bool) -> None:
    """x was due at 15,000; a record from long after that is of a session that another broker had begun anew."""
    scene = ModernScene()
    scene.joined(1_000, 1, {"x": 900})
    scene.synced(1_010, "x")
    scene.group_record(1_005, 1, {"x": 10_000})
    scene.heartbeat(5_000, "x")
    scene.tick(17_500)
    scene.empty_record(written_at, 2)
    scene.tick(22_000)
    at, cause, certainty = scene.known_live().ended()["x"]
    assert (at, cause) == (15_000, "session_expired")
    assert (certainty == "exact") == sure
