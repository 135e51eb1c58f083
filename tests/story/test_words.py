"""How things are written: names that cannot be mistaken for text, durations, lists; and a word for everything that a
column can say."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kardia.story import foretold, lives, rebalances, words
from kardia.tables import END_CAUSES, PREDICTION_KINDS, TRIGGERS


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("orders-1", "orders-1"),
        ("a/b:c", "a/b:c"),
        ("", '""'),
        ("two words", '"two words"'),
        ("x was evicted.", '"x was evicted."'),
        ("\x1b[31mred", '"\\x1b[31mred"'),
        ("a\nb", '"a\\x0ab"'),
        ('say "no"', '"say \\"no\\""'),
        ("\\x1b", '"\\\\x1b"'),
        ("[bold]b[/bold]", '"[bold]b[/bold]"'),
        ("\u202egnp", '"\\u202egnp"'),
        ("größe", '"größe"'),
        ("z\u0301", '"z\\u0301"'),
        ("\udc80", '"\\udc80"'),
        ("\U000e0001", '"\\U000e0001"'),
    ],
)
def test_names(text: str, shown: str) -> None:
    assert words.name(text) == shown


@given(st.text())
def test_a_name_is_printable_bounded_and_one_word_or_quoted(text: str) -> None:
    shown = words.name(text)
    assert shown.isprintable()
    assert len(shown) <= 4 * words.NAME_CHARS_MAX + 2
    assert " " not in shown or (shown[0], shown[-1]) == ('"', '"')


@given(st.text(max_size=40), st.text(max_size=40))
def test_different_names_are_written_differently(one: str, other: str) -> None:
    assert (words.name(one) == words.name(other)) is (one == other)


@pytest.mark.parametrize(
    ("duration_ms", "shown"),
    [
        (0, "0 ms"),
        (999, "999 ms"),
        (1_000, "1 s"),
        (1_018, "1.018 s"),
        (59_999, "59.999 s"),
        (60_000, "1 min"),
        (61_999, "1 min 1 s"),
        (3_600_000, "1 h"),
        (5_400_000, "1 h 30 min"),
        (90_000_000, "1 d 1 h"),
        (-500, "-500 ms"),
    ],
)
def test_durations(duration_ms: int, shown: str) -> None:
    assert words.span(duration_ms) == shown


def test_instants_of_another_day_are_written_whole() -> None:
    assert words.clock(86_400_000, 86_400_001) == "00:00:00.000Z"
    assert words.clock(86_399_999, 86_400_001) == "1970-01-01T23:59:59.999Z"
    assert words.instant(-1) == "-1 ms"
    assert words.instant(10**18) == f"{10**18} ms"


def test_long_lists_are_counted() -> None:
    assert words.listing([]) == ""
    assert words.listing(["a"]) == "a"
    assert words.listing(["a", "b", "c"]) == "a, b and c"
    assert words.listing([str(n) for n in range(12)]).endswith("9 and 2 more")


def test_there_are_words_for_everything_a_column_can_say() -> None:
    assert set(lives._WHY) == set(END_CAUSES)
    assert set(rebalances._BEGAN) == set(TRIGGERS)
    assert set(foretold.TIMEOUTS) == set(PREDICTION_KINDS)


LIVES = (
    ("c13-b-6f6050d6-6cb7-4e60-a4ff-3b2a8b8f8b36", "c13-b", None),
    ("c13-b-0d9f2a11-6cb7-4e60-a4ff-3b2a8b8f8b36", "c13-b", "seat 1"),
    ("6f6050d6", "other", None),
)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (LIVES[0][0], [0]),
        ("c13-b", [0, 1]),
        ("seat 1", [1]),
        ('"seat 1"', [1]),
        ("c13-b (6f6050d6)", [0]),
        ("0d9f2a11", [1]),
        ("6f6050d6", [2]),
        ("c13-b (ffffffff)", []),
        ("c13", []),
    ],
)
def test_every_way_in_which_a_member_is_written_can_be_typed_back(text: str, found: list[int]) -> None:
    """An id that is that very word goes before a short form of another one."""
    assert words.meant(text, LIVES) == [LIVES[place][0] for place in found]
