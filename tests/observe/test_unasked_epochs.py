"""Groups that have epochs, by requests alone: a new epoch that nobody asked for.

Instants in ms from the start of a scene. Members a and b are in epoch 2, and heard all the while.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.support.modern_scene import ModernScene, pair


def began(scene: ModernScene) -> tuple[str, str | None, str]:
    """Trigger, member and certainty of epoch 3."""
    [row] = [row for row in scene.known().rebalances() if row["generation_after"] == 3 and not row["withdrawn"]]
    return row["trigger"], row["trigger_member_id"], row["certainty"]


def shows_three(scene: ModernScene, at: float = 7_000) -> None:
    """a's answer has epoch 3, and b's the next."""
    scene.beat(at, "a", 2, 3)
    scene.beat(at + 500, "b", 2, 3)
    scene.tick(at + 2_000)


def test_where_nothing_else_can_have_it_is_of_the_topics() -> None:
    scene = pair()
    scene.beats(6_000, 6_900, 2, "a", "b")
    shows_three(scene)
    assert began(scene) == ("topic_metadata", None, "provisional")


def lost(scene: ModernScene) -> None:
    """A part of the log is missing."""
    scene.gap(6_500, 6_800)


def comes_in_between(scene: ModernScene) -> None:
    """c comes by an expression, whose look-up makes an epoch."""
    scene.comes(6_500, "c", 2, topics=[], regex="t.*")


def goes_in_between(scene: ModernScene) -> None:
    """c, who had come by an expression, leaves."""
    scene.beat(6_400, "c", 2)
    scene.goes(6_500, "c")


@pytest.mark.parametrize("happens", [lost, comes_in_between, goes_in_between])
def test_where_something_else_can_have_it_is_not_known(happens: Callable[[ModernScene], None]) -> None:
    scene = pair()
    scene.beats(6_000, 6_400, 2, "a", "b")
    happens(scene)
    shows_three(scene)
    rows = scene.known().rebalances()
    assert "topic_metadata" not in {row["trigger"] for row in rows if not row["withdrawn"]}


def test_a_member_that_is_silent_may_have_been_gone() -> None:
    """b was last heard at 4,100, and its session ends at 14,100; a shows the epoch right after that."""
    scene = pair()
    scene.beats(6_000, 14_000, 2, "a", every=1_000)
    scene.beat(14_150, "a", 2, 3)
    scene.tick(17_000)
    assert began(scene)[0] == "session_expired"


def test_whose_records_are_read_is_told_by_them() -> None:
    scene = pair()
    scene.record(7_000, "epoch", epoch=3)
    scene.record(7_000, "computed", epoch=3)
    shows_three(scene, 7_005)
    scene.records_read(9_000)
    assert began(scene)[0] == "topic_metadata"
