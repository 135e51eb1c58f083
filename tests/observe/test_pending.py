"""Ids that were handed out and that nobody joins with: what a rebalance waits for besides its members."""

from __future__ import annotations

import json
from typing import Any

from tests.observe.test_waiting import group_of_three
from tests.support.scene import START, Scene
from tests.support.stories import named


def ids_waited_for(scene: Scene) -> list[tuple[str, int]]:
    """(id, waited) of the last rebalance, of ids that were never used."""
    entries = scene.known().rebalances()[-1]["stragglers"]
    assert all(entry["joined"] is False for entry in entries if entry["pending"])
    return [(entry["member_id"], entry["waited_ms"]) for entry in entries if entry["pending"]]


def rebalanced(scene: Scene, at: float) -> Scene:
    """b rejoins at 12 s because of a new topic, a and c follow within a second; the join phase ends at `at`."""
    scene.joined(at, 2, {"b": 12_000.0, "a": 12_400.0, "c": 12_900.0}, leader="a")
    scene.synced(at + 10, "a", "b", "c")
    scene.heartbeats(at + 2_000, at + 3_001, "a", "b", "c")
    scene.tick(at + 4_000)
    return scene


def test_an_id_that_is_never_used_blocks_until_its_session_timeout() -> None:
    """Handed out at 10.5 s for 10 s; everybody has joined at 12.9 s, the phase ends at 20.5 s."""
    scene = group_of_three()
    scene.member_id_required(10_500, "ghost")
    assert ids_waited_for(rebalanced(scene, 20_500)) == [("ghost", 8_500)]


def test_an_id_handed_out_while_it_prepared_blocks_from_then_on() -> None:
    scene = group_of_three()
    scene.member_id_required(13_000, "ghost", session_ms=6_000)
    assert ids_waited_for(rebalanced(scene, 19_000)) == [("ghost", 6_000)]


def test_an_id_that_outlives_the_phase_blocks_to_its_end() -> None:
    """The rebalance timeout ends it: 60 s after its start."""
    scene = group_of_three()
    scene.member_id_required(10_500, "ghost", session_ms=120_000)
    assert ids_waited_for(rebalanced(scene, 72_000)) == [("ghost", 60_000)]


def test_an_id_that_was_used_or_left_did_not_block() -> None:
    scene = group_of_three()
    scene.member_id_required(11_990, "b2")
    scene.joined(20_500, 2, {"b2": 12_000.0, "a": 12_400.0, "b": 12_400.0, "c": 20_500.0}, leader="a")
    scene.synced(20_510, "a", "b", "c", "b2")
    scene.tick(22_000)
    assert ids_waited_for(scene) == []


def test_an_id_that_was_over_before_it_began_did_not_block() -> None:
    scene = group_of_three()
    scene.member_id_required(9_500, "ghost", session_ms=2_000)
    assert ids_waited_for(rebalanced(scene, 20_500)) == []


def test_the_first_rebalance_of_an_empty_group_waits_for_its_delay_only() -> None:
    scene = Scene()
    scene.member_id_required(100, "ghost")
    scene.joined(3_000, 1, {"a": 200.0, "b": 2_000.0}, first=("a", "b"))
    scene.synced(3_010, "a", "b")
    scene.tick(5_000)
    assert ids_waited_for(scene) == []


def test_an_id_handed_out_before_a_gap_may_have_been_used_in_it() -> None:
    scene = group_of_three()
    scene.member_id_required(10_500, "ghost")
    scene.gap(11_000, 11_500)
    assert ids_waited_for(rebalanced(scene, 20_500)) == []


def told(scene: Scene) -> dict[str, list[dict[str, Any]] | None]:
    """Member -> ids that its last health row names, from the start of the scene."""
    found = {}
    for row in named("health", scene.known().rows["health"]):
        entries = json.loads(json.dumps(row["pending"]))
        for entry in entries or ():
            entry["since_at_ms"] -= int(START)
            entry["until_at_ms"] -= int(START)
        found[row["member_id"]] = entries
        assert row["pending_members"] == len(entries or ())
    return found


def test_while_it_lasts_the_ids_are_named_with_their_end() -> None:
    """A steady group shows that nobody joined with the id: b is told of c's leave, and nobody can be let in."""
    scene = group_of_three()
    scene.member_id_required(10_500, "ghost", session_ms=30_000)
    scene.heartbeats(12_000, 12_001, "a", "b", "c")
    scene.leave(13_000, "c")
    scene.heartbeats(14_000, 20_001, "b", error=27)
    scene.tick(21_000)
    ghost = {"member_id": "ghost", "client_id": "c", "since_at_ms": 10_500, "until_at_ms": 40_500}
    assert told(scene)["b"] == [ghost]


def test_an_id_that_may_belong_to_a_waiting_join_is_not_named() -> None:
    scene = group_of_three()
    scene.leave(10_000, "c")
    scene.member_id_required(10_500, "maybe", session_ms=30_000)
    scene.heartbeats(12_000, 20_001, "b", error=27)
    scene.tick(21_000)
    assert told(scene)["b"] is None


def test_who_falls_silent_while_an_id_may_have_been_used_has_not_surely_begun_the_rebalance() -> None:
    """`x` was handed its id at 8,000 and may wait in a JoinGroup since, which began it; `y` may use its own until
    23,000, so that nothing shows before then that the group is Empty."""
    scene = Scene()
    scene.joined(3_000, 1, {"a": 0.0}, first=("a",))
    scene.synced(3_010, "a")
    scene.heartbeat(7_900, "a")
    scene.member_id_required(8_000, "y", session_ms=15_000)
    scene.member_id_required(8_010, "x", session_ms=10_000)
    for at in range(8_500, 22_001, 500):
        scene.fetch(at, "somebody")
    scene.tick(21_900)
    known = scene.known()
    assert known.states()[-1] == (17_900, "PreparingRebalance")
    rows = named("transitions", known.rows["transitions"])
    assert [row["certainty"] for row in rows if row["entity"] == "group"][-1] == "provisional"


def emptied(*, alive: bool) -> tuple[str, str]:
    """The last member leaves while an id is handed out for 6 s. (State, certainty) of the last row of the group."""
    scene = group_of_three()
    for member in ("a", "b"):
        scene.leave(11_000, member)
    scene.member_id_required(11_500, "ghost", session_ms=6_000)
    scene.leave(11_600, "c")
    for at in range(12_000, 21_000, 1_000):
        scene.tick(at, last_line=at if alive else 11_500)
    row = [row for row in named("transitions", scene.known().rows["transitions"]) if row["entity"] == "group"][-1]
    return row["to_state"], row["certainty"]


def test_that_nobody_used_an_id_is_not_sure_where_its_broker_wrote_nothing_since() -> None:
    """It may have died before: a group that only an id kept from being Empty had become so by the death of its broker,
    or not at all."""
    assert emptied(alive=True) == ("Empty", "inferred")
    assert emptied(alive=False) == ("Empty", "provisional")


def test_an_id_that_is_handed_out_later_has_not_kept_a_group_from_being_empty() -> None:
    """The session of the only member is over at 14,000; the client is told so, and is handed a new id, half a second
    later."""
    scene = Scene()
    scene.joined(1_000, 1, {"a": 0.0}, first=("a",))
    scene.synced(1_010, "a")
    scene.heartbeat(4_000, "a")
    scene.heartbeat(14_500, "a", error=25)
    scene.member_id_required(14_550, "a2")
    scene.tick(16_500)
    assert scene.known().states()[-1] == (14_000, "Empty")


def test_an_id_that_is_handed_out_as_the_last_members_are_gone_has_not_kept_the_group_either() -> None:
    """The sessions of both are over at 9,010, and a new client is handed an id 114 ms later, before that is known.
    It joins unseen, by a connection that breaks, and by another one when its id is over. It is Empty since 9,010."""
    scene = Scene()
    scene.joined(3_000, 1, {"a": 0.0, "b": 0.0}, first=("a", "b"), session_ms=6_000)
    scene.synced(3_010, "a", "b")
    scene.tick(8_900)
    scene.member_id_required(9_124, "c", session_ms=6_000)
    scene.tick(12_000)
    scene.tick(16_000)
    scene.joined(16_500, 3, {"c": 16_400.0}, leader="c", session_ms=6_000)
    scene.synced(16_510, "c")
    scene.tick(18_000)
    known = scene.known()
    assert (9_010, "Empty") in [(round(at), state) for at, state in known.states()]
    assert [row["generation_before"] for row in known.rebalances()] == [0, 1, 2]
