"""Rebalances that follow from the one before: who was taken away comes back, and makes the group stop once more."""

from __future__ import annotations

import pytest

from tests.observe.test_scenes import stable
from tests.support.scene import START, Scene
from tests.support.stories import lanes_of, observe, standing


def evicted_and_back(at: float, client: str = "b", *, twin: bool = False) -> Scene:
    """b is evicted at 16 s, generation 2 is there at 17.2 s; at `at` somebody joins as b2."""
    members = ("a", "b", "b3") if twin else ("a", "b")
    scene = stable(*members)
    if twin:
        scene.events = [event._replace(client_id="b") if event.client_id == "b3" else event for event in scene.events]
    stay = [one for one in members if one != "b"]
    scene.heartbeat(6_000, "b")
    scene.heartbeats(6_001, 16_000, *stay)
    for one in stay:
        scene.heartbeat(17_000, one, error=27)
    scene.joined(17_100, 2, dict.fromkeys(stay, 17_050.0))
    scene.synced(17_200, *stay)
    scene.heartbeats(20_000, at, *stay)
    scene.joined(at + 900, 3, {"b2": at, **dict.fromkeys(stay, at + 800)}, leader=stay[0])
    scene.synced(at + 910, *stay, "b2")
    scene.events = [
        event._replace(client_id=client if event.member_id == "b2" else "b")
        if event.member_id == "b2" or (twin and event.member_id == "b3")
        else event
        for event in scene.events
    ]
    scene.tick(at + 3_000)
    return scene


def links(scene: Scene) -> list[int | None]:
    """What each rebalance follows from, as its start."""
    found = [row["caused_by_started_at_ms"] for row in scene.known().rebalances()]
    return [None if at is None else at - int(START) for at in found]


def test_a_client_that_was_evicted_and_comes_back_is_one_fault_and_two_rebalances() -> None:
    assert links(evicted_and_back(25_000)) == [None, None, 16_000]


def test_another_client_is_another_story() -> None:
    assert links(evicted_and_back(25_000, "c")) == [None, None, None]


def test_so_is_one_that_comes_back_much_later() -> None:
    assert links(evicted_and_back(17_201 + 300_000)) == [None, None, None]


def test_where_another_member_has_the_same_name_nobody_is_known_to_have_come_back() -> None:
    assert links(evicted_and_back(25_000, twin=True)) == [None, None, None]


FOLLOWS = {
    ("c04_mpi-3.9.2", "c04-a"): "poll_timeout",
    ("c04_mpi-3.9.2", "c04-s"): "session_expired",
    ("c04_mpi-4.1.2", "c04-b"): "poll_timeout",
    ("c02_sigstop-3.9.2", "c02-b"): "session_expired",
}


@pytest.mark.parametrize(("story", "client"), sorted(FOLLOWS))
def test_a_real_client_that_was_gone_and_rejoined_links_its_two_rebalances(story: str, client: str) -> None:
    rows = standing("rebalances", observe(lanes_of(story))["rebalances"])
    (second,) = [
        row for row in rows if row["caused_by_started_at_ms"] is not None and row["trigger_client_id"] == client
    ]
    (first,) = [
        row
        for row in rows
        if row["started_at_ms"] == second["caused_by_started_at_ms"] and row["group_id"] == second["group_id"]
    ]
    assert second["trigger"] == "member_joined"
    assert (first["trigger"], first["trigger_client_id"]) == (FOLLOWS[story, client], client)
    assert first["generation_after"] == second["generation_before"]


@pytest.mark.parametrize("story", ["c05_leave-3.9.2", "c09_join-3.9.2", "c10_slow-3.9.2", "c06_static-3.9.2"])
def test_rebalances_that_people_wanted_follow_from_nothing(story: str) -> None:
    rows = standing("rebalances", observe(lanes_of(story))["rebalances"])
    assert {row["caused_by_started_at_ms"] for row in rows} == {None}
