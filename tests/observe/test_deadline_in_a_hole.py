"""A deadline that lies in a hole of the log: whether its timer fired, or the session began anew with a broker that was
started again, no line shows. When two sessions have passed it is over either way.

Instants in ms from the start of a scene; sessions are 10 s. The log has a hole from 9,500 to 22,000.
"""

from __future__ import annotations

from tests.support.scene import START, Scene
from tests.support.stories import named, standing


def hole(*members: str) -> Scene:
    """They are heard up to 9,000 for the last time; then the log goes on without them."""
    scene = Scene()
    scene.joined(3_000, 1, dict.fromkeys(members, 0.0), first=members)
    scene.synced(3_010, *members)
    scene.heartbeats(6_000, 9_001, *members)
    scene.fetch(9_500, "somebody")
    scene.tick(9_600, last_line=9_500)
    scene.fetch(22_000, "somebody")
    scene.tick(22_100, first_line=22_000, last_line=22_000, silences=[[9_500, 22_000]])
    return scene


def goes_on(scene: Scene, begin: int, end: int) -> Scene:
    for at in range(begin, end, 1_000):
        scene.fetch(at - 100.0, "somebody")
        scene.tick(at, last_line=at - 100.0)
    return scene


def test_it_is_judged_when_two_sessions_have_passed() -> None:
    scene = goes_on(hole("a"), 23_000, 70_000)
    (row,) = standing("members", scene.known().rows["members"])
    assert (row["ended_at_ms"], row["end_cause"], row["certainty"]) == (
        START + 19_000,
        "session_expired",
        "provisional",
    )
    assert row["ended_at_ms"] + row["at_bound_ms"] == START + 32_000


def test_so_are_all_members_of_a_group_in_which_nobody_is_left() -> None:
    known = goes_on(hole("a", "b"), 23_000, 70_000).known()
    rows = standing("members", known.rows["members"])
    assert {(row["member_id"], row["end_cause"]) for row in rows} == {
        ("a", "session_expired"),
        ("b", "session_expired"),
    }
    assert known.states()[-1][1] == "Empty"


def test_before_that_nobody_is_evicted() -> None:
    known = goes_on(hole("a"), 23_000, 32_000).known()
    assert known.ended() == {}
    assert named("health", known.rows["health"])[-1]["status"] == "overdue"


def test_who_is_heard_again_meanwhile_is_a_member() -> None:
    scene = goes_on(hole("a"), 23_000, 25_000)
    scene.heartbeat(25_500, "a")
    assert goes_on(scene, 26_000, 32_000).known().ended() == {}
