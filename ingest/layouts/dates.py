"""Date formats of log4j, of which a conversion pattern names one: compiled into an expression and a way to ISO 8601.

A format is that of Java's `DateTimeFormatter` or one of log4j's names for some. A stamp without a date, or a name of a
zone instead of its offset, cannot be an instant: such a format is refused.
"""

from __future__ import annotations

import re
from calendar import month_abbr
from datetime import UTC, datetime
from typing import NamedTuple

from ingest.errors import SettingsError

NAMED = {
    "": "yyyy-MM-dd HH:mm:ss,SSS",
    "DEFAULT": "yyyy-MM-dd HH:mm:ss,SSS",
    "DEFAULT_MICROS": "yyyy-MM-dd HH:mm:ss,SSSSSS",
    "DEFAULT_NANOS": "yyyy-MM-dd HH:mm:ss,SSSSSSSSS",
    "DEFAULT_PERIOD": "yyyy-MM-dd HH:mm:ss.SSS",
    "ISO8601": "yyyy-MM-dd'T'HH:mm:ss,SSS",
    "ISO8601_PERIOD": "yyyy-MM-dd'T'HH:mm:ss.SSS",
    "ISO8601_PERIOD_MICROS": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
    "ISO8601_BASIC": "yyyyMMdd'T'HHmmss,SSS",
    "ISO8601_BASIC_PERIOD": "yyyyMMdd'T'HHmmss.SSS",
    "ISO8601_OFFSET_DATE_TIME_HH": "yyyy-MM-dd'T'HH:mm:ss,SSSX",
    "ISO8601_OFFSET_DATE_TIME_HHMM": "yyyy-MM-dd'T'HH:mm:ss,SSSXX",
    "ISO8601_OFFSET_DATE_TIME_HHCMM": "yyyy-MM-dd'T'HH:mm:ss,SSSXXX",
    "COMPACT": "yyyyMMddHHmmssSSS",
    "DATE": "dd MMM yyyy HH:mm:ss,SSS",
    "DATE_PERIOD": "dd MMM yyyy HH:mm:ss.SSS",
    **dict.fromkeys(("ABSOLUTE", "ABSOLUTE_PERIOD", "ABSOLUTE_MICROS", "ABSOLUTE_NANOS"), "HH:mm:ss,SSS"),
}
"""log4j's names (`FixedDateFormat`, `DatePatternConverter`); blank and `T`, comma and dot are the same to us."""

UNIX_MILLIS = "UNIX_MILLIS"

_MONTHS = dict(zip(month_abbr[1:], range(1, 13), strict=True))
_LETTERS = re.compile(r"'(?P<quoted>[^']*)'|(?P<letter>[A-Za-z])(?P=letter)*|(?P<other>.)", re.DOTALL)
_PIECES = {
    "yyyy": r"(?P<year>[0-9]{4})",
    "uuuu": r"(?P<year>[0-9]{4})",
    "yy": r"(?P<year>[0-9]{2})",
    "MM": r"(?P<month>[0-9]{2})",
    "MMM": rf"(?P<month>{'|'.join(_MONTHS)})",
    "dd": r"(?P<day>[0-9]{2})",
    "d": r"(?P<day>[0-9]{1,2})",
    "HH": r"(?P<hour>[0-9]{2})",
    "mm": r"(?P<minute>[0-9]{2})",
    "ss": r"(?P<second>[0-9]{2})",
    "XXX": r"(?P<zone>Z|[+-][0-9]{2}:[0-9]{2})",
    "XX": r"(?P<zone>Z|[+-][0-9]{4})",
    "X": r"(?P<zone>Z|[+-][0-9]{2}(?:[0-9]{2})?)",
    "Z": r"(?P<zone>[+-][0-9]{4})",
    "ZZZZZ": r"(?P<zone>Z|[+-][0-9]{2}:[0-9]{2})",
    "EEE": "(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)",
}
_FRACTION = re.compile(r"S{1,9}|n{3,9}")
_NEEDED = ("year", "month", "day", "hour", "minute", "second")


class DateFormat(NamedTuple):
    """How an instant is written."""

    expression: str
    """Groups: year, month, day, hour, minute, second; fraction and zone where the format has them. Or `unix`."""
    zone: str = ""
    """Offset that the format does not write, where the pattern names it (`%d{…}{UTC}`)."""

    def iso(self, found: re.Match[bytes]) -> bytes:
        """What was found as the shipped layout writes it, with its offset if one is known."""
        parts = found.groupdict(default=b"")
        if "unix" in parts:
            return _of_unix(int(parts["unix"]))
        year = parts["year"] if len(parts["year"]) == 4 else b"20" + parts["year"]
        month = parts["month"] if parts["month"].isdigit() else b"%02d" % _MONTHS[parts["month"].decode()]
        zone = parts.get("zone", b"").strip() or self.zone.encode()
        zone = b"Z" if zone in (b"UTC", b"GMT") else zone.ljust(5, b"0") if len(zone) == 3 else zone
        return b"%s-%s-%s %s:%s:%s,%s%s" % (
            year,
            month,
            parts["day"].zfill(2),
            parts["hour"],
            parts["minute"],
            parts["second"],
            parts.get("fraction", b"").ljust(3, b"0"),
            zone,
        )

    @property
    def has_millis(self) -> bool:
        """Whether stamps say more than the second."""
        return "<fraction>" in self.expression or "<unix>" in self.expression


def _of_unix(millis: int) -> bytes:
    second = datetime.fromtimestamp(millis // 1000, UTC)
    return b"%s,%03dZ" % (second.strftime("%Y-%m-%d %H:%M:%S").encode(), millis % 1000)


def date_format(name: str, zone: str = "") -> DateFormat:
    """The format of `%d{name}{zone}`. Raises `SettingsError` for one that gives no instant."""
    if name == UNIX_MILLIS:
        return DateFormat(r"(?P<unix>[0-9]{12,13})")
    pieces: list[str] = []
    for found in _LETTERS.finditer(NAMED.get(name, name)):
        text = found[0]
        if found["letter"] is None:
            text = text if found["quoted"] is None else found["quoted"] or "'"
            pieces.append({" ": "[ T]", "T": "[ T]"}.get(text, re.escape(text)))
        elif _FRACTION.fullmatch(text):
            if pieces and pieces[-1] in (r"\.", ",", ":"):
                pieces[-1] = "[.,:]"
            pieces.append(rf"(?P<fraction>[0-9]{{{len(text)}}})")
        elif text in _PIECES:
            pieces.append(_PIECES[text])
        else:
            raise _refused(name, f"the letters {text!r} are not understood")
    expression = "".join(pieces)
    missing = [part for part in _NEEDED if f"<{part}>" not in expression]
    if missing:
        raise _refused(name, f"it writes no {missing[0]}, without which a line has no instant")
    return DateFormat(expression, "Z" if zone in ("UTC", "GMT", "Z") else "")


def _refused(name: str, why: str) -> SettingsError:
    return SettingsError(
        f"the date format {name!r} cannot be read: {why}",
        "log-pattern",
        "a format with date, time and milliseconds such as %d{ISO8601} or %d{yyyy-MM-dd HH:mm:ss,SSS}",
        "give the pattern as it stands in the broker's log4j file, or change it there",
    )
