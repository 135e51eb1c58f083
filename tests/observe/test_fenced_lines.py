"""Who was refused because another member has its static id, as the coordinator says: of the group in which either is
known, where the sentence names none. Instants in ms from the start."""

from __future__ import annotations

import pytest

from kardia.tables import REFUSALS_MAX
from tests.support.told import START, A, B, C, Told

OLD = (
    "given member.id {} is identified as a known static member i-a, but not matching the expected member.id {} during "
)
SENTENCES = (
    OLD + "heartbeat, will respond with instance fenced error",
    "Request memberId={} for static member with groupInstanceId=i-a is fenced by current memberId={} during operation "
    "heartbeat",
    "Request memberId={} for static member with groupInstanceId=i-a is fenced by existing memberId={} during operation "
    "heartbeat",
)


def fenced(told: Told) -> list[tuple[int, str, str, str]]:
    """(At, group, member, certainty) of each refusal."""
    rows = [row for row in told.rows()["transitions"] if row["cause"] == "fenced"]
    return [(row["at_ms"] - START, row["group_id"], row["member_id"], row["certainty"]) for row in rows]


def of_one_member() -> Told:
    """Group g has a static member A, in generation 1."""
    told = Told()
    told.prepares(0, 0, f"Adding new member {A} with group instance id Some(i-a); client reason: not provided")
    told.becomes(3_000, 1, 1)
    return told


@pytest.mark.parametrize("sentence", SENTENCES)
def test_who_is_refused_is_told_in_the_group_of_who_has_the_static_id(sentence: str) -> None:
    told = of_one_member()
    told.say(9_000, sentence.format(B, A))
    assert fenced(told) == [(9_000, "g", B, "exact")]


def test_who_was_replaced_is_told_in_the_group_that_it_was_in() -> None:
    told = of_one_member()
    joins = "Static member with groupInstanceId=i-a and unknown member id joins group g in Stable state."
    told.say(5_000, f"{joins} Replacing previously mapped member {A} with this groupInstanceId.")
    told.say(6_000, SENTENCES[1].format(A, B))
    assert fenced(told) == [(6_000, "g", A, "exact")]
    assert told.ends() == {A: (5_000, "static_replaced", "exact")}


def test_of_whom_nothing_is_known_nothing_is_told() -> None:
    told = of_one_member()
    told.say(9_000, SENTENCES[1].format(B, C))
    assert fenced(told) == []


def test_another_broker_does_not_speak_for_the_group() -> None:
    told = of_one_member()
    told.say(9_000, SENTENCES[1].format(B, A), broker=2)
    assert fenced(told) == []


def test_who_asks_for_ever_is_told_a_bounded_number_of_times() -> None:
    told = of_one_member()
    for at in range(REFUSALS_MAX + 5):
        told.say(9_000 + at, SENTENCES[1].format(B, A))
    assert len(fenced(told)) == REFUSALS_MAX


def test_of_a_consumer_group_the_sentence_names_the_group() -> None:
    told, group = Told(), "[GroupId g] "
    using = "with instance id i-a joins the consumer group using the consumer protocol."
    told.say(0, f"{group}Static member first {using}")
    told.say(1_000, f"{group}Static member second with instance id i-a is fenced by existing member first.")
    assert fenced(told) == [(1_000, "g", "second", "exact")]


def test_nobody_ends_by_it() -> None:
    told = of_one_member()
    told.say(9_000, SENTENCES[1].format(B, A))
    assert [row["end_cause"] for row in told.rows()["members"]] == [None]
