"""What a leader that joins again has begun: in a Stable group a rebalance as such, in one that awaits its assignment
only with other metadata, as it would just be answered else. Instants in ms from the start of a scene."""

from __future__ import annotations

from typing import Any

import pytest

from kardia.events import Kind
from tests.support.scene import START, Scene

REBALANCE_IN_PROGRESS = 27


@pytest.mark.parametrize(("completing", "trigger"), [(True, "metadata_changed"), (False, "leader_rejoined")])
def test_a_leader_that_joins_again_while_others_wait_in_syncgroup_has_changed_something(
    completing: bool, trigger: str
) -> None:
    """Else it would just be answered: source `doJoinGroup`, the state CompletingRebalance."""
    scene = Scene()
    scene.joined(1_000, 1, {"a": 900, "b": 950})
    if completing:
        waited: dict[str, Any] = {"since": 1_100, "generation_id": 1, "error_code": REBALANCE_IN_PROGRESS}
        scene._event(Kind.SYNC, 2_000, member_id="b", detail={"assignments": []}, **waited)
    else:
        scene.synced(1_100, "a", "b")
        scene.heartbeat(2_000, "b", error=REBALANCE_IN_PROGRESS)
    scene.joined(2_003, 2, {"a": 2_000, "b": 2_003})
    scene.synced(2_010, "a", "b")
    scene.tick(4_000)
    row = scene.known().rebalances()[-1]
    assert (row["trigger"], row["trigger_member_id"], row["certainty"]) == (trigger, "a", "exact")


@pytest.mark.parametrize(("broken", "certainty"), [(False, "exact"), (True, "provisional")])
def test_a_leader_that_joins_again_before_its_assignment_has_changed_something(broken: bool, certainty: str) -> None:
    """By another connection than before it may have sent the assignment, unseen."""
    scene = Scene()
    scene.joined(1_000, 1, {"a": 900})
    if broken:
        scene.connects(2)
    scene.joined(4_000, 2, {"a": 3_999.8})
    scene.synced(4_010, "a")
    scene.tick(6_000)
    row = scene.known().rebalances()[-1]
    assert (row["trigger"], row["trigger_member_id"], row["certainty"]) == ("metadata_changed", "a", certainty)


def test_where_lines_are_lost_its_assignment_may_have_been_among_them() -> None:
    scene = Scene()
    scene.joined(1_000, 1, {"a": 900})
    scene.gap(1_005, 1_500)
    scene.joined(4_000, 2, {"a": 3_999.8})
    scene.synced(4_010, "a")
    scene.tick(6_000)
    row = scene.known().rebalances()[-1]
    assert (row["trigger_member_id"], row["certainty"]) == ("a", "provisional")


def test_a_syncgroup_that_came_in_a_rebalance_and_was_sent_back_says_nothing_of_what_began_it() -> None:
    """Its answer waited until what was written before was stored."""
    scene = Scene()
    scene.joined(1_000, 1, {"a": 900, "b": 950})
    scene.synced(1_100, "a", "b")
    waited: dict[str, Any] = {"since": 2_100, "generation_id": 1, "error_code": REBALANCE_IN_PROGRESS}
    scene._event(Kind.SYNC, 2_400, member_id="b", detail={"assignments": []}, **waited)
    scene.joined(2_503, 2, {"a": 2_000, "b": 2_503})
    scene.synced(2_510, "a", "b")
    scene.tick(4_000)
    row = scene.known().rebalances()[-1]
    assert (row["trigger"], row["trigger_member_id"]) == ("leader_rejoined", "a")


def test_who_was_answered_and_asks_once_more_at_once_was_not_waited_for_until_then() -> None:
    """Its client gave the first JoinGroup up, and sent another one as that was answered: told the same generation."""
    scene = Scene()
    scene.joined(1_000, 1, {"a": 10.0, "b": 20.0}, first=("a", "b"))
    scene.synced(1_010, "a", "b")
    scene.heartbeat(3_000, "a", error=27)
    scene.joined(7_000, 2, {"a": 4_000.0, "b": 6_900.0})
    detail = {"session_timeout_ms": 10_000, "rebalance_timeout_ms": 60_000, "assigned_member_id": "a", "leader": "a"}
    scene._event(Kind.JOIN, 7_001, since=7_000.6, member_id="a", client_id="a", generation_id=2, detail=detail)
    scene.synced(7_020, "a", "b")
    scene.tick(9_000)
    row = scene.known().rebalances()[-1]
    assert row["started_at_ms"] == START + 3_000
    assert [(one["member_id"], one["waited_ms"]) for one in row["stragglers"]] == [("b", 3_900), ("a", 1_000)]
