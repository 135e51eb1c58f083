"""What follows when a phase of a rebalance has lasted too long: who was dropped, who was silent, who is left.

Called by timers and answers; `rebalance` carries out what is found. Sources: `onCompleteJoin`, `onExpirePendingSync`,
`onExpireHeartbeat`.
"""

from __future__ import annotations

from kardia.doubts import SURE, Doubt, Doubts
from kardia.kafka.states import GroupState
from kardia.observe.coordinator_change import loads
from kardia.observe.deadlines import pending, phases
from kardia.observe.deadlines.late import near
from kardia.observe.deadlines.member_deadlines import doubts_of_silence
from kardia.observe.deadlines.phases import is_unsynced, unsynced
from kardia.observe.facts.groups_of_lane import Facts
from kardia.observe.members import lives, who_broke
from kardia.observe.rebalance.begin_and_settle import end_member
from kardia.observe.rebalance.emptied import becomes_empty
from kardia.observe.rebalance.seen_under_way import begin_untold
from kardia.observe.rebalance.watches import watch_join_timer
from kardia.observe.state.entries import DueEnd
from kardia.observe.state.group import NEVER, Cause, Group, Member
from kardia.tolerances import GRACE_MS, JUDGED_WITHIN_MS, STORED_WITHIN_MS, TWO_STAMPS_MS


def conclude_silent(facts: Facts, group: Group, at: float) -> None:
    """Followers were sent back at `at`: a member that was not, and whose session had run out by then, is the cause."""
    current = group.rebalance
    if current is None or current.cause is not None or group.state != GroupState.PREPARING:
        return
    silent = [member for member in group.members.values() if 0 <= member.deadline <= at + TWO_STAMPS_MS]
    why = "session_expired"
    if not silent and group.unsynced_at_ms >= 0:
        why = "sync_timeout"
        silent = [member for member in unsynced(group) if member.rebalance_notified_at_ms < 0]
    if not silent:
        return
    first = min(silent, key=lambda one: (one.member_id != group.leader, one.deadline, one.member_id))
    due = first.deadline_from if why == "session_expired" else group.unsynced_at_ms
    # Whoever waited in a SyncGroup was sent back in the instant in which the timer fired; a late answer to one
    # that found the rebalance under way is no such sign.
    by: float | None
    began, by = min(due, at), at
    if (
        current.sent_back is not None
        and current.sent_back.handled_at_ms <= due <= current.sent_back.at_ms + TWO_STAMPS_MS
    ):
        began, by = current.sent_back.at_ms, None
    # An id that was handed out may have been used before that, unseen, and have begun it.
    # So may anybody be who came when a broker went on that had stood still: its timers were late then.
    doubts: Doubts = Doubt.SEEN_LATER
    if group.pending:
        doubts |= Doubt.MAY_WAIT_UNSEEN
    if facts.is_quiet_at(group.broker, due):
        doubts |= Doubt.BROKER_SILENT
    tied = why == "session_expired" and is_unsynced(group, first) and near(due, group.unsynced_at_ms)
    if tied:
        doubts |= Doubt.TIMERS_TIED  # the time for its SyncGroup was over as well
    current.cause = Cause(began, why, first.member_id, first.client_id, first.instance_id, "", doubts, by)
    current.started_at_ms = current.told_start = began
    current.told_from = group.told_state
    for member in silent if why == "sync_timeout" else [first]:
        lives.end(facts, group, member, began, why, "", doubts, by)
    if tied:
        lives.rival(group, first.member_id)
    facts.set_state(group, began, GroupState.PREPARING, why, doubts, by)
    watch_join_timer(facts, group, current)


def on_join_timer(facts: Facts, group: Group, key: str, due: float) -> None:
    """The rebalance timeout is over and no JoinGroup was answered: nobody had rejoined. Dynamic members are dropped."""
    current = group.rebalance
    if current is None or group.state != GroupState.PREPARING or key != str(current.generation_before):
        return
    if group.is_undone:
        return
    at = phases.join_deadline(group)
    if due < current.started_at_ms + phases.longest_unseen_ms(group) + GRACE_MS:
        watch_join_timer(facts, group, current)
        return
    if current.joined_at_ms >= 0 or facts.silent_at(group.broker, at) or group.gap_at_ms >= current.started_at_ms:
        return
    began: Doubts = current.cause.doubts if current.cause is not None else Doubt.BEGIN_UNSEEN
    doubts = Doubt.SILENCE | began | loads.by_silence(facts, group, at)
    if facts.was_silent(group.broker, current.started_at_ms, at):
        doubts |= Doubt.BROKER_SILENT  # it may have been down, and its timers with it
    for member in sorted(group.members.values(), key=lambda one: one.member_id):
        if member.instance_id or member.session_renewed_at_ms > at:
            continue
        if 0 <= member.deadline < at:
            tied = phases.is_tied(group, member)
            either = doubts | Doubt.TIMERS_TIED if tied else doubts
            end_member(facts, group, member, member.deadline_from, "session_expired", "", either, NEVER)
            if tied:
                lives.rival(group, member.member_id)
        else:
            end_member(facts, group, member, at, "rebalance_timeout", "", doubts, NEVER)


def on_sync_timer(facts: Facts, group: Group, key: str, due: float) -> None:
    """The time for SyncGroup was over. The only member there is has not sent one: as the leader it would have been
    answered at once, and whoever had joined unseen before that would have been let in by now. Or an old id has not."""
    at = phases.sync_deadline(group)
    if key != str(group.generation) or not 0 <= at <= due or facts.silent_at(group.broker, at):
        return
    if group.is_undone:
        return
    if group.state == GroupState.STABLE:
        begin_untold(facts, group, at, due)
    if group.state != GroupState.COMPLETING:
        return
    alone = len(group.members) == 1 and group.membership_complete and not group.pending
    if not alone:
        return
    # A static process needs no id to join, and may wait longer than anybody known: until the session is over.
    (session_over_at,) = (member.deadline for member in group.members.values())
    if due < session_over_at + GRACE_MS:
        facts.schedule(group, session_over_at + GRACE_MS, "unsynced", key)
        return
    for member in unsynced(group):
        if phases.how_ended(group, member).cause == "sync_timeout":
            doubts = doubts_of_silence(group, member) | loads.by_silence(facts, group, at)
            if phases.is_tied(group, member):
                doubts = Doubt.TIMERS_TIED
            end_member(facts, group, member, at, "sync_timeout", "", doubts, NEVER)


def end_unsynced(facts: Facts, group: Group, first: Member, at: float, doubts: Doubts) -> None:
    """The time for SyncGroup is over: who has not sent one is removed in one instant, `first` as what is seen of it."""
    for member in (first, *(one for one in unsynced(group) if one is not first and _ends_unsynced_at(group, one, at))):
        end_member(facts, group, member, at, "sync_timeout", "", doubts, NEVER)


def _ends_unsynced_at(group: Group, member: Member, at: float) -> bool:
    end = phases.how_ended(group, member)
    return end.at_ms == at and end.cause == "sync_timeout"


def on_overdue(facts: Facts, group: Group, member_id: str, due: float) -> None:
    """A member fell silent when nobody else was heard. Had it joined, it would have been let in by now: it is gone."""
    member = group.members.get(member_id)
    if member is None or not member.overdue or group.state != GroupState.STABLE or member.deadline < 0:
        return
    answered_by = member.deadline + phases.longest_unseen_ms(group) + GRACE_MS
    if answered_by <= due and not facts.silent_at(group.broker, member.deadline):
        doubts = doubts_of_silence(group, member) | loads.by_silence(facts, group, member.deadline)
        ended_at_ms = phases.how_ended(group, member).at_ms
        end_member(facts, group, member, ended_at_ms, "session_expired", "", doubts, NEVER)


def conclude_deserted(facts: Facts, group: Group, key: str, now: float) -> None:
    """Nobody was answered although nobody was left to wait for: all who were overdue are gone, the group is Empty.

    Whoever waits in a JoinGroup is let in when the last one it waits for is gone, and is sent back from a SyncGroup
    when the first one is; so silence after the last deadline shows that nobody waited. An unsynced member went earlier,
    when the time for SyncGroup was over: had a join ended that phase before, who joined would be answered now.
    """
    at = group.deserted_at_ms
    if key != str(group.generation) or at < 0 or now < at + GRACE_MS:
        return
    if not phases.is_deserted(group, at):
        return
    if phases.may_wait_in_full(group, now):
        facts.schedule(group, group.rejected_at_ms + phases.longest_unseen_ms(group) + GRACE_MS, "deserted", key)
        return
    delayed_to = phases.delayed_to(group)
    not_before = max(delayed_to, at + STORED_WITHIN_MS if phases.may_be_stored(group) else NEVER) + GRACE_MS
    if now < not_before:
        facts.schedule(group, not_before, "deserted", key)
        return
    shown_at = max(at, pending.last_over_at_ms(group))
    in_hole = facts.silent_at(group.broker, at) or facts.silent_at(group.broker, shown_at)
    over_by, judged_at = _over_by(facts, group, at, shown_at) if in_hole else (NEVER, NEVER)
    if now < judged_at:
        facts.schedule(group, judged_at, "deserted", key)
        return
    group.deserted_at_ms = NEVER
    if in_hole and (over_by < 0 or facts.was_silent(group.broker, over_by, over_by)):
        return
    facts.evidence = group.deserted_by
    ends = phases.all_ends(group)
    if group.state == GroupState.COMPLETING or any(end.cause == "rebalance_timeout" for end in ends):
        at = max(end.at_ms for end in ends)
    # Who waits is let in when the last session is over: if it is not known when that was, it is of no member.
    doubts = Doubt.BROKER_SILENT if in_hole else loads.by_silence(facts, group, max(at, shown_at))
    doubts |= _doubts_of_all(group, ends)
    with who_broke.end_together(facts, group):
        for end in ends:
            member, over_at = group.members[end.member_id], end.at_ms
            if end.cause == "session_expired":
                ran_out_at, _ = facts.ran_out(group, member, member.session_renewed_at_ms, max(at, over_at))
                over_at = max(over_at, ran_out_at)
            end_member(facts, group, member, over_at, end.cause, "", doubts, over_by, with_others=True)
            if end.tied:
                lives.rival(group, end.member_id)
    group.deserted_at_ms = NEVER
    if group.state != GroupState.EMPTY:
        becomes_empty(facts, group, at, delayed_to)


def _doubts_of_all(group: Group, ends: list[DueEnd]) -> Doubts:
    """What is in doubt about all who are gone together, by what is in doubt about any of them."""
    doubts: Doubts = SURE
    if any(end.tied for end in ends):
        doubts |= Doubt.TIMERS_TIED
    if any(member.renewed_unseen for member in group.members.values()):
        doubts |= Doubt.RENEWAL_UNSURE
    if any(member.session_renewed_at_ms <= group.unsure_to for member in group.members.values()):
        doubts |= Doubt.LOAD_UNSEEN
    return doubts


def _over_by(facts: Facts, group: Group, *instants: float) -> tuple[float, float]:
    """By when sessions are over whose deadlines lie in a hole of the log, even if they began anew at its end, with a
    broker that was started again in it; and when that is judged, as a sign of that may come. NEVER where no hole is
    known."""
    hole_end_ms = max(facts.hole_end(group.broker, at) for at in instants)
    longest_ms = max((member.session_ms for member in group.members.values()), default=-1)
    if hole_end_ms < 0 or longest_ms < 0:
        return NEVER, NEVER
    return hole_end_ms + longest_ms, hole_end_ms + max(longest_ms, JUDGED_WITHIN_MS) + GRACE_MS


def conclude_gone(facts: Facts, group: Group, member_id: str, at: float) -> None:
    """A moment after the coordinator said that it does not know a member: nothing has shown why."""
    member = group.members.get(member_id)
    if member is not None and member.session_renewed_at_ms < at:
        facts.divergences += 1
        end_member(facts, group, member, at, "unknown", "", Doubt.NOT_SEEN)


def predict_straggler(facts: Facts, group: Group, member: Member, at: float) -> None:
    """A member that still heartbeats and does not rejoin will be dropped when the rebalance timeout is over."""
    current = group.rebalance
    if current is None or group.state != GroupState.PREPARING or member.rebalance_prediction_at_ms >= 0:
        return
    began = current.started_at_ms if current.started_at_ms >= 0 else current.rebalance_notified_at_ms
    if at - began < facts.settings.prediction_share * member.rebalance_ms:
        return  # the common case, without a look at the others
    longest = max(other.rebalance_ms for other in group.members.values())
    if longest > 0 and not member.instance_id and at - began >= facts.settings.prediction_share * longest:
        member.rebalance_prediction_at_ms = at
        member.rebalance_prediction_deadline_at_ms = began + longest
        facts.emit_prediction(group, member, "rebalance", "open", NEVER)


def rejoined(facts: Facts, group: Group, member: Member, at: float) -> None:
    """A member that was waited for is in: its JoinGroup was answered with the others', or the group is over it."""
    if member.rebalance_prediction_at_ms >= 0:
        facts.close_prediction(group, member, "rebalance", "averted", max(at, member.rebalance_prediction_at_ms))
