"""Doubts: each has one meaning, and what they leave a statement worth is one law."""

from __future__ import annotations

from functools import reduce
from operator import or_

from hypothesis import given
from hypothesis import strategies as st

from kardia.certainty import weaker
from kardia.doubts import MEANINGS, NAMES, SURE, Doubts, certainty_of, names_of, stands

some = st.lists(st.sampled_from(list(NAMES.values())), max_size=6)


def test_every_doubt_has_a_meaning_of_its_own() -> None:
    assert list(MEANINGS) == list(NAMES.values())
    assert len({meaning.sentence for meaning in MEANINGS.values()}) == len(NAMES)
    for meaning in MEANINGS.values():
        assert meaning.worth != "exact"
        assert meaning.sentence[0].islower()
        assert not meaning.sentence.endswith(".")


def test_numbers_are_single_bits_that_saved_state_can_hold() -> None:
    assert sorted(NAMES.values()) == [1 << place for place in range(len(NAMES))]
    assert len(NAMES) < 64


@given(some, some)
def test_what_rests_on_several_things_is_no_surer_than_the_least_sure(first: list[Doubts], other: list[Doubts]) -> None:
    one, two = (reduce(or_, doubts, SURE) for doubts in (first, other))
    assert certainty_of(one | two) == weaker(certainty_of(one), certainty_of(two))
    assert stands(one | two) == (stands(one) and stands(two))


@given(some)
def test_names_are_those_of_the_doubts_in_their_order(doubts: list[Doubts]) -> None:
    expected = tuple(name for name, doubt in NAMES.items() if doubt in doubts)
    assert names_of(reduce(or_, doubts, SURE)) == expected


def test_nothing_in_doubt_is_exact() -> None:
    assert (certainty_of(SURE), stands(SURE), names_of(SURE)) == ("exact", True, ())
