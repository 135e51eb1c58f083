"""A file that is missing in the midst of a rotated request log: nothing is said of its time that was not so.

The recorded stories with the middle of their request logs cut out, as a replay tells of it that finds `.1` and `.3`.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from ingest.archives.missing_files import after_holes
from ingest.archives.planning import FileRange
from ingest.stamps import zone_named
from kardia.certainty import stands
from kardia.events import Event, Kind
from kardia.tables import Row
from tests.corpora.test_some_days import ALL, LATE
from tests.support.evidence_levels import classic, scored
from tests.support.stories import FIRST_LIGHT, Story, lanes_of, observe

HOLES = {"early": (0.25, 0.5), "late": (0.5, 0.8)}
OTHERS = {"alone": {}, "with server.log": {"server_log": True}, "with records": {"server_log": True, "offsets": True}}
SOME = (*FIRST_LIGHT[:4], "m01_coordinator_kill-4.1.2")


def cut(name: str, where: str, beside: str) -> tuple[tuple[Event, ...], ...]:
    """Events of a story in whose request logs the lines of some time are missing, each lane in one step."""
    lanes = lanes_of(name, **{"offsets": False, **OTHERS[beside]})
    stamps: dict[str, list[float]] = {}
    for lane in lanes:
        for event in lane:
            if "/request/" in event.source and event.kind != Kind.TICK:
                stamps.setdefault(event.source, []).append(event.logged_at_ms)
    first, last = min(map(min, stamps.values())), max(map(max, stamps.values()))
    begin, end = (first + share * (last - first) for share in HOLES[where])
    holes = {}
    for source, found in stamps.items():
        before, after = [at for at in found if at <= begin], [at for at in found if at >= end]
        holes[source] = (max(before), min(after)) if before and after else (begin, end)
    return tuple(tuple(_of(lane, holes)) for lane in lanes)


def _of(lane: tuple[Event, ...], holes: dict[str, tuple[float, float]]) -> Iterator[Event]:
    for event in lane:
        hole = holes.get(event.source)
        if hole is None:
            yield event
        elif event.kind == Kind.TICK:
            detail: dict[str, Any] = {name: value for name, value in (event.detail or {}).items() if name != "events"}
            detail["silences"] = [pair for pair in detail["silences"] if pair[1] <= hole[0] or hole[1] <= pair[0]]
            yield event._replace(detail=detail | {"holes": [list(hole)]})
        elif not hole[0] < event.logged_at_ms < hole[1]:
            yield event


@cache
def told(name: str, where: str, beside: str) -> dict[str, list[Row]]:
    return observe(cut(name, where, beside))


def wrong(name: str, said: dict[str, list[Row]]) -> list[str]:
    """What is said otherwise than it was, or invented, and is not expected to be corrected."""
    rows = {table: [row for row in some if stands(row["certainty"])] for table, some in classic(said).items()}
    return [one for one in scored(Story(name).expect, rows, "4").problems if not one.startswith(LATE)]


@pytest.mark.parametrize("beside", OTHERS)
@pytest.mark.parametrize("where", HOLES)
@pytest.mark.parametrize("name", [name if name in SOME else pytest.param(name, marks=pytest.mark.long) for name in ALL])
def test_nothing_is_said_of_a_hole_that_was_not_so(name: str, where: str, beside: str) -> None:
    assert wrong(name, told(name, where, beside)) == []


def test_lines_of_which_nobody_says_that_they_are_missing_give_another_end() -> None:
    """So that the law above can fail: the same lines, and nobody says that a file is missing."""
    invented = []
    for name in ("c01_kill-3.9.2", "c02_sigstop-3.9.2"):
        for where in HOLES:
            invented += wrong(name, observe(tuple(tuple(_unsaid(lane)) for lane in cut(name, where, "alone"))))
    assert any(one.startswith("another end") for one in invented)


def _unsaid(lane: tuple[Event, ...]) -> Iterator[Event]:
    for event in lane:
        detail = dict(event.detail or {})
        yield event._replace(detail=detail) if detail.pop("holes", []) else event


def names(*files: str) -> list[str]:
    """Of files in order of time those before which one is missing."""
    ranges = [
        FileRange(f"/logs/{name}", "request", f"b/request/{name}", 0, -1, "UTC", float(number), True)
        for number, name in enumerate(files)
    ]
    return sorted(source.rsplit("/", 1)[1] for source in after_holes(ranges))


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        (["k.log.3", "k.log.2", "k.log.1", "k.log"], []),
        (["k.log.4", "k.log.2.gz", "k.log.1", "k.log"], ["k.log.2.gz"]),
        (["k.log.4", "k.log.3", "k.log"], ["k.log"]),
        (["k.log.1", "k.log.2.zst", "k.log.3", "k.log"], []),
        (["k.log.1", "k.log.3"], ["k.log.3"]),
        (["k.log.2026-11-20-10.1", "k.log.2026-11-20-10.2", "k.log.2026-11-20-11.1", "k.log"], []),
        (["k.log.2026-11-20-10.1", "k.log.2026-11-20-10.3", "k.log.2026-11-20-11.2"], [
            "k.log.2026-11-20-10.3", "k.log.2026-11-20-11.2"
        ]),
        (["a.log", "b.log", "kafka-1.log"], []),
    ],
)  # fmt: skip
def test_which_files_are_missing_is_seen_by_their_numbers(files: list[str], expected: list[str]) -> None:
    assert names(*files) == sorted(expected)


def dated(zone: str, *files: tuple[str, str]) -> list[str]:
    """Of files with the local instant of their first line, those before which one is missing."""
    ranges = []
    for name, first_at in files:
        at = datetime.fromisoformat(first_at)
        at_ms = (at if at.tzinfo else at.replace(tzinfo=zone_named(zone))).timestamp() * 1_000
        ranges.append(FileRange(f"/logs/{name}", "server", f"b/server/{name}", 0, -1, zone, at_ms, True))
    return sorted(source.rsplit("/", 1)[1] for source in after_holes(ranges))


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "Asia/Kolkata", "America/St_Johns"])
def test_an_hour_or_a_day_without_a_file_is_a_hole(zone: str) -> None:
    ten, eleven, one = "s.log.2026-11-20-10", "s.log.2026-11-20-11.gz", "s.log.2026-11-20-13"
    first, second, third = (ten, "2026-11-20T10:59:59"), (eleven, "2026-11-20T11:00:00"), (one, "2026-11-20T13:59:59")
    assert dated(zone, first, second) == []
    assert dated(zone, first, second, third) == [one]
    assert dated(zone, third, ("s.log", "2026-11-20T14:00:00")) == []
    assert dated(zone, third, ("s.log", "2026-11-20T14:59:59")) == []
    assert dated(zone, third, ("s.log", "2026-11-20T15:00:00")) == ["s.log"]
    friday, saturday, monday = (f"s.log.2026-11-{day}" for day in (20, 21, 23))
    days = (friday, "2026-11-20T00:00:01"), (saturday, "2026-11-21T23:00:00"), (monday, "2026-11-23T00:10:00")
    assert dated(zone, *days) == [monday]
    assert dated(zone, *days[:2], ("s.log", "2026-11-22T23:00:00")) == []
    assert dated(zone, *days[:2], ("s.log", "2026-11-24T06:00:00")) == ["s.log"]


def test_names_of_hours_that_are_no_hole() -> None:
    """What looks like one: the hour that is left out in spring, a line stamped just before the hour, names in UTC
    beside stamps of another zone, another way to rotate from some day on, a name that is no date."""
    spring = ("s.log.2026-03-29-01", "2026-03-29T01:10:00"), ("s.log.2026-03-29-03", "2026-03-29T03:05:00")
    assert dated("Europe/Berlin", *spring) == []
    later = ("s.log.2026-03-29-04", "2026-03-29T04:05:00")
    assert dated("Europe/Berlin", spring[0], later) == [later[0]]
    early = ("s.log.2026-11-20-14", "2026-11-20T13:59:59.500")
    assert dated("UTC", early, ("s.log", "2026-11-20T15:00:01")) == []
    in_utc = ("s.log.2026-11-20", "2026-11-21T00:30:00+01:00"), ("s.log", "2026-11-22T00:30:00+01:00")
    assert dated("Europe/Berlin", *in_utc) == []
    changed = ("s.log.2026-11-20-10", "2026-11-20T10:00:00"), ("s.log.2026-11-22", "2026-11-22T10:00:00")
    assert dated("UTC", *changed, ("s.log.2026-11-25.3", "2026-11-25T10:00:00")) == []
    assert dated("UTC", ("s.log.2026-99-20", "2026-11-20T10:00:00"), ("s.log", "2026-11-25T10:00:00")) == []


def test_a_range_in_the_midst_of_a_file_is_no_file() -> None:
    whole = FileRange("/logs/k.log.3", "request", "b/request/x", 0, 10, "UTC", 0.0, False)
    rest = FileRange("/logs/k.log.3", "request", "b/request/x", 10, -1, "UTC", 5.0, True)
    after = FileRange(str(Path("/logs/k.log.1")), "request", "b/request/y", 0, -1, "UTC", 9.0, True)
    assert after_holes([whole, rest, after]) == {"b/request/y"}
