"""Why a row is not sure, in brackets: the sentences of the doubts that leave it worth what it is."""

from __future__ import annotations

from typing import Any

import pytest

from kardia.doubts import BY_NAME, NAMES, Doubt, certainty_of, names_of
from kardia.story import in_doubt


def row(certainty: str, doubts: int | None) -> dict[str, Any]:
    return {"certainty": certainty, "doubts": None if doubts is None else list(names_of(doubts))}


def test_what_is_exact_says_nothing() -> None:
    assert in_doubt.told(row("exact", 0)) == ""


@pytest.mark.parametrize("name", NAMES)
def test_each_doubt_is_told_in_its_words(name: str) -> None:
    doubts = NAMES[name]
    told = in_doubt.told(row(certainty_of(doubts), doubts))
    word = {"inferred": "Inferred", "provisional": "This may change", "unknown": "Not sure"}[certainty_of(doubts)]
    assert told == f"({word}: {BY_NAME[name].sentence}.)"


def test_doubts_that_leave_more_are_not_told() -> None:
    doubts = Doubt.SILENCE | Doubt.LOAD_UNSEEN
    assert in_doubt.sentences("provisional", names_of(doubts)) == [BY_NAME["load_unseen"].sentence]


def test_two_are_told_and_no_more() -> None:
    doubts = Doubt.STAMPS_TIED | Doubt.LINES_LOST | Doubt.BROKER_SILENT
    first, second, third = (BY_NAME[name].sentence for name in names_of(doubts))
    told = in_doubt.told(row("provisional", doubts))
    assert told == f"(This may change: {first}; and {second}.)"
    assert third not in told


@pytest.mark.parametrize(
    ("certainty", "told"),
    [("inferred", "(Inferred.)"), ("provisional", "(This may change.)"), ("unknown", "(Not sure.)"), ("exact", "")],
)
def test_rows_of_before_doubts_say_how_sure_they_are(certainty: str, told: str) -> None:
    assert in_doubt.told(row(certainty, None)) == told
    assert in_doubt.told({"certainty": certainty}) == told


def test_a_name_that_a_later_release_has_given_is_passed_over() -> None:
    assert in_doubt.told({"certainty": "provisional", "doubts": ["of_tomorrow"]}) == "(This may change.)"
