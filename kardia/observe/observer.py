"""The loop: events of one lane in, rows out. Puts events into the order in which they took effect and fires timers.

Each broker has its own clock, which only its ticks move. An event is applied when its broker's log is known to be
complete up to a moment (`hold_ms`) after it; timers between two events fire first. So any split of the same events
into steps gives the same transitions, rebalances, members and predictions.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from heapq import heappop, heappush
from math import inf
from typing import Any, Self

from kardia.doubts import SURE, Doubt, Doubts
from kardia.events import Event, Kind
from kardia.observe import snapshot
from kardia.observe.clients import application
from kardia.observe.coordinator_change import new_coordinator
from kardia.observe.deadlines import member_deadlines
from kardia.observe.evidence import offsets, restarts, unlogged
from kardia.observe.facts import busy, forgetting
from kardia.observe.facts.groups_of_lane import BESIDE_LOGS, OFFSETS_BROKER, Facts, Timer
from kardia.observe.folding import quiet, usual
from kardia.observe.intake.each_once import REMEMBERED_MS, Intake
from kardia.observe.intake.instants import AT, effect_at, put_in_order
from kardia.observe.modern import classics, heartbeats, operations, sessions, waiting
from kardia.observe.output import rows, status
from kardia.observe.rebalance import watches
from kardia.observe.requests import joins, member_requests
from kardia.observe.sentences import dispatch
from kardia.observe.state.group import NEVER, Group, Member
from kardia.observe.state.invariants import broken_in_state
from kardia.observe.state.settings import ObserverSettings
from kardia.observe.timer_kinds import OF_SILENCE, TIMER_KINDS
from kardia.stretches import Stretch
from kardia.tables import LIVE_TABLES, Row
from kardia.tolerances import (
    COMMIT_ANSWERED_WITHIN_MS,
    GRACE_MS,
    JUDGED_WITHIN_MS,
    LEFT_BEHIND_MS,
    RECORDS_WAITED_FOR_MS,
    SIGN_MS,
)

_FROM_TOPIC = frozenset({int(Kind.GROUP_RECORD), int(Kind.OFFSET_RECORD), int(Kind.OTHER_RECORD), int(Kind.ENDS)})
_OF_NO_LOG = _FROM_TOPIC | {int(Kind.GROUP_SAMPLE)}

_BY_ONE_CONNECTION = frozenset({int(Kind.JOIN), int(Kind.HEARTBEAT), int(Kind.MODERN_HEARTBEAT)})
"""Kinds of requests that a client sends by one connection as long as that lasts."""

_CLASSIC = frozenset({int(kind) for kind in (Kind.JOIN, Kind.SYNC, Kind.HEARTBEAT, Kind.LEAVE, Kind.COMMIT)})
"""Requests of members of the classic protocol, which a consumer group may have as well."""

_OF_MEMBERS = _CLASSIC | {int(Kind.TXN_COMMIT), int(Kind.MODERN_HEARTBEAT)}
"""Kinds of requests that only the coordinator of a group answers."""

_WITH_RECORDS = frozenset(
    int(kind) for kind in (Kind.MODERN_HEARTBEAT, Kind.JOIN, Kind.SYNC, Kind.HEARTBEAT, Kind.LEAVE)
)
"""Kinds of requests whose effect in a group with epochs is in a record as well."""


MOVE_MS = 30_000.0
"""How far the clocks go in one move while stretches are held."""

IDLE_SAMPLES = 12
"""Samples of health one after the other between which nothing happens and nothing is due, a minute of them. Then comes
the last one before something does: two archives may be a year apart."""


HANDLERS: dict[int, Callable[[Facts, Event, float], None]] = {
    Kind.JOIN: joins.on_join,
    Kind.SYNC: member_requests.on_sync,
    Kind.HEARTBEAT: member_requests.on_heartbeat,
    Kind.LEAVE: member_requests.on_leave,
    Kind.COMMIT: member_requests.on_commit,
    Kind.TXN_COMMIT: member_requests.on_txn_commit,
    Kind.FETCH: member_requests.on_fetch,
    Kind.TELEMETRY: member_requests.on_telemetry,
    Kind.DELETE_GROUPS: member_requests.on_delete_groups,
    Kind.MODERN_HEARTBEAT: heartbeats.on_heartbeat,
    Kind.GROUP_RECORD: dispatch.on_group_record,
    Kind.OFFSET_RECORD: offsets.on_offset_record,
    Kind.ENDS: offsets.on_ends,
    Kind.OTHER_RECORD: operations.on_record,
    Kind.COORDINATOR_LINE: dispatch.on_coordinator_line,
    Kind.GROUP_SAMPLE: dispatch.on_sample,
    Kind.GAP: dispatch.on_gap,
    Kind.TICK: dispatch.on_tick,
}


class Observer(Intake):
    """Everything known about the groups of one lane. See `kardia.observe` for the reading order."""

    def __init__(self, settings: ObserverSettings, lane: int = 0) -> None:
        super().__init__(settings, lane)
        self._now: dict[str, float] = {}
        self._waiting: list[tuple[str, Timer]] = []
        self._sampled_to = NEVER
        self.awaiting: set[str] = set()
        """Groups of which a request waits for records (`waiting`); it is among those deferred."""

    # --- feed and pull

    def step(self, events: Iterable[Event], stretches: Iterable[Stretch] = ()) -> dict[str, list[Row]]:
        """Take events of this lane, each source's in the order of its positions; return what became known.

        `stretches` hold further events of the same positions, folded; whoever folds gives each of them once.
        """
        self.take_in(events, stretches)
        self._advance(self.settings.hold_ms)
        return self._take()

    def finish(self) -> dict[str, list[Row]]:
        """No more input will come: apply what is held, up to the end of what was read."""
        self._advance(0.0)
        self._apply_later_records()
        for group in self.groups.values():
            if group.deferred:
                self._handle_deferred(group)
            if group.operation:
                operations.close(self, group)
        self._tell_commits(is_last=True)
        return self._take()

    def _tell_commits(self, *, is_last: bool = False) -> None:
        now = max(self._now.values(), default=NEVER)
        if now >= 0:
            self.rows["lag"].extend(self.lag.tell(int(now), has_records=self.reads_records(), is_last=is_last))

    def _apply_later_records(self) -> None:
        """Records and samples after the last line of every server.log stand for themselves, where no requests are
        read."""
        held = [at for broker in BESIDE_LOGS for at, _ in self.queues.get(broker, ())]
        if held and not self.has_requests():
            last_at = max(held)
            self._move_to({broker: max(limit, last_at) for broker, limit in self._limits(0.0).items()})

    # --- advance

    def _advance(self, hold_ms: float) -> None:
        """Bring every clock forward: events and timers of all brokers in the order in which they took effect.

        The clock of a broker goes to `complete_to - hold_ms` of its log and no further; several brokers are merged by
        time, because a group that moves from one to another goes on in the other's log.
        """
        self.records_to = self.complete_to(OFFSETS_BROKER)
        sampling = self.settings.sample_within_ms > 0
        for limits in (self._sampling_moves if sampling else self._moves)(self._limits(hold_ms)):
            for stop in self._stops_before(limits, hold_ms):
                if any(self._now.get(broker, NEVER) < stop for broker in limits):
                    self._move_to({broker: min(limit, stop) for broker, limit in limits.items()})
            self._move_to(limits)
            if self.awaiting:
                self._release_waiting()
            if sampling:
                self._sample(max(self._now.values()))
                self._tell_commits()
        for broker, now in self._now.items():
            self.forget_before(broker, now - REMEMBERED_MS)
        forgetting.forget_what_is_over(self, self._now)

    def _moves(self, limits: dict[str, float]) -> Iterator[dict[str, float]]:
        """Where the clocks stop on their way: trouble in a group unfolds its stretches of one move, not all of them."""
        first_at = self.held.first_at()
        highest = max(limits.values(), default=NEVER)
        while first_at is not None and first_at + MOVE_MS < highest:
            stop = first_at + MOVE_MS
            yield {broker: min(limit, stop) for broker, limit in limits.items()}
            first_at = self.held.first_at()
            if first_at is not None and first_at <= stop:
                break  # of a broker whose clock stands
        if limits:
            yield limits

    def _sampling_moves(self, limits: dict[str, float]) -> Iterator[dict[str, float]]:
        """Where the clocks stop to have health sampled: at every `sample_within_ms` since the first event."""
        for queue in self.queues.values():
            queue.sort(key=AT)  # so their first is the next
        if self._sampled_to < 0:
            first = [queue[0][0] for queue in self.queues.values() if queue]
            held_at = self.held.first_at()
            self._sampled_to = min(first if held_at is None else [*first, held_at], default=NEVER)
        highest, every = max(limits.values(), default=NEVER), self.settings.sample_within_ms
        idle = 0
        while self._sampled_to >= 0 and self._sampled_to + every < highest:
            if idle >= IDLE_SAMPLES:
                next_at = min(self._next_at(self._sampled_to), highest)
                if next_at > self._sampled_to + every:
                    self._sampled_to += (next_at - self._sampled_to) // every * every
                idle = 0
            else:
                self._sampled_to += every
                busy = any(queue and queue[0][0] <= self._sampled_to for queue in self.queues.values())
                idle = 0 if busy or self._next_at(self._sampled_to - every) <= self._sampled_to else idle + 1
            yield {broker: min(limit, self._sampled_to) for broker, limit in limits.items()}
        if limits:
            yield limits

    def _next_at(self, after: float) -> float:
        """When something happens or is due next, infinity if nothing is. A timer that was due before waits for a sign
        of life, which is an event."""
        at = min((queue[0][0] for queue in self.queues.values() if queue), default=inf)
        held_at = self.held.first_at()
        if held_at is not None:
            at = min(at, held_at)
        timers = (timer[0] for timers in self.timers.values() for timer in timers if after < timer[0] < at)
        return min(timers, default=at)

    def _move_to(self, limits: dict[str, float]) -> None:
        ready = self._due(limits)
        clocks = [(broker, self.timers.setdefault(broker, []), limit) for broker, limit in limits.items()]
        alive = {broker: self.alive_to(broker) for broker in limits}
        now, settle_by = self._now, self.settings.hold_ms
        for at, broker, event in ready:
            if event.kind in _FROM_TOPIC:
                self._note_alive(alive, event, at)
            for owner, timers, limit in clocks:
                if timers and timers[0][0] <= at:
                    self._fire(owner, timers, min(at, limit), alive[owner])
            if at < now.get(broker, NEVER):  # a record has its place only where there is no log: it is in no hurry
                self.late += 1
            self.broker = broker if event.kind not in _OF_NO_LOG else ""
            self.known = max(event.logged_at_ms, at + settle_by)
            self.evidence = event
            if not self._at_once(event, at) and not self._deferred(event, at):
                self._handle(event, at)
        for owner, timers, limit in clocks:
            self._fire(owner, timers, limit, alive[owner])
            now[owner] = max(now.get(owner, NEVER), limit)
        beside = self.timers.get(OFFSETS_BROKER)
        if beside and limits and OFFSETS_BROKER not in limits:  # of groups that no log has told of
            self._fire(OFFSETS_BROKER, beside, min(self.records_to, *limits.values()), NEVER)
        self._call_back()

    def _due(self, limits: dict[str, float]) -> list[tuple[float, str, Event]]:
        """Take from the queues and the stretches what is due, in the order in which it took effect."""
        ready: list[tuple[float, str, Event]] = []
        for broker, limit in limits.items():
            queue = self.queues[broker]
            queue.sort(key=AT)
            count = bisect_right(queue, limit, key=AT)
            ready.extend([(at, broker, event) for at, event in queue[:count]])
            del queue[:count]
        for source in BESIDE_LOGS:
            if source not in limits:
                self._merge(source, limits, ready)
        offsets.note_requests(self, ready)
        stretches = self.held.due(limits)
        if stretches:
            ready = quiet.apply(self, stretches, ready, self._now, limits)
        put_in_order(ready)
        return ready

    def _at_once(self, event: Event, at: float) -> bool:
        """Whether an event was one from which nothing follows, and is applied."""
        return usual.take(self, event, at)

    def _handle(self, event: Event, at: float) -> None:
        if self.broker not in self.process_known_from:
            busy.note(self.queued, self.broker, event)
        if event.connection:
            if self.unjudged.get(self.broker):
                restarts.judge(self, event, at)
            if self.broker in self.doubted:
                restarts.note_same_process(self, event, at)
            if event.kind in _BY_ONE_CONNECTION:
                restarts.note_connection(self, event, at)
        handler = HANDLERS.get(event.kind)
        group = self.groups.get(event.group_id)
        if handler is None:
            self.not_modelled += 1
        elif event.kind in _OF_MEMBERS and new_coordinator.is_from_before(self, event):
            self.late += at >= self._now.get(self.broker, NEVER)  # else it is counted already
            return
        elif group is not None and operations.is_over(group, event):
            operations.close(self, group, event)
        if group is not None and group.modern is not None and event.kind in _CLASSIC:
            classics.on_request(self, event, at)
        elif handler is not None:
            handler(self, event, at)

    def _deferred(self, event: Event, at: float) -> bool:
        """Whether an event waits for the rest of its group's join burst, which may have come before it."""
        group = self.groups.get(event.group_id)
        waits = event.group_id in self.awaiting
        may_have = group is not None and (group.modern is not None or bool(group.operation))
        has_epochs = event.kind == Kind.MODERN_HEARTBEAT or may_have
        if (has_epochs or waits) and event.kind in _WITH_RECORDS and self._awaits_records(group, event, at):
            return True
        if waits and group is not None and event.kind in _FROM_TOPIC:
            self._release(group, at)  # every record of the group before this one has come
        if group is None or group.broker != self.broker:
            return False
        if event.kind == Kind.JOIN:
            if group.deferred and event.generation_id > group.generation:
                known, evidence = self.known, self.evidence
                self._handle_deferred(group)  # they came before this generation, and may have made it
                self.known, self.evidence = known, evidence
            return False
        if not watches.in_burst(self, group, at):
            return False
        group.deferred.append(event)
        return True

    def _awaits_records(self, group: Group | None, event: Event, at: float) -> bool:
        """Whether a request waits for the records of its time."""
        if not waiting.must_wait(group, event, at, self.records_to):
            if group is not None and (at <= self.records_to or event.error_code):
                self._release(group, at)
            return False
        group = new_coordinator.group_of(self, event)
        sessions.renew_at_once(self, group, event)
        group.deferred.append(event)
        self.awaiting.add(group.group_id)
        return True

    def _release_waiting(self) -> None:
        """Take what has waited for records, which have come now, or have not for too long."""
        for group_id in sorted(self.awaiting):
            group = self.groups.get(group_id)
            if group is None:
                self.awaiting.discard(group_id)
            else:
                self._release(group, max(self.records_to, self._now.get(group.broker, NEVER) - RECORDS_WAITED_FOR_MS))

    def _release(self, group: Group, to: float) -> None:
        """Take what has waited for records, up to an instant."""
        known, evidence, broker = self.known, self.evidence, self.broker
        while group.deferred and effect_at(group.deferred[0]) <= to:
            event = group.deferred.pop(0)
            at = effect_at(event)
            self.broker = group.broker
            self.known = max(self.known, event.logged_at_ms, at + self.settings.hold_ms)
            self.evidence = event
            self._handle(event, at)
        if not group.deferred:
            self.awaiting.discard(group.group_id)
        self.known, self.evidence, self.broker = max(known, self.known), evidence, broker

    def _handle_deferred(self, group: Group) -> None:
        """The burst is over: who left in the instant in which it ended left before it if it is not on the list."""
        events, group.deferred = group.deferred, []
        self.broker, current = group.broker, group.rebalance
        for event in events:
            if event.kind == Kind.LEAVE and current is not None and not current.settled:
                member_requests.on_leave_before(self, group, current, event)
        for event in events:
            at = effect_at(event)
            self.known = max(self.known, event.logged_at_ms, at + self.settings.hold_ms)
            self.evidence = event
            self._handle(event, at)

    def _note_alive(self, alive: dict[str, float], event: Event, at: float) -> None:
        """A record of a group's partition was written by the broker that leads it: it was alive then."""
        group = self.groups.get(event.group_id)
        if group is None:
            return
        if not self.reads_requests(group.broker, at) and self.has_requests():
            return  # its requests are read of another time
        logged_to = self._logged_before(group.broker, at)
        if unlogged.is_off(event, at, logged_to):
            if not unlogged.has_lasted(self.unlogged_since, group.broker, at, logged_to):
                return
            self._fire(group.broker, self.timers[group.broker], at, alive.get(group.broker, NEVER))  # not known then
            if unlogged.note(self, group.broker, event, at, logged_to):
                stream = self.streams[f"{group.broker}/request"]
                stream.gaps += 1
                stream.note_gap_of(logged_to, at)
        elif alive.get(group.broker, at) < at and unlogged.is_sign_of_life(at, logged_to):
            alive[group.broker] = self.last_sign_at[group.broker] = at
            self._call_back()

    def _logged_before(self, broker: str, at: float) -> float:
        """Stamp of the last line of a broker's request log before an instant, no earlier than it; NEVER without one."""
        last_at = self.logged_to(broker)
        if last_at < 0:
            return NEVER
        return next((begin for begin, end in self.silences.get(broker, ()) if begin < at < end), last_at)

    def _limits(self, hold_ms: float) -> dict[str, float]:
        """How far each broker's clock may go: to the end of a log that is over, or that the others have left behind.
        What was read of it waits for no more lines: another broker may lead its groups by now. Records of the topic
        have a clock only where there is no log, samples where there are no records either."""
        brokers = [broker for broker in sorted(self.queues) if broker not in BESIDE_LOGS]
        brokers = brokers or [broker for broker in BESIDE_LOGS if broker in self.queues][:1]
        complete_to = {broker: self.complete_to(broker) for broker in brokers}
        farthest = max(complete_to.values(), default=NEVER)
        limits = {
            broker: at - (0.0 if broker in self.over or at < farthest - LEFT_BEHIND_MS else hold_ms)
            for broker, at in complete_to.items()
        }
        return {broker: limit for broker, limit in limits.items() if limit >= 0}

    def _merge(self, source: str, limits: dict[str, float], ready: list[tuple[float, str, Event]]) -> None:
        """Take the records or samples that are due: of groups that a broker leads by its clock, of others by the latest
        clock."""
        held = self.queues.get(source)
        if not held:
            return
        latest = max(limits.values())
        rest = []
        for at, event in held:
            group = self.groups.get(event.group_id)
            limit = limits.get(group.broker, latest) if group is not None else latest
            if event.kind == Kind.ENDS:
                limit = min(limit, self.records_to)  # every commit up to it has come
            if at <= limit:
                ready.append((at, source, event))
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
            if group is None or (group.broker or OFFSETS_BROKER) != broker:
                continue
            if waiting.is_needed(group, kind, key):
                self._release(group, due)
            if kind in OF_SILENCE and due > alive_to + GRACE_MS:
                self._waiting.append((broker, timer))
                continue
            if kind == "member" and due > alive_to + GRACE_MS:
                member = group.members.get(key)
                if member is not None and member.timer_at_ms == due and member_deadlines.session_over(member, due):
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
        if kind == "burst":
            self._handle_deferred(group)
        else:
            TIMER_KINDS[kind].handler(self, group, key, due)

    def _take(self) -> dict[str, list[Row]]:
        now = max(self._now.values(), default=NEVER)
        if now >= 0:
            self._sample(now)
        self._tell_commits()
        self.tell_progress()
        taken, self.rows = self.rows, {name: [] for name in LIVE_TABLES}
        return taken

    def _sample(self, now: float) -> None:
        """Write health of everybody about whom there is something to say, as far as samples may be written now."""
        every, rate = self.settings.health_sample_ms, self.settings.samples_per_s / 1_000
        if now > self.sampled_at:
            self.samples_left = min(rate * every, self.samples_left + rate * (now - self.sampled_at))
            self.sampled_at = now
        taken, due = self.samples.take(self.groups, lambda broker: self._now.get(broker, now), every, self.samples_left)
        self.samples_left -= due
        for group_id in sorted(taken):
            group = self.groups.get(group_id)
            if group is not None and group.members:
                self._sample_group(group, taken[group_id], self._now.get(group.broker, now))

    def _sample_group(self, group: Group, looked_at: dict[str, bool], clock: float) -> None:
        """Write by exception: a member in danger at every step, and once more when it is out of it; one in good health
        when its sample is due; and all of a group whose state has changed: a rebalance shows there before its cause is
        known and `transitions` can say it.

        `looked_at`: member id -> whether its sample is due.
        """
        changed = group.state != group.sampled_state
        group.sampled_state = group.state
        if changed:
            self._tell_broken(group, clock)
        found = [group.members[one] for one in sorted(looked_at) if one in group.members]
        group_at = status.GroupAt(group, clock)
        for member in group.members.values() if changed else found:
            said_at = member.health_at_ms
            urgent = changed or member.is_in_danger or self.samples.recovered(group, member)
            urgent &= clock > said_at
            # One that was taken for ended waits for no sample.
            urgent |= member.sample_due_at_ms < 0 and clock - said_at >= self.settings.health_sample_ms
            if urgent or said_at < 0 or looked_at.get(member.member_id):
                self._write_health(group_at, member)
            self.samples.keep(group, member, self.settings.health_sample_ms)

    def _tell_broken(self, group: Group, clock: float) -> None:
        """Rows of `surprises` of what cannot be."""
        settings, known_at_ms = self.settings, rows.instant(max(clock, group.known_at_ms))
        for sentence in broken_in_state(group):
            about = (settings.cluster_id, group, clock, known_at_ms, settings.kafka_version, sentence)
            self.rows["surprises"].append(rows.broken_row(*about))

    def _write_health(self, group_at: status.GroupAt, member: Member) -> None:
        """A row of health."""
        group, clock = group_at.group, group_at.now
        alive_to = self.alive_to(group.broker)
        if group.modern is None and not self.reads_requests(group.broker, clock):
            how, doubts, reasons = status.NEEDS_REQUESTS
        else:
            how, doubts, reasons = status.status_of(group_at, member, alive_to)
        doubts |= self._as_of(group.broker, member.session_renewed_at_ms, clock, alive_to)
        if group.group_id in self.awaiting or group.operation:
            doubts |= waiting.doubts_about(group, member)
        if group.may_turn_classic(clock):
            doubts |= Doubt.MAY_BE_CLASSIC
        if self.was_renewed_before_its_log(group, member, clock):
            doubts |= Doubt.LINES_LOST
        member.health_at_ms = clock
        known_at_ms = rows.instant(max(clock, group.known_at_ms))
        polls = application.polling(group, member, clock, alone=self.is_alone(group, member))
        cluster = self.settings.cluster_id
        self.rows["health"].append(rows.health_row(cluster, group_at, member, known_at_ms, doubts, how, reasons, polls))

    def _as_of(self, broker: str, since: float, clock: float, alive_to: float) -> Doubts:
        """What is in doubt about any deadline at `clock`, of a session that runs since then, by what the broker logged
        last. A request that renews a session may be answered, and so logged, only when its record is written, or when a
        broker that stands still goes on. A broker that may have been started again may load its groups still:
        heartbeats are answered meanwhile, and renew nothing; who was not heard since has a session from that load."""
        may_load = any(begin < clock <= end + JUDGED_WITHIN_MS for begin, end, _ in self.unjudged.get(broker, ()))
        if may_load or self.may_have_restarted(broker, since, clock):
            return Doubt.RESTART_UNJUDGED
        if clock > alive_to + SIGN_MS:
            return Doubt.BROKER_SILENT
        shown_by = min(clock + COMMIT_ANSWERED_WITHIN_MS, self.complete_to(broker))  # at its end a log shows no more
        if max(clock, shown_by) <= alive_to:
            return SURE
        oddly_silent = clock > alive_to and self.is_oddly_silent(broker)
        return Doubt.BROKER_SILENT if oddly_silent else Doubt.LOG_NOT_COMPLETE

    # --- keep and restore

    def snapshot(self) -> dict[str, Any]:
        """Everything held, as plain values: lists, dictionaries, strings, numbers."""
        return snapshot.snapshot(self) | {"now": self._now, "awaiting": sorted(self.awaiting)}

    @classmethod
    def restore(cls, settings: ObserverSettings, lane: int, state: dict[str, Any]) -> Self:
        """An observer that goes on where the snapshot was taken."""
        observer = cls(settings, lane)
        snapshot.restore(observer, state)
        observer._now = state["now"]
        observer.awaiting = set(state["awaiting"])
        return observer

    def clocks(self) -> dict[str, float]:
        """Where the clock of each broker stands."""
        return dict(self._now)

    def clock_of(self, broker: str) -> float:
        """Where the clock of one stands, NEVER if it has none."""
        return self._now.get(broker, NEVER)

    def take_clocks(self, clocks: dict[str, float]) -> None:
        """Set the clocks of an observer that has seen nothing (`lanes`)."""
        self._now = dict(clocks)

    def states(self) -> dict[str, str]:
        """State of each group now, for tests and for people."""
        return {group_id: group.state for group_id, group in self.groups.items()}

    def group(self, group_id: str) -> Group | None:
        """What is held about a group."""
        return self.groups.get(group_id)
