"""A broker that takes long to handle a request does what it asks for somewhere within that time, not at its end.

Met beside a real broker that was seconds old: it had replaced a static member 1.4 s before it was done with it.
"""

from __future__ import annotations

import pytest

from tests.support.scene import START, Scene
from tests.support.stories import standing

TOOK = (0.0, 10.0, 11.0, 1_402.0)


def ended(scene: Scene, member: str) -> tuple[int, int, str]:
    """(ended at, bound, certainty) of a static member that was replaced."""
    rows = standing("members", scene.known().rows["members"])
    (row,) = [row for row in rows if row["member_id"] == member and row["end_cause"] == "static_replaced"]
    return row["ended_at_ms"] - int(START), row["at_bound_ms"], row["certainty"]


def seats() -> Scene:
    """Two static members, Stable in generation 1."""
    scene = Scene()
    scene.joined(3_000, 1, {"a": 0.0, "b": 0.0}, first=("a", "b"), instances={"a": "chair-a", "b": "chair-b"})
    scene.synced(3_010, "a", "b")
    scene.heartbeats(6_000, 9_000, "a", "b")
    return scene


def takes(scene: Scene, took_ms: float) -> None:
    """The last request arrived so much before it was handled."""
    event = scene.events[-1]
    scene.events[-1] = event._replace(arrived_at_ms=event.handled_at_ms - took_ms)


@pytest.mark.parametrize("took_ms", TOOK)
def test_a_static_member_was_replaced_while_the_request_was_handled(took_ms: float) -> None:
    scene = seats()
    scene.replaced(12_000, "b2", "chair-b")
    takes(scene, took_ms)
    scene.tick(13_000)
    expected = (12_000, 0) if took_ms <= 10 else (12_000 - int(took_ms), int(took_ms))
    assert ended(scene, "b") == (*expected, "exact")


@pytest.mark.parametrize("took_ms", TOOK)
def test_and_so_where_it_waited_for_a_rebalance_afterwards(took_ms: float) -> None:
    scene = seats()
    scene.joined(14_000, 2, {"b2": 12_000}, first=("b2",), instances={"b2": "chair-b"}, leader="a")
    takes(scene, took_ms)
    scene.joined(14_000, 2, {"a": 13_000}, instances={"a": "chair-a", "b2": "chair-b"}, absent=("b2",))
    scene.synced(14_010, "a", "b2")
    scene.tick(16_000)
    expected = (12_000, 0) if took_ms <= 10 else (12_000 - int(took_ms), int(took_ms))
    assert ended(scene, "b")[:2] == expected
