"""What is as it has to be is no divergence: each of these was counted as one, in logs of real brokers.

Instants in ms from the start of a scene.
"""

from __future__ import annotations

import pytest

from tests.observe.test_scenes import stable
from tests.support.scene import Scene


@pytest.mark.parametrize("left_at", [13_000, 13_002])
def test_who_leaves_as_the_join_phase_ends_was_in_it_and_nothing_is_wrong(left_at: float) -> None:
    """Recorded on four releases: a Java consumer that joined is closed in the same poll."""
    scene = stable("a", "b")
    scene.heartbeats(6_000, 10_000, "a", "b")
    scene.joined(13_000, 2, {"a": 12_900, "b": 12_950, "n": 12_000}, first=("n",))
    scene.leave(left_at, "n", reason="the consumer is being closed")
    scene.joined(13_010, 3, {"a": 13_008, "b": 13_009})
    scene.synced(13_020, "a", "b")
    scene.heartbeats(14_000, 20_000, "a", "b")
    scene.tick(21_000)
    known = scene.known()
    assert known.ended()["n"] == (left_at, "left", "exact")
    assert [row["generation_after"] for row in known.rebalances()] == [1, 2, 3]
    assert known.divergences() == 0


def test_a_leader_that_has_its_seat_again_changes_nothing_of_a_stable_group() -> None:
    """Told to skip the assignment, from 3.x on. Recorded with 4.4.0: it was counted as a divergence."""
    scene = Scene(coordinator="java")
    scene.joined(3_000, 1, {"s": 0.0, "a": 1.0}, first=("s", "a"), instances={"s": "seat"})
    scene.synced(3_008, "s", "a")
    scene.heartbeats(5_000, 9_000, "s", "a")
    scene.replaced(9_000, "s2", "seat")
    detail = {"leader": "s2", "members": [["s2", "seat"], ["a", ""]], "skip_assignment": True}
    scene.events[-1] = scene.events[-1]._replace(detail={**(scene.events[-1].detail or {}), **detail})
    scene.synced(9_010, "s2")
    scene.heartbeats(11_000, 15_000, "s2", "a")
    scene.tick(16_000)
    known = scene.known()
    assert known.ended() == {"s": (9_000, "static_replaced", "exact")}
    assert known.divergences() == 0
