"""All groups of a lane, with indexes; gives out rows about them and sets their `known_at_ms`.

Decides nothing about Kafka; the modules beside it do. `known_at_ms` of what is said never goes back within a group, and
a later row about the same life or rebalance always has a higher one, because the highest stands.
"""

from __future__ import annotations

from collections.abc import Iterable
from heapq import heappush
from math import inf
from typing import Any

from kardia import slowness
from kardia.doubts import SURE, Doubt, Doubts
from kardia.events import ADMIN_BROKER, SILENCE_MS, Event
from kardia.events import OFFSETS_BROKER as OFFSETS_BROKER
from kardia.kafka.sessions import Coordinator, coordinator_of
from kardia.kafka.states import GroupState
from kardia.lag.book import LagBook
from kardia.observe.deadlines import member_deadlines
from kardia.observe.deadlines.late import fired_from
from kardia.observe.facts import busy
from kardia.observe.facts.last_heard import FallingSilent
from kardia.observe.facts.samples import Samples
from kardia.observe.output import rows
from kardia.observe.state.entries import Elected, Loading, Silence, Unjudged
from kardia.observe.state.group import NEVER, Ended, Group, Member, Rebalance
from kardia.observe.state.settings import ObserverSettings
from kardia.tables import DISAGREEMENTS, LIVE_TABLES, Row
from kardia.tolerances import (
    FLUSHED_MS,
    HIDDEN_MS_MAX,
    JUDGED_WITHIN_MS,
    LEFT_BEHIND_MS,
    LOADS_WITHIN_MS,
    PRESUMED_AFTER_MS,
    STAMP_MS,
    YOUNG_MS,
)

BESIDE_LOGS = (OFFSETS_BROKER, ADMIN_BROKER)
"""Sources that are no broker's log. They have a clock of their own where there is no log, the first of them that is
read; else they go by the clocks of the logs."""


Timer = tuple[float, str, str, str]
"""(due, group id, kind, key); equal instants fire in the order of these, so that a replay is a replay."""


def _by_name(one: tuple[Group, Member]) -> tuple[str, str]:
    group, member = one
    return group.group_id, member.member_id


class Facts:
    """Groups of one lane, and rows about them."""

    def __init__(self, settings: ObserverSettings, lane: int) -> None:
        self.settings = settings
        self.lane = lane
        self.groups: dict[str, Group] = {}
        self.clients: dict[tuple[int, str, str], dict[str, tuple[Group, Member]]] = {}
        """(shard, client.id, address) -> members that a FETCH of that client may belong to."""
        self.records_to = NEVER
        """Up to when all records of `__consumer_offsets` have been read; NEVER where none are."""
        self.timers: dict[str, list[Timer]] = {}
        self.silences: dict[str, list[Silence]] = {}
        self.unjudged: dict[str, list[Unjudged]] = {}
        self.outlived: dict[str, list[Silence]] = {}
        """Silences in which the same process of the broker went on, or stood still: a timer that was due in one has
        fired by its end, or a moment later."""
        self.pauses: dict[str, list[Silence]] = {}
        """Shorter silences, in which a broker may have been started again all the same."""
        self.doubted: dict[str, Silence] = {}
        """By broker: the last pause, as long as nothing has shown that the same process went on after it."""
        self.restarted_at: dict[str, float] = {}
        """By broker: first line after the last restart that is known; earlier silences are explained."""
        self.process_known_from: dict[str, float] = {}
        """By broker: since when whoever reads its log knows the connections of all its clients, and tells what they
        show of the broker's process."""
        self.asked_from: dict[str, float] = {}
        """By broker: its first request about a group, of whatever lane, as far as its log is read."""
        self.elected: dict[str, Elected] = {}
        """Shard -> the last election of a leader that sentences of server.log tell."""
        self.blind_to: dict[str, float] = {}
        """Broker -> end of the last gap in its log."""
        self.unlogged_since: dict[str, float] = {}
        """Broker -> the first record whose line was missing, since its last line."""
        self.slow: dict[str, slowness.Windows] = {}
        """By broker: windows in which it was slow."""
        self.queued: busy.Queued = {}
        """By broker: moments at which requests stood long in its queue."""
        self.coordinator: Coordinator = coordinator_of(settings.kafka_version) or Coordinator.JAVA
        self.coordinator_known = bool(settings.kafka_version)
        self.rows: dict[str, list[Row]] = {name: [] for name in LIVE_TABLES}
        self.broker = ""
        self.known = 0.0
        self.evidence: Event | str = ""
        self.divergences = 0
        self.disagreed = dict.fromkeys(DISAGREEMENTS, 0)
        """Of the divergences those of server.log, by kind."""
        self.late = 0
        self.not_modelled = 0
        self.forgotten = 0
        self.has_forgotten = False
        self.falling_silent: FallingSilent | None = None
        """While all members of a group end."""
        self.samples = Samples()
        self.samples_left = settings.samples_per_s * settings.health_sample_ms / 1_000
        """Rows of members in good health that may be written now; see `ObserverSettings.samples_per_s`."""
        self.sampled_at = NEVER
        """Instant up to which it has been filled up."""
        self.lag = LagBook(settings.cluster_id, lane, settings.lag_rows_per_s)
        """Commits and ends of partitions. They are joined here, where a group's commits are, and not by topic."""
        self.told_session_ms: dict[str, int] = {}
        """Protocol -> session timeout as the cluster is configured."""
        self.told_group_session_ms: dict[str, dict[str, int]] = {}
        """Group -> the same, of groups with a configuration of their own."""
        self.logged_session_ms: dict[str, dict[str, int]] = {}
        """Broker -> the same as its start lines in server.log say."""
        self.shown_session_ms: dict[str, dict[str, int]] = {}
        """Broker -> the same as evictions of any of its groups show; `DIFFERENT` where they differ."""
        self.shared_session_ms: dict[str, dict[str, int]] = {}
        """Shard -> the same as evictions of its groups show; `DIFFERENT` where they differ. By shard and not by lane:
        what is said must not depend on the number of lanes."""
        self.loading: dict[str, Loading] = {}
        """Group -> whom a load under way has named, by server.log."""
        self.began_at = NEVER
        """Instant of the first event that named a group."""
        self.empty_since: dict[str, float] = {}
        self.deleted_since: dict[str, float] = {}
        """Groups without members, those that were deleted apart, the one left longest first; see `forgetting`."""

    # --- memory

    def has_several_brokers(self) -> bool:
        """Whether another broker may lead a group whose own has fallen silent about it."""
        return sum(1 for name in self.timers if name and name not in BESIDE_LOGS) > 1

    def silent_at(self, broker: str, at: float) -> bool:
        """Whether nothing at all was logged by the broker around an instant: it may have been down, or have come back
        since, which nothing has shown yet."""
        outlived = self.outlived.get(broker, ())
        if any(begin < at < end and (begin, end) not in outlived for begin, end in self.silences.get(broker, ())):
            return True
        return any(begin < at < end + JUDGED_WITHIN_MS for begin, end, _ in self.unjudged.get(broker, ()))

    def knows_process(self, broker: str, since: float) -> bool:
        """Whether ticks tell if the broker was started again after an instant."""
        return 0 <= self.process_known_from.get(broker, NEVER) <= since

    def hole_end(self, broker: str, at: float) -> float:
        """When a broker logged again that logged nothing around an instant, as `silent_at` has it; NEVER if it did."""
        ends = [end for begin, end in self.silences.get(broker, ()) if begin < at < end]
        ends += [end for begin, end, _ in self.unjudged.get(broker, ()) if begin < at < end + JUDGED_WITHIN_MS]
        return max(ends, default=NEVER)

    def woke_at(self, broker: str, at: float) -> float:
        """When a broker went on that stood still at an instant; NEVER if it did not."""
        return next((end for begin, end in self.outlived.get(broker, ()) if begin < at < end), NEVER)

    def complete_to(self, _broker: str) -> float:
        """Up to when the log of a broker has been read completely."""
        return inf

    def reads_requests(self, _broker: str, _at: float) -> bool:
        """Whether what a broker was asked at an instant is read, in its request log; empty: of any broker."""
        return True

    def heard_requests_at(self, _broker: str, _at: float) -> bool:
        """Whether the request log of a broker had begun at an instant, as far as it is read; empty: that of any."""
        return True

    def was_renewed_before_its_log(self, group: Group, member: Member, now: float) -> bool:
        """Whether only a record showed the last renewal, of before what is read of its broker's request log: a later
        one may have been asked for there. Members of classic groups are known by requests alone."""
        since = member.session_renewed_at_ms
        if group.modern is None or since < 0 or not self.reads_requests(group.broker, now):
            return False
        return not self.heard_requests_at(group.broker, since)

    def reads_records(self) -> bool:
        """Whether `__consumer_offsets` is read."""
        return False

    def logged_to(self, _broker: str) -> float:
        """Stamp of the last line of a broker's request log; NEVER where none is read."""
        return NEVER

    def last_lines(self) -> Iterable[float]:
        """Stamp of the last line of each request log that is read."""
        return ()

    def is_quiet_at(self, broker: str, at: float) -> bool:
        """Whether no line of the broker was seen around an instant or since: what its timers did then is not shown."""
        silent = any(begin < at < end for begin, end in self.silences.get(broker, ()))
        return silent or self.silent_at(broker, at) or 0 <= self.logged_to(broker) < at

    def was_silent(self, broker: str, begin: float, end: float) -> bool:
        """Whether the broker logged nothing at all for some time between two instants."""
        return any(since < end and begin < to for since, to in self.silences.get(broker, ()))

    def is_broken(self, broker: str, since: float, until: float, *, seen: bool = False) -> bool:
        """Whether the broker may have been down or have stood still between two instants, so that a timer begun at the
        first need not have fired at the second. `seen`: a later line shows that it had, whatever lines are missing."""
        missing_ms = 0.0 if seen else FLUSHED_MS
        return any(begin - missing_ms < until and since < end for begin, end in self.silences.get(broker, ()))

    def were_late_together(self, broker: str, first_due: float, second_due: float) -> bool:
        """Whether the broker logged nothing from before the first of two deadlines to after the second: if it stood
        still, both timers fired when it went on, in an order that nothing shows."""
        first, last = min(first_due, second_due), max(first_due, second_due)
        return any(begin < first and last < end for begin, end in self.silences.get(broker, ()))

    def may_have_restarted(self, broker: str, since: float, until: float) -> bool:
        """Whether the broker logged nothing, between two instants, for so long that it may have been started again, and
        nothing has shown since that it was not."""
        return any(begin < until and since < end for begin, end in self.pauses.get(broker, ()))

    def is_doubted(self, broker: str, since: float, now: float) -> bool:
        """Whether the broker may have been started again between two instants, which nothing has shown yet: sessions
        that ran before would run anew."""
        pause = self.doubted.get(broker)
        if pause is not None and since < pause.end_at_ms <= now <= pause.end_at_ms + PRESUMED_AFTER_MS:
            return True
        pending = self.unjudged.get(broker, ())
        return any(since < end and begin < now <= end + JUDGED_WITHIN_MS for begin, end, _ in pending)

    def ran_out(
        self, group: Group, member: Member, session_renewed_at_ms: float, latest: float
    ) -> tuple[float, Doubts]:
        """When a session ended that ran from an instant and is known to be over at `latest`, and what is in doubt about
        that. A deadline in a silence of the whole log was met by a broker that was down, stood still, or had nothing to
        log."""
        deadline = session_renewed_at_ms + member.session_ms
        over_at = fired_from(group, self.over_from(group, member, session_renewed_at_ms))
        for begin, end in self.silences.get(group.broker, ()):
            if begin < deadline < end and session_renewed_at_ms < end:
                over_at = max(over_at, end)
        over_at = min(over_at, latest)
        if member.is_unsure(session_renewed_at_ms):
            return over_at, Doubt.RENEWAL_UNSURE
        if session_renewed_at_ms <= group.unsure_to:
            return over_at, Doubt.LOAD_UNSEEN
        broken = self.is_broken(group.broker, session_renewed_at_ms, deadline, seen=True)
        return over_at, Doubt.BROKER_SILENT if broken else SURE

    def over_from(self, group: Group, member: Member, session_renewed_at_ms: float) -> float:
        """The earliest that a session was over that ran from an instant. One that runs from a load, which is taken for
        when the coordinator answered first, may run from when its broker was seen to log again."""
        silences = self.silences.get(group.broker, ())
        since = [end for _, end in silences if 0 <= session_renewed_at_ms - end <= LOADS_WITHIN_MS]
        if since and session_renewed_at_ms <= group.unsure_to:
            return max(since) + member.session_ms
        return member.over_from(session_renewed_at_ms + member.session_ms)

    def is_blind(self, since: float, until: float) -> bool:
        """Whether between two instants a part of any log was lost, or a broker logged nothing at all, as one that has
        not come back yet: clients that were heard nothing of may have been heard there."""
        if any(to_at >= since for to_at in self.blind_to.values()):
            return True
        if any(since <= last_at < until - SILENCE_MS for last_at in self.last_lines()):
            return True
        return any(end >= since for silences in self.silences.values() for _, end in silences)

    def slow_between(self, broker: str, begin: float, end: float) -> list[float] | None:
        """The slowest that the broker was between two instants; see `kardia.slowness`."""
        windows = self.slow.get(broker)
        return slowness.between(windows.values(), begin, end) if windows else None

    def is_busy(self, at: float) -> bool:
        """Whether the broker at hand was busy at an instant."""
        return busy.is_busy(self.queued, self.broker, at)

    def loads_classes(self, at: float) -> bool:
        """Whether a slow request about a group took effect at the end of its handling at an instant, because the broker
        at hand was young, not because it was busy."""
        began_at = self.asked_from.get(self.broker, self.began_at)
        return at <= began_at + YOUNG_MS and not self.is_busy(at)

    def silence_shown_at(self, broker: str, member: Member, now: float) -> float:
        """When it shows that a member was silent up to its deadline, where that is later than the deadline; else NEVER.
        The broker stood still then and goes on later, or answers waited so long, after they had been handled, that a
        heartbeat which renewed the session is not seen yet."""
        slow = self.slow_between(broker, member.session_renewed_at_ms, now)
        hidden_ms = min(slow[slowness.REMOTE], HIDDEN_MS_MAX) if slow is not None else 0.0
        return max(self.woke_at(broker, member.deadline), member.deadline + hidden_ms if hidden_ms > 0 else NEVER)

    def index(self, group: Group, member: Member) -> None:
        """Make a member findable by its client.id and address, which is all that a FETCH tells."""
        if group.members.get(member.member_id) is not member:
            return  # it has ended
        self.samples.note(group.group_id, member.member_id)
        self.empty_since.pop(group.group_id, None)
        self.deleted_since.pop(group.group_id, None)
        if member.client_id or member.client_host:
            key = (group.shard, member.client_id, member.client_host)
            self.clients.setdefault(key, {})[member.member_id] = (group, member)

    def take_client(self, group: Group, member: Member, client_id: str, client_host: str) -> None:
        """Another client.id or address of a member: it is found by that, and no longer by what it had before."""
        if (member.client_id, member.client_host) == (client_id, client_host):
            return
        self.forget(group, member)
        member.client_id, member.client_host = client_id, client_host
        self.index(group, member)

    def members_of(self, shard: int, client_id: str, client_host: str) -> list[tuple[Group, Member]]:
        """Members that a FETCH of that client may belong to, in an order that a restart does not change."""
        found = self.clients.get((shard, client_id, client_host))
        if found is None:
            return []
        return sorted(found.values(), key=_by_name)

    def forget(self, group: Group, member: Member) -> None:
        """The opposite of `index`."""
        key = (group.shard, member.client_id, member.client_host)
        found = self.clients.get(key)
        if found is not None:
            found.pop(member.member_id, None)
            if not found:
                del self.clients[key]

    def is_alone(self, group: Group, member: Member) -> bool:
        """Whether no other member has its client.id and address: then what they fetch is told apart."""
        return len(self.clients.get((group.shard, member.client_id, member.client_host), ())) <= 1

    def take_over(self, group: Group) -> None:
        """The broker at hand leads the group from here on: by its clock timers fire and samples are due."""
        group.broker = self.broker
        for member in group.members.values():
            member.timer_at_ms = member.sample_due_at_ms = NEVER
            self.samples.note(group.group_id, member.member_id)

    # --- timers

    def say_again(self, group: Group, member: Member) -> None:
        """What is said of the health of a member holds no more: write it in this step, not when its sample is due."""
        member.health_at_ms = NEVER
        self.samples.note(group.group_id, member.member_id)

    def schedule(self, group: Group, due: float, kind: str, key: str) -> None:
        """Have a timer of the group fire at `due` on the clock of its broker."""
        heappush(self.timers.setdefault(group.broker, []), (due, group.group_id, kind, key))

    def schedule_by_records(self, group: Group, due: float, kind: str, key: str) -> None:
        """The same of a timer that waits for no request: where no broker has spoken of the group it fires on the clock
        of the records, which are all that tell of it."""
        heappush(self.timers.setdefault(group.broker or OFFSETS_BROKER, []), (due, group.group_id, kind, key))

    def watch(self, group: Group, member: Member, not_before: float = NEVER) -> None:
        """Have the member looked at when something about it may become due. One timer per member is outstanding."""
        if not group.broker:
            return
        due = member_deadlines.next_due(self.settings, member)
        if due < 0:
            return
        due = max(due, not_before)
        if member.timer_at_ms < 0 or due < member.timer_at_ms:
            member.timer_at_ms = due
            self.schedule(group, due, "member", member.member_id)

    def watch_renewed(self, group: Group, member: Member) -> None:
        """Have a member looked at whose session was renewed: its timer stays, unless it was due by a longer habit."""
        if member.timer_at_ms < 0 or member_deadlines.by_habit(self.settings, member):
            self.watch(group, member)

    # --- what is said

    def known_at_ms(self, group: Group, last: int = -1) -> int:
        """`known_at_ms` of what is said now: never earlier than before in this group, and later than `last`."""
        if self.known > group.known_at_ms:
            group.known_at_ms = self.known
        known_at_ms = rows.instant(group.known_at_ms)
        return known_at_ms if known_at_ms > last else last + 1

    def evidence_text(self) -> str:
        """What the rows of this moment rest on, as they name it."""
        event = self.evidence
        return event if isinstance(event, str) else f"{event.source}@{event.start}"

    def set_state(
        self, group: Group, at: float, to_state: str, cause: str, doubts: Doubts, by: float | None = None
    ) -> None:
        """The group changes its state, at `at` or up to `by` (see `Ended.by`)."""
        from_state = group.told_state
        group.state = to_state
        self.samples.note(group.group_id)
        if from_state == to_state:
            return
        group.told_state = to_state
        self.tell_group(group, at, from_state, cause, doubts, by)

    def tell_unread(self, group: Group, at: float) -> None:
        """Another broker leads the group from `at` on: where what is read of the log of the one before ends long before
        that, what the group was in between is not known."""
        read_to, from_state = self.complete_to(group.broker), group.told_state
        if group.broker and 0 <= read_to < at - LEFT_BEHIND_MS and from_state != GroupState.UNKNOWN:
            group.told_state = GroupState.UNKNOWN
            self.tell_group(group, read_to + STAMP_MS, from_state, "log_over", Doubt.NOT_SEEN)

    def tell_group(
        self, group: Group, at: float, from_state: str, cause: str, doubts: Doubts, by: float | None = None
    ) -> None:
        """Something happened to the group as a whole; after a load of a Stable group it is as Stable as before."""
        self.samples.note(group.group_id)
        group.seq += 1
        self.rows["transitions"].append(
            rows.transition_row(
                self.settings.cluster_id,
                group,
                at,
                self.known_at_ms(group),
                doubts,
                None,
                str(from_state),
                str(group.told_state),
                cause,
                self.evidence_text(),
                by,
            )
        )

    def correct(self, group: Group, current: Rebalance, doubts: Doubts) -> None:
        """A further row: the group prepared its rebalance earlier than was said, by another cause."""
        if current.cause is None:
            return
        group.seq += 1
        self.rows["transitions"].append(
            rows.transition_row(
                self.settings.cluster_id,
                group,
                current.started_at_ms,
                self.known_at_ms(group),
                doubts,
                None,
                str(current.told_from),
                str(GroupState.PREPARING),
                current.cause.trigger,
                self.evidence_text(),
                current.cause.by,
            )
        )

    def emit_transition(
        self,
        group: Group,
        at: float,
        member_id: str,
        from_state: str,
        to_state: str,
        cause: str,
        doubts: Doubts,
        by: float | None = None,
    ) -> None:
        """A member begins or ends its membership."""
        group.seq += 1
        self.rows["transitions"].append(
            rows.transition_row(
                self.settings.cluster_id,
                group,
                at,
                self.known_at_ms(group),
                doubts,
                member_id,
                from_state,
                to_state,
                cause,
                self.evidence_text(),
                by,
            )
        )

    def emit_member(self, group: Group, member: Member, at: float, doubts: Doubts, over: Ended | None = None) -> None:
        """What is known about a life."""
        if over is None:
            self.samples.note(group.group_id, member.member_id)
        member.row_known = self.known_at_ms(group, member.row_known)
        self.rows["members"].append(
            rows.member_row(self.settings.cluster_id, group, member, over, at, member.row_known, doubts)
        )

    def emit_rebalance(
        self,
        group: Group,
        current: Rebalance,
        stragglers: list[dict[str, Any]],
        doubts: Doubts,
        withdrawn: bool = False,
    ) -> None:
        """What is known about a rebalance. `withdrawn`: that there was none."""
        current.row_known = self.known_at_ms(group, current.row_known)
        slow = None
        if current.assigned_at_ms >= 0:
            slow = self.slow_between(group.broker, current.started_at_ms, current.assigned_at_ms)
        slow_ms = int(slow[slowness.TAKEN]) if slow is not None and slow[slowness.TAKEN] >= slowness.SLOW_MS else None
        self.rows["rebalances"].append(
            rows.rebalance_row(
                self.settings.cluster_id, group, current, stragglers, current.row_known, doubts, slow_ms, withdrawn
            )
        )

    def emit_prediction(
        self, group: Group, member: Member, kind: str, outcome: str, outcome_at: float, at_most: Doubts = SURE
    ) -> None:
        """A prediction is made, or comes to its outcome, which is as sure as what decided it, `at_most`."""
        self.samples.note(group.group_id, member.member_id)
        predicted_at = getattr(member, f"{kind}_prediction_at_ms")
        deadline = getattr(member, f"{kind}_prediction_deadline_at_ms")
        known_at_ms = self.known_at_ms(group)
        if outcome != "open":
            known_at_ms = max(known_at_ms, rows.instant(predicted_at) + 1)
        doubts = self._doubts_of_prediction(group, member, kind, predicted_at) | at_most
        self.rows["predictions"].append(
            rows.prediction_row(
                self.settings.cluster_id,
                group,
                member,
                known_at_ms,
                doubts,
                kind,
                predicted_at,
                deadline,
                outcome,
                outcome_at,
            )
        )

    def _doubts_of_prediction(self, group: Group, member: Member, kind: str, predicted_at: float) -> Doubts:
        """What is in doubt about a prediction itself, made at an instant."""
        if kind == "poll":
            return Doubt.POLLS_UNSEEN
        if kind == "session" and member.is_session_assumed:
            return Doubt.SESSION_GUESSED
        if kind == "session" and not member.imminent:
            return Doubt.HEARTBEAT_MAY_BE_LATE
        if kind != "session" or not member_deadlines.surely_silent(group, member):
            return Doubt.MAY_WAIT_UNSEEN
        if member.renewed_unseen:
            return Doubt.RENEWAL_UNSURE
        if 0 <= member.session_renewed_at_ms <= group.unsure_to:
            return Doubt.LOAD_UNSEEN
        if self.was_renewed_before_its_log(group, member, predicted_at):
            return Doubt.LINES_LOST
        return Doubt.BROKER_SILENT if self.silent_at(group.broker, predicted_at) else Doubt.SILENCE

    def close_prediction(
        self, group: Group, member: Member, kind: str, outcome: str, at: float, at_most: Doubts = SURE
    ) -> None:
        """Score a prediction and forget it. `at_most`: what is in doubt about what decided it."""
        self.emit_prediction(group, member, kind, outcome, at, at_most)
        setattr(member, f"{kind}_prediction_at_ms", NEVER)
        setattr(member, f"{kind}_prediction_deadline_at_ms", NEVER)
        if kind == "session":
            member.imminent = False
