"""A broker that stood still fails members as it wakes, leads no more, and loads the group again with them."""

from __future__ import annotations

import pytest

from tests.support.scene import START, Known, Scene
from tests.support.stories import standing

SEATS = {"a": "i-a", "b": "i-b", "c": "i-c"}


def loaded_again(*failed: str, emptied: bool = False, count: int = 3) -> Scene:
    """A broker stands still from 9,500 to 25,000, fails some of three static members as it wakes, learns that it leads
    no more, and 0.4 s later leads and loads the group again. c is dead; a new process takes the seat of b at 29,000."""
    scene = Scene()
    scene.joined(4_000, 7, {"a": 1_000, "b": 1_500, "c": 1_600}, instances=SEATS)
    scene.synced(4_100, "a", "b", "c")
    scene.heartbeats(6_000, 9_100, "a", "b", "c")
    scene.tick(9_500)
    for member in failed:
        scene.failed(25_000, member)
    scene.prepares(25_000, 7, f"removing member {failed[0]} on heartbeat expiration", failed[0])
    if emptied:
        scene.emptied(25_001, 8)
    scene.group_loaded(25_400, count)
    scene.heartbeat(25_600, "a")
    scene.tick(28_000)
    scene.heartbeats(28_100, 29_000, "a", every=1_000)
    scene.takes_seat(29_000, "b")
    scene.replaced(29_000, "b2", "i-b")
    scene.heartbeats(29_100, 33_500, "a", "b2", every=2_000)
    scene.failed(35_400, "c")
    scene.heartbeats(35_500, 37_000, "a", "b2", every=1_000, error=27)
    scene.tick(37_000)
    return scene


def lives_of(known: Known) -> list[tuple[str, int, int, str, str]]:
    """(member, joined, ended, why, certainty) of each life that is over, instants from the start of the scene."""
    rows = [row for row in standing("members", known.rows["members"]) if row["ended_at_ms"] is not None]
    return sorted(
        (
            row["member_id"],
            row["joined_at_ms"] - int(START),
            row["ended_at_ms"] - int(START),
            row["end_cause"],
            row["certainty"],
        )
        for row in rows
    )


@pytest.mark.parametrize(
    ("failed", "emptied"),
    [("b", False), ("bc", False), ("abc", False), ("abc", True)],
    ids=["one", "two", "all, while it prepares", "all, so that it is empty"],
)
def test_a_load_brings_back_whom_the_coordinator_failed_and_did_not_store(failed: str, emptied: bool) -> None:
    known = loaded_again(*failed, emptied=emptied).known()
    ended = lives_of(known)
    for member in failed:
        assert next(one[2:] for one in ended if one[0] == member) == (25_000, "session_expired", "exact")
    assert [one[2:4] for one in ended if one[0] == "b"][-1] == (29_000, "static_replaced")
    assert [one[2:4] for one in ended if one[0] == "c"][-1] == (35_400, "session_expired")
    assert known.alive() == {"a", "b2"}
    assert {row["generation_after"] for row in known.rebalances() if not row["withdrawn"]} <= {7, None}


def test_a_load_of_fewer_members_than_are_held_brings_nobody_back() -> None:
    """Another generation was stored than the one that was read: who is in it is not known."""
    assert [one[0] for one in lives_of(loaded_again("b", "c", count=1).known())].count("c") == 1
