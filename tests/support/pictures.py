"""Tables of a recorded story for screenshots and tests of the page, as a live job would have left them: a step a
second, and every event in the archive.

`kardia replay` takes a log as a whole and writes health at its end; a picture of a past minute needs the minute's own
rows. Used by the tests of the page and by `scripts/screenshots.py`.
"""

from __future__ import annotations

from pathlib import Path

from deltalake import DeltaTable, write_deltalake

from kardia.events import Event, Kind
from kardia.observe import Observer, ObserverSettings
from kardia.tables import LIVE_TABLES, TABLES, Row
from spark_jobs.archive.rows import row_of
from spark_jobs.schemas import ARROW_SCHEMAS, to_arrow
from tests.support.stories import lanes_of

STEP_MS = 1_000.0


def write_live(
    name: str, root: Path, cluster: str, cut_ms: float | None = None, end_at_ms: float | None = None
) -> tuple[int, int]:
    """Add a story to tables; returns its first and last instant.

    `cut_ms`: only so much of it, from its first line on. `end_at_ms`: moved in time so that it ends then; several
    stories that end together look like one fleet.
    """
    lanes = lanes_of(name)
    first_ms = min(event.logged_at_ms for events in lanes for event in events if event.kind != Kind.TICK)
    last_ms = max(event.logged_at_ms for events in lanes for event in events if event.kind != Kind.TICK)
    end_ms = last_ms if cut_ms is None else first_ms + cut_ms
    moved_ms = 0.0 if end_at_ms is None else end_at_ms - end_ms
    rows: dict[str, list[Row]] = {table: [] for table in LIVE_TABLES}
    archived: list[Row] = []
    for lane, events in enumerate(lanes):
        observer = Observer(ObserverSettings(cluster), lane)
        there = tuple(_moved(event, moved_ms) for event in events)
        for step in _steps(there, first_ms + moved_ms, end_ms + moved_ms):
            for table, some in observer.step(step).items():
                rows[table].extend(some)
            archived.extend(row_of(cluster, event) for event in step if event.kind not in (Kind.TICK, Kind.GAP))
    if not (root / "progress").exists():
        for table in LIVE_TABLES:
            DeltaTable.create(root / table, ARROW_SCHEMAS[table])
    write_deltalake(root / "events", to_arrow(TABLES["events"], archived, 0), mode="append")
    for table in LIVE_TABLES:  # progress is the last of them
        if rows[table]:
            write_deltalake(root / table, to_arrow(TABLES[table], rows[table], 0), mode="append")
    return int(first_ms + moved_ms), int(end_ms + moved_ms)


def _moved(event: Event, by_ms: float) -> Event:
    """The same event at another time; of its details only those that the observer compares with the clock."""
    detail = event.detail
    if detail and by_ms:
        detail = dict(detail)
        for key in ("first_line_at_ms", "last_line_at_ms", "wall_at_ms", "state_at_ms", "commit_at_ms"):
            if detail.get(key, -1) > 0:
                detail[key] += type(detail[key])(by_ms)
        if "silences" in detail:
            detail["silences"] = [[began + by_ms, ended + by_ms] for began, ended in detail["silences"]]
    return event._replace(
        logged_at_ms=event.logged_at_ms + by_ms,
        arrived_at_ms=event.arrived_at_ms + by_ms,
        handled_at_ms=event.handled_at_ms + by_ms,
        decided_at_ms=event.decided_at_ms + by_ms,
        detail=detail,
    )


def _steps(events: tuple[Event, ...], first_ms: float, end_ms: float) -> list[list[Event]]:
    """Events by the second of their line, each source's in its order, and a tick of each source behind every second."""
    ordered = sorted((event for event in events if event.kind != Kind.TICK), key=lambda one: one.logged_at_ms)
    ticks = {event.source: event for event in events if event.kind == Kind.TICK}
    reached = dict.fromkeys(ticks, 0)
    steps: list[list[Event]] = []
    at_ms, place = first_ms, 0
    while at_ms < end_ms:
        at_ms = min(at_ms + STEP_MS, end_ms)
        step: list[Event] = []
        while place < len(ordered) and ordered[place].logged_at_ms <= at_ms:
            step.append(ordered[place])
            place += 1
        before = dict(reached)
        for event in step:
            if event.source in reached:
                reached[event.source] = max(reached[event.source], event.end)
        steps.append(step + [_tick(tick, at_ms, before[name], reached[name]) for name, tick in ticks.items()])
    return steps


def _tick(tick: Event, at_ms: float, start: int, end: int) -> Event:
    """What a collector would have said at an instant; of the silences only those that were over."""
    detail = dict(tick.detail or {})
    detail |= {"previous_end": start, "wall_at_ms": at_ms, "last_line_at_ms": at_ms}
    detail["silences"] = [pair for pair in detail["silences"] if pair[1] <= at_ms]
    return tick._replace(
        start=start,
        end=end,
        logged_at_ms=at_ms,
        arrived_at_ms=at_ms,
        handled_at_ms=at_ms,
        decided_at_ms=at_ms,
        detail=detail,
    )
