"""The coordinator's own line about members that did not join a rebalance in time, beside the request log.

It names a timer where requests leave two of them possible: of a group that was just loaded nobody can tell by silence
alone whether a session ended or the time to rejoin (`tests/night`). `GroupMetadataManager.completeClassicGroupJoin`.
"""

from __future__ import annotations

import pytest

from tests.observe.test_scenes import stable
from tests.support.scene import Scene
from tests.support.told import A, B, C, Told


def dropped(line_at: float | None) -> Scene:
    """b and c are silent when a coordinator has loaded the group; a joins, and both timers are due at once."""
    scene = Scene()
    members = ("a", "b", "c")
    scene.joined(3_000, 1, dict.fromkeys(members, 0.0), first=members, rebalance_ms=12_000)
    scene.synced(3_010, *members)
    scene.heartbeats(6_000, 12_000, *members)
    scene.heartbeat(12_000, "a", error=14)
    scene.heartbeat(13_500, "a")
    if line_at is not None and line_at < 25_600:
        scene.not_joined(line_at, "b", "c")
    scene.joined(25_600, 2, {"a": 13_600}, rebalance_ms=12_000)
    if line_at is not None and line_at >= 25_600:
        scene.not_joined(line_at, "b", "c")
    scene.synced(25_620, "a")
    scene.heartbeats(28_000, 34_000, "a")
    scene.tick(34_000)
    return scene


def test_requests_alone_leave_it_open() -> None:
    ended = dropped(None).known().ended()
    assert ended.keys() == {"b", "c"}
    assert all(certainty != "exact" for _, _, certainty in ended.values())


@pytest.mark.parametrize("line_at", [25_599, 25_601])
def test_the_line_says_which_timer_it_was(line_at: float) -> None:
    """Read before the answers of the join phase, or after them."""
    known = dropped(line_at).known()
    ended = known.ended()
    assert {who: (cause, sure) for who, (_, cause, sure) in ended.items()} == dict.fromkeys(
        ("b", "c"), ("rebalance_timeout", "exact")
    )
    assert all(abs(at - 25_600) <= 1 for at, _, _ in ended.values())
    (row,) = [row for row in known.rebalances() if row["generation_before"] == 1]
    assert {(one["member_id"], one["joined"]) for one in row["stragglers"]} >= {("b", False), ("c", False)}


def test_a_line_about_another_time_names_nobody_of_now() -> None:
    scene = stable("a", "b")
    scene.heartbeats(6_000, 12_000, "a", "b")
    scene.not_joined(7_000, "b")
    scene.heartbeats(12_000, 18_000, "a", "b")
    scene.tick(18_000)
    assert scene.known().ended() == {}


def test_who_is_said_to_be_removed_from_a_group_that_the_broker_does_not_hold_any_more_stays() -> None:
    """A broker stood still, lost the group, woke, and began a rebalance as it gave the group up; it leads it again when
    the timer of that one runs out (4.4.0, `python -m tests.night --seed 501`)."""
    told = Told()
    told.joins(0, 0)
    told.becomes(3_000, 1, 2)
    told.joins(4_000, 1, B)
    told.becomes(5_000, 2, 2)
    told.say(60_000, f"Group g removed dynamic members who haven't joined: [{A}, {B}]")
    told.say(60_000, "Group g is dead, skipping rebalance stage.")
    told.joins(70_000, 2, C)
    assert told.ends() == {}


def test_such_a_line_at_another_time_takes_nothing_back() -> None:
    scene = dropped(25_599)
    scene.skipped(34_010)
    scene.tick(36_000)
    assert {sure for _, _, sure in scene.known().ended().values()} == {"exact"}


@pytest.mark.parametrize("line_at", [19_999, 20_001])
def test_the_line_says_why_a_group_is_empty_that_nobody_joined_again(line_at: float) -> None:
    """Everybody waited and was sent away by the broker (4.2.1, an upgrade that failed): no timer of theirs was due."""
    scene = stable("a", "b")
    scene.heartbeats(6_000, 12_000, "a", "b")
    scene.heartbeats(12_000, 18_000, "a", "b", error=27)
    if line_at < 20_000:
        scene.not_joined(line_at, "a", "b")
    scene.empty_record(20_000, 2)
    if line_at > 20_000:
        scene.not_joined(line_at, "a", "b")
    scene.tick(30_000)
    ended = scene.known().ended()
    assert {who: (cause, sure) for who, (_, cause, sure) in ended.items()} == dict.fromkeys(
        ("a", "b"), ("rebalance_timeout", "exact")
    )
    assert all(abs(at - 20_000) <= 1 for at, _, _ in ended.values())
