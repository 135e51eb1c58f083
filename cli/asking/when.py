"""Instants as people write them at a prompt: whole ones, a time of day, or how long ago. Pure; reads no clock.

What is relative is relative to what was read last, not to this machine's clock: so it also means something for the
tables of an archived log, and for a live job the two are a second apart. What has no zone is in the one that is given,
which whoever asks is told. No library for it: those there are guess at what they half understand, and a wrong instant
is worse than none.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import NamedTuple

from kardia.instants import INSTANT_MAX_MS, parse_instant

_UNIT_MS = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_LONG_UNITS = r"(?:s|sec|seconds?|m|min|minutes?|h|hours?|d|days?)"
_AGO = re.compile(rf"(?:[0-9]{{1,6}} ?{_LONG_UNITS} ?){{1,4}}(?:ago)?")
_PART_OF_AGO = re.compile(r"([0-9]{1,6}) ?([smhd])")
_CLOCK = re.compile(
    r"(?P<hour>[0-9]{1,2})(?::(?P<minute>[0-9]{2})(?::(?P<second>[0-9]{2})(?:[.,](?P<fraction>[0-9]{1,9}))?)?)?"
    r" ?(?P<half>[ap]m)?(?P<zone>z|[+-][0-9]{2}:[0-9]{2})?"
)
_DAY = re.compile(r"(?P<day>[0-9]{4}-[0-9]{2}-[0-9]{2}|today|yesterday)(?:(?: at | +|t)(?P<clock>\S.*))?")

EXPECTED = (
    "an instant such as 21:47 (the last one), 3am, yesterday 22:00, 10m (ago), 2026-11-20T21:51:37.312Z or "
    "1795211497312 (epoch ms)"
)
"""For messages."""


HALF_A_DAY_MS = 43_200_000


class Meant(NamedTuple):
    """What a text means."""

    at_ms: int
    """Epoch milliseconds."""
    assumed: tzinfo | None
    """The zone that it was read in because it names none; None where it names one or needs none."""


def is_relative(text: str) -> bool:
    """Whether it takes a look at the tables to know the instant."""
    lower = text.strip().lower()
    return lower == "now" or bool(
        _AGO.fullmatch(lower) or _clock(lower) or (_DAY.fullmatch(lower) and not lower[0].isdigit())
    )


def instant(text: str, reached_ms: int, zone: tzinfo, not_before_ms: int | None = None) -> Meant:
    """What it means; ValueError says what the text is instead of an instant.

    `10m` is so long before `reached_ms`, and `now` is that. `21:51`, `3am` and `21:51:37.312+02:00` are the last such
    time of day that is not after `reached_ms`, or the first that is not before `not_before_ms`. Days are those of the
    zone. What is not there once a year, as clocks are put forward, is an hour later; of what is there twice, the first.
    """
    lower = text.strip().lower()
    if lower == "now":
        return Meant(reached_ms, None)
    if _AGO.fullmatch(lower):
        ago_ms = sum(int(number) * _UNIT_MS[unit] for number, unit in _PART_OF_AGO.findall(lower))
        return Meant(max(0, reached_ms - ago_ms), None)
    if clock := _clock(lower):
        at, named = clock
        return _time_ofday_of(at, named, reached_ms, zone, not_before_ms)
    if found := _DAY.fullmatch(lower):
        return _of_a_day(found["day"], found["clock"], reached_ms, zone)
    return Meant(parse_instant(text.strip()), None)


def shown(meant: Meant) -> str:
    """The instant with the zone that was assumed: `2026-11-27 21:47:00 +01:00 (20:47:00Z)`."""
    at = datetime.fromtimestamp(meant.at_ms // 1_000, UTC)
    there = at.astimezone(meant.assumed)
    zone = "Z" if there.utcoffset() == timedelta() else f" {there.isoformat()[-6:]}"
    return f"{there:%Y-%m-%d %H:%M:%S}{zone}" + ("" if zone == "Z" else f" ({at:%H:%M:%S}Z)")


def _clock(text: str) -> tuple[time, tzinfo | None] | None:
    """A time of day, and the zone it names; None for what is none. A number alone is none."""
    found = _CLOCK.fullmatch(text)
    if found is None or not (found["minute"] or found["half"]):
        return None
    hour = int(found["hour"])
    if found["half"]:
        if not 1 <= hour <= 12:
            raise ValueError("no time of day")
        hour = hour % 12 + (12 if found["half"] == "pm" else 0)
    try:
        at = time(hour, int(found["minute"] or 0), int(found["second"] or 0), _microseconds(found["fraction"]))
    except ValueError:
        raise ValueError("no time of day") from None
    return at, _zone(found["zone"])


def _microseconds(fraction: str | None) -> int:
    return int((fraction or "0")[:3].ljust(3, "0")) * 1_000


def _zone(text: str | None) -> tzinfo | None:
    if text is None:
        return None
    return UTC if text == "z" else datetime.strptime(text, "%z").tzinfo


def _time_ofday_of(at: time, named: tzinfo | None, reached_ms: int, zone: tzinfo, not_before_ms: int | None) -> Meant:
    there = named or zone
    day = day_of(reached_ms if not_before_ms is None else not_before_ms, there)
    days = (_ms(day + timedelta(days=shift), at, there) for shift in (1, 0, -1))
    if not_before_ms is None:
        at_ms = next(found for found in days if found <= reached_ms)
    else:
        at_ms = min(found for found in days if found >= not_before_ms)
    return Meant(at_ms, None if named else zone)


def _of_a_day(day: str, clock: str | None, reached_ms: int, zone: tzinfo) -> Meant:
    at, named = (time(), None) if clock is None else _clock(clock) or (None, None)
    if at is None:
        raise ValueError("no time of day behind its day")
    there = named or zone
    if day in ("today", "yesterday"):
        which = day_of(reached_ms, there) - timedelta(days=day == "yesterday")
    else:
        try:
            which = date.fromisoformat(day)
        except ValueError:
            raise ValueError("no day of the calendar") from None
    return Meant(_ms(which, at, there), None if named else zone)


def day_of(at_ms: int, zone: tzinfo) -> date:
    """The day of an instant there."""
    return datetime.fromtimestamp(at_ms // 1_000, UTC).astimezone(zone).date()


def _ms(day: date, at: time, zone: tzinfo) -> int:
    whole = datetime.combine(day, at.replace(microsecond=0), zone)
    at_ms = int(whole.timestamp()) * 1_000 + at.microsecond // 1_000
    if not 0 <= at_ms <= INSTANT_MAX_MS:
        raise ValueError("outside 1970 to 9999")
    return at_ms
