"""Logs that begin in the middle, and logs with a hole: what was not read is neither exact, nor under way, nor failed.

Goal: a jump of generations says that what lay between was not read; who was first seen in the middle of a log has not
joined then; who is named as gone is gone. Method: sentences of server.log with some of them left out, and request logs
that begin in a rebalance.
"""

from __future__ import annotations

import pytest

from tests.support.scene import START as SCENE_START
from tests.support.scene import Scene
from tests.support.stories import named
from tests.support.told import START, A, B, C, Told


def test_a_rebalance_of_which_the_end_was_not_read_was_over_by_the_next_generation() -> None:
    told = Told()
    told.joins(0, 63)
    told.joins(296_000, 64, B)
    first, second = told.rows()["rebalances"]
    assert (first["generation_after"], first["joined_at_ms"], first["completed_bound_ms"]) == (64, START, 296_000)
    assert (second["generation_before"], second["caused_by_started_at_ms"]) == (64, None)
    assert told.states() == [(0, "PreparingRebalance", "exact"), (0, "Unknown", "unknown")] + [
        (296_000, "PreparingRebalance", "exact")
    ]


@pytest.mark.parametrize("generation", [2, 7])
def test_nothing_follows_from_what_was_before_a_hole(generation: int) -> None:
    told = Told()
    told.joins(0, 0)
    told.becomes(3_000, 1, 2)
    told.joins(9_000, 1, B)
    told.prepares(60_000, generation, f"removing member {A} on heartbeat expiration")
    last = told.rows()["rebalances"][-1]
    assert (last["generation_before"], last["caused_by_started_at_ms"], last["members_before"]) == (
        generation,
        None,
        None,
    )


@pytest.mark.parametrize("generation", [1, 9])
def test_who_is_named_as_gone_by_a_rebalance_is_no_member_though_its_own_sentence_was_not_read(generation: int) -> None:
    told = Told()
    told.joins(0, 0)
    told.becomes(3_000, 1, 2)
    told.prepares(20_000, generation, f"removing member {A} on heartbeat expiration")
    told.becomes(21_000, generation + 1, 1, B)
    assert told.ends()[A] == (20_000, "session_expired", "exact")


def test_who_left_by_the_reason_of_a_rebalance_alone_is_gone_when_it_is_over() -> None:
    told = Told()
    told.joins(0, 0)
    told.becomes(3_000, 1, 2)
    told.prepares(20_000, 1, f"Removing Set({A}) on LeaveGroup; client reason: the consumer is being closed")
    told.becomes(21_000, 2, 1, B)
    assert told.ends()[A] == (20_000, "left", "exact")


def test_who_was_a_member_before_a_hole_may_not_be_one_after_it_until_something_names_him() -> None:
    told = Told()
    told.joins(0, 0)
    told.becomes(3_000, 1, 2)
    told.joins(4_000, 1, B)
    told.becomes(5_000, 2, 2)
    told.becomes(90_000, 9, 5)
    sure = {row["member_id"]: row["certainty"] for row in told.rows()["members"]}
    assert sure == {A: "inferred", B: "unknown"}  # a leads generation 9


def test_the_number_of_members_tells_who_is_none_any_more() -> None:
    told = Told()
    told.joins(0, 4)
    told.becomes(3_000, 5, 1)
    told.joins(960_000, 13, B)
    told.becomes(960_010, 14, 2, C)
    assert told.ends() == {A: (0, "unknown", "unknown")}
    (end,) = [row for row in told.rows()["members"] if row["member_id"] == A]
    assert end["at_bound_ms"] == 960_020  # the assignment, by which it is known


def test_what_began_before_the_log_has_no_lower_bound() -> None:
    told = Told()
    told.say(0, f"Member {A} in group g has left, removing it from the group")
    told.becomes(2_000, 5, 2, B)
    (row,) = told.rows()["rebalances"]
    assert (row["began_unseen"], row["certainty"], row["started_at_ms"]) == (True, "unknown", START + 2_000)


def test_what_began_between_two_sentences_about_the_state_has_bounds_that_no_sentence_about_a_member_narrows() -> None:
    """Up to 3.9 the sentence that somebody left comes after the begin of the rebalance that it leads to."""
    told = Told()
    told.joins(0, 0)
    told.becomes(3_000, 1, 2)
    told.say(9_000, f"Member {A} in group g has left, removing it from the group")
    told.becomes(10_000, 2, 1, B)
    row = told.rows()["rebalances"][-1]
    assert (row["started_at_ms"], row["at_bound_ms"], row["began_unseen"]) == (START + 3_010, 6_990, None)


def test_an_end_of_a_join_phase_that_was_not_read_leaves_what_began_it() -> None:
    told = Told()
    told.joins(0, 0)
    counted = "The group has 1 members, 0 of which are static."
    told.say(3_000, f"Assignment received from leader {A} for group g for generation 1. {counted}")
    (row,) = told.rows()["rebalances"]
    assert (row["trigger"], row["joined_at_ms"], row["completed_at_ms"]) == ("member_joined", None, START + 3_000)


def in_the_middle(reason: str = "") -> Scene:
    """A request log that begins while generation 2 forms: one member waits in its JoinGroup already."""
    scene = Scene()
    scene.joined(3_000, 2, {"a": 1_000, "b": 2_990}, reason=reason)
    scene.synced(3_010, "a")
    scene.synced(3_012, "b")
    scene.tick(5_000)
    return scene


def test_who_joins_in_the_first_rebalance_of_a_log_need_not_be_new_nor_have_begun_it() -> None:
    known = in_the_middle().known()
    (row,) = known.rebalances()
    assert (row["trigger"], row["certainty"], row["began_unseen"]) == ("unknown", "unknown", True)
    assert (row["started_at_ms"], row["member_seconds_lost"]) == (int(SCENE_START) + 1_000, None)
    came = [row for row in named("transitions", known.rows["transitions"]) if row["from_state"] == "Absent"]
    assert {(row["member_id"], row["cause"], row["certainty"]) for row in came} == {
        ("a", "first seen", "inferred"),
        ("b", "first seen", "inferred"),
    }


@pytest.mark.parametrize(
    "reason", ["rebalance failed due to MemberIdRequiredException", "need to re-join with the given member-id: a"]
)
def test_a_client_that_says_that_it_was_just_handed_its_id_is_new(reason: str) -> None:
    (row,) = in_the_middle(reason).known().rebalances()
    assert (row["trigger"], row["certainty"], row["began_unseen"]) == ("member_joined", "provisional", None)


def test_who_was_handed_an_id_in_the_log_is_new() -> None:
    scene = Scene()
    scene.member_id_required(900, "a")
    scene.joined(3_000, 2, {"a": 1_000, "b": 2_990})
    scene.synced(3_010, "a")
    scene.tick(5_000)
    known = scene.known()
    came = [row for row in named("transitions", known.rows["transitions"]) if row["from_state"] == "Absent"]
    assert {row["member_id"]: row["cause"] for row in came} == {"a": "member_joined", "b": "first seen"}
    assert [row["trigger"] for row in known.rebalances()] == ["member_joined"]


def test_everybody_is_new_in_generation_1() -> None:
    scene = Scene()
    scene.joined(3_000, 1, {"a": 1_000, "b": 2_990})
    scene.tick(5_000)
    (row,) = scene.known().rebalances()
    assert (row["trigger"], row["trigger_member_id"]) == ("member_joined", "a")
