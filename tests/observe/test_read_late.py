"""What is read after something that came later: commits that waited to be stored, records of a group that is deleted by
then. It says what was, and changes nothing of what is. Instants in ms from the start of a scene."""

from __future__ import annotations

from kardia.events import Kind
from tests.support.scene import Scene


def test_a_commit_of_before_its_member_was_replaced_brings_nobody_back() -> None:
    """Up to 2.4 who takes a seat is answered at once, while a commit that came before has to be stored, and waits."""
    scene = Scene(coordinator="scala")
    scene.joined(1_000, 1, {"a": 900, "b": 950}, instances={"a": "i-a", "b": "i-b"})
    scene.synced(1_100, "a", "b")
    scene.heartbeats(2_000, 5_000, "a", "b")
    scene.replaced(5_500, "b2", instance="i-b")
    scene.tick(6_000)
    scene.heartbeats(6_500, 9_000, "a", "b2")
    scene.commit(9_000, "b", 7, since=4_500)
    scene.heartbeats(9_500, 12_000, "a", "b2")
    scene.tick(14_000)
    known = scene.known_step_by_step()
    assert known.ended()["b"] == (5_500, "static_replaced", "exact")
    assert known.alive() == {"a", "b2"}


def test_the_record_of_a_group_that_was_empty_comes_after_the_answer_that_deletes_it() -> None:
    scene = Scene()
    scene.joined(1_000, 1, {"a": 900})
    scene.synced(1_100, "a")
    scene.leave(10_000, "a")
    scene._event(Kind.DELETE_GROUPS, 12_000)
    scene.tick(13_000)
    scene.empty_record(10_001, 2)
    scene.deleted(12_000)
    scene.tick(20_000)
    known = scene.known_step_by_step()
    assert [state for _, state in known.states()][-2:] == ["Empty", "Dead"]
    assert len(known.rebalances()) == 2


def test_who_is_answered_an_id_of_its_own_is_nobody_without_one() -> None:
    """Up to 2.1 a new member asks without an id and waits. A broker that was started again counts a generation a second
    time, so that its answer looks as if it came to a group that is Stable."""
    scene = Scene(coordinator="scala")
    scene.joined(1_000, 1, {"a": 900})
    scene.synced(1_100, "a")
    scene.heartbeats(2_000, 5_000, "a")
    detail = {"assigned_member_id": "n", "session_timeout_ms": 10_000, "rebalance_timeout_ms": 60_000, "leader": "a"}
    scene._event(Kind.JOIN, 5_000, since=4_000, client_id="n", generation_id=1, detail=detail)
    scene.tick(6_000)
    assert scene.known().alive() == {"a", "n"}
