"""Taking in: each source's events once and in order, and how far each log has been read and was alive.

A repeat is recognised by its position. What is accepted waits in a queue of its broker (or, folded, among the
stretches that are held) until the clock of the broker moves over it. Ticks, gaps and rejected lines are about the
source itself and are counted here.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import inf
from operator import attrgetter
from typing import Any

from kardia import slowness
from kardia.events import SILENCE_MS, Event, Kind, broker_of, stream_of
from kardia.kafka.sessions import coordinator_of_connection
from kardia.observe.facts import busy
from kardia.observe.facts.groups_of_lane import BESIDE_LOGS, OFFSETS_BROKER, Facts
from kardia.observe.intake.held import Held
from kardia.observe.intake.instants import BY_HANDLING, after_its_commit, as_handled, effect_at, has_waited, withdraw
from kardia.observe.output import rows
from kardia.observe.state.entries import Silence, Unjudged
from kardia.observe.state.group import NEVER
from kardia.observe.state.settings import ObserverSettings
from kardia.stretches import END, START, WIDTH, Stretch
from kardia.tables import DISAGREEMENTS, NOT_TESTED
from kardia.tolerances import AT_ONCE_MS, STAMP_MS, STARTS_WITHIN_MS

_TICK, _GAP, _REJECTED = int(Kind.TICK), int(Kind.GAP), int(Kind.REJECTED)
_HEARTBEAT, _MODERN = int(Kind.HEARTBEAT), int(Kind.MODERN_HEARTBEAT)
_COMMIT, _LEAVE, _LINE = int(Kind.COMMIT), int(Kind.LEAVE), int(Kind.COORDINATOR_LINE)

REMEMBERED_MS = 2 * 1_800_000.0
"""Silences of a log, and when its broker was slow, are remembered that long: twice the longest session that brokers
allow by default."""

MAX_SOURCES = 1_000
"""Files of one log whose positions are remembered: six weeks of a log that is rotated every hour. A line of an older
one would not be recognised as a repeat; no collector keeps positions of files that are gone. What is forgotten is
counted (`Intake.files_forgotten`), and the live job exports the count."""

GAP_WEIGHT = 0.1
"""Weight of a tick in what is usual between two lines: ten of them, some ten seconds of a live log, make a habit."""

UNUSUAL = 10.0
"""A silence of so many usual gaps is not chance: where lines come at random, one gap in 20,000 is that long."""

COUNTS = ("events", "duplicates", "lines", "ignored", "rejected", "gaps", "touched")
"""Counts of a stream that no row of `progress` has told yet: one without a tick waits with them."""


class Stream:
    """Counts of one BROKER/STREAM since the last row of `progress`, and how far it is complete."""

    __slots__ = (
        "alive_to",
        "begins_at",
        "complete_to",
        "duplicates",
        "ends_at",
        "events",
        "gap_from",
        "gap_to",
        "gaps",
        "heard_from",
        "ignored",
        "last_line_at",
        "lines",
        "rejected",
        "since_tick",
        "touched",
        "usual_gap_ms",
    )

    def __init__(self, complete_to: float = NEVER, alive_to: float = NEVER, since_tick: int = 0) -> None:
        self.complete_to = complete_to
        self.alive_to = alive_to
        """The last line, as far as the clock has come."""
        self.last_line_at = alive_to
        """The last line of what was taken in."""
        self.since_tick = since_tick
        """Events since its last tick in a state that did not count by file (`Source.since_tick`)."""
        self.begins_at = NEVER
        """Stamp of the first line that is read of it; NEVER where that is not told."""
        self.heard_from = NEVER
        """Stamp of the first line of its first tick, or of that itself if it is silent: what was answered before is not
        read, live as well; NEVER where neither is told."""
        self.ends_at = NEVER
        """Stamp of its last line, where the broker's other log goes on without it."""
        self.usual_gap_ms = NEVER
        """From a line to the next, on average; NEVER where ticks do not tell it."""
        self.clear()

    def note_gap(self, lines: int, read_ms: float) -> None:
        """A tick covers `read_ms` of the log, with so many lines. Without any it tells of a silence, not of a habit."""
        if lines > 0 and read_ms > 0:
            gap_ms, usual_ms = read_ms / lines, self.usual_gap_ms
            self.usual_gap_ms = gap_ms if usual_ms < 0 else usual_ms + GAP_WEIGHT * (gap_ms - usual_ms)

    def covers(self, at: float) -> bool:
        """Whether lines about an instant are read."""
        return self.begins_at <= at and not 0 <= self.ends_at <= at

    def clear(self) -> None:
        self.events = self.duplicates = self.lines = self.ignored = self.rejected = self.gaps = 0
        self.touched = False
        self.gap_from, self.gap_to = inf, NEVER

    def note_gap_of(self, from_at: float, to_at: float) -> None:
        """Bounds of what is lost; several gaps of one row of `progress` lie within them."""
        self.gap_from, self.gap_to = min(self.gap_from, from_at), max(self.gap_to, to_at)


class Source:
    """How far one source has been accepted: now, and before this step. `queue` and `stream` are its broker's."""

    __slots__ = ("base", "end", "folded", "queue", "since_tick", "stream", "tick_end")

    def __init__(
        self,
        stream: Stream,
        queue: list[tuple[float, Event]],
        end: int = -1,
        tick_end: int = -1,
        since_tick: int = 0,
    ) -> None:
        self.since_tick = since_tick
        """Events that came since its last tick, repeats among them: a collector that begins again at an older position
        counts what it sends, whether or not it was sent before."""
        self.stream = stream
        self.queue = queue
        self.base = self.end = end
        self.tick_end = tick_end
        self.folded: deque[tuple[float, int]] = deque()
        """Stretches of this step that no tick has counted yet, in the order in which they came: (where the last event
        of one stands, how many it has)."""

    def count_folded(self, to: float) -> None:
        """Stretches are taken in before the ticks of their step: each counts when the tick behind it is met."""
        while self.folded and self.folded[0][0] < to:
            self.since_tick += self.folded.popleft()[1]


@dataclass(slots=True)
class Told:
    """What a tick told of a broker's whole log. It counts from where the clock stood when the tick came, so that what
    is known at an instant does not depend on how many ticks came in one step."""

    since: float
    """How far the log was complete before this tick."""
    broker: str
    stream: Stream
    pause: Silence | None
    """The time without a line before what the tick covers, if a broker may have been started again in it."""
    silences: list[Silence]
    slow: Sequence[Sequence[float]]
    queued: Sequence[float]
    """When requests arrived that stood long in the queue."""
    alive_to: float = NEVER
    """The last line of this tick, and of those behind it that told nothing else."""

    def is_news(self) -> bool:
        """Whether it told of a pause, a silence or slowness; most ticks do not."""
        return bool(self.pause or self.silences or self.slow or self.queued)


class Intake(Facts):
    """Sources and streams of one lane, and what waits for the clocks."""

    def __init__(self, settings: ObserverSettings, lane: int) -> None:
        super().__init__(settings, lane)
        self.sources: dict[str, Source] = {}
        self.files_forgotten = 0
        """Files beyond `MAX_SOURCES` that were forgotten in this step."""
        self.streams: dict[str, Stream] = {}
        self.queues: dict[str, list[tuple[float, Event]]] = {}
        """What waits, by broker: (instant of its effect, event)."""
        self.held = Held()
        self.last_sign_at: dict[str, float] = {}
        """Latest record by which a broker was seen alive, beside its log."""
        self.over: set[str] = set()
        """Brokers of which no more will be read. Not saved: each tick of them says it again."""
        self._told: list[Told] = []
        self._seen: set[tuple[str, int, int]] | None = None

    def take_in(self, events: Iterable[Event], stretches: Iterable[Stretch]) -> None:
        """Accept what has not been accepted before."""
        self._seen = None
        self.files_forgotten = 0
        for source in self.sources.values():
            source.base = source.end
        folded = [self._accept_stretch(stretch) for stretch in stretches]
        self._accept_all(events)
        for source, end in folded:
            source.end = max(source.end, end)
            source.count_folded(inf)

    def _streams_of(self, broker: str) -> list[Stream]:
        """The request log of a broker; without one, whatever there is of it."""
        request = self.streams.get(f"{broker}/request")
        if request is not None:
            return [request]
        return [stream for name, stream in self.streams.items() if name.rsplit("/", 1)[0] == broker]

    def complete_to(self, broker: str) -> float:
        """Up to when the log of a broker has been read completely."""
        return max((stream.complete_to for stream in self._streams_of(broker)), default=NEVER)

    def reads_requests(self, broker: str, at: float) -> bool:
        """Whether what a broker was asked at an instant is read, in its request log; empty: of any broker."""
        if broker:
            request = self.streams.get(f"{broker}/request")
            return request is not None and request.covers(at)
        return any(name.endswith("/request") and stream.covers(at) for name, stream in self.streams.items())

    def heard_requests_at(self, broker: str, at: float) -> bool:
        """Whether the request log of a broker had begun at an instant, as far as it is read; empty: that of any."""
        names = [f"{broker}/request"] if broker else [name for name in self.streams if name.endswith("/request")]
        return any(name in self.streams and self.streams[name].heard_from <= at for name in names)

    def has_requests(self) -> bool:
        """Whether a request log of any broker is read, at any time."""
        return any(name.endswith("/request") for name in self.streams)

    def reads_records(self) -> bool:
        """Whether `__consumer_offsets` is read."""
        return any(name.startswith(f"{OFFSETS_BROKER}/") for name in self.streams)

    def logged_to(self, broker: str) -> float:
        """Stamp of the last line of a broker's request log; NEVER where none is read."""
        request = self.streams.get(f"{broker}/request")
        return NEVER if request is None else request.alive_to

    def last_lines(self) -> Iterable[float]:
        """Stamp of the last line of each request log that is read."""
        return (stream.alive_to for name, stream in self.streams.items() if name.endswith("/request"))

    def alive_to(self, broker: str) -> float:
        """Up to when the broker is known to have been alive: a log read to its end that gets no more lines may be the
        log of a dead broker, whose timers evict nobody."""
        signs = (stream.alive_to for stream in self._streams_of(broker))
        return max(*signs, self.last_sign_at.get(broker, NEVER), NEVER)

    def is_oddly_silent(self, broker: str) -> bool:
        """Whether a broker has logged nothing for longer than it does when it is well, up to where its log was read: it
        may stand still, and what it has been asked before is answered, and so logged, when it goes on."""
        usual_ms = max((stream.usual_gap_ms for stream in self._streams_of(broker)), default=NEVER)
        return 0 <= UNUSUAL * usual_ms < self.complete_to(broker) - self.alive_to(broker)

    def _accept_all(self, events: Iterable[Event]) -> None:
        """`_accept` for each; of a request that comes in its place without the calls."""
        sources = self.sources
        for event in events:
            kind, source = event.kind, sources.get(event.source)
            unusual = source is None or kind >= _LINE or kind == _LEAVE or event.start < source.end
            unusual = unusual or (kind == _MODERN and has_waited(event))
            if unusual or source is None or not self.coordinator_known:
                self._accept(event)
                continue
            source.end = event.end
            source.since_tick += 1
            source.stream.events += 1
            if self._seen is not None:
                self._seen.add((event.source, event.start, event.shard))
            at = event.decided_at_ms
            if kind in BY_HANDLING or (kind == _HEARTBEAT and at - event.arrived_at_ms > AT_ONCE_MS - STAMP_MS):
                at = effect_at(event)
            source.queue.append((at, event))

    def _accept(self, event: Event) -> None:
        source = self.sources.get(event.source) or self.new_source(event.source)
        kind = event.kind
        if kind >= _TICK:
            self._accept_sign(event, source)
            return
        source.since_tick += 1
        if event.start >= source.end:
            source.end = event.end
        elif event.start < source.base or self._seen_in_step(event):
            source.stream.duplicates += 1
            return
        source.stream.events += 1
        if self._seen is not None:
            self._seen.add((event.source, event.start, event.shard))
        if kind == _LEAVE:
            at = after_its_commit(source.queue, event)
        elif kind == _MODERN and has_waited(event):
            at = as_handled(source.queue, event)
        else:
            at = effect_at(event)
        source.queue.append((at, event))
        if kind == _LINE and (event.detail or {}).get("what") == "rebalance_skipped":
            withdraw(source.queue, event)
        if not self.coordinator_known and event.connection:
            self._recognise(event.connection)

    def _accept_stretch(self, stretch: Stretch) -> tuple[Source, int]:
        head, numbers = stretch.head, stretch.numbers
        source = self.sources.get(head.source) or self.new_source(head.source)
        source.folded.append((numbers[START - WIDTH], len(stretch)))
        if numbers[START] < source.base:
            repeated = bisect_left(stretch.column(START), source.base)
            source.stream.duplicates += repeated
            numbers = numbers[repeated * WIDTH :]
            stretch = Stretch(head, numbers)
        count = len(numbers) // WIDTH
        if not count:
            return source, source.end
        source.stream.events += count
        if not self.coordinator_known and head.connection:
            self._recognise(head.connection)
        if not self.held.add(broker_of(head.source), stretch):
            source.queue.extend((effect_at(event), event) for event in stretch.events())
        return source, int(numbers[END - WIDTH])

    def new_source(self, name: str, end: int = -1, tick_end: int = -1, since_tick: int = 0) -> Source:
        """A file that has not been met before. Of each log only the latest files are remembered."""
        stream = self.streams.setdefault(stream_of(name), Stream())
        older = [one for one, source in self.sources.items() if source.stream is stream]
        if len(older) >= MAX_SOURCES:
            del self.sources[older[0]]
            self.files_forgotten += 1
        queue = self.queues.setdefault(broker_of(name), [])
        source = self.sources[name] = Source(stream, queue, end, tick_end, since_tick)
        return source

    def _accept_sign(self, event: Event, source: Source) -> None:
        """Take what is about the source itself: how far it is complete, what is lost, what was not understood."""
        stream = source.stream
        stream.touched = True
        if event.kind == _TICK:
            self._on_tick(event, stream, source)
        elif event.kind == _GAP:
            stream.gaps += 1
            self._queue_gap(event, source)
        elif event.kind == _REJECTED:
            source.since_tick += 1  # a collector counts it among what it sent: it has come, and nothing is lost
            if event.end > source.end:
                source.end = event.end
                stream.rejected += 1
                self._on_rejected(event)

    def _queue_gap(self, event: Event, source: Source) -> None:
        """A gap counts from its begin, and once more at its end, for whoever was heard inside it."""
        detail = event.detail or {}
        to_at = float(detail.get("to_ms", event.logged_at_ms))
        from_at = min(float(detail.get("from_ms", event.logged_at_ms)), to_at)
        source.stream.note_gap_of(from_at, to_at)
        source.queue += [(from_at, event), (to_at, event)]

    def _seen_in_step(self, event: Event) -> bool:
        """Whether an event that comes behind its place is a repeat, or only out of order (a FETCH is routed later than
        its neighbours, and goes to every shard its client has groups in: same position, another shard)."""
        if self._seen is None:
            self._seen = {
                (queued.source, queued.start, queued.shard) for queue in self.queues.values() for _, queued in queue
            }
        key = (event.source, event.start, event.shard)
        if key in self._seen:
            return True
        self._seen.add(key)
        return False

    def _recognise(self, connection: str) -> None:
        coordinator = coordinator_of_connection(connection)
        if coordinator is not None:
            self.coordinator, self.coordinator_known = coordinator, True

    def _on_tick(self, event: Event, stream: Stream, source: Source) -> None:
        detail = event.detail or {}
        lines = int(detail.get("lines", 0))
        stream.lines += lines
        stream.ignored += sum((detail.get("ignored") or {}).values())
        if stream.complete_to < 0:
            stream.begins_at = float(detail.get("begins_at_ms", NEVER))
            begun = event.logged_at_ms if detail.get("lines") == 0 else NEVER
            stream.heard_from = float(detail.get("first_line_at_ms", begun))
        self._take_end(event, stream, source, detail)
        came = self._came(event, source, int(detail.get("events", 0)))
        if event.end >= source.tick_end:  # else it repeats one
            self._queue_lost(event, source, came, detail)
            source.tick_end = event.end
            self._take_news(event, stream, source, detail)
        if event.logged_at_ms > stream.complete_to:
            if stream.complete_to >= 0:
                stream.note_gap(lines, event.logged_at_ms - stream.complete_to)
            stream.complete_to = event.logged_at_ms
        self._note_last_line(stream, min(event.logged_at_ms, float(detail.get("last_line_at_ms", event.logged_at_ms))))

    def _take_end(self, event: Event, stream: Stream, source: Source, detail: dict[str, Any]) -> None:
        """No more of its broker will be read, or this log has ended and another one goes on without it."""
        if detail.get("is_over"):
            self.over.add(broker_of(event.source))
        if "ends_at_ms" in detail and stream.ends_at < 0:
            stream.ends_at = float(detail["ends_at_ms"])
            over = {"from_ms": stream.ends_at, "to_ms": stream.ends_at, "reason": "log_ends"}
            source.queue.append((stream.ends_at, event._replace(kind=_GAP, detail=over)))

    def _queue_lost(self, event: Event, source: Source, came: int, detail: dict[str, Any]) -> None:
        """Queue the gaps of a tick: holes that the collector knows of, and all that it covers if something is missing
        without having been told."""
        stream = source.stream
        gaps = [(float(begin), float(end), "lost_lines") for begin, end in detail.get("holes") or ()]
        if self._has_missed(event, source, came, detail):
            begun = float(detail.get("first_line_at_ms", event.logged_at_ms))
            from_ms = stream.complete_to if stream.complete_to >= 0 else begun
            gaps.append((from_ms, event.logged_at_ms, "count_mismatch"))
        for begin, end, reason in gaps:
            stream.gaps += 1
            lost = {"from_ms": begin, "to_ms": end, "reason": reason}
            self._queue_gap(event._replace(kind=_GAP, detail=lost), source)

    def _take_news(self, event: Event, stream: Stream, source: Source, detail: dict[str, Any]) -> None:
        """Keep or queue what a tick tells beside how far its log is read."""
        if "session_ms" in detail:
            source.queue.append((event.logged_at_ms, event))  # counts from its instant on, as a request does
        self._take_shown(event, source, detail)
        if stream_of(event.source).endswith("/request"):  # other logs are silent when all is well
            self._take_told(event, stream, detail)
            self._take_process(event, source, detail)

    def _note_last_line(self, stream: Stream, alive_to: float) -> None:
        """A tick says when the last line was written; behind one that told something that counts once it is judged."""
        if alive_to > stream.last_line_at:
            stream.last_line_at = alive_to
            told = next((told for told in reversed(self._told) if told.stream is stream), None)
            if told is None:
                stream.alive_to = alive_to
            else:
                told.alive_to = alive_to

    def _came(self, event: Event, source: Source, sent: int) -> int:
        """How many events came since the tick before; from here on they are counted anew. A tick of records speaks for
        all files (partitions) of its stream that have none of their own."""
        stream, spoken_for = source.stream, [source]
        source.count_folded(event.end)
        if source.end < 0 and sent and broker_of(event.source) in BESIDE_LOGS:
            spoken_for += [one for one in self.sources.values() if one.stream is stream and one.tick_end < 0]
        came = stream.since_tick + sum(one.since_tick for one in spoken_for)
        for one in spoken_for:
            one.since_tick = 0
        if sent:
            stream.since_tick = 0
        return came

    @staticmethod
    def _has_missed(event: Event, source: Source, came: int, detail: dict[str, Any]) -> bool:
        """Whether something that was sent did not come: fewer events than the tick counts, or the tick begins behind
        all that was told of its file before. A collector that was killed begins its first tick where one of before
        ended, and what came of it without a tick is only more than is counted."""
        if came < int(detail.get("events", 0)):
            return True
        if source.stream.complete_to < 0 or broker_of(event.source) in BESIDE_LOGS:
            return False  # nothing was told before; or positions are sums, which need not go on where they stopped
        return int(detail.get("previous_end", 0)) > max(source.tick_end, 0)

    def _take_told(self, event: Event, stream: Stream, detail: dict[str, Any]) -> None:
        """Keep what a tick tells of the whole log, within what it covers and since the one before."""
        first_at = float(detail.get("first_line_at_ms", NEVER))
        starts = 0 <= stream.last_line_at <= first_at - STARTS_WITHIN_MS
        pause = Silence(stream.last_line_at, first_at) if starts else None
        silences = [Silence(float(begin), float(end)) for begin, end in detail.get("silences") or ()]
        slow, queued = detail.get("slow") or (), detail.get("queued_at") or ()
        told = Told(stream.complete_to, broker_of(event.source), stream, pause, silences, slow, queued)
        if told.is_news():
            self._told.append(told)

    def _take_process(self, event: Event, source: Source, detail: dict[str, Any]) -> None:
        """Queue what a tick tells of the broker's process at the instants at which it shows, ahead of the requests
        that show it."""
        broker, told = broker_of(event.source), detail.get("processes")
        if told is None:
            return
        self.process_known_from[broker] = float(told["known_from_ms"])
        if "asked_from_ms" in detail:
            asked_from_ms = float(detail["asked_from_ms"])
            self.asked_from[broker] = min(asked_from_ms, self.asked_from.get(broker, asked_from_ms))
        shown = [("restarted", *one, 0.0) for one in told.get("restarts") or ()]
        shown += [("went_on", *one) for one in told.get("went_on") or ()]
        for what, begin, end, at, on_time in shown:
            sign = {"process": [what, float(begin), float(end), on_time]}
            at = float(at)
            told_at = event._replace(start=-1, logged_at_ms=at, arrived_at_ms=at, handled_at_ms=at, decided_at_ms=at)
            source.queue.append((at, told_at._replace(detail=sign)))

    @staticmethod
    def _take_shown(event: Event, source: Source, detail: dict[str, Any]) -> None:
        """Queue what a tick tells of the length of sessions at the instants from which it counts."""
        for protocol, session_ms, told_at_ms in detail.get("session_shown") or ():
            at, shown = float(told_at_ms), {"session_shown": [protocol, session_ms]}
            told = event._replace(start=-1, logged_at_ms=at, arrived_at_ms=at, handled_at_ms=at, decided_at_ms=at)
            source.queue.append((at, told._replace(detail=shown)))

    def _stops_before(self, limits: dict[str, float], hold_ms: float) -> Iterator[float]:
        """Where the clocks have to stop on their way to `limits`, because a tick told something: at each yield the
        clock of its broker must stand where it stood when that tick came; what it told is noted when it goes on."""
        if not self._told:
            return
        self._told.sort(key=attrgetter("since"))
        while self._told:
            told = self._told[0]
            if told.since - hold_ms > limits.get(told.broker, NEVER):
                return
            yield told.since - hold_ms
            del self._told[0]
            self._note(told)

    def _note(self, told: Told) -> None:
        """Remember when the whole log was silent, when the broker was slow, and that it was alive."""
        broker, found = told.broker, told.silences
        if told.pause is not None and told.pause.end_at_ms - told.pause.begin_at_ms >= SILENCE_MS:
            found.insert(0, told.pause)
        elif told.pause is not None:
            self.pauses.setdefault(broker, []).append(told.pause)
            self.doubted[broker] = told.pause
        found = [pair for pair in found if pair not in self.silences.get(broker, ())]
        if found:
            self.silences.setdefault(broker, []).extend(found)
            self.unjudged.setdefault(broker, []).extend(Unjudged(*silence, NEVER) for silence in found)
        self.note_slow(broker, told.slow)
        if told.queued:
            self.queued[broker] = sorted([*self.queued.get(broker, ()), *told.queued])
        told.stream.alive_to = max(told.stream.alive_to, told.alive_to)

    def note_slow(self, broker: str, windows: Iterable[Sequence[float]]) -> None:
        """Remember when the broker was slow."""
        known = self.slow.setdefault(broker, {})
        for window in windows:
            slowness.note(known, window)

    def forget_before(self, broker: str, at: float) -> None:
        """Forget silences and slow windows of a broker that no session can reach back to any more."""
        slow = self.slow.get(broker)
        for silences in (self.silences, self.outlived, self.pauses):
            if silences.get(broker):
                silences[broker] = [silence for silence in silences[broker] if silence.end_at_ms >= at]
        if self.unjudged.get(broker):
            self.unjudged[broker] = [silence for silence in self.unjudged[broker] if silence.end_at_ms >= at]
        if self.queued.get(broker):
            self.queued[broker] = busy.since(self.queued[broker], at)
        if slow:
            self.slow[broker] = {begin: window for begin, window in slow.items() if begin >= at}

    def _on_rejected(self, event: Event) -> None:
        detail = event.detail or {}
        at = rows.instant(max(event.logged_at_ms, 0.0))
        self.rows["rejected"].append(
            (
                self.settings.cluster_id,
                "",
                -1,
                at,
                at,
                "exact",
                event.source,
                event.start,
                event.end,
                str(detail.get("reason", "unknown_shape")),
                str(detail.get("expected", "")) or None,
                str(detail.get("excerpt", ""))[:200] or None,
            )
        )

    def tell_progress(self) -> None:
        """Write a row of `progress` for each stream of which anything came; what is of no stream is in the first."""
        late, divergences, not_modelled, forgotten = self.late, self.divergences, self.not_modelled, self.forgotten
        disagreed = self.disagreed
        for name, stream in sorted(self.streams.items()):
            if not (stream.touched or stream.events or stream.duplicates) or stream.complete_to < 0:
                continue
            complete_to = rows.instant(stream.complete_to)
            self.rows["progress"].append(
                (
                    *(self.settings.cluster_id, "", -1, complete_to, complete_to, "exact"),
                    *(self.lane, name, complete_to, stream.events, stream.duplicates, late),
                    *(stream.lines, stream.ignored, stream.rejected, stream.gaps),
                    *(divergences, not_modelled, forgotten, *disagreed.values()),
                    *(map(rows.instant, (stream.gap_from, stream.gap_to)) if stream.gap_to >= 0 else (None, None)),
                    *NOT_TESTED,
                )
            )
            stream.clear()
            late = divergences = not_modelled = forgotten = 0
            self.late = self.divergences = self.not_modelled = self.forgotten = 0
            disagreed = self.disagreed = dict.fromkeys(DISAGREEMENTS, 0)
