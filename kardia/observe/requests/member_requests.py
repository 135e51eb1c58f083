"""What Heartbeat, SyncGroup, LeaveGroup and commits change, a function for each; called in the order of their effects.

Sources: Kafka's `handleHeartbeat`, `doJoinGroup`, `doSyncGroup`, `handleLeaveGroup`, `doCommitOffsets` and their Java
successors. The broker's answer is the authority: where it differs from what is held, the difference is counted as a
divergence and what is held is mended.
"""

from __future__ import annotations

from kardia.coordinator.classic.behaviour import behaviour_of
from kardia.doubts import SURE, Doubt, Doubts
from kardia.events import Event, Kind
from kardia.kafka import sessions
from kardia.kafka.states import COORDINATOR_MOVED, ErrorCode, GroupState
from kardia.observe.clients import leaves
from kardia.observe.coordinator_change import loads, new_coordinator
from kardia.observe.deadlines import member_deadlines, pending
from kardia.observe.deadlines.handling import heard_late, is_late, taken_at, took_effect, was_slow
from kardia.observe.evidence import records, unknown_to_coordinator
from kardia.observe.facts.groups_of_lane import Facts
from kardia.observe.ledger import costs
from kardia.observe.ledger.rebalance_row import drop, pass_over
from kardia.observe.members import habits, leaving, lives, polls, who_broke
from kardia.observe.members.identity import identify, learn_library, says_library
from kardia.observe.rebalance import begin_and_settle, seen_under_way
from kardia.observe.requests import not_stored
from kardia.observe.state.entries import Left, SentBack
from kardia.observe.state.group import NEVER, Group, Member, Rebalance
from kardia.observe.timers import timeouts
from kardia.tables import LEAVE_CAUSES
from kardia.tolerances import AT_ONCE_MS, TWO_STAMPS_MS

MAX_LEFT_PENDING = 64
"""Ids remembered per group that left before they were seen to join; the oldest goes first."""

NONE, REBALANCE_IN_PROGRESS = int(ErrorCode.NONE), int(ErrorCode.REBALANCE_IN_PROGRESS)
CLASSIC = "classic"


def on_heartbeat(facts: Facts, event: Event, at: float) -> None:
    """Heartbeat: 0 and 27 renew the session, 25 and 82 say that the member is gone, the rest says nothing."""
    group = new_coordinator.group_of(facts, event)
    error = event.error_code
    if error in (NONE, REBALANCE_IN_PROGRESS) and went_since(facts, group, event.member_id, at):
        return
    if error == NONE:
        member = group.members.get(event.member_id)
        if group.loading_since_at_ms >= 0 and (member is None or event.generation_id != group.generation):
            return  # a coordinator that still loads answers 0 to anybody
        if member is None:
            member = notice(facts, group, event, at)
        if says_library(member, event):
            learn_library(facts, group, member, event, at)
        if group.state != GroupState.STABLE or event.generation_id != group.generation:
            heard_steady(facts, group, event, at)
        elif at > group.steady_at_ms:
            group.steady_at_ms = at
        who_broke.heard(member, event)
        _renew_by_heartbeat(facts, group, member, event, at)
    elif error == REBALANCE_IN_PROGRESS:
        member = group.members.get(event.member_id)
        if member is None:
            member = notice(facts, group, event, at)
        told_nothing = group.release and group.state == GroupState.COMPLETING
        if told_nothing and not behaviour_of(group.release).completing_heartbeat_arms:
            note_asked(group, event, at)
            who_broke.heard(member, event)
            return
        seen_under_way.on_told(facts, group, member, at)
        who_broke.heard(member, event)
        _renew_by_heartbeat(facts, group, member, event, at)
        if member.rebalance_notified_at_ms < 0:
            member.rebalance_notified_at_ms = at
        timeouts.predict_straggler(facts, group, member, at)
    else:
        on_refused(facts, group, event, at)


def _renew_by_heartbeat(facts: Facts, group: Group, member: Member, event: Event, at: float) -> None:
    if at > member.session_renewed_at_ms:
        if is_late(taken_at(event), event.handled_at_ms, event.decided_at_ms):
            member.doubtful_at_ms = at
        member.heard_late = heard_late(taken_at(event), event.handled_at_ms, event.decided_at_ms)
    renew(facts, group, member, at)


def went_since(facts: Facts, group: Group, member_id: str, at: float) -> bool:
    """Whether a member is gone since another request of it took effect, and that shows nothing else: it left in that
    instant, or its place was taken, or a generation formed without it, after a request that was answered late, because
    what it wrote had to be stored."""
    over, current = group.ended.get(member_id), group.rebalance
    if over is not None and over.cause == "static_replaced":
        return at < over.ended_at_ms - TWO_STAMPS_MS
    if over is not None and current is not None and current.listed is not None:
        # The list of the generation that was formed since is without it.
        since = over.ended_at_ms <= current.joined_at_ms and at < current.joined_at_ms - TWO_STAMPS_MS
        if since and member_id not in current.listed:
            return True
    return left_just_now(facts, group, member_id, at)


def left_just_now(facts: Facts, group: Group, member_id: str, at: float) -> bool:
    """Whether a member left in the instant of another request of it: their order is lost in the stamps, and the broker
    does not answer 0 to a member that has left."""
    over = group.ended.get(member_id)
    if over is None or over.cause not in LEAVE_CAUSES:
        return False
    last_at = over.ended_at_ms if over.by is None else max(over.by, over.ended_at_ms)
    return over.ended_at_ms - facts.settings.burst_ms <= at <= last_at + facts.settings.burst_ms


def heard_steady(facts: Facts, group: Group, event: Event, at: float, doubts: Doubts = Doubt.SEEN_LATER) -> None:
    """A heartbeat answered 0 that does not fit a Stable group of this generation: bring the group in line with it."""
    if loads.take_back(facts, group, event, at):
        group.steady_at_ms = at
        return
    if event.generation_id < group.generation:
        return  # a line that comes late, from before the last join completion
    state = group.state
    if state in (GroupState.STABLE, GroupState.COMPLETING) and event.generation_id == group.generation:
        return
    if state == GroupState.PREPARING and event.generation_id == group.generation:
        seen_under_way.on_contradicted(facts, group, at)
        return
    if state == GroupState.UNKNOWN and event.generation_id >= 0:
        group.generation = event.generation_id
        facts.set_state(group, at, GroupState.STABLE, "first seen", Doubt.THERE_BEFORE)
        group.steady_at_ms = at
        return
    facts.divergences += 1
    if event.generation_id > group.generation:
        group.generation = event.generation_id
        group.membership_complete = False
        group.stored = None
        pass_over(facts, group, at)
    drop(facts, group)
    facts.set_state(group, at, GroupState.STABLE, "generation seen", doubts)
    group.steady_at_ms = at


def renew(facts: Facts, group: Group, member: Member, at: float) -> None:
    """The session timer of a member starts again at `at`."""
    last, member.heard_at_ms = member.session_renewed_at_ms, NEVER
    if at > last:
        if last >= 0:
            member.usual_gap_max_ms = habits.after(facts, group.broker, member, member.usual_gap_max_ms, last, at)
        member.session_renewed_at_ms = at
        if at > group.gap_at_ms:
            member.unknown_since_at_ms = NEVER
        member.overdue = False
        if member.session_prediction_at_ms >= 0:
            facts.close_prediction(group, member, "session", "averted", at)
        if member.poll_prediction_at_ms >= 0 and member_deadlines.polls_unseen(member):
            facts.close_prediction(group, member, "poll", "averted", at)
            member.polls_in_secret = group.gap_at_ms < member.last_poll_at_ms  # else a poll was lost with its line
    facts.watch_renewed(group, member)


def notice(facts: Facts, group: Group, event: Event, at: float) -> Member:
    """A member that is not held but is answered as one: it was there before the log began, or was ended wrongly."""
    over = group.ended.get(event.member_id)
    if over is not None:
        facts.divergences += 1
        doubted = facts.is_doubted(group.broker, over.ended_at_ms, at)  # who loads answers 0 to whoever asks
        return lives.reinstate(facts, group, over, at, doubts=Doubt.RESTART_UNJUDGED if doubted else Doubt.SEEN_LATER)
    member = Member(event.member_id, at, instance_id=event.group_instance_id, session_renewed_at_ms=at)
    identify(facts, group, member, event, "")
    member.generation_first = event.generation_id
    group.members[member.member_id] = member
    if member.instance_id:
        group.instances[member.instance_id] = member.member_id
    facts.index(group, member)
    facts.emit_member(group, member, at, Doubt.THERE_BEFORE)
    facts.emit_transition(group, at, member.member_id, "Absent", "Member", "first seen", Doubt.THERE_BEFORE)
    facts.watch(group, member)
    return member


def on_refused(facts: Facts, group: Group, event: Event, at: float) -> None:
    """An answer with an error other than 27: a member that is gone, or a coordinator that moved."""
    error = event.error_code
    note_asked(group, event, at)
    if error == ErrorCode.UNKNOWN_MEMBER_ID:
        since = event.handled_at_ms if event.kind == Kind.JOIN else NEVER
        unknown_to_coordinator.on_gone(facts, group, event.member_id, at, since)
        who_broke.came_back(facts, group, event, at)
    elif error == ErrorCode.FENCED_INSTANCE_ID:
        if not_stored.gives_back(facts, group, event, at):
            return
        unknown_to_coordinator.on_fenced(facts, group, event.member_id, at)
        tell_fenced(facts, group, event.member_id, at)
    elif error in COORDINATOR_MOVED:
        new_coordinator.moved(facts, group, event, at)


def tell_fenced(facts: Facts, group: Group, member_id: str, at: float) -> None:
    """A replaced static member that still sends is a second process with the same instance id, not a restart of the
    first. Said once per life."""
    over = group.ended.get(member_id)
    if over is not None and over.cause == "static_replaced" and not over.member.fenced:
        over.member.fenced = True
        facts.emit_transition(group, at, member_id, "Absent", "Absent", "fenced", SURE)


def on_commit(facts: Facts, event: Event, at: float) -> None:
    """OffsetCommit: an accepted one of a member renews its session at its handling, before the record is written, and
    so whether that could be stored in time or not: Scala's coordinator answers REQUEST_TIMED_OUT then."""
    group = new_coordinator.group_of(facts, event)
    if event.error_code not in (NONE, ErrorCode.REQUEST_TIMED_OUT):
        if event.error_code == REBALANCE_IN_PROGRESS:
            note_asked(group, event, at)
            member = group.members.get(event.member_id)
            if member is not None:
                polls.on_commit(facts, group, member, event)
        elif event.member_id or event.error_code in COORDINATOR_MOVED:
            on_refused(facts, group, event, at)
        return
    if not event.member_id:
        return  # a simple consumer: commits without being a member
    member = group.members.get(event.member_id)
    if member is None:
        if event.generation_id < 0 or went_since(facts, group, event.member_id, at):
            return
        member = notice(facts, group, event, at)
    if says_library(member, event):
        learn_library(facts, group, member, event, at)
    # A Java coordinator takes it in a thread of its own, which may be as slow as the queue was.
    since = event.arrived_at_ms if facts.coordinator is sessions.Coordinator.JAVA else taken_at(event)
    if at > member.session_renewed_at_ms and was_slow(since, event.handled_at_ms):
        member.doubtful_at_ms = at
    renew(facts, group, member, at)
    polls.on_commit(facts, group, member, event)


def on_txn_commit(facts: Facts, event: Event, at: float) -> None:
    """TxnOffsetCommit: it never renews a session, and may name no member (`doTxnCommitOffsets`)."""
    group = facts.groups.get(event.group_id)
    if group is not None:
        note_asked(group, event, at)


def note_asked(group: Group, event: Event, at: float) -> None:
    """A member, or who was one, asked for something, which renews nothing: it was not silent."""
    member, over = group.members.get(event.member_id), group.ended.get(event.member_id)
    if member is None and over is not None:
        member = over.member
    if member is not None:
        member.asked_at_ms = max(member.asked_at_ms, at)


def on_sync(facts: Facts, event: Event, at: float) -> None:
    """SyncGroup: the leader's ends the rebalance; a waiting one renews when it is answered."""
    group = new_coordinator.group_of(facts, event)
    note_asked(group, event, at)
    member = group.members.get(event.member_id)
    if not_stored.is_told(facts, event) and (event.detail or {}).get("assignments"):
        not_stored.on_leaders_sync(facts, group, event, at)
        if member is not None:
            renew(facts, group, member, at)
    elif not_stored.is_told_with_leader(event):
        if member is not None:
            renew(facts, group, member, at)
    elif event.error_code == NONE:
        if member is None:
            if went_since(facts, group, event.member_id, at):
                return
            member = notice(facts, group, event, at)
        _synced(facts, group, member, event, at)
    elif event.error_code == REBALANCE_IN_PROGRESS:
        if member is not None:
            _sent_back(facts, group, member, event, at)
    elif event.member_id:
        fenced = event.error_code == ErrorCode.FENCED_INSTANCE_ID
        if member is not None and fenced and at - event.handled_at_ms > AT_ONCE_MS:
            renew(facts, group, member, at - TWO_STAMPS_MS)  # nobody who waits is evicted: its seat was taken from it
        on_refused(facts, group, event, at)


def _synced(facts: Facts, group: Group, member: Member, event: Event, at: float) -> None:
    """A SyncGroup was answered with an assignment."""
    assignments = (event.detail or {}).get("assignments") or ()
    leads = bool(assignments) or event.member_id == group.leader
    taken_at_ms, hardly_waited = taken_at(event), at - event.handled_at_ms <= TWO_STAMPS_MS
    slow = was_slow(taken_at_ms, event.handled_at_ms)
    if group.state == GroupState.COMPLETING and event.generation_id == group.generation and leads:
        since = None if not (slow and hardly_waited) or facts.loads_classes(event.handled_at_ms) else taken_at_ms
        begin_and_settle.on_assigned(facts, group, at, since)
        costs.take_assignment(group, assignments)
    member.synced_generation = event.generation_id
    served_stable = group.state == GroupState.STABLE and event.handled_at_ms > group.stable_at_ms
    row = sessions.RENEWALS["sync_served_stable" if served_stable else "sync_propagated"]
    if facts.coordinator in row.coordinators:
        renew(facts, group, member, at)
        facts.watch(group, member)  # until then its silence was none, and it was to be looked at later
    surely_stable = served_stable and event.handled_at_ms > group.stable_at_ms + TWO_STAMPS_MS
    if slow or (not leads and hardly_waited and not surely_stable):
        member.doubtful_at_ms = member.session_renewed_at_ms
    polls.on_request(facts, group, member, "sync", event.arrived_at_ms)


def _sent_back(facts: Facts, group: Group, member: Member, event: Event, at: float) -> None:
    """A SyncGroup was answered 27: it came in a rebalance, or waited until one began."""
    seen_under_way.on_told(facts, group, member, at)
    if member.rebalance_notified_at_ms < 0:
        member.rebalance_notified_at_ms = at
    waited = at - event.handled_at_ms > TWO_STAMPS_MS
    began, current = NEVER, group.rebalance
    if current is not None:
        if waited and current.sent_back is None:
            current.sent_back = SentBack(event.handled_at_ms, at)
        began = current.started_at_ms
        if began < 0:
            began = current.rebalance_notified_at_ms - facts.settings.burst_ms
    if began >= 0 and event.handled_at_ms < began:
        renew(facts, group, member, at)  # it was waiting, and was sent back when the rebalance began
    elif waited:
        # It may have waited: when the rebalance began is not known yet.
        member.doubtful_at_ms = member.session_renewed_at_ms


def on_leave(facts: Facts, event: Event, at: float) -> None:
    """LeaveGroup: each entry is judged alone; the first accepted one makes a Stable group prepare a rebalance."""
    group = new_coordinator.group_of(facts, event)
    served = new_coordinator.was_served(event)
    if event.error_code in COORDINATOR_MOVED and not served:
        new_coordinator.moved(facts, group, event, at)
        return
    begun_at_ms, by = (at, None) if served else took_effect(event, facts.coordinator)
    if by is not None:
        as_early = at <= event.handled_at_ms and not facts.loads_classes(event.handled_at_ms)
        at = begun_at_ms if as_early else max(begun_at_ms, min(at, by))
    for asked_id, instance_id, reason, error in (event.detail or {}).get("members", ()):
        member_id = asked_id or group.instances.get(instance_id or "", "")
        if error == NONE or (served and member_id in group.members):
            if not _left_before_it_joined(facts, group, member_id, event, reason or "", at, by):
                _left(facts, group, member_id, asked_id or "", event, reason or "", at, by)
        elif error == ErrorCode.UNKNOWN_MEMBER_ID and asked_id:
            unknown_to_coordinator.on_gone(facts, group, asked_id, at)


def _left_before_it_joined(
    facts: Facts, group: Group, member_id: str, event: Event, reason: str, at: float, by: float | None
) -> bool:
    """Whether it was an id that left, of which no JoinGroup was answered; it is remembered then."""
    was_pending = pending.is_over(group, member_id, at)
    if not was_pending and not pending.was_over_before(group, member_id, at):
        return False
    if member_id in group.members:
        return False
    _left_unseen(group, member_id, event, reason, by)
    if was_pending and facts.coordinator is sessions.Coordinator.JAVA:
        seen_under_way.on_pending_left(facts, group, member_id, event, at)
    return True


def _left(
    facts: Facts,
    group: Group,
    member_id: str,
    asked_id: str,
    event: Event,
    reason: str,
    at: float,
    by: float | None,
) -> None:
    """A member left, at `at` or up to `by`. `asked_id`: empty where it was named by its instance id alone."""
    if left_just_now(facts, group, member_id, at):
        return  # it ended a join phase by leaving, and was taken out with it
    member, over = group.members.get(member_id), group.ended.get(member_id)
    if member is None and over is not None and over.cause in _MISSED and not over.told and at <= over.ended_at_ms:
        # It was missed in the next generation already: its answer waited for what was written before.
        cause, doubts = leaving.why(facts, group, over.member, event, asked_id, reason)
        lives.correct(facts, group, over, at, cause, doubts, None if by is None else min(by, over.ended_at_ms))
        return
    if member is None and asked_id:
        member = notice(facts, group, event._replace(member_id=asked_id), at)
    if member is None:
        return
    cause, doubts = leaving.why(facts, group, member, event, asked_id, reason)
    begin_and_settle.end_member(facts, group, member, at, cause, reason, doubts, by)


_MISSED = ("unknown", "rebalance_timeout", "session_expired")
"""What a member may be said to have ended by that is missing when a generation is formed."""


def _left_unseen(group: Group, member_id: str, event: Event, reason: str, by: float | None) -> None:
    """An id left of which no JoinGroup was answered yet: it was pending, or is answered in this same instant."""
    verdict = leaves.why(Member(member_id, event.handled_at_ms), event, member_id, reason)
    while len(group.left_pending) >= MAX_LEFT_PENDING:
        del group.left_pending[next(iter(group.left_pending))]
    group.left_pending[member_id] = Left(member_id, event.handled_at_ms, verdict.cause, reason, verdict.doubts, by)


def on_leave_before(facts: Facts, group: Group, current: Rebalance, event: Event) -> None:
    """LeaveGroup handled in the instant in which a join phase ended: who is not on the leader's list left before it,
    and by leaving may have ended it."""
    if current.listed is None or event.error_code != NONE:
        return
    for asked_id, instance_id, reason, error in (event.detail or {}).get("members", ()):
        member = group.members.get(asked_id or group.instances.get(instance_id or "", ""))
        if error == NONE and member is not None and member.member_id not in current.listed:
            verdict = leaving.why(facts, group, member, event, asked_id or "", reason or "")
            at = min(event.handled_at_ms, current.joined_at_ms)
            lives.end(facts, group, member, at, verdict.cause, reason or "", verdict.doubts)


def on_fetch(facts: Facts, event: Event, _at: float) -> None:
    """FETCH: belongs to the members of the shard with the same client.id and address."""
    for group, member in facts.members_of(event.shard, event.client_id, event.client_host):
        polls.on_fetch(facts, group, member, event)


def on_telemetry(facts: Facts, event: Event, _at: float) -> None:
    """Pushed client metrics: when the application polled, where the client says that, of itself and of nobody else.

    It is pushed to any broker, so it does not tell who coordinates the group.
    """
    group = facts.groups.get(event.group_id)
    member = group.members.get(event.member_id) if group is not None else None
    ago_s = (event.detail or {}).get("last_poll_s")
    if group is None or member is None or ago_s is None or event.error_code != NONE:
        facts.not_modelled += 1
    elif (member.client_id, member.client_host) == (event.client_id, event.client_host):
        polls.on_telemetry(facts, group, member, event.arrived_at_ms, 1_000.0 * float(ago_s))


def on_delete_groups(facts: Facts, event: Event, _at: float) -> None:
    """DeleteGroups: an empty group that was deleted starts again at generation 0. Whoever refuses it because the group
    has members leads the group."""
    if event.error_code == NONE and event.group_id:
        begun_at_ms, by = took_effect(event, facts.coordinator)
        records.on_deleted(facts, new_coordinator.group_of(facts, event), begun_at_ms, by)
    elif event.error_code == ErrorCode.NON_EMPTY_GROUP and event.group_id in facts.groups:
        new_coordinator.group_of(facts, event)
