"""The loop: events of one lane in, rows out. Puts events into the order in which they took effect and fires timers.

Each broker has its own clock, which only its ticks move. An event is applied when its broker's log is known to be
complete up to a moment (`hold_ms`) after it; timers between two events fire first. So any split of the same events
into steps gives the same transitions, rebalances, members and predictions. A repeat is recognised by position.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from heapq import heappop, heappush
from operator import itemgetter
from typing import Any

from kardia.events import SILENCE_MS, Event, Kind, broker_of, stream_of
from kardia.model.sessions import Coordinator, coordinator_of_connection
from kardia.model.states import GroupState
from kardia.observe import deadlines, expiry, quiet, rebalance, records, requests, rows
from kardia.observe.facts import Facts, Timer
from kardia.observe.group import NEVER, Group, dump_group, load_group
from kardia.observe.settings import ObserverSettings
from kardia.stretches import END, WIDTH, Stretch
from kardia.tables import LIVE_TABLES, Row

OFFSETS_BROKER = "offsets-topic"
"""Broker part of the source of `__consumer_offsets` records: they come from no broker's log."""

_BY_HANDLING = frozenset({int(Kind.COMMIT), int(Kind.LEAVE), int(Kind.TXN_COMMIT)})
"""Kinds that take effect when they are handled, before the answer is known (a record is written in between)."""

_FROM_TOPIC = frozenset({int(Kind.GROUP_RECORD), int(Kind.OFFSET_RECORD), int(Kind.OTHER_RECORD)})

MOVE_MS = 30_000.0
"""How far the clocks go in one move while stretches are held."""

MAX_SILENCES = 100
"""Silences of a log that are remembered; only those that a session timeout reaches back to matter."""

_TICK, _GAP, _REJECTED = int(Kind.TICK), int(Kind.GAP), int(Kind.REJECTED)

HANDLERS: dict[int, Callable[[Facts, Event, float], None]] = {
    Kind.JOIN: requests.on_join,
    Kind.SYNC: requests.on_sync,
    Kind.HEARTBEAT: requests.on_heartbeat,
    Kind.LEAVE: requests.on_leave,
    Kind.COMMIT: requests.on_commit,
    Kind.TXN_COMMIT: records.on_offset_record,  # never renews a session (`doTxnCommitOffsets`)
    Kind.FETCH: requests.on_fetch,
    Kind.TELEMETRY: requests.on_telemetry,
    Kind.DELETE_GROUPS: requests.on_delete_groups,
    Kind.MODERN_HEARTBEAT: requests.on_modern,
    Kind.GROUP_RECORD: records.on_group_record,
    Kind.OFFSET_RECORD: records.on_offset_record,
    Kind.OTHER_RECORD: records.on_other_record,
    Kind.COORDINATOR_LINE: records.on_coordinator_line,
    Kind.GAP: expiry.on_gap,
}


def _order(moment: tuple[float, str, Event]) -> tuple[float, str, int]:
    """Order in which events took effect; at one instant, their order in the log."""
    at, _, event = moment
    return at, event.source, event.start


_COUNTS = ("events", "duplicates", "lines", "ignored", "rejected", "gaps", "touched")


class _Stream:
    """Counts of one BROKER/STREAM since the last row of `progress`, and how far it is complete."""

    __slots__ = (
        "alive_to",
        "complete_to",
        "duplicates",
        "events",
        "gaps",
        "ignored",
        "lines",
        "rejected",
        "since_tick",
        "touched",
    )

    def __init__(self, complete_to: float = NEVER, alive_to: float = NEVER, since_tick: int = 0) -> None:
        self.complete_to = complete_to
        self.alive_to = alive_to
        self.since_tick = since_tick
        self.clear()

    def untold(self) -> list[int]:
        """Counts that no row of `progress` has told yet: a stream without a tick waits with them."""
        return [int(getattr(self, name)) for name in _COUNTS]

    def clear(self) -> None:
        self.events = self.duplicates = self.lines = self.ignored = self.rejected = self.gaps = 0
        self.touched = False


class _Source:
    """How far one source has been accepted: now, and before this step. `queue` and `stream` are its broker's."""

    __slots__ = ("base", "end", "queue", "stream", "tick_end")

    def __init__(self, stream: _Stream, queue: list[tuple[float, Event]], end: int = -1, tick_end: int = -1) -> None:
        self.stream = stream
        self.queue = queue
        self.base = self.end = end
        self.tick_end = tick_end


class Observer(Facts):
    """Everything known about the groups of one lane. See `kardia.observe` for the reading order."""

    def __init__(self, settings: ObserverSettings, lane: int = 0) -> None:
        super().__init__(settings, lane)
        self._sources: dict[str, _Source] = {}
        self._streams: dict[str, _Stream] = {}
        self._queues: dict[str, list[tuple[float, Event]]] = {}
        self._held = quiet.Held()
        self._now: dict[str, float] = {}
        self._alive: dict[str, float] = {}
        self._waiting: list[tuple[str, Timer]] = []
        self._seen: set[tuple[str, int, int]] | None = None

    # --- feed and pull

    def step(self, events: Iterable[Event], stretches: Iterable[Stretch] = ()) -> dict[str, list[Row]]:
        """Take events of this lane, each source's in the order of its positions; return what became known.

        `stretches` hold further events of the same positions, folded; whoever folds gives each of them once.
        """
        self._seen = None
        for source in self._sources.values():
            source.base = source.end
        folded = [self._accept_stretch(stretch) for stretch in stretches]  # before the ticks that count them
        for event in events:
            self._accept(event)
        for source, end in folded:
            source.end = max(source.end, end)
        self._advance(self.settings.hold_ms)
        return self._take()

    def finish(self) -> dict[str, list[Row]]:
        """No more input will come: apply what is held, up to the end of what was read."""
        self._advance(0.0)
        return self._take()

    def _streams_of(self, broker: str) -> list[_Stream]:
        """The request log of a broker; without one, whatever there is of it."""
        request = self._streams.get(f"{broker}/request")
        if request is not None:
            return [request]
        return [stream for name, stream in self._streams.items() if name.rsplit("/", 1)[0] == broker]

    def _complete_to(self, broker: str) -> float:
        """Up to when the log of a broker has been read completely."""
        return max((stream.complete_to for stream in self._streams_of(broker)), default=NEVER)

    def _alive_to(self, broker: str) -> float:
        """Up to when the broker is known to have been alive: a log read to its end that gets no more lines may be the
        log of a dead broker, whose timers evict nobody."""
        signs = (stream.alive_to for stream in self._streams_of(broker))
        return max(*signs, self._alive.get(broker, NEVER), NEVER)

    # --- accept

    def _accept(self, event: Event) -> None:
        source = self._sources.get(event.source) or self._new_source(event.source)
        kind = event.kind
        if kind >= _TICK:
            self._accept_sign(event, source)
            return
        if event.start >= source.end:
            source.end = event.end
        elif event.start < source.base or self._seen_in_step(event):
            source.stream.duplicates += 1
            return
        source.stream.since_tick += 1
        source.stream.events += 1
        if self._seen is not None:
            self._seen.add((event.source, event.start, event.shard))
        source.queue.append((event.handled_at_ms if kind in _BY_HANDLING else event.decided_at_ms, event))
        if not self.coordinator_known and event.connection:
            self._recognise(event.connection)

    def _accept_stretch(self, stretch: Stretch) -> tuple[_Source, int]:
        head, count = stretch.head, len(stretch)
        source = self._sources.get(head.source) or self._new_source(head.source)
        source.stream.since_tick += count
        source.stream.events += count
        if not self.coordinator_known and head.connection:
            self._recognise(head.connection)
        if not self._held.add(broker_of(head.source), stretch):
            source.queue.extend((event.decided_at_ms, event) for event in stretch.events())
        return source, int(stretch.numbers[END - WIDTH])

    def _new_source(self, name: str, end: int = -1, tick_end: int = -1) -> _Source:
        stream = self._streams.setdefault(stream_of(name), _Stream())
        queue = self._queues.setdefault(broker_of(name), [])
        source = self._sources[name] = _Source(stream, queue, end, tick_end)
        return source

    def _accept_sign(self, event: Event, source: _Source) -> None:
        """Take what is about the source itself: how far it is complete, what is lost, what was not understood."""
        stream = source.stream
        stream.touched = True
        if event.kind == _TICK:
            self._on_tick(event, stream, source)
        elif event.kind == _GAP:
            stream.gaps += 1
            source.queue.append((float((event.detail or {}).get("from_ms", event.logged_at_ms)), event))
        elif event.kind == _REJECTED and event.end > source.end:
            source.end = event.end
            stream.rejected += 1
            self._on_rejected(event)

    def _seen_in_step(self, event: Event) -> bool:
        """Whether an event that comes behind its place is a repeat, or only out of order (a FETCH is routed later than
        its neighbours, and goes to every shard its client has groups in: same position, another shard)."""
        if self._seen is None:
            self._seen = {
                (queued.source, queued.start, queued.shard) for queue in self._queues.values() for _, queued in queue
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

    def _on_tick(self, event: Event, stream: _Stream, source: _Source) -> None:
        detail = event.detail or {}
        stream.lines += int(detail.get("lines", 0))
        stream.ignored += sum((detail.get("ignored") or {}).values())
        repeated = event.end < source.tick_end
        sent = detail.get("events")
        follows = not repeated and int(detail.get("previous_end", 0)) == source.tick_end
        if not repeated and sent is not None:
            if follows and stream.since_tick < int(sent):
                stream.gaps += 1
                lost = {"from_ms": stream.complete_to, "to_ms": event.logged_at_ms, "reason": "count_mismatch"}
                source.queue.append((stream.complete_to, event._replace(kind=_GAP, detail=lost)))
            stream.since_tick = max(0, stream.since_tick - int(sent))
        if not repeated:
            source.tick_end = event.end
        if event.logged_at_ms > stream.complete_to:
            stream.complete_to = event.logged_at_ms
        if not repeated:
            self._note_silences(broker_of(event.source), stream.alive_to, detail)
        alive_to = min(event.logged_at_ms, float(detail.get("last_line_at_ms", event.logged_at_ms)))
        if alive_to > stream.alive_to:
            stream.alive_to = alive_to

    def _note_silences(self, broker: str, alive_to: float, detail: dict[str, Any]) -> None:
        """Remember when the whole log was silent, within what a tick covers and since the one before."""
        found = [[float(begin), float(end)] for begin, end in detail.get("silences") or ()]
        first_at = float(detail.get("first_line_at_ms", NEVER))
        if 0 <= alive_to <= first_at - SILENCE_MS:
            found.insert(0, [alive_to, first_at])
        if found:
            silences = self.silences.setdefault(broker, [])
            silences += found
            del silences[:-MAX_SILENCES]

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

    # --- advance

    def _advance(self, hold_ms: float) -> None:
        """Bring every clock forward: events and timers of all brokers in the order in which they took effect.

        The clock of a broker goes to `complete_to - hold_ms` of its log and no further; several brokers are merged by
        time, because a group that moves from one to another goes on in the other's log.
        """
        for limits in self._moves(self._limits(hold_ms)):
            self._move_to(limits)

    def _moves(self, limits: dict[str, float]) -> Iterator[dict[str, float]]:
        """Where the clocks stop on their way: trouble in a group unfolds its stretches of one move, not all of them."""
        first_at = self._held.first_at()
        highest = max(limits.values(), default=NEVER)
        while first_at is not None and first_at + MOVE_MS < highest:
            stop = first_at + MOVE_MS
            yield {broker: min(limit, stop) for broker, limit in limits.items()}
            first_at = self._held.first_at()
            if first_at is not None and first_at <= stop:
                break  # of a broker whose clock stands
        if limits:
            yield limits

    def _move_to(self, limits: dict[str, float]) -> None:
        ready: list[tuple[float, str, Event]] = []
        for broker, limit in limits.items():
            queue = self._queues[broker]
            queue.sort(key=itemgetter(0))
            count = bisect_right(queue, limit, key=itemgetter(0))
            ready.extend([(at, broker, event) for at, event in queue[:count]])
            del queue[:count]
        if OFFSETS_BROKER not in limits:
            self._merge_records(limits, ready)
        stretches = self._held.due(limits)
        if stretches:
            ready = quiet.apply(self, stretches, ready, self._now, limits)
        ready.sort(key=_order)
        clocks = [(broker, self.timers.setdefault(broker, []), limit) for broker, limit in limits.items()]
        alive = {broker: self._alive_to(broker) for broker in limits}
        now, settle_by = self._now, self.settings.hold_ms
        for at, broker, event in ready:
            if event.kind in _FROM_TOPIC:
                self._note_alive(alive, event, at)
            for owner, timers, limit in clocks:
                if timers and timers[0][0] <= at:
                    self._fire(owner, timers, min(at, limit), alive[owner])
            if at < now.get(broker, NEVER):
                self.late += 1
            self.broker = broker if event.kind not in _FROM_TOPIC else ""
            self.known = max(event.logged_at_ms, at + settle_by)
            self.evidence = event
            handler = HANDLERS.get(event.kind)
            if handler is None:
                self.not_modelled += 1
            else:
                handler(self, event, at)
        for owner, timers, limit in clocks:
            self._fire(owner, timers, limit, alive[owner])
            now[owner] = max(now.get(owner, NEVER), limit)
        self._call_back()

    def _note_alive(self, alive: dict[str, float], event: Event, at: float) -> None:
        """A record of a group's partition was written by the broker that leads it: it was alive then."""
        group = self.groups.get(event.group_id)
        if group is not None and alive.get(group.broker, at) < at:
            alive[group.broker] = self._alive[group.broker] = at
            self._call_back()

    def _limits(self, hold_ms: float) -> dict[str, float]:
        """How far each broker's clock may go. The topic's own records have a clock only where there is no log."""
        brokers = [broker for broker in sorted(self._queues) if broker != OFFSETS_BROKER] or sorted(self._queues)
        limits = {broker: self._complete_to(broker) - hold_ms for broker in brokers}
        return {broker: limit for broker, limit in limits.items() if limit >= 0}

    def _merge_records(self, limits: dict[str, float], ready: list[tuple[float, str, Event]]) -> None:
        """Take the records that are due: of groups that a broker leads by its clock, of others by the latest clock."""
        held = self._queues.get(OFFSETS_BROKER)
        if not held:
            return
        latest = max(limits.values())
        rest = []
        for at, event in held:
            group = self.groups.get(event.group_id)
            if at <= (limits.get(group.broker, latest) if group is not None else latest):
                ready.append((at, OFFSETS_BROKER, event))
            else:
                rest.append((at, event))
        held[:] = rest

    def _fire(self, broker: str, timers: list[Timer], to: float, alive_to: float) -> None:
        """Fire what is due at or before an instant, in the order of the deadlines.

        A session only ends if the broker is known to have been alive at its deadline; else the timer waits. To predict
        that it will end takes no more than the silence.
        """
        while timers and timers[0][0] <= to:
            timer = heappop(timers)
            due, group_id, kind, key = timer
            group = self.groups.get(group_id)
            if group is None or group.broker != broker:
                continue
            if kind == "member" and due > alive_to + deadlines.GRACE_MS:
                member = group.members.get(key)
                if member is not None and member.timer_at == due and deadlines.session_over(member, due):
                    self._waiting.append((broker, timer))
                    continue
            self.known = due + self.settings.hold_ms
            self.evidence = f"{kind} timer"
            self._fire_one(group, kind, key, due)

    def _call_back(self) -> None:
        """Timers that wait for a sign of life are asked again: in the next step, or when there is one."""
        for broker, timer in self._waiting:
            heappush(self.timers[broker], timer)
        self._waiting.clear()

    def _fire_one(self, group: Group, kind: str, key: str, due: float) -> None:
        if kind == "member":
            member = group.members.get(key)
            if member is not None and member.timer_at == due:
                expiry.on_member_timer(self, group, member, due)
        elif kind == "settle":
            current = group.rebalance
            if current is not None and not current.settled and current.joined_at >= 0:
                rebalance.settle(self, group, current)
        elif kind == "empty":
            records.conclude_empty(self, group, int(key))
        elif key in group.pending and group.pending[key][0] <= due:
            expiry.on_pending_timer(self, group, key, due)

    # --- take

    def _take(self) -> dict[str, list[Row]]:
        now = max(self._now.values(), default=NEVER)
        if now >= 0:
            self._sample(now)
        self._tell_progress()
        taken, self.rows = self.rows, {name: [] for name in LIVE_TABLES}
        return taken

    def _sample(self, now: float) -> None:
        """Write by exception: a member in danger at every step, one in good health every `health_sample_ms`, and all of
        a group whose state has changed: a rebalance shows there before its cause is known and `transitions` can say it.
        """
        cluster, every = self.settings.cluster_id, self.settings.health_sample_ms
        health = self.rows["health"]
        for group in self.groups.values():
            if not group.members:
                continue
            clock = self._now.get(group.broker, now)
            changed = group.state != group.sampled_state
            group.sampled_state = group.state
            for member in group.members.values():
                danger = (
                    member.overdue
                    or member.session_prediction_at >= 0
                    or member.poll_prediction_at >= 0
                    or member.rebalance_prediction_at >= 0
                )
                if ((danger or changed) and clock > member.health_at) or clock - member.health_at >= every:
                    status, certainty, reasons = rows.status_of(group, member, clock)
                    member.health_at = clock
                    known_at = rows.instant(max(clock, group.known_at))
                    health.append(rows.health_row(cluster, group, member, clock, known_at, certainty, status, reasons))

    def _tell_progress(self) -> None:
        late, divergences, not_modelled = self.late, self.divergences, self.not_modelled
        for name, stream in sorted(self._streams.items()):
            if not (stream.touched or stream.events or stream.duplicates) or stream.complete_to < 0:
                continue
            complete_to = rows.instant(stream.complete_to)
            self.rows["progress"].append(
                (
                    self.settings.cluster_id,
                    "",
                    -1,
                    complete_to,
                    complete_to,
                    "exact",
                    self.lane,
                    name,
                    complete_to,
                    stream.events,
                    stream.duplicates,
                    late,
                    stream.lines,
                    stream.ignored,
                    stream.rejected,
                    stream.gaps,
                    divergences,
                    not_modelled,
                )
            )
            stream.clear()
            late = divergences = not_modelled = 0
            self.late = self.divergences = self.not_modelled = 0

    # --- keep and restore

    def snapshot(self) -> dict[str, Any]:
        """Everything held, as plain values: lists, dictionaries, strings, numbers."""
        queues = {broker: [[at, list(event)] for at, event in queue] for broker, queue in self._queues.items()}
        for broker, event in self._held.events():
            queues[broker].append([event.decided_at_ms, list(event)])
        return {
            "coordinator": str(self.coordinator),
            "coordinator_known": self.coordinator_known,
            "groups": [dump_group(group) for group in self.groups.values()],
            "timers": {broker: [list(timer) for timer in timers] for broker, timers in self.timers.items()},
            "sources": {name: [source.end, source.tick_end] for name, source in self._sources.items()},
            "streams": {
                name: [stream.complete_to, stream.alive_to, stream.since_tick, stream.untold()]
                for name, stream in self._streams.items()
            },
            "untold": [self.late, self.divergences, self.not_modelled],
            "silences": self.silences,
            "queues": queues,
            "now": dict(self._now),
            "alive": dict(self._alive),
        }

    @classmethod
    def restore(cls, settings: ObserverSettings, lane: int, state: dict[str, Any]) -> Observer:
        """An observer that goes on where the snapshot was taken."""
        observer = cls(settings, lane)
        observer.coordinator = Coordinator(state["coordinator"])
        observer.coordinator_known = bool(state["coordinator_known"])
        for data in state["groups"]:
            group = load_group(data)
            observer.groups[group.group_id] = group
            for member in group.members.values():
                observer.index(group, member)
        for broker, timers in state["timers"].items():
            observer.timers[broker] = [(float(due), group_id, kind, key) for due, group_id, kind, key in timers]
        for broker, queue in state["queues"].items():
            observer._queues[broker] = [(float(at), Event(*event)) for at, event in queue]
        for name, (complete_to, alive_to, since_tick, untold) in state["streams"].items():
            stream = observer._streams[name] = _Stream(float(complete_to), float(alive_to), int(since_tick))
            for count, value in zip(_COUNTS, untold, strict=True):
                setattr(stream, count, value)
            stream.touched = bool(stream.touched)
        observer.late, observer.divergences, observer.not_modelled = state["untold"]
        for name, (end, tick_end) in state["sources"].items():
            observer._new_source(name, int(end), int(tick_end))
        observer.silences = {broker: [list(pair) for pair in pairs] for broker, pairs in state["silences"].items()}
        observer._now = {broker: float(at) for broker, at in state["now"].items()}
        observer._alive = {broker: float(at) for broker, at in state["alive"].items()}
        return observer

    def states(self) -> dict[str, GroupState]:
        """State of each group now, for tests and for people."""
        return {group_id: GroupState(group.state) for group_id, group in self.groups.items()}

    def group(self, group_id: str) -> Group | None:
        """What is held about a group."""
        return self.groups.get(group_id)
