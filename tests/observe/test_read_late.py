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
