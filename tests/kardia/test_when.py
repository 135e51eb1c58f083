"""Instants at a prompt: ages, times of day around midnight, and what is refused."""

from __future__ import annotations

import pytest

from cli.asking.when import instant, is_relative
from kardia.instants import parse_instant, to_rfc3339

REACHED_MS = parse_instant("2026-11-22T00:10:00Z")

TAKEN = {
    "10m": "2026-11-22T00:00:00.000Z",
    "10min": "2026-11-22T00:00:00.000Z",
    "90s": "2026-11-22T00:08:30.000Z",
    "2h": "2026-11-21T22:10:00.000Z",
    "1d": "2026-11-21T00:10:00.000Z",
    "999999d": "1970-01-01T00:00:00.000Z",
    "00:10:00Z": "2026-11-22T00:10:00.000Z",
    "00:10:00.001Z": "2026-11-21T00:10:00.001Z",
    "23:59z": "2026-11-21T23:59:00.000Z",
    "01:09+01:00": "2026-11-22T00:09:00.000Z",
    "23:00:00.5-02:00": "2026-11-21T01:00:00.500Z",
    "2020-01-01T00:00:00Z": "2020-01-01T00:00:00.000Z",
    "1795211497312": "2026-11-20T21:51:37.312Z",
}


@pytest.mark.parametrize(("text", "expected"), TAKEN.items())
def test_what_is_taken(text: str, expected: str) -> None:
    assert to_rfc3339(instant(text, REACHED_MS)) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("23:50Z", "2026-11-21T23:50:00.000Z"),
        ("23:51Z", "2026-11-21T23:51:00.000Z"),
        ("00:20Z", "2026-11-22T00:20:00.000Z"),
        ("23:49Z", "2026-11-22T23:49:00.000Z"),
    ],
)
def test_an_end_is_the_first_such_time_after_its_beginning(text: str, expected: str) -> None:
    assert to_rfc3339(instant(text, REACHED_MS, parse_instant("2026-11-21T23:50:00Z"))) == expected


@pytest.mark.parametrize(
    "text", ["", "m", "10 m", "-10m", "1.5h", "10w", "24:00Z", "12:60Z", "12:00", "noon", "\u0661m"]
)
def test_what_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"neither|hour|minute"):
        instant(text, REACHED_MS)


def test_only_what_is_relative_needs_a_look_at_the_tables() -> None:
    assert is_relative("10m")
    assert is_relative("21:51Z")
    assert not is_relative("2020-01-01T00:00:00Z")
    assert not is_relative("1795211497312")
