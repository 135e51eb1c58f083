"""What was not read is told as that: never as under way, as failed, as joined, or as nothing.

Goal: an engineer who reads a story of an excerpt learns what the excerpt does not show. Method: sentences of server.log
through the observer into a story, and rows by hand where one column matters.
"""

from __future__ import annotations

from kardia.story import Material, explain, why
from tests.story.rows import health, life, material, rebalance, transition, wait
from tests.support.told import A, B, C, Told


def story_of(told: Told) -> Material:
    rows = told.rows()
    return Material(
        "test",
        "g",
        transitions=tuple(rows["transitions"]),
        rebalances=tuple(sorted(rows["rebalances"], key=lambda row: int(row["started_at_ms"]))),
        lives=tuple(sorted(rows["members"], key=lambda row: int(row["joined_at_ms"]))),
    )


def explained(told: Told) -> str:
    return "\n".join(one.text for one in explain(story_of(told)).sentences)


def test_a_hole_after_a_rebalance_began_is_neither_an_interruption_nor_a_failure() -> None:
    told = Told()
    told.joins(0, 63)
    told.joins(296_000, 64, B)
    told.say(474_000, f"Member {A} in group g has left, removing it from the group")
    text = explained(told)
    assert "interrupts" not in text
    assert "never came" not in text
    assert "not over yet" not in text
    assert "Before it, the end of the rebalance that began at" in text
    assert "The group was PreparingRebalance in generation 64 since" in text


def test_a_jump_says_between_which_generations_nothing_was_read() -> None:
    told = Told()
    told.joins(0, 0)
    told.becomes(3_000, 1, 2)
    told.becomes(30_600_000, 9, 2, B)
    text = explained(told)
    assert "nothing was read of what led from generation 1 to generation 8" in text
    assert "The rebalance took at most 8 h 29 min" in text
    assert "What the group did up to" in text
    assert "2 members, of whom 1 is known: b (" in text
    assert "; whether a is still there was not read" in text


def test_where_nothing_counts_the_members_no_number_is_told() -> None:
    told = Told()
    told.joins(0, 0)
    told.say(3_000, "Stabilized group g generation 1 (__consumer_offsets-1)")
    told.say(3_010, "Assignment received from leader for group g for generation 1")
    text = explained(told)
    assert "Generation 1 began." in text
    assert "0 members" not in text


def test_who_is_known_is_told_beside_how_many_there_are() -> None:
    told = Told()
    told.becomes(0, 5, 3)
    text = explained(told)
    assert "A rebalance was under way (generation 4); when and by what it had begun was not read." in text
    assert "The rebalance was over, 10 ms of it for the assignments; when it had begun was not read. " in text
    assert "Generation 5: 3 members" in text
    assert ", 3 members, of whom 1 is known: a (" in text
    (over,) = [one for one in explain(story_of(told)).sentences if one.kind == "rebalance_ended"]
    assert over.certainty == "inferred"


def test_a_wait_that_an_eviction_ended_is_told() -> None:
    told = Told()
    told.joins(0, 1, C)
    told.fails(42_272, A)
    told.say(42_274, "Stabilized group g generation 2 (__consumer_offsets-1) with 1 members")
    text = "\n".join(one.text for one in why(story_of(told)).sentences)
    assert "It waited 42.3 s for" in text
    assert ", which was evicted." in text


def test_a_wait_that_a_leave_ended_is_told_where_the_join_phase_is_over_with_it() -> None:
    told = Told()
    told.joins(0, 0)
    told.becomes(3_000, 1, 2)
    told.joins(10_000, 1, B)
    told.say(21_900, f"Member {A} in group g has left, removing it from the group")
    told.becomes(21_900, 2, 1, B)
    assert "It waited 11.9 s for a, which left." in explained(told)


def test_a_state_that_is_not_known_has_no_members_and_no_generation() -> None:
    found = material(transitions=[transition(1, 0, "Unknown", cause="not read", certainty="unknown")])
    (state,) = [one for one in explain(found).sentences if one.kind == "state"]
    assert state.text.startswith("The state of the group is not known since")
    assert "generation" not in state.text


def test_who_is_first_seen_in_the_middle_has_not_joined_then() -> None:
    for cause, words in (("first seen", "was first seen"), ("coordinator_loaded", "was a member already")):
        begun = transition(1, 0, "Member", "a", cause=cause, from_state="Absent")
        found = material(lives=[life("a", 0)], transitions=[begun])
        (text,) = [one.text for one in explain(found).sentences if one.kind == "joined"]
        assert words in text
        assert " joined." not in text


def test_a_poll_interval_that_is_not_known_is_no_interval_of_nothing() -> None:
    row = health("a", 0, poll_interval_ms=None)
    gone = life("a", -60_000, 0, "poll_timeout", rebalance_timeout_ms=None)
    (text,) = [one.text for one in explain(material(lives=[gone], health=[row])).sentences if one.kind == "ended"]
    assert "its poll interval is not known" in text


def test_the_coordinators_words_are_not_the_clients() -> None:
    found = material(rebalances=[rebalance(0, 3_000, "unknown", "", reason="some reason of the coordinator")])
    text = explain(found).sentences[0].text
    assert 'The coordinator\'s words: "some reason of the coordinator"' in text


def test_sums_are_called_sums_and_what_each_waited_is_told_as_that() -> None:
    rows = [
        rebalance(0, 11_900, "member_left", "x", members_after=3, member_seconds_lost=36),
        rebalance(60_000, 71_900, "member_left", "y", members_after=3, member_seconds_lost=30),
    ]
    first, second = [one.text for one in explain(material(rebalances=rows)).sentences if one.kind == "rebalance_ended"]
    assert "Meanwhile 3 members had no partitions." in first
    assert "3 members had no partitions for 30 s in sum." in second


def test_who_was_waited_for_until_it_was_evicted_is_not_said_to_be_dropped() -> None:
    gone = life("b", -60_000, 5_000, "session_expired")
    row = rebalance(0, 5_010, "member_joined", "a", stragglers=[wait("b", 5_000, joined=False)])
    texts = [one.text for one in explain(material(lives=[gone], rebalances=[row])).sentences]
    assert any("It waited 5 s for b, which was evicted." in text for text in texts)
    assert not any("in vain" in text for text in texts)


def test_a_move_between_the_protocols_is_no_rolling_restart() -> None:
    lives, rebalances = [], []
    for number in range(3):
        at = 60_000 + number * 20_000
        lives += [life(f"old-{number}", 0, at, "left"), life(f"new-{number}", at + 10_000, protocol="consumer")]
        rebalances.append(rebalance(at, at + 2_000, "member_left", f"old-{number}"))
        rebalances.append(rebalance(at + 10_000, at + 13_000, "member_joined", f"new-{number}", protocol="consumer"))
    lives.sort(key=lambda one: int(one["joined_at_ms"]))
    assert not any("rolling" in one.text for one in explain(material(lives=lives, rebalances=rebalances)).sentences)
