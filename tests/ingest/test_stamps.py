"""Stamps: the shipped form and its cousins, zones, and the two hours a local clock cannot name."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.errors import SettingsError
from ingest.stamps import FOLD_STEP_S, Stamps, crosses_fold, zone_named

BERLIN = "Europe/Berlin"


def epoch_ms(text: str) -> float:
    return datetime.fromisoformat(text).timestamp() * 1000


def at(stamps: Stamps, text: str) -> float | None:
    return stamps.at_ms(f"[{text}] DEBUG x".encode())


@given(st.datetimes(datetime(1980, 1, 1), datetime(2099, 1, 1)))  # noqa: DTZ001
def test_utc_round_trip(moment: datetime) -> None:
    moment = moment.replace(microsecond=moment.microsecond // 1000 * 1000)
    text = f"{moment:%Y-%m-%d %H:%M:%S},{moment.microsecond // 1000:03d}"
    expected = moment.replace(tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)
    assert at(Stamps(zone_named("UTC")), text) == expected // timedelta(milliseconds=1)


@pytest.mark.parametrize(
    "text",
    [
        b"[2026-11-20 10:47:18,113] x",
        b"[2026-11-20 10:47:18.113] x",
        b"[2026-11-20T10:47:18,113] x",
        b"2026-11-20 10:47:18,113 x",
        b"2026-11-20T10:47:18.113000 x",
        b"[2026-11-20T10:47:18.113Z] x",
        b"[2026-11-20 12:47:18,113+02:00] x",
        b"[2026-11-20T12:47:18,113+0200] x",
    ],
)
def test_forms(text: bytes) -> None:
    assert Stamps(zone_named("UTC")).at_ms(text) == epoch_ms("2026-11-20T10:47:18.113+00:00")


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"x",
        b"[2026-13-20 10:47:18,113]",
        b"[2026-11-20 25:47:18,113]",
        b"[2026-11-20 10:47:18;113]",
        b"[2026-11-20 10:47:18,1x3]",
        b"(2026-11-20 10:47:18,113]",
        b"[+026-11-20 10:47:18,113]",
        b"[2026-11-20 10:47:18,113",
    ],
)
def test_no_stamp(text: bytes) -> None:
    stamps = Stamps(zone_named("UTC"))
    stamps.at_ms(b"[2026-11-20 10:47:18,113]")  # a warm cache must not let it pass
    assert stamps.at_ms(text) is None


@pytest.mark.parametrize(
    ("zone", "expected"),
    [
        ("UTC", "2026-07-01T10:00:00+00:00"),
        ("+05:30", "2026-07-01T10:00:00+05:30"),
        ("-0800", "2026-07-01T10:00:00-08:00"),
        ("Asia/Kolkata", "2026-07-01T10:00:00+05:30"),
        (BERLIN, "2026-07-01T10:00:00+02:00"),
    ],
)
def test_zones(zone: str, expected: str) -> None:
    assert at(Stamps(zone_named(zone)), "2026-07-01 10:00:00,000") == epoch_ms(expected)


@pytest.mark.parametrize("zone", ["", "Mars/Olympus", "+99:00", "../../etc/passwd", "+05:99", "local"])
def test_an_unknown_zone_is_refused_with_what_to_do(zone: str) -> None:
    with pytest.raises(SettingsError, match=r"not known.*IANA name.*Next"):
        zone_named(zone)


def test_autumn_hour_is_the_first_one_until_time_runs_back() -> None:
    stamps = Stamps(zone_named(BERLIN))
    assert at(stamps, "2026-10-25 01:59:59,999") == epoch_ms("2026-10-25T01:59:59.999+02:00")
    assert at(stamps, "2026-10-25 02:10:00,000") == epoch_ms("2026-10-25T02:10:00+02:00")
    assert at(stamps, "2026-10-25 02:59:59,000") == epoch_ms("2026-10-25T02:59:59+02:00")
    assert at(stamps, "2026-10-25 02:00:00,000") == epoch_ms("2026-10-25T02:00:00+01:00")
    # the same local second as before, now an hour later
    assert at(stamps, "2026-10-25 02:10:00,000") == epoch_ms("2026-10-25T02:10:00+01:00")
    assert at(stamps, "2026-10-25 03:00:00,000") == epoch_ms("2026-10-25T03:00:00+01:00")
    assert stamps.doubtful > 0


def test_a_small_step_back_is_no_change_of_the_clock() -> None:
    stamps = Stamps(zone_named(BERLIN))
    at(stamps, "2026-10-25 02:59:59,000")
    back = datetime(2026, 10, 25, 2, 59, 59, tzinfo=UTC) - timedelta(seconds=FOLD_STEP_S)
    assert at(stamps, f"{back:%Y-%m-%d %H:%M:%S},000") == epoch_ms("2026-10-25T02:29:59+02:00")


def test_spring_hour_that_does_not_exist_is_read_with_the_old_offset() -> None:
    stamps = Stamps(zone_named(BERLIN))
    assert at(stamps, "2026-03-29 02:30:00,000") == epoch_ms("2026-03-29T02:30:00+01:00")
    assert at(stamps, "2026-03-29 03:30:00,000") == epoch_ms("2026-03-29T03:30:00+02:00")
    assert stamps.doubtful == 1


def test_a_file_that_crosses_the_doubled_hour_is_recognised() -> None:
    zone = zone_named(BERLIN)
    change = epoch_ms("2026-10-25T03:00:00+02:00")
    day = 86_400_000
    assert crosses_fold(zone, change - day, change + day)
    assert crosses_fold(zone, change - 60_000, change - 30_000)
    assert not crosses_fold(zone, change + day, change + 2 * day)
    assert not crosses_fold(zone_named("UTC"), change - day, change + day)
