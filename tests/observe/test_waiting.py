"""While a rebalance lasts: whom it waits for and until when, from what is logged by then."""

from __future__ import annotations

from typing import Any

from tests.support.scene import START, Scene
from tests.support.stories import named


def waits(scene: Scene) -> dict[str, tuple[int | None, int | None]]:
    """Member -> (awaited since, awaited until) by its last health row, from the start of the scene."""
    found: dict[str, tuple[int | None, int | None]] = {}
    for row in named("health", scene.known().rows["health"]):
        found[row["member_id"]] = (_at(row, "awaited_since_at_ms"), _at(row, "awaited_until_at_ms"))
    return found


def _at(row: dict[str, Any], column: str) -> int | None:
    return None if row[column] is None else int(row[column] - START)


def group_of_three() -> Scene:
    """Stable since 3,010 ms; rebalance timeout 60 s."""
    scene = Scene()
    scene.joined(3_000, 1, {"a": 0.0, "b": 0.0, "c": 0.0})
    scene.synced(3_010, "a", "b", "c")
    scene.heartbeats(6_000, 9_001, "a", "b", "c")
    return scene


def test_a_member_that_was_told_and_goes_on_with_its_heartbeats_is_waited_for() -> None:
    """c left at 10 s; b is told and does not come, a is silent: it may be waiting, in a JoinGroup not logged yet."""
    scene = group_of_three()
    scene.leave(10_000, "c")
    scene.heartbeat(12_000, "a", error=27)
    scene.heartbeats(12_000, 24_001, "b", error=27)
    scene.tick(25_000)
    assert waits(scene)["b"] == (10_000, 70_000)
    assert waits(scene)["a"] == (None, None)


def test_where_the_start_is_not_known_yet_the_first_answer_bounds_the_end() -> None:
    scene = group_of_three()
    for member in "abc":
        scene.heartbeats(12_000, 18_001, member, error=27)
    scene.tick(19_000)
    assert set(waits(scene).values()) == {(12_000, 72_000)}


def test_the_leader_is_waited_for_until_it_sends_the_assignment() -> None:
    scene = group_of_three()
    scene.joined(14_000, 2, {"a": 13_000.0, "b": 13_500.0, "c": 14_000.0}, leader="a")
    scene.tick(20_000)
    assert waits(scene) == {"a": (14_000, 74_000), "b": (None, None), "c": (None, None)}


def test_nobody_is_waited_for_in_a_stable_group() -> None:
    scene = group_of_three()
    scene.tick(11_000)
    assert set(waits(scene).values()) == {(None, None)}


def test_a_member_that_rejoins_late_is_no_longer_said_not_to_have_rejoined() -> None:
    """The rebalance takes 40 of its 60 s and ends with everybody inside."""
    scene = group_of_three()
    scene.heartbeats(12_000, 48_001, "b", error=27)
    scene.joined(50_000, 2, {"a": 11_000.0, "b": 49_900.0, "c": 11_000.0}, leader="a")
    scene.synced(50_010, "a", "b", "c")
    scene.heartbeats(53_000, 62_001, "a", "b", "c")
    scene.tick(63_000)
    known = scene.known()
    assert [one for one in known.predictions() if one[1] == "rebalance"] == [("b", "rebalance", "averted")]
    last = {row["member_id"]: (row["status"], row["reasons"]) for row in named("health", known.rows["health"])}
    assert last == dict.fromkeys("abc", ("ok", []))
