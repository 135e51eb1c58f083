"""Instants at a prompt: ages, times of day around midnight, and what is refused."""

from __future__ import annotations

from datetime import UTC
from zoneinfo import ZoneInfo

import pytest

from cli.asking.when import instant, is_relative, shown
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
    "now": "2026-11-22T00:10:00.000Z",
    "10 m": "2026-11-22T00:00:00.000Z",
    "10 min ago": "2026-11-22T00:00:00.000Z",
    "1h30m": "2026-11-21T22:40:00.000Z",
    "2 hours ago": "2026-11-21T22:10:00.000Z",
    "21:47": "2026-11-21T21:47:00.000Z",
    "9:47": "2026-11-21T09:47:00.000Z",
    "16:07:08.551": "2026-11-21T16:07:08.551Z",
    "16:07:08,551": "2026-11-21T16:07:08.551Z",
    "3am": "2026-11-21T03:00:00.000Z",
    "3:15 PM": "2026-11-21T15:15:00.000Z",
    "12am": "2026-11-22T00:00:00.000Z",
    "12pm": "2026-11-21T12:00:00.000Z",
    "yesterday 22:00": "2026-11-21T22:00:00.000Z",
    "yesterday at 3am": "2026-11-21T03:00:00.000Z",
    "yesterday": "2026-11-21T00:00:00.000Z",
    "today 0:05": "2026-11-22T00:05:00.000Z",
    "2026-11-20 21:51": "2026-11-20T21:51:00.000Z",
    "2026-11-20T21:51:37": "2026-11-20T21:51:37.000Z",
    "2026-11-20": "2026-11-20T00:00:00.000Z",
}

BERLIN = ZoneInfo("Europe/Berlin")

THERE = {
    "21:47": "2026-11-21T20:47:00.000Z",
    "1:10": "2026-11-22T00:10:00.000Z",
    "1:11": "2026-11-21T00:11:00.000Z",
    "yesterday 22:00": "2026-11-21T21:00:00.000Z",
    "2026-07-01 12:00": "2026-07-01T10:00:00.000Z",
    "2026-03-29 02:30": "2026-03-29T01:30:00.000Z",
    "2026-10-25 02:30": "2026-10-25T00:30:00.000Z",
    "21:47Z": "2026-11-21T21:47:00.000Z",
}
"""In Berlin, an hour or two before UTC; on 29 March there is no 02:30, on 25 October there are two."""


@pytest.mark.parametrize(("text", "expected"), TAKEN.items())
def test_what_is_taken(text: str, expected: str) -> None:
    assert to_rfc3339(instant(text, REACHED_MS, UTC).at_ms) == expected


@pytest.mark.parametrize(("text", "expected"), THERE.items())
def test_what_names_no_zone_is_in_the_one_that_is_given(text: str, expected: str) -> None:
    meant = instant(text, REACHED_MS, BERLIN)
    assert to_rfc3339(meant.at_ms) == expected
    assert meant.assumed == (None if text.endswith("Z") else BERLIN)


def test_which_zone_was_assumed_is_shown() -> None:
    assert shown(instant("21:47", REACHED_MS, BERLIN)) == "2026-11-21 21:47:00 +01:00 (20:47:00Z)"
    assert shown(instant("21:47", REACHED_MS, UTC)) == "2026-11-21 21:47:00Z"


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
    assert to_rfc3339(instant(text, REACHED_MS, UTC, parse_instant("2026-11-21T23:50:00Z")).at_ms) == expected


@pytest.mark.parametrize(
    "text",
    [
        *("", "m", "-10m", "1.5h", "10w", "24:00Z", "12:60Z", "noon", "\u0661m", "13pm", "0am", "10x 5m"),
        *("tomorrow", "yesterday evening", "2026-02-30", "2026-11-20 25:00", "1960-01-01", "21:47 Berlin"),
    ],
)
def test_what_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"neither|no time of day|no day|outside"):
        instant(text, REACHED_MS, UTC)


def test_only_what_is_relative_needs_a_look_at_the_tables() -> None:
    assert is_relative("10m")
    assert all(is_relative(text) for text in ("21:51Z", "21:51", "3am", "now", "yesterday 22:00"))
    assert not is_relative("2020-01-01T00:00:00Z")
    assert not is_relative("1795211497312")
