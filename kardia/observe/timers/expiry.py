"""Sessions that run out: a member whose deadline has passed is evicted once the log is known to be complete up to it.

A timer is due at or before now; on a tie the timer comes first. A session is looked at a moment after its deadline
(`GRACE_MS`): timers of a busy broker fire late, and a heartbeat that is handled before still renews it. A member whose
deadline passes during a rebalance may be waiting in a JoinGroup that nobody can see yet: it is overdue, not evicted,
until the join phase ends and shows who was there.
"""

from __future__ import annotations

from math import inf

from kardia.doubts import Doubt
from kardia.events import Event
from kardia.kafka.states import GroupState
from kardia.observe.coordinator_change import loads
from kardia.observe.deadlines import member_deadlines, pending, phases
from kardia.observe.facts.groups_of_lane import Facts
from kardia.observe.members import lives, owners
from kardia.observe.rebalance import begin_and_settle, emptied, watches
from kardia.observe.state.group import NEVER, Group, Member
from kardia.observe.timers import timeouts
from kardia.tolerances import GRACE_MS, LATE_MS, LOOK_AGAIN_MS, TWO_STAMPS_MS

LOOK_AGAIN = 0.1
"""A member that may be waiting unseen is looked at again after that share of its poll interval, or, later, of the time
since its last poll: it may stay so for as long as the log goes on, and a timer that comes back must not cost that."""


def on_member_timer(facts: Facts, group: Group, member: Member, now: float) -> None:
    """A member's timer is due: predict, evict, or look again later."""
    member.timer_at_ms = NEVER
    deadline = member.deadline
    if deadline >= 0 and not member.overdue:
        if member_deadlines.session_over(member, now):
            if _is_late(facts, group, member, now):
                return
            on_session_expired(facts, group, member, deadline)
            if member.member_id not in group.members:
                return
        elif member.session_prediction_at_ms < 0 and now >= member_deadlines.predict_session_at(facts.settings, member):
            if member_deadlines.believed_silent(group, member) and not _goes_unsynced(group, member):
                member.session_prediction_at_ms = now
                member.session_prediction_deadline_at_ms = deadline
                if now < member_deadlines.imminent_at(facts.settings, member):
                    facts.emit_prediction(group, member, "session", "open", NEVER)
            else:
                facts.watch(group, member, not_before=deadline + GRACE_MS)
                return
        if member.session_prediction_at_ms >= 0 and not member.imminent:
            _on_imminent(facts, group, member, now)
    poll_at = member_deadlines.predict_poll_at(facts.settings, member)
    if poll_at >= 0 and now >= poll_at:
        if member_deadlines.may_be_waiting(group, member, now):
            wait_ms = max(LOOK_AGAIN * member.rebalance_ms, LOOK_AGAIN * (now - member.last_poll_at_ms), LOOK_AGAIN_MS)
            facts.watch(group, member, not_before=now + wait_ms)
            return
        member.poll_prediction_at_ms = now
        member.poll_prediction_deadline_at_ms = member.last_poll_at_ms + member.rebalance_ms
        facts.emit_prediction(group, member, "poll", "open", NEVER)
    facts.watch(group, member)


def _goes_unsynced(group: Group, member: Member) -> bool:
    """Whether a member that stays silent is removed because it has not sent SyncGroup, before its session is over: then
    it is not its session that will have ended."""
    return phases.is_unsynced(group, member) and phases.how_ended(group, member).cause == "sync_timeout"


def _is_late(facts: Facts, group: Group, member: Member, now: float) -> bool:
    """Whether the timer of a session that is over has not fired yet: somebody was answered as in a Stable group since.
    Then it is looked at again a moment later. What has lasted longer than a timer is late is no late timer: the session
    was renewed by something that was not seen."""
    steady_at_ms, deadline = group.steady_at_ms, member.deadline
    shown_at = facts.silence_shown_at(group.broker, member, now)
    if now < shown_at + GRACE_MS:
        facts.watch(group, member, not_before=shown_at + GRACE_MS)
        return True
    if group.state != GroupState.STABLE or steady_at_ms <= deadline + TWO_STAMPS_MS:
        return False
    if steady_at_ms > deadline + LATE_MS:
        facts.divergences += 1
        member.session_renewed_at_ms = member.returned_at_ms = steady_at_ms
        facts.watch(group, member)
        return True
    if now >= steady_at_ms + GRACE_MS:
        return False
    facts.watch(group, member, not_before=steady_at_ms + GRACE_MS)
    return True


def _on_imminent(facts: Facts, group: Group, member: Member, now: float) -> None:
    """Half of the timeout has passed: what was foretold early is said again if it is sure by now."""
    if now < member_deadlines.imminent_at(facts.settings, member):
        return
    member.imminent = True
    facts.samples.note(group.group_id, member.member_id)
    if now == member.session_prediction_at_ms or member_deadlines.surely_silent(group, member):
        facts.emit_prediction(group, member, "session", "open", NEVER)


def on_session_expired(facts: Facts, group: Group, member: Member, deadline: float) -> None:
    """The session deadline has passed unheard. Evict, unless the member may be waiting where it cannot be seen, or
    the whole log was silent: then the broker itself may have been down, and its timers with it."""
    alone = len(group.members) == 1 and group.membership_complete and not group.pending
    alone = alone and not phases.may_wait_in_full(group, deadline)
    if group.state == GroupState.COMPLETING:
        unsynced_at_ms = phases.sync_deadline(group) if phases.is_unsynced(group, member) else NEVER
        leads = member.member_id == group.leader and member_deadlines.awaited_in_vain(group, member, deadline)
        is_gone = (leads or (alone and not phases.may_be_stored(group))) and not 0 <= unsynced_at_ms <= deadline
    elif group.state in (GroupState.STABLE, GroupState.UNKNOWN):
        is_gone = alone or not group.membership_complete or member_deadlines.surely_silent(group, member)
    else:
        is_gone = alone and not 0 <= phases.join_deadline(group) <= deadline
    shown_at = max(deadline, pending.last_over_at_ms(group))
    silent = facts.silent_at(group.broker, deadline) or facts.silent_at(group.broker, shown_at)
    if is_gone and not silent and not group.is_undone:
        end = phases.how_ended(group, member)
        at, why = end.at_ms, end.cause
        if why == "session_expired":
            ran_out_at, _ = facts.ran_out(group, member, member.session_renewed_at_ms, inf)
            at = max(at, ran_out_at)
        doubts = member_deadlines.doubts_of_silence(group, member) | loads.by_silence(facts, group, max(at, shown_at))
        tied = phases.is_tied(group, member)
        if tied:
            doubts |= Doubt.TIMERS_TIED
        if why == "sync_timeout":
            if group.steady_at_ms < at:
                doubts |= Doubt.BEGIN_UNSEEN  # a rebalance that began unseen before that ended the wait
            timeouts.end_unsynced(facts, group, member, at, doubts)
        else:
            begin_and_settle.end_member(facts, group, member, at, why, "", doubts, NEVER)
        if tied:
            lives.rival(group, member.member_id)
    else:
        member.overdue = True
        facts.samples.note(group.group_id, member.member_id)
        watches.watch_overdue(facts, group, member)
        watches.watch_deserted(facts, group, member.deadline_from)


def look_again(facts: Facts, broker: str, since: float, not_before: float) -> None:
    """A broker that might have been down was not: whose deadline has passed since then is judged as any other."""
    for group in facts.groups.values():
        if group.broker == broker:
            for member in group.members.values():
                if member.overdue and member.deadline >= since and not facts.silent_at(broker, member.deadline):
                    member.overdue = False
                    facts.watch(group, member, not_before=not_before)


def on_pending_timer(facts: Facts, group: Group, member_id: str, now: float) -> None:
    """An id that was handed out was never used: it no longer blocks a rebalance. Nothing but silence shows that, and of
    a broker that wrote nothing since it may be its own."""
    pending.is_over(group, member_id, now)
    left = group.members or group.pending
    if not left and group.state == GroupState.PREPARING and group.rebalance is not None:
        emptied.becomes_empty(facts, group, now, NEVER, loads.by_silence(facts, group, now))
    else:
        watches.watch_deserted(facts, group, now)


def on_gap(facts: Facts, event: Event, at: float) -> None:
    """A part of the log is lost: who was renewed in it is not known, and nobody expires because of it."""
    to_at = float((event.detail or {}).get("to_ms", event.logged_at_ms))
    facts.blind_to[facts.broker] = max(to_at, facts.blind_to.get(facts.broker, NEVER))
    for group in facts.groups.values():
        if group.broker != facts.broker:
            continue
        group.membership_complete = False
        group.stored = None
        has_epochs = group.modern is not None and bool(group.members)
        if has_epochs:
            owners.forget(group)
        if has_epochs or group.state in (GroupState.STABLE, GroupState.COMPLETING):
            facts.set_state(group, at, GroupState.UNKNOWN, "gap", Doubt.NOT_SEEN)
        group.gap_at_ms = max(to_at, group.gap_at_ms)
        group.sampled_state = ""  # what was said of its members holds no more, also if it is Stable again at once
        facts.samples.note(group.group_id)
        if group.rebalance is not None:
            group.rebalance.members_before = -1
        for member in group.members.values():
            if member.deadline >= at:
                member.unknown_since_at_ms = at
                for kind in ("session", "poll", "rebalance"):
                    if getattr(member, f"{kind}_prediction_at_ms") >= 0:
                        facts.close_prediction(group, member, kind, "unknown", to_at)
