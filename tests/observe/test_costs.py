"""What a rebalance cost in partitions: of whoever is gone, of whoever stopped to join again, and of what is to move."""

from __future__ import annotations

import pytest

from tests.support.scene import Scene
from tests.support.stories import STORIES, Story, lanes_of, observe, standing


def lost(scene: Scene) -> list[int | None]:
    """partition_seconds_lost of the rebalances, oldest first."""
    return [row["partition_seconds_lost"] for row in scene.known().rebalances()]


def begun(assignor: str) -> Scene:
    """A group of two: a has 4 partitions, b has 3. Its first rebalance stopped nothing, for nobody had read."""
    scene = Scene()
    scene.joined(3_000, 1, {"a": 0.0, "b": 0.0}, assignor=assignor)
    scene.synced(3_010, "a", "b", partitions={"a": 4, "b": 3})
    scene.heartbeats(6_000, 9_001, "a", "b")
    return scene


def test_an_eager_assignor_stops_each_member_when_it_joins_again() -> None:
    """c joins at 10 s, a stops at 11 s, b at 14 s, everybody has partitions again at 15 s: 4 x 4 s and 3 x 1 s."""
    scene = begun("range")
    scene.joined(14_000, 2, {"a": 11_000.0, "b": 14_000.0, "c": 10_000.0}, assignor="range")
    scene.synced(15_000, "a", "b", "c", partitions={"a": 3, "b": 2, "c": 2})
    scene.tick(17_000)
    assert lost(scene) == [0, 19]


def test_partitions_of_a_member_that_is_gone_stand_still_until_they_are_assigned() -> None:
    """b leaves at 10 s, a joins again at 12 s, assignment at 13 s: 3 x 3 s of b, 4 x 1 s of a."""
    scene = begun("range")
    scene.leave(10_000, "b")
    scene.joined(12_000, 2, {"a": 12_000.0}, assignor="range")
    scene.synced(13_000, "a", partitions={"a": 7})
    scene.tick(15_000)
    assert lost(scene) == [0, 13]


def test_a_cooperative_assignor_stops_only_what_moves() -> None:
    """The first round takes 2 partitions from a, and nothing stands still in it; the second gives them to c, 2 s later:
    2 x 2 s."""
    scene = begun("cooperative-sticky")
    scene.joined(14_000, 2, {"a": 11_000.0, "b": 14_000.0, "c": 10_000.0}, assignor="cooperative-sticky")
    scene.synced(15_000, "a", "b", "c", partitions={"a": 2, "b": 3, "c": 0})
    scene.joined(16_500, 3, {"a": 16_000.0, "b": 16_500.0, "c": 16_400.0}, assignor="cooperative-sticky")
    scene.synced(18_000, "a", "b", "c", partitions={"a": 2, "b": 3, "c": 2})
    scene.tick(20_000)
    assert lost(scene) == [0, 0, 4]


def test_it_is_unknown_where_the_assignor_or_the_assignment_is() -> None:
    scene = begun("my-own")
    scene.joined(14_000, 2, {"a": 11_000.0, "b": 14_000.0}, assignor="my-own")
    scene.synced(15_000, "a", "b", partitions={"a": 4, "b": 3})
    scene.tick(17_000)
    assert lost(scene) == [0, None]
    scene = Scene()
    scene.heartbeat(1_000, "a", generation=4)
    scene.joined(14_000, 5, {"a": 11_000.0, "b": 13_000.0})
    scene.synced(15_000, "a", "b", partitions={"a": 4, "b": 3})
    scene.tick(17_000)
    assert lost(scene) == [None]


@pytest.mark.parametrize("name", STORIES)
def test_no_more_is_lost_than_all_partitions_for_as_long_as_it_lasted(name: str) -> None:
    """The stories read one topic of three partitions, or two of them. Who is evicted was silent for 10 s before."""
    known = 0
    for row in standing("rebalances", observe(lanes_of(name))["rebalances"]):
        found = row["partition_seconds_lost"]
        if found is not None:
            known += 1
            silent_s = 10 * (row["trigger"] == "session_expired")
            assert found <= 6 * ((row["completed_at_ms"] - row["started_at_ms"]) / 1000 + silent_s) + 1, row
    assert known or not Story(name).expect["rebalances"]


def test_partitions_of_a_member_that_is_evicted_have_no_reader_since_it_was_last_heard() -> None:
    """b is last heard at 9 s and evicted at 19 s, a joins again at 21 s, assignment at 22 s: 3 x (10 + 3) s of b and
    4 x 1 s of a."""
    scene = begun("range")
    scene.heartbeats(10_000, 20_001, "a")
    scene.joined(21_000, 2, {"a": 21_000.0}, assignor="range")
    scene.synced(22_000, "a", partitions={"a": 7})
    scene.tick(24_000)
    assert lost(scene) == [0, 43]
