"""Records of `__consumer_offsets` reach a live job after the lines of the requests that wrote them, and that all of a
time have come is told a second later. The same is said then as where every record is in its place, and after a restart
in between.

A recorded story is fed as a collector sends it: every 100 ms the lines that were written, the records of so long ago,
and a tick of each source.
"""

from __future__ import annotations

from functools import cache

import pytest

from kardia.events import ALL_SHARDS, Event, Kind
from kardia.observe import Observer, ObserverSettings
from kardia.tables import Row
from tests.support.stories import MODERN_STORIES, lanes_of, standing

STEP_MS = 100.0
TABLES = ("members", "rebalances", "transitions", "disagreements")
NOT_COMPARED = {"known_at_ms", "evidence"}
"""When something became known is later where its record is."""

CLASSIC = ("c01_kill-4.1.2", "c06_static-3.9.2")
SETTINGS = ObserverSettings("test", consumer_session_ms=10_000, share_session_ms=10_000, streams_session_ms=10_000)


def steps(events: tuple[Event, ...], behind_ms: float, told_ms: float) -> list[list[Event]]:
    """Events of a lane as they come, records so long after they were written; `told_ms`: how far behind the present is
    what the ticks of the records say."""
    records = sorted((e for e in events if e.source.startswith("offsets-topic")), key=lambda e: e.logged_at_ms)
    lines = [e for e in events if not e.source.startswith("offsets-topic")]
    last_ticks = [e for e in lines if e.kind == Kind.TICK]
    lines = sorted((e for e in lines if e.kind != Kind.TICK), key=lambda e: (e.logged_at_ms, e.start))
    if not lines:
        return []
    now, ends = lines[0].logged_at_ms, dict.fromkeys(sorted({e.source for e in last_ticks}), 0)
    found: list[list[Event]] = []
    read = sent = 0
    while read < len(lines) or sent < len(records):
        now += STEP_MS
        step: list[Event] = []
        begins = dict(ends)
        while read < len(lines) and lines[read].logged_at_ms <= now:
            step.append(lines[read])
            ends[lines[read].source] = lines[read].end
            read += 1
        while sent < len(records) and records[sent].logged_at_ms + behind_ms <= now:
            step.append(records[sent])
            sent += 1
        step.append(_tick("offsets-topic/offsets/all", 0, sent, now - told_ms))
        step += [_tick(source, begins[source], end, now) for source, end in ends.items()]
        found.append(step)
    return [*found, last_ticks]


def _tick(source: str, begin: int, end: int, at: float) -> Event:
    return Event(int(Kind.TICK), ALL_SHARDS, source, begin, end, at, at, at, at, detail={})


@cache
def said(name: str, behind_ms: float, told_ms: float = 0.0, restarts: int = 0) -> dict[str, list[str]]:
    """What stands at the end of a story; `restarts`: after so many steps each the observer is restored."""
    rows: dict[str, list[Row]] = {}
    for lane, events in enumerate(lanes_of(name)):
        observer = Observer(SETTINGS, lane)
        for number, step in enumerate(steps(events, behind_ms, told_ms or behind_ms + STEP_MS)):
            if restarts and number % restarts == 0:
                observer = Observer.restore(SETTINGS, lane, observer.snapshot())
            for table, some in observer.step(step).items():
                rows.setdefault(table, []).extend(some)
        for table, some in observer.finish().items():
            rows.setdefault(table, []).extend(some)
    return {
        table: sorted(
            repr({column: value for column, value in row.items() if column not in NOT_COMPARED})
            for row in standing(table, rows.get(table, []))
        )
        for table in TABLES
    }


@pytest.mark.parametrize(
    ("behind_ms", "told_ms"),
    [
        (700.0, 800.0),
        (100.0, 1_000.0),  # as the collector does where it is well
        *(
            pytest.param(*other, marks=pytest.mark.long)
            for other in ((300.0, 400.0), (600.0, 1_000.0), (1_500.0, 1_600.0))
        ),
    ],
)
@pytest.mark.parametrize("name", [*MODERN_STORIES, *CLASSIC])
def test_records_that_come_after_the_lines_change_nothing(name: str, behind_ms: float, told_ms: float) -> None:
    assert said(name, behind_ms, told_ms) == said(name, 0.0)
    assert said(name, 0.0)["members"]


@pytest.mark.parametrize("name", MODERN_STORIES)
def test_a_restart_while_requests_wait_changes_nothing(name: str) -> None:
    assert said(name, 700.0, 800.0, restarts=3) == said(name, 700.0, 800.0)
