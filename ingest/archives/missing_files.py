"""Which files of a rotated log are missing in the midst of those that are there, by their names. Pure.

Rotation numbers its files (`server.log.3`, `kafka-request.log.2026-11-20-10.2`, compressed or not), upwards or
downwards in time, or names them by the hour or the day that they are of (`server.log.2026-11-20-13`, as Kafka's own
settings do). Where two that follow each other in time are not neighbours by their names, nothing is known of the time
between them: a file was deleted, or, with hours and days, nobody wrote a line, and which of the two it was no name
tells. Hours that daylight saving time leaves out are no holes. Files at the begin and at the end of what is there may
be missing as well: that is where reading begins.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta, tzinfo
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from ingest.archives.planning import FileRange
from ingest.stamps import zone_named
from kardia.events import stream_of

_DATE = r"[.-](?P<date>\d{4}-\d{2}-\d{2}(?:-\d{2})?)"
_PACKED = r"(?:\.(?:gz|zst|xz|bz2))?"
_NUMBERED = re.compile(rf"(?P<log>.+?\.log)(?:{_DATE})?\.(?P<number>\d{{1,6}}){_PACKED}")
_DATED = re.compile(rf"(?P<log>.+?\.log){_DATE}{_PACKED}")
_NEWEST = re.compile(r"(?P<log>.+?\.log)")

_BY_HOUR, _BY_DAY = "%Y-%m-%d-%H", "%Y-%m-%d"
_HOUR, _DAY = timedelta(hours=1), timedelta(days=1)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

_EDGE = timedelta(seconds=2)
"""A line that is stamped so shortly before the hour may be the first of the next file: who writes looks at the clock
once more."""


class _Part(NamedTuple):
    """A file of a log by its name; compared by time."""

    first_at_ms: float
    source: str
    date: str
    number: int
    """-1: it has none."""
    zone: str
    """Of the stamps in it."""

    @property
    def is_newest(self) -> bool:
        """Whether it is the file that is written now."""
        return self.number < 0 and not self.date


def after_holes(ranges: Iterable[FileRange]) -> frozenset[str]:
    """Sources of the files before which one is missing."""
    logs: dict[tuple[str, Path, str], list[_Part]] = {}
    for one in ranges:
        path = Path(one.path)
        found = _NUMBERED.fullmatch(path.name) or _DATED.fullmatch(path.name) or _NEWEST.fullmatch(path.name)
        if one.start or found is None:
            continue
        names = found.groupdict()
        number = int(names.get("number") or -1)
        part = _Part(one.first_at_ms, one.source, names.get("date") or "", number, one.zone)
        logs.setdefault((stream_of(one.source), path.parent, names["log"]), []).append(part)
    return frozenset(source for parts in logs.values() for source in _after_holes(sorted(parts)))


def _after_holes(parts: list[_Part]) -> Iterator[str]:
    numbered = [part for part in parts if part.number >= 0]
    # The file that is written now gets the number 1 next where numbers fall with time, else the highest.
    falls = any(one.date == two.date and one.number > two.number for one, two in pairwise(numbered))
    for one, two in pairwise(parts):
        if _missing_by_number(one, two, falls=falls) if one.number >= 0 else _missing_by_date(one, two):
            yield two.source


def _missing_by_number(one: _Part, two: _Part, *, falls: bool) -> bool:
    if two.is_newest:
        return falls and one.number > 1
    if two.number < 0:
        return False  # the log was rotated in another way from then on
    if one.date != two.date:
        return two.number > 1 and not falls
    return abs(one.number - two.number) > 1


def _missing_by_date(one: _Part, two: _Part) -> bool:
    """Whether at least a whole hour, or day, lies between those that two files are of."""
    if two.number >= 0 or len(two.date) not in (0, len(one.date)):
        return False  # the log was rotated in another way from then on
    try:
        began, begins = _instant_of(one.date), _instant_of(two.date) if two.date else None
    except ValueError:
        return False  # no date: `server.log.2026-99-99`
    if _is_day(one.date):
        return all(day - began > _DAY for day in ([begins] if begins else _days_of(two)))
    return (begins is None or begins - began > _HOUR) and all(hours > 1 for hours in _hours_between(one, two))


def _is_day(date: str) -> bool:
    return date.count("-") == _BY_DAY.count("-")


def _instant_of(date: str) -> datetime:
    return datetime.strptime(date, _BY_DAY if _is_day(date) else _BY_HOUR).replace(tzinfo=UTC)


def _days_of(newest: _Part) -> Iterator[datetime]:
    """The day that the file written now is of, in the zone of its stamps, and in UTC: names may be in either."""
    for zone in (zone_named(newest.zone), UTC):
        day = datetime.fromtimestamp(newest.first_at_ms / 1_000, zone).date()
        yield datetime(day.year, day.month, day.day, tzinfo=UTC)


def _hours_between(one: _Part, two: _Part) -> Iterator[int]:
    """Hours from that which one file is of to that in which the other begins, by their lines, in the zone of its name:
    in the night in which clocks are put forward names skip one. A zone may be half an hour off the full one."""
    at = datetime.fromtimestamp(one.first_at_ms / 1_000, UTC)
    zones = {zone_named(one.zone), UTC}
    named = {zone for zone in zones if _is_of_hour(at, zone, one.date)}
    nearly = {zone for zone in zones if _is_of_hour(at + _EDGE, zone, one.date)}
    for zone in named or nearly or zones:
        begun = at if _is_of_hour(at, zone, one.date) else at + _EDGE
        past = (begun.astimezone(zone).utcoffset() or timedelta()) % _HOUR
        ends = datetime.fromtimestamp(two.first_at_ms / 1_000, UTC)
        yield (ends + past - _EPOCH) // _HOUR - (begun + past - _EPOCH) // _HOUR


def _is_of_hour(at: datetime, zone: tzinfo, date: str) -> bool:
    return at.astimezone(zone).strftime(_BY_HOUR) == date
