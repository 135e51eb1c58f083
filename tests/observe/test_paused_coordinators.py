"""A coordinator that stood still between deciding and writing: its records have a later stamp than what they tell of.

Recorded with 4.4.0 beside a dozen clients on two cores: 46 ms between the coordinator's sentence and the stamp. The
line of the request shows when it was handled. Instants in ms from the start of a scene.
"""

from __future__ import annotations

from typing import Any

import pytest

from kardia.events import Kind
from tests.support.modern_scene import ModernScene, since_start
from tests.support.stories import standing


def settled() -> ModernScene:
    """a is alone in epoch 1, long since."""
    scene = ModernScene(version="4.4.0")
    scene.record_join(1_000, "a", 1, (0, 1))
    scene.comes(1_010, "a", 1, (0, 1), since=1_000)
    scene.beats(2_000, 9_000, 1, "a")
    return scene


def epoch(scene: ModernScene, number: int) -> tuple[float | None, Any]:
    rows = standing("rebalances", scene.known().rows["rebalances"])
    (row,) = [row for row in rows if row["generation_after"] == number]
    return since_start(row["started_at_ms"]), row["at_bound_ms"]


@pytest.mark.parametrize("others", [0, 1, 2])
def test_a_join_is_between_its_request_and_its_records(others: int) -> None:
    """Also where those of others are read before its answer."""
    scene = settled()
    scene.record_join(9_547, "b", 2)
    if others > 0:
        scene.record_current(9_548, "a", 2, 0, (0,))
    if others > 1:
        scene.record_join(9_549, "c", 3)
    scene.comes(9_550, "b", 2, since=9_500)
    scene.tick(11_000)
    assert epoch(scene, 2) == (9_500, 47)


def test_a_leave_is_between_its_request_and_its_records() -> None:
    scene = settled()
    scene.record_join(3_000, "b", 2)
    scene.comes(3_005, "b", 2, since=3_000)
    scene.record_gone(9_547, "b", 3)
    scene.goes(9_550, "b", since=9_500)
    scene.tick(11_000)
    assert epoch(scene, 3) == (9_500, 47)
    (row,) = [row for row in standing("members", scene.known().rows["members"]) if row["member_id"] == "b"]
    assert (since_start(row["ended_at_ms"]), row["at_bound_ms"], row["end_cause"]) == (9_500, 47, "left")


def test_a_classic_join_of_a_consumer_group_is_one_too() -> None:
    """It comes without an id, and its line is written when the member is answered."""
    scene = settled()
    scene.record(9_547, "member", "b", instance="i", rebalance_timeout_ms=8_000, topics=["t"], classic=True)
    scene.record(9_547, "epoch", epoch=2)
    scene.record(9_547, "computed", epoch=2)
    scene.record_current(9_547, "b", 2, 0, ())
    detail = {"assigned_member_id": "b", "leader": "", "members": [], "session_timeout_ms": 10_000}
    scene._event(Kind.JOIN, 9_700, since=9_500, group_instance_id="i", client_id="b", generation_id=2, detail=detail)
    scene.tick(11_000)
    assert epoch(scene, 2) == (9_500, 47)
