"""A history replayed into real tables second by second, and `/metrics` as `kardia serve` gives them at each instant.

Two kinds of history: recorded stories of real brokers (`tests/corpora`), cut where a collector would have stood at each
second, and the traces of `tests/golden`, which Kafka's own classes agree with. What is recorded of the series can be
written down in the words of `promtool test rules`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from prometheus_client import CollectorRegistry

from api.metrics import TableMetrics
from api.settings import ApiSettings
from api.store import Store
from ingest.archives.ranges import tick
from kardia.events import DEFAULT_LANES, Event, Kind
from kardia.observe import Observer, ObserverSettings
from kardia.tables import Row
from kardia.trace import play
from spark_jobs.lane import Lane
from spark_jobs.lane_model import ObserverFactory
from tests.api.written import Tables
from tests.golden import log, traces
from tests.support.stories import lanes_of

STEP_MS = 1_000
CLUSTER = "test"

Batch = tuple[int, Mapping[str, Sequence[Row]]]
"""(instant on the broker's clock, rows that are known by then)."""

Series = dict[tuple[str, tuple[tuple[str, str], ...]], list[float | None]]
"""(name, labels) -> value at each step, None where there is none."""


def story_batches(
    name: str,
    blind: tuple[int, int] | None = None,
    gap_at: int | None = None,
    of: Callable[[str], tuple[tuple[Event, ...], ...]] = lanes_of,
) -> Iterator[Batch]:
    """A recorded story by the second. `blind`: seconds from the start between which the collector reads nothing;
    `gap_at`: the second at which it says that lines were lost; `of`: its events by lane."""
    stamps: dict[str, list[float]] = {}
    for event in (event for events in of(name) for event in events if event.kind != Kind.TICK):
        stamps.setdefault(event.source, []).append(event.logged_at_ms)
    for lines in stamps.values():
        lines.sort()
    lanes = [_Cut(lane, events, stamps) for lane, events in enumerate(of(name))]
    first_ms = min(cut.first_ms for cut in lanes)
    last_ms = max(cut.last_ms for cut in lanes)
    for second, now_ms in enumerate(range(first_ms, last_ms + 2 * STEP_MS, STEP_MS)):
        rows: dict[str, list[Row]] = {}
        if blind is None or not blind[0] <= second < blind[1]:
            for cut in lanes:
                for table, some in cut.step(now_ms, gap=second == gap_at).items():
                    rows.setdefault(table, []).extend(some)
        yield now_ms, rows


def trace_batches(name: str) -> Iterator[Batch]:
    """A golden trace by the second, on the newest release it is written for."""
    trace = next(one for one in traces() if one.name.removesuffix(".trace") == name)
    version = trace.versions[-1]
    played = play(trace, version)
    observer = ObserverSettings(CLUSTER, version)
    lane = Lane(ObserverFactory(observer), "kardia.events", log.LANE, DEFAULT_LANES)
    for record in log.records(trace, played.exchanges, version):
        yield record.at_ms, lane.step([record])


class _Cut:
    """One lane of a story, and how far it has been read."""

    def __init__(self, lane: int, events: Sequence[Event], stamps: Mapping[str, Sequence[float]]) -> None:
        """`stamps`: of all lines of each source, in order: a log is one, whatever lane its lines are sent to."""
        self._stamps = stamps
        self._observer = Observer(ObserverSettings(CLUSTER), lane)
        self._waiting: dict[str, list[Event]] = {}
        self._at: dict[str, int] = {}
        self._end: dict[str, int] = {}
        for event in events:
            if event.kind != Kind.TICK:
                self._waiting.setdefault(event.source, []).append(event)
        self._sources = sorted(
            {event.source for event in events if event.kind == Kind.TICK},
        )
        mine = [event.logged_at_ms for event in events if event.source in self._sources and event.kind != Kind.TICK]
        self.first_ms = int(min(mine, default=2**53))
        self.last_ms = int(max(mine, default=0))

    def step(self, now_ms: int, *, gap: bool) -> Mapping[str, Sequence[Row]]:
        """Rows that are known at an instant: all lines logged by then, and a tick of each source."""
        taken: list[Event] = []
        for source, waiting in self._waiting.items():
            begin = at = self._at.get(source, 0)
            while at < len(waiting) and waiting[at].logged_at_ms <= now_ms:
                at += 1
            self._at[source] = at
            taken += waiting[begin:at]
        for source in self._sources:
            mine = [event for event in taken if event.source == source]
            begin, end = self._end.get(source, 0), max((event.end for event in mine), default=self._end.get(source, 0))
            alive = {
                "first_line_at_ms": min((event.logged_at_ms for event in mine), default=0.0),
                "last_line_at_ms": self._last_line_at_ms(source, now_ms),
                "silences": [],
            }
            if gap:
                instants = (float(now_ms),) * 4
                detail = {"from_ms": float(now_ms - STEP_MS), "to_ms": float(now_ms), "reason": "lost_lines"}
                taken.append(Event(int(Kind.GAP), -1, source, end, end, *instants, detail=detail))
            taken.append(tick(source, begin, end, now_ms, len(mine), len(mine), {}, now_ms, alive))
            self._end[source] = end
        return self._observer.step(taken)

    def _last_line_at_ms(self, source: str, now_ms: int) -> float:
        """Stamp of the last line of a source, as a collector says it: a log that grows no more shows no life."""
        read = bisect_right(self._stamps.get(source, ()), now_ms)
        return self._stamps[source][read - 1] if read else 0.0


class Served:
    """Tables under construction, and the server's view of them."""

    def __init__(self, root: Path, **settings: Any) -> None:
        self._tables = Tables(root)
        self._tables.create()
        self._batch_id = -1
        self.now_ms = 0
        self.store = Store(ApiSettings(tables=root, **settings), lambda: self.now_ms)
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(TableMetrics(self.store))

    def take(self, batch: Batch) -> None:
        """Commit a batch as the job does, and let the server look."""
        self.now_ms, rows = batch
        if any(rows.values()):
            self._batch_id += 1
            self._tables.batch(self._batch_id, *((table, row) for table, some in rows.items() for row in some))
        self.store.refresh()

    def samples(self, names: frozenset[str]) -> Iterator[tuple[tuple[str, tuple[tuple[str, str], ...]], float]]:
        """What a scrape says at present about some series."""
        for family in self._registry.collect():
            for one in family.samples:
                if one.name in names:
                    yield (one.name, tuple(sorted(one.labels.items()))), one.value


def recorded(batches: Iterator[Batch], root: Path, names: frozenset[str]) -> tuple[int, Series]:
    """(instant of the first step, values of the series with these names at each step)."""
    served, series, begin_ms, steps = Served(root), Series(), 0, 0
    for batch in batches:
        served.take(batch)
        begin_ms = begin_ms or served.now_ms
        for key, value in served.samples(names):
            found = series.setdefault(key, [])
            found += [None] * (steps - len(found))
            found.append(value)
        steps += 1
    for found in series.values():
        found += [None] * (steps - len(found))
    return begin_ms, series


def as_promtool(series: Series) -> list[dict[str, str]]:
    """`input_series` of a test of promtool: equal values are folded, a missing one is `_`."""
    return [
        {
            "series": f"{name}{{{','.join(f'{label}={_quoted(value)}' for label, value in labels)}}}",
            "values": _run(values),
        }
        for (name, labels), values in series.items()
    ]


def _run(values: list[float | None]) -> str:
    words = []
    for value, same in groupby(values):
        times = len(list(same))
        words.append(f"_x{times}" if value is None else f"{value:.6g}x{times - 1}")
    return " ".join(words)


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
