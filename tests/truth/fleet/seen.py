"""What the observer says of a run: its log lines through the real dialect, a second at a time, as a collector would.

The observer gets events and ticks and nothing else. Rows of every step are kept, so that what was said at any time can
be held against the truth.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

from ingest.offline import parse_range, plan, route, tick
from ingest.router import Directory
from kardia.events import Event
from kardia.observe import Observer, ObserverSettings
from kardia.tables import LIVE_TABLES, Row
from tests.truth.fleet.world import START_MS

STEP_MS = 1_000.0


@dataclass
class Seen:
    """Rows of every step, and what is left unexplained."""

    rows: dict[str, list[Row]]
    events: int
    divergences: int


def observe(lines: list[tuple[float, bytes]], to_ms: float, step_ms: float = STEP_MS, *, repeats: bool = False) -> Seen:
    """Read the lines of one broker up to `to_ms`, in the order in which they reached the file. With `repeats` each step
    is sent once more before the next one, as after a producer that did not hear of its success."""
    events, source = _parsed(b"".join(line for _, line in lines))
    ends, position = [], 0
    for written_at_ms, line in lines:
        position += len(line)
        ends.append((written_at_ms, position))
    observer = Observer(ObserverSettings("truth"))
    rows: dict[str, list[Row]] = {name: [] for name in LIVE_TABLES}
    place = line_place = begin = 0
    before: list[Event] = []
    now = START_MS
    while now < to_ms:
        now += step_ms
        end = begin
        while line_place < len(ends) and ends[line_place][0] <= now:
            end = ends[line_place][1]
            line_place += 1
        step: list[Event] = []
        while place < len(events) and events[place].end <= end:
            step.append(events[place])
            place += 1
        step.append(tick(source, begin, end, now, len(step), len(step), {}, now, {"last_line_at_ms": now}))
        begin = end
        _add(rows, observer.step([*before, *step]))
        before = step if repeats else []
    _add(rows, observer.finish())
    divergences = sum(row[-2] for row in rows["progress"])
    return Seen(rows, len(events), divergences)


def _parsed(text: bytes) -> tuple[list[Event], str]:
    """Events in the order of the file; a FETCH once for each shard of its client."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "kafka-request.log"
        path.write_bytes(text)
        pieces = [parse_range(piece) for piece in plan([path])]
    directory = Directory()
    for piece in pieces:
        directory.merge(piece.directory)
    events = [event for piece in pieces for lane in route(piece, directory).values() for event in lane]
    rejected = sum(sum(piece.rejected.values()) for piece in pieces)
    if rejected:
        raise AssertionError(f"{rejected} lines of the simulated broker were not understood")
    events.sort(key=lambda event: (event.start, event.shard))
    return events, pieces[0].source


def _add(rows: dict[str, list[Row]], more: dict[str, list[Row]]) -> None:
    for name, some in more.items():
        rows[name].extend(some)
