"""What the observer says of a run: its log lines through the real dialect, a second at a time, as collectors would.

The observer gets events, ticks and gaps and nothing else. Rows of every step are kept, so that what was said at any
time can be held against the truth. `damage` takes evidence away on its way.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from ingest.archives.ranges import ParsedRange, parse_range, plan, route, tick
from ingest.collector import OFFSETS_SOURCE
from ingest.offsets.records import record_event
from ingest.offsets.source import MARGIN_MS
from ingest.router import Directory
from kardia import slowness
from kardia.events import SILENCE_MS, Event, Kind
from kardia.observe import Observer, ObserverSettings
from kardia.slowness import WINDOW_MS
from kardia.tables import LIVE_TABLES, TABLES, Row
from tests.truth.fleet.damage import Damage, damage_of
from tests.truth.fleet.lines import Line
from tests.truth.fleet.run import Run
from tests.truth.fleet.sampling import Heard
from tests.truth.fleet.world import START_MS

STEP_MS = 1_000.0


@dataclass
class Seen:
    """Rows of every step, what is left unexplained, and what the observer was not shown."""

    rows: dict[str, list[Row]]
    events: int
    divergences: int
    damage: Damage = field(default_factory=Damage)
    apart_ms: float = 0.0
    """How far the clock of whoever sampled is from that of the brokers."""
    named: set[str] = field(default_factory=set)
    """Member ids that are named in what the observer was shown."""


class Log:
    """The log of one broker as its collector reads it."""

    def __init__(self, lines: list[Line], piece: ParsedRange, directory: Directory) -> None:
        """`piece` is the whole log, parsed."""
        self._lines, self._source = lines, piece.source
        self._events = [event for lane in route(piece, directory).values() for event in lane]
        self._events.sort(key=lambda event: (event.start, event.shard))
        self._slow = sorted(piece.slow)
        self._line = self._place = self._end = self._told_end = self._told_slow = 0
        self._last_at_ms = -1

    def step(self, now: float, damage: Damage) -> list[Event]:
        """What the collector sends of the lines that were written up to `now`, and its tick."""
        first, line = self._line, self._line
        while line < len(self._lines) and self._lines[line].written_at_ms <= now:
            self._end += len(self._lines[line].text)
            line += 1
        self._line = line
        step: list[Event] = []
        while self._place < len(self._events) and self._events[self._place].end <= self._end:
            step.append(self._events[self._place])
            self._place += 1
        lost = damage.lost_at(now)
        if lost is not None and now < lost.to_ms:
            return []  # the collector does not run, or cannot read: no tick either
        signs = self._signs([one.stamp_at_ms for one in self._lines[first:line]], now) | self._slowness(now)
        begin, self._told_end = self._told_end, self._end
        if lost is not None:
            step = [event for event in step if event.logged_at_ms > lost.to_ms]
            detail = {"from_ms": lost.from_ms, "to_ms": lost.to_ms, "reason": "lost_lines"}
            at = lost.to_ms
            gap = Event(int(Kind.GAP), -1, self._source, begin, begin, at, at, at, at, detail=detail)
            step.insert(0, gap)
        counted = sum(event.kind != Kind.GAP for event in step)
        sign = tick(self._source, begin, self._end, now, counted, counted, {}, now, signs)
        return [*damage.thinned(step, now), sign]

    def _slowness(self, now: float) -> dict[str, object]:
        """How slow the broker was in the windows that are over."""
        first = self._told_slow
        while self._told_slow < len(self._slow) and self._slow[self._told_slow][slowness.FROM] + WINDOW_MS <= now:
            self._told_slow += 1
        return {"slow": self._slow[first : self._told_slow]} if first < self._told_slow else {}

    def _signs(self, stamps: list[int], now: float) -> dict[str, object]:
        """When the log was alive: as the collector's own reader says it."""
        if not stamps:
            return {"last_line_at_ms": float(self._last_at_ms if self._last_at_ms >= 0 else now)}
        silences, last = [], stamps[0]
        for stamp in stamps:
            if stamp - last >= SILENCE_MS:
                silences.append([float(last), float(stamp)])
            last = max(last, stamp)
        self._last_at_ms = max(self._last_at_ms, last)
        return {
            "first_line_at_ms": float(stamps[0]),
            "last_line_at_ms": float(self._last_at_ms),
            "silences": silences,
        }


def observe(
    run: Run,
    *,
    records: bool | None = None,
    server: bool | None = None,
    samples: str = "",
    repeats: bool = False,
    step_ms: float = STEP_MS,
    damaged: bool = True,
    between_steps: Callable[[Observer], Observer] = lambda observer: observer,
) -> Seen:
    """Show a run to the observer.

    `records`: with `__consumer_offsets`, `server`: with `server.log`, by default as the scenario says; `samples`: with
    what one of the run's askers was told. With `repeats` each step is sent once more before the next one, as after a
    producer that did not hear of its success.
    `between_steps` may put another observer in the place of the one that goes on, as a restart does.
    """
    damage = damage_of(run) if damaged else Damage()
    topic = run.records if (run.scenario.records if records is None else records) else []
    reads_server = run.scenario.server if server is None else server
    texts = [run.logs if run.scenario.requests else [], run.server_logs if reads_server else []]
    logs = logs_of(
        *([[one for one in lines if one.written_at_ms > damage.begins_at_ms] for lines in some] for some in texts)
    )
    session_ms = run.session_ms if run.scenario.tells_session else -1
    observer = Observer(
        ObserverSettings(
            "truth", consumer_session_ms=session_ms, share_session_ms=session_ms, streams_session_ms=session_ms
        )
    )
    rows: dict[str, list[Row]] = {name: [] for name in LIVE_TABLES}
    before: list[Event] = []
    seen = Seen(rows, 0, 0, damage)
    place = 0
    heard = Heard(run.askers[samples]) if samples else None
    seen.apart_ms = abs(run.askers[samples].asks.apart_ms) if samples else 0.0
    now = max(START_MS, damage.begins_at_ms)
    while now < run.ended_at_ms:
        now += step_ms
        if any(begin <= now < end for begin, end in run.sleeps):
            continue  # nobody reads, and nobody ticks
        step = [event for log in logs for event in log.step(now, damage)]
        begin = place
        while place < len(topic) and topic[place].read_at_ms <= now:
            place += 1
        for one in topic[begin:place]:
            event = record_event(one.partition, one.offset, one.timestamp_ms, one.key, one.value)
            if event is None or event.kind == Kind.REJECTED:
                raise AssertionError(f"{one}: a record of the simulated broker was not understood")
            step.append(event)
        if topic:
            read = place - begin
            step.append(tick(OFFSETS_SOURCE, begin, place, now - MARGIN_MS, read, read, {}, now))
        step += heard.step(now) if heard is not None else []
        _name(seen.named, step)
        seen.events += len(step)
        _add(rows, observer.step([*before, *step]))
        observer = between_steps(observer)
        before = step if repeats or run.scenario.disorder else []
    _add(rows, observer.finish())
    seen.divergences = sum(row[TABLES["progress"].names.index("divergences")] for row in rows["progress"])
    return seen


def logs_of(texts: list[list[Line]], server_texts: list[list[Line]]) -> list[Log]:
    """The logs of the brokers, parsed; a FETCH once for each shard of its client. `server_texts`: the same brokers'."""
    pieces: list[tuple[list[Line], ParsedRange]] = []
    with tempfile.TemporaryDirectory() as folder:
        for number in range(max(len(texts), len(server_texts))):
            path = Path(folder) / f"{number}" / "kafka-request.log"
            path.parent.mkdir()
            lines = texts[number] if texts else []
            path.write_bytes(b"".join(line.text for line in lines))
            servers = []
            for server_lines in server_texts[number : number + 1]:
                servers.append(path.with_name("server.log"))
                servers[0].write_bytes(b"".join(line.text for line in server_lines))
            pieces += [
                (server_texts[number] if piece.stream == "server" else lines, parse_range(piece))
                for piece in plan([path], servers, range_bytes=1 << 40)
            ]
    directory = Directory()
    for _, parsed in pieces:
        directory.merge(parsed.directory)
        rejected = sum(parsed.rejected.values())
        if rejected:
            raise AssertionError(f"{rejected} lines of the simulated broker were not understood")
    return [Log(lines, parsed, directory) for lines, parsed in pieces]


def _name(named: set[str], events: list[Event]) -> None:
    """Collect who is named in events."""
    for event in events:
        named.add(event.member_id)
        detail = event.detail
        if detail:
            named.add(str(detail.get("assigned_member_id", "")))
            # Of a record, entries of members; of a sentence, their ids.
            members = detail.get("members") or ()
            named.update(entry if isinstance(entry, str) else str(entry[0]) for entry in members)


def _add(rows: dict[str, list[Row]], more: dict[str, list[Row]]) -> None:
    for name, some in more.items():
        rows[name].extend(some)
