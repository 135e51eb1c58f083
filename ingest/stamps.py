"""From the stamp at the head of a log line to epoch milliseconds.

A broker stamps its lines in the JVM's local time without an offset (`[2026-11-20 10:47:18,113]`), so the zone comes
from configuration, per source. Reads no clock. Known forms: log4j's `%d` and `%d{ISO8601}` (blank or `T`, comma or
dot, 3 to 9 digits of fraction), with or without brackets; a stamp that carries `Z` or an offset is believed.

The rule for the two hours of the year that a local clock cannot name:

* spring, the hour that does not exist: read with the offset that was in force before the change (PEP 495, fold 0);
* autumn, the hour that exists twice: the first time, until the stamps of this source run back by more than
  `FOLD_STEP_S`; from there the second time, until the hour is over. A reader that begins inside that hour and sees no
  step back takes the first time. Both are counted in `doubtful`.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from ingest.errors import SettingsError

FOLD_STEP_S = 1_800
"""A step back of local time by more than this is the end of summer time; brokers' neighbouring lines step back by a
few milliseconds, seconds when a thread was descheduled; a change of the clock is 1,800 s at least (Lord Howe)."""

_CACHE_MAX = 4_096
"""Seconds remembered; a line costs one dictionary look-up as long as its second is among them."""

MILLIS = {b"%03d]" % millis: millis for millis in range(1000)}
"""What stands between the second and the end of a stamp in the shipped layout."""

_OFFSET = re.compile(r"([+-])(\d\d):?(\d\d)\Z")
_OTHER_FORM = re.compile(rb"\[?(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d)[,.](\d{3,9})(Z|[+-]\d\d:?\d\d)?(?:\]|(?=\s))")


def zone_named(name: str) -> tzinfo:
    """A zone by IANA name or by offset (`+05:30`)."""
    match = _OFFSET.match(name)
    if match:
        minutes = int(match[2]) * 60 + int(match[3])
        if minutes < 24 * 60 and int(match[3]) < 60:
            return timezone(timedelta(minutes=minutes if match[1] == "+" else -minutes))
    elif name.upper() in ("UTC", "Z", "GMT"):
        return UTC
    else:
        try:
            return ZoneInfo(name)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            pass
    raise SettingsError(
        f"the time zone {name!r} is not known",
        "log-timezone",
        "an IANA name such as Europe/Berlin, UTC, or an offset such as +05:30",
        "give the zone of the broker's JVM (its -Duser.timezone, else the host's); `timedatectl` shows it",
    )


YEARS = range(1980, 2200)
"""No log of a broker is of another year; instants near the ends of the calendar cannot be reckoned with."""


class Stamps:
    """Stamps of one source, in its order (the autumn rule needs the order)."""

    __slots__ = ("_fixed_ms", "_fold", "_last_local_s", "_zone", "doubtful", "seconds")

    def __init__(self, zone: tzinfo) -> None:
        """`zone` is the zone of the broker's JVM."""
        self._zone = zone
        self.seconds: dict[bytes, float] = {}
        """Instants of the seconds met, by the bytes that name them; always the same object."""
        self._fold = 0
        self._last_local_s = 0
        self.doubtful = 0
        """Different seconds met that a local clock names twice or not at all."""
        offset = zone.utcoffset(None)
        self._fixed_ms = None if offset is None else offset // timedelta(milliseconds=1)

    def at_ms(self, line: bytes) -> float | None:
        """Instant of the stamp at the head of `line`, None when there is none."""
        # The shipped layout: `[yyyy-MM-dd HH:mm:ss,` known or to be learned, then three digits and the bracket.
        millis = MILLIS.get(line[21:25])
        if millis is None:
            return self._other_form(line)
        base = self.seconds.get(line[:21])
        if base is not None:
            return base + millis
        if line[:1] != b"[" or line[20:21] not in (b",", b"."):
            return self._other_form(line)
        base = self._second_at_ms(line[1:20], line[:21])
        return None if base is None else base + millis

    def _second_at_ms(self, second: bytes, key: bytes) -> float | None:
        try:
            local = datetime.fromisoformat(second.decode("ascii"))
        except ValueError:
            return None
        if local.tzinfo is not None or len(second) != 19 or local.year not in YEARS:
            return None
        local_s = int(local.replace(tzinfo=UTC).timestamp())
        if self._fixed_ms is not None:
            base = float(local_s * 1000 - self._fixed_ms)
        else:
            base = float(local_s * 1000 - self._offset_ms(local, local_s))
        if len(self.seconds) >= _CACHE_MAX:
            self.seconds.clear()
        self.seconds[key] = base
        return base

    def _offset_ms(self, local: datetime, local_s: int) -> int:
        first = local.replace(tzinfo=self._zone, fold=0).utcoffset() or timedelta()
        second = local.replace(tzinfo=self._zone, fold=1).utcoffset() or timedelta()
        stepped_back = local_s < self._last_local_s - FOLD_STEP_S
        self._last_local_s = local_s
        if first == second:
            self._fold = 0
            return first // timedelta(milliseconds=1)
        self.doubtful += 1
        if first > second and stepped_back and not self._fold:
            self._fold = 1
            self.seconds.clear()  # the same local seconds now mean other instants
        chosen = second if self._fold and first > second else first
        return chosen // timedelta(milliseconds=1)

    def _other_form(self, line: bytes) -> float | None:
        match = _OTHER_FORM.match(line)
        if match is None:
            return None
        day, clock, fraction, offset = match.groups()
        second = day + b" " + clock
        fraction_ms = int(fraction) / float(10 ** (len(fraction) - 3))
        if offset is None:
            base = self.seconds.get(second)
            if base is None:
                base = self._second_at_ms(second, second)
            return None if base is None else base + fraction_ms
        try:
            aware = datetime.fromisoformat((second + offset).decode("ascii"))
        except ValueError:
            return None
        return int(aware.timestamp()) * 1000 + fraction_ms if aware.year in YEARS else None


def crosses_fold(zone: tzinfo, from_ms: float, to_ms: float) -> bool:
    """Whether the local clock is set back between two instants, or one of them lies within a doubled hour.

    Then the reading of a line depends on the lines before it and a file must not be read in pieces.
    """
    if zone.utcoffset(None) is not None:
        return False
    hour_ms = 3_600_000
    step_ms = min(hour_ms, max(int((to_ms - from_ms) // 10_000), hour_ms // 2))
    at_ms = from_ms - 3 * hour_ms
    before = _offset_at(zone, at_ms)
    while at_ms < to_ms + 3 * hour_ms:
        at_ms += step_ms
        after = _offset_at(zone, at_ms)
        if after < before:
            return True
        before = after
    return False


def _offset_at(zone: tzinfo, at_ms: float) -> timedelta:
    return datetime.fromtimestamp(at_ms / 1000, zone).utcoffset() or timedelta()
