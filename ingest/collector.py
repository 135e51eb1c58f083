"""The loop of a collector: read, send, wait for the acknowledgement, then move the positions. In this order only.

    1 read      lines of the logs, records of the offsets topic
    2 parse     into events, by lane
    3 send      a *flush*: the events of every lane, then a tick per source, one or more records per lane
    4 acknowledged  by the topic, every record of the flush and of all flushes before it
    5 positions in memory become those taken at the flush
    6 save      temporary file, fsync, rename, fsync (see `ingest.tail.positions`), at most once in two seconds

A crash between any two steps repeats lines, with the same ids, and loses none. Reading pauses while `MAX_IN_FLIGHT`
records wait for the topic, so memory stays flat when it is away. Clock, topic and offsets come through `ingest.ports`;
nothing here interprets an event.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain
from operator import attrgetter

from ingest.archives.ranges import tick
from ingest.blocks import AHEAD_MS, FUTURE, HELD_AHEAD_MS, of_the_future
from ingest.broker_processes import Processes, of_groups, summary_of
from ingest.metrics import Metrics
from ingest.ports import Clock, Ends, Records, Samples, Saves, Sessions, Topic
from ingest.router import Directory
from ingest.session_lengths import SessionLengths, sessions_of
from ingest.tail.broker_log import Covered, LogStream
from ingest.tail.positions import Positions, SavedDirectory
from ingest.wire.folded_batch import Outgoing
from ingest.wire.outgoing import Lanes, encoded, routed
from kardia.events import ALL_SHARDS, DEFAULT_LANES, Event, Kind, broker_of, for_shard, lane_of, stream_of

FLUSH_MS = 80
"""So long after the flush before, the first round that has events sends them."""

BEHIND_MS = 1_000
"""The same while a log is behind: its lines are old anyway, and more of them fold better."""

REST_S = 0.25
"""Longest pause of a collector that is told of new lines: what else it waits for is looked at as often."""

TICK_MS = 1_000
"""A tick is due at least this often: the observer fires no deadline that no tick has passed."""

CLIENTS_MS = 30_000
"""The router's directory is saved at most this often."""

FLUSH_EVENTS = 20_000
"""Events that force a flush: some 5 MB."""

MAX_IN_FLIGHT = 96
"""Records unacknowledged at which reading pauses: 48 MB at the very most, a few seconds of traffic."""

SLEPT_MS = 10_000
"""A pause longer than this is reported. Of the loop alone, by the monotonic clock: the process was stopped or starved.
Nothing is lost by it, the lines are in the files; the ticks were late and say so by their instants. Of the wall clock
beyond the monotonic one: the machine slept, or its clock was set forward. Then the brokers beside us did not run either
while their stamps went on, and a silence in their logs is nobody's: it is a gap, `collector_slept`."""

TOLD_MS = 60_000
"""Lines of the future are told at most this often, with their number since."""

OF_LAYOUT = frozenset({"unknown_layout", "bad_timestamp"})
"""Why lines are rejected that are laid out in a way in which all others will be as well: told once for each log."""

NAMELESS_MS = 60_000
"""A log of which no line names the broker for so long is told of: nothing of it is sent."""

OFFSETS_SOURCE = "offsets-topic/offsets/all"
"""Source of the ticks that speak for all partitions of the offsets topic; positions are sums of offsets."""


_position = attrgetter("start", "shard")


@dataclass(slots=True)
class _Flush:
    """Records on their way, and the positions that hold once they have all arrived."""

    outstanding: int
    files: dict[str, list]  # type: ignore[type-arg]
    offsets: dict[int, int]
    brokers: dict[str, str]


@dataclass(slots=True)
class Collector:
    """One collector: some logs, perhaps the offsets topic, one topic of events."""

    clock: Clock
    topic: Topic
    streams: Sequence[LogStream]
    directory: Directory
    store: Saves
    positions: Positions
    metrics: Metrics
    records: Records | None = None
    lanes: int = DEFAULT_LANES
    warn: Callable[[str], None] = lambda _: None
    sessions: Sessions | None = None
    samples: Samples | None = None
    ends: Ends | None = None
    flush_ms: float = FLUSH_MS
    beside_requests: bool = True
    """Whether a server.log has the name of its broker from the request log beside it; else from its own lines."""
    _flushes: deque[_Flush] = field(default_factory=deque)
    _record_events: list[Event] = field(default_factory=list)
    _sample_events: list[Event] = field(default_factory=list)
    _sampled_to_ms: float = 0.0
    _sampled: int = 0
    """Number behind the last sample, and behind the last that a tick has covered."""
    _sample_ticked: int = 0
    _unticked: Counter[int] = field(default_factory=Counter)
    """Lane -> samples that were sent and that no tick has counted yet."""
    _gaps: list[Event] = field(default_factory=list)
    _counted: Counter[int] = field(default_factory=Counter)
    """Kind -> events of this flush."""
    _pending: int = 0
    """Events that the last round left for a flush."""
    round_bytes: int = 0
    """Bytes that the last round read from logs."""
    _flushed_s: float = 0.0
    _saved_s: float = 0.0
    _clients_s: float = 0.0
    _stepped_s: float | None = None
    _stepped_at_ms: float = 0.0
    _dirty: bool = False
    _save_failed: bool = False
    _offsets_ticked: int = 0
    _future: Counter[str] = field(default_factory=Counter)
    """BROKER/STREAM -> lines of the future that have not been told."""
    _future_told_s: float | None = None
    _waiting: list[Event] = field(default_factory=list)
    """Records that wait for the clock of this machine."""
    _waiting_told_s: float | None = None
    _nameless: set[str] = field(default_factory=set)
    """Logs that were told to have no name."""
    _laid_out: set[tuple[str, str]] = field(default_factory=set)
    """Logs, and for what of `OF_LAYOUT` it was told that their lines are rejected."""
    _alive_to_ms: dict[str, float] = field(default_factory=dict)
    """BROKER/STREAM -> stamp of its last line."""
    _processes: dict[str, Processes] = field(default_factory=lambda: defaultdict(Processes))
    """Stream -> what its lines have shown of the broker's process. Not saved: lanes go by their own groups for what was
    before a collector began."""

    _lengths: dict[str, SessionLengths] = field(default_factory=lambda: defaultdict(SessionLengths))
    """Broker -> what its logs have shown of the length of sessions; not saved either."""

    def step(self) -> bool:
        """One round; True when there is more to read, False when the caller may sleep a little."""
        self.metrics.rounds.inc()
        self._notice_sleep()
        self._remember_new()
        self._settle(0.0)
        if self.topic.in_flight >= MAX_IN_FLIGHT:
            self.metrics.paused.inc()
            self._settle(0.05)
            return True
        if self._save_failed:
            # What could not be saved would be sent again after a crash: no more is read until there is room.
            self._save_when_due()
            return False
        read = self._read()
        now_s = self.clock.monotonic_s()
        pending = len(self._record_events) + len(self._sample_events) + sum(stream.pending for stream in self.streams)
        waited_ms = (now_s - self._flushed_s) * 1000
        wait_ms = BEHIND_MS if any(stream.is_behind for stream in self.streams) else self.flush_ms
        if (pending and waited_ms >= wait_ms) or waited_ms >= TICK_MS or pending >= FLUSH_EVENTS or self._gaps:
            self.flush()
            self._settle(0.0)
            pending = 0
        self._pending = pending
        self._save_when_due()
        return read

    def rest_s(self, poll_s: float) -> float:
        """Seconds in which nothing is due but new lines; `poll_s` where something is to be asked for again and again:
        the topic for acknowledgements, the cluster for records, a log for the name of its broker."""
        if self.topic.in_flight or self.records is not None or self._waiting or self._save_failed:
            return poll_s
        if any(stream.holding or stream.tail.trouble or stream.waits_ms > 0 for stream in self.streams):
            return poll_s
        due_s = [self._flushed_s + (self.flush_ms if self._pending else TICK_MS) / 1000]
        if self._dirty:
            due_s.append(self._saved_s + self.store.save_ms / 1000)
        return min(max(min(due_s) - self.clock.monotonic_s(), 0.0), REST_S)

    def stop(self, timeout_s: float = 30.0) -> bool:
        """Ordered end: no new reads, send what is pending, wait for the acknowledgements, save. True when complete."""
        self.flush()
        end_s = self.clock.monotonic_s() + timeout_s
        while self._flushes and self.clock.monotonic_s() < end_s:
            self._settle(0.1)
        self._save_when_due(now=True)
        for stream in self.streams:
            stream.tail.close()
        return not self._flushes

    def _remember_new(self) -> None:
        """Save which file a new log is before anything of it is sent, so that a rotation cannot hide it."""
        for stream in self.streams:
            if stream.key not in self.positions.files:
                self.positions.files[stream.key] = stream.saved()
                self.store.save(self.positions)

    # --- 1, 2 --------------------------------------------------------------------------------------------------------

    def _read(self) -> bool:
        self.round_bytes = 0
        if self.samples is not None:
            sampled, self._sampled_to_ms = self.samples.events(self.clock.wall_ms())
            self._sample_events += sampled
        read = self.records is not None and self._read_records(self.records)
        if self.records is not None and not self.records.bootstrapped:
            # The members of today's groups first: they tell whose FETCH the first lines of the log are.
            return True
        for stream in self.streams:
            if stream.dialect.stream == "server" and not stream.broker and self.beside_requests:
                stream.broker = self._broker_beside(stream)
                if not stream.broker:
                    continue
            size = stream.pump(self.clock.wall_ms)
            if size:
                self.metrics.bytes_read.inc(size)
                self.round_bytes += size
            read = read or (size > 0 and not stream.tail.at_end)
            self._tell_nameless(stream)
            if stream.waits_ms > 0:
                self._tell_waiting(f"{stream.broker}/{stream.dialect.stream}", stream.waits_ms)
            self._gaps += stream.gaps(self.clock.wall_ms())
        return read

    def _read_records(self, records: Records) -> bool:
        """Take what has come of the offsets topic; whether anything has."""
        wall_ms = self.clock.wall_ms()
        events = records.poll(wall_ms)
        not_after_ms = self.clock.wall_ms() + AHEAD_MS
        events = self._without_what_is_ahead([*self._waiting, *events], not_after_ms)
        for number, event in enumerate(events):
            if event.logged_at_ms > not_after_ms:
                events[number] = self._record_of_the_future(event, wall_ms)
            else:
                self.directory.learn(event)
                if self.sessions is not None:
                    self.sessions.heard(event)
                if self.ends is not None:
                    self.ends.committed.heard(event)
        self._record_events += events
        return bool(events)

    def _without_what_is_ahead(self, events: list[Event], not_after_ms: float) -> list[Event]:
        """Records that are stamped a little ahead wait, and those behind them in their partition with them."""
        self._waiting, ready = [], []
        sources: set[str] = set()
        for event in events:
            if event.source in sources or not_after_ms < event.logged_at_ms <= not_after_ms + HELD_AHEAD_MS:
                sources.add(event.source)
                self._waiting.append(event)
            else:
                ready.append(event)
        if self._waiting:
            self._tell_waiting("the offsets topic", max(event.logged_at_ms for event in self._waiting) - not_after_ms)
        return ready

    def _tell_waiting(self, what: str, ahead_ms: float) -> None:
        """The clock of this machine is behind that of a broker: told, without a flood."""
        now_s = self.clock.monotonic_s()
        if self._waiting_told_s is not None and (now_s - self._waiting_told_s) * 1000 < TOLD_MS:
            return
        self._waiting_told_s = now_s
        self.warn(
            f"what {what} says is up to {(AHEAD_MS + ahead_ms) / 1000:.1f} s ahead of this machine's clock, and waits "
            f"until the clock has come to it; nothing is lost. Expected: stamps at most {AHEAD_MS / 1000:.0f} s ahead. "
            "Next: set the clocks of the broker and of this machine by NTP; `kardia doctor` compares them"
        )

    def _record_of_the_future(self, event: Event, wall_ms: float) -> Event:
        """A record that would wait for its instant: refused, as a line would be."""
        self._tell_future(event.source, 1, event.logged_at_ms - wall_ms)
        shown = event.group_id.encode("utf-8", "surrogatepass")
        return of_the_future(shown, event.source, event.start, event.end, event.logged_at_ms, wall_ms)

    def _tell_nameless(self, stream: LogStream) -> None:
        """A log that says nothing because its broker has no name: once."""
        path = str(stream.tail.path)
        if self.clock.wall_ms() - stream.held_since_ms >= NAMELESS_MS and path not in self._nameless:
            self._nameless.add(path)
            what = "node id" if stream.dialect.stream == "server" else "connection"
            self.warn(
                f"no line of {path} names its broker for {NAMELESS_MS // 1000} s, so nothing of it is sent. Expected: "
                f"a line with a {what}. Next: name the broker with --broker, or see with `kardia doctor` what is logged"
            )

    def _broker_beside(self, server: LogStream) -> str:
        """A server.log belongs to the request log in its file or its folder, or to the only one there is."""
        requests = [stream for stream in self.streams if stream.dialect.stream == "request"]
        within = [stream for stream in requests if stream.tail.path == server.tail.path]
        beside = [stream for stream in requests if stream.tail.path.parent == server.tail.path.parent]
        chosen = next((some for some in (within, beside) if len(some) == 1), requests)
        return chosen[0].broker if len(chosen) == 1 else ""

    def _notice_sleep(self) -> None:
        now_s, wall_ms = self.clock.monotonic_s(), self.clock.wall_ms()
        if self._stepped_s is not None:
            paused_s = now_s - self._stepped_s
            jumped_ms = wall_ms - self._stepped_at_ms - paused_s * 1000
            if jumped_ms > SLEPT_MS:
                self._slept(wall_ms, jumped_ms)
            elif paused_s * 1000 > SLEPT_MS:
                self.metrics.slept.inc()
                self.warn(
                    f"the collector was not run for {paused_s:.1f} s; lines written meanwhile are read now, ticks "
                    "were late"
                )
            if max(jumped_ms, paused_s * 1000) > SLEPT_MS and self.records is not None:
                self.records.distrust(wall_ms)
        self._stepped_s, self._stepped_at_ms = now_s, wall_ms

    def _slept(self, wall_ms: float, jumped_ms: float) -> None:
        """The wall clock went on without this machine: what its logs are silent about in between is not known."""
        self.metrics.slept.inc()
        self.warn(
            f"this machine slept, or its clock was set forward, for {jumped_ms / 1000:.1f} s; who was silent in the "
            "logs here meanwhile is unknown. Expected: a machine that runs, its clock slewed and not set. Next: if it "
            "comes again, see what suspends the machine or steps its clock"
        )
        requests = [stream for stream in self.streams if stream.dialect.stream == "request"]
        for stream in requests or self.streams:
            self._gaps += stream.gap(self._stepped_at_ms, wall_ms, "collector_slept")

    # --- 3 -----------------------------------------------------------------------------------------------------------

    def flush(self) -> None:
        """Send everything that is pending, with ticks for all sources."""
        wall_ms = self.clock.wall_ms()
        lanes: Lanes = [[] for _ in range(self.lanes)]
        for event in self._record_events:
            if event.kind == Kind.REJECTED:
                lanes[0].append(event)
                self.metrics.rejected.labels((event.detail or {})["reason"]).inc()
            else:
                lanes[lane_of(event.shard, self.lanes)].append(event)
        self._count(self._record_events)
        records = len(self._record_events)
        per_lane = [len(lane) for lane in lanes]
        self._record_events = []
        self._tell_ends(lanes)
        for gap in self._gaps:
            # Before the ticks: a reader may stop between any two records, and no tick may pass a gap unsaid.
            self.metrics.gaps.labels((gap.detail or {})["reason"]).inc()
            self._lengths[broker_of(gap.source)].lose(gap.logged_at_ms)
            for lane in lanes:
                lane.append(gap)
        self._gaps = []
        files = {**self.positions.files, **(self._flushes[-1].files if self._flushes else {})}
        brokers: dict[str, str] = {}
        for stream in self.streams:
            for covered in stream.take_covered():
                self._tell_layout(stream, covered)
                self._send_covered(covered, lanes, wall_ms)
            if not stream.holding:
                files[stream.key] = stream.saved()
            if stream.broker:
                brokers[stream.key] = stream.broker
        self._tick_offsets(lanes, per_lane, records, wall_ms)
        self._send_samples(lanes, wall_ms)
        offsets = dict(self.positions.offsets)
        if self.records is not None and not self._waiting:
            offsets = self.records.positions()
        elif self._flushes:
            offsets = self._flushes[-1].offsets
        self._send(lanes, _Flush(0, files, offsets, brokers))
        self._flushed_s = self.clock.monotonic_s()

    def _send_covered(self, covered: Covered, lanes: Lanes, wall_ms: float) -> None:
        """Events of one incarnation, routed, and its tick in every lane."""
        gathered = covered.gathered
        own = gathered.events
        quiet = of_groups(gathered.quiet)
        summary = summary_of(chain.from_iterable(own), quiet, gathered.silences)
        sessions = sessions_of(chain.from_iterable(own), quiet)
        folded = routed(gathered, self.directory, self.lanes)
        for client, events in gathered.unrouted.items():
            shards = self.directory.shards_of(client)
            if not shards:
                gathered.ignored["unattributed_fetch"] += len(events)
            for shard in shards:
                own[lane_of(shard, self.lanes)] += [for_shard(event, shard) for event in events]
        for lane, events in enumerate(own):
            # Back into the order of their positions: readers of the topic recognise a repeat by its position.
            events.sort(key=_position)
            if len(folded[lane].senders):
                lanes[lane].append(Outgoing(events, folded[lane]))
            else:
                lanes[lane] += events
            self._count(events)
            for head, count in zip(folded[lane].heads, folded[lane].counts().tolist(), strict=True):
                self._counted[head.kind] += count
        counts = [len(events) + len(folded[lane].senders) for lane, events in enumerate(own)]
        self.metrics.lines.inc(gathered.lines)
        self.metrics.nul_bytes.inc(gathered.nul_bytes)
        for reason, number in gathered.ignored.items():
            self.metrics.ignored.labels(reason).inc(number)
        for reason, number in gathered.rejected.items():
            self.metrics.rejected.labels(reason).inc(number)
        self._tell_future(covered.source, gathered.rejected[FUTURE], gathered.ahead_ms_max)
        stream = stream_of(covered.source)
        signs = gathered.signs(self._alive_to_ms.get(stream, 0.0))
        lengths = self._lengths[broker_of(covered.source)]
        if stream.endswith("/request"):
            self._processes[stream].take(
                summary, gathered.silences, self._alive_to_ms.get(stream), gathered.first_at_ms
            )
            signs |= self._processes[stream].signs()
            lengths.take(sessions, gathered.silences, gathered.last_at_ms or 0.0)
        else:
            lengths.take(sessions)
        signs |= lengths.signs()
        self._alive_to_ms[stream] = signs["last_line_at_ms"]
        if covered.complete_to_ms <= 0:
            return  # no line with a stamp yet and not at the end: nothing can be said
        for lane in range(self.lanes):
            lanes[lane].append(
                tick(
                    covered.source,
                    covered.start,
                    covered.end,
                    covered.complete_to_ms,
                    counts[lane],
                    gathered.lines,
                    gathered.ignored,
                    wall_ms,
                    signs,
                )
            )

    def _tell_layout(self, stream: LogStream, covered: Covered) -> None:
        """The layout of a log is not known, or has no milliseconds: once, with its first line."""
        for reason in OF_LAYOUT & covered.gathered.rejected.keys():
            if (stream.key, reason) in self._laid_out:
                continue
            self._laid_out.add((stream.key, reason))
            refused = (event.detail or {} for event in covered.gathered.events[0] if event.kind == Kind.REJECTED)
            first = next(one for one in refused if one["reason"] == reason)
            self.warn(
                f"lines of {stream.tail.path} are rejected, {reason}; the first of them: {first['excerpt']} . "
                f"Expected: {first['expected']}. Next: start the collector with a pattern that fits; `kardia rejected` "
                "lists such lines, and what they say is missing until then"
            )

    def _tell_future(self, source: str, lines: int, ahead_ms: float) -> None:
        """A broker's clock or the zone of its log is wrong, or somebody wrote such a line: told, without a flood."""
        if not lines:
            return
        self._future[stream_of(source)] += lines
        now_s = self.clock.monotonic_s()
        if self._future_told_s is not None and (now_s - self._future_told_s) * 1000 < TOLD_MS:
            return
        self._future_told_s = now_s
        counts = ", ".join(f"{number} of {name}" for name, number in self._future.items())
        self._future.clear()
        self.warn(
            f"lines are stamped up to {ahead_ms / 1000:.0f} s ahead of this machine's clock and are refused, "
            f"{FUTURE}: {counts}. Expected: stamps at most {AHEAD_MS / 1000:.0f} s ahead. Next: check --log-timezone, "
            "and the clocks of the broker and of this machine; `kardia doctor` compares them"
        )

    def _tick_offsets(self, lanes: Lanes, per_lane: list[int], records: int, wall_ms: float) -> None:
        if self.records is None or not self.records.bootstrapped or self.records.complete_to_ms <= 0 or self._waiting:
            return
        position = self.records.position
        told = self.sessions.take() if self.sessions is not None else None
        for lane in range(self.lanes):
            lanes[lane].append(
                tick(
                    OFFSETS_SOURCE,
                    self._offsets_ticked or position - records,
                    position,
                    self.records.complete_to_ms,
                    per_lane[lane],
                    records,
                    {},
                    wall_ms,
                    told,
                )
            )
        self._offsets_ticked = position

    def _send_samples(self, lanes: Lanes, wall_ms: float) -> None:
        """Samples and their ticks. They are not read again after a crash: a sampler that starts says everything."""
        if self.samples is None:
            return
        events, self._sample_events = self._sample_events, []
        counts = Counter[int]()
        for event in events:
            for lane in range(self.lanes) if event.shard == ALL_SHARDS else (lane_of(event.shard, self.lanes),):
                lanes[lane].append(event)
                counts[lane] += 1
        self._count(events)
        self._unticked += counts
        self._sampled = events[-1].end if events else self._sampled
        if self._sampled_to_ms <= 0:
            return
        counts, self._unticked = self._unticked, Counter()
        source, begin, end = self.samples.source, self._sample_ticked, self._sampled
        for lane, told in enumerate(lanes):
            told.append(tick(source, begin, end, self._sampled_to_ms, counts[lane], end - begin, {}, wall_ms))
        self._sample_ticked = end

    def _tell_ends(self, lanes: Lanes) -> None:
        if self.ends is None or self.records is None or not self.records.bootstrapped:
            return
        for lane, event in self.ends.take(self.records.complete_to_ms):
            lanes[lane].append(event)
            self._count([event])

    def _count(self, events: Iterable[Event]) -> None:
        self._counted.update([event[0] for event in events])

    def _send(self, lanes: Lanes, flush: _Flush) -> None:
        records = [(lane, data) for lane, told in enumerate(lanes) for data in encoded(told)]
        flush.outstanding = len(records)
        self._flushes.append(flush)

        def acknowledged() -> None:
            flush.outstanding -= 1

        # Once for a flush, and not for each record: a counter costs as much as reading a line.
        for kind, number in self._counted.items():
            self.metrics.events.labels(Kind(kind).name.lower()).inc(number)
        self._counted.clear()
        self.metrics.sent_bytes.inc(sum(len(data) for _, data in records))
        self.metrics.sent.inc(len(records))
        for lane, data in records:
            self.topic.send(lane, data, acknowledged)

    # --- 4, 5, 6 -----------------------------------------------------------------------------------------------------

    def _settle(self, timeout_s: float) -> None:
        """Let acknowledgements in; positions follow the flushes in their order."""
        self.topic.poll(timeout_s)
        while self._flushes and self._flushes[0].outstanding == 0:
            flush = self._flushes.popleft()
            self.positions.files = flush.files
            self.positions.offsets = flush.offsets
            self.positions.brokers.update(flush.brokers)
            self._dirty = True

    def _save_when_due(self, *, now: bool = False) -> None:
        now_s = self.clock.monotonic_s()
        if self._dirty and (now or (now_s - self._saved_s) * 1000 >= self.store.save_ms):
            self._saved_s = now_s
            if not self._save():
                return
            self._dirty = False
            for number, stream in enumerate(self.streams):
                self.metrics.lag_bytes.labels(stream.dialect.stream, str(number)).set(stream.tail.lag_bytes)
        if now or (now_s - self._clients_s) * 1000 >= CLIENTS_MS:
            self._clients_s = now_s
            with suppress(OSError):  # evidence for a while, not a promise: the positions say when the disk is full
                self.store.save_directory(SavedDirectory(self.positions.number, list(self.directory.entries())))

    def _save(self) -> bool:
        """Save the positions. A full disk stops the reading, not the process: told once, tried each second."""
        try:
            if self.ends is not None and self.ends.committed.changed:
                self.store.save_committed(self.ends.committed.saved(), self.positions.number)
            self.store.save(self.positions)
        except OSError as error:
            if not self._save_failed:
                self.warn(
                    f"positions cannot be saved: {error.strerror or error} ({self.store.directory}). Expected: room "
                    "and the right to write. Next: make room; nothing more is read until then, nothing is lost"
                )
            self._save_failed = True
            self.metrics.save_failures.inc()
            return False
        if self._save_failed:
            self.warn("positions are saved again, reading goes on")
        self._save_failed = False
        return True
