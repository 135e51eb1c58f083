"""A rebalance from its first sign to its end: what started it, whom it waited for, who was dropped, when it was over.

A rebalance is seen from its end: its JoinGroups are answered, and so logged, all in one instant when the join phase is
over. Only then is it known who had been waiting, since when, and therefore what came first. So a rebalance is opened
by what is seen first (an eviction, a leave, an answer 27), and settled shortly after the join phase: the earliest of
all causes is the trigger. Sources: `prepareRebalance`, `onCompleteJoin`, `tryCompleteJoin`.
"""

from __future__ import annotations

from math import inf

from kardia.doubts import SURE, Doubt, Doubts, certainty_of, stands
from kardia.kafka.states import GroupState
from kardia.observe.coordinator_change import loads
from kardia.observe.deadlines import pending
from kardia.observe.deadlines.missing import Missing
from kardia.observe.deadlines.phases import longest_ms, sync_deadline, unsynced
from kardia.observe.facts.groups_of_lane import Facts
from kardia.observe.ledger import causes
from kardia.observe.ledger.costs import partitions_stopped_ms
from kardia.observe.ledger.dropped import how_dropped
from kardia.observe.ledger.rebalance_row import emit, follows_from, remember, take_back, withdraw
from kardia.observe.members import lives
from kardia.observe.rebalance import seats
from kardia.observe.rebalance.watches import watch_deserted, watch_join_timer, watch_sync_timer
from kardia.observe.state.entries import Left, Waited
from kardia.observe.state.group import NEVER, Cause, Ended, Group, Join, Member, Rebalance
from kardia.tables import LEAVE_CAUSES
from kardia.tolerances import DID_NOT_WAIT_MS, LATE_MS, TWO_STAMPS_MS


def end_member(
    facts: Facts,
    group: Group,
    member: Member,
    at: float,
    cause: str,
    reason: str,
    doubts: Doubts,
    by: float | None = None,
    *,
    with_others: bool = False,
) -> None:
    """A member is gone: a Stable or Completing group begins to prepare a rebalance in the same instant. `by`: the
    latest that this can have been, as `Ended.by`. `with_others`: all members end now, and whoever ends them says what
    becomes of the group."""
    if group.state == GroupState.COMPLETING:
        _show_assigned(facts, group, at)
    lives.end(facts, group, member, at, cause, reason, doubts, by)
    if cause == "static_replaced":
        return
    if group.state == GroupState.COMPLETING and group.rebalance is not None and not group.rebalance.settled:
        settle(facts, group, group.rebalance)
        if group.rebalance is not None and group.rebalance.joined_at_ms < 0:
            return  # it left right after the join phase: said, and begun, when that was settled
    begins = group.state in (GroupState.STABLE, GroupState.COMPLETING, GroupState.UNKNOWN)
    if begins or (group.state == GroupState.PREPARING and cause in LEAVE_CAUSES):
        _begin_by(facts, group, _cause_of(group, member, at, cause, reason, doubts, by))
    if not with_others:
        watch_deserted(facts, group, at)


def _cause_of(
    group: Group, member: Member, at: float, cause: str, reason: str, doubts: Doubts, by: float | None
) -> Cause:
    """An end as the cause of a rebalance, as sure as that nobody else's end was it."""
    trigger = causes.CAUSE_TO_TRIGGER.get(cause, "unknown")
    why = Cause(at, trigger, member.member_id, member.client_id, member.instance_id, reason, doubts, by)
    if stands(why.doubts) and _somebody_else_may_have_gone(group, at):
        why.doubts = Doubt.ANOTHER_UNSURE
    if certainty_of(why.doubts) == "inferred" and pending.may_have_joined(group, at):
        why.doubts = Doubt.MAY_WAIT_UNSEEN
    return why


def _begin_by(facts: Facts, group: Group, why: Cause) -> None:
    """An end begins a rebalance, or explains the one that is under way."""
    if group.state == GroupState.PREPARING:
        _may_explain(group, why)
    else:
        begin(facts, group, why, NEVER, len(group.members) + 1)


def _show_assigned(facts: Facts, group: Group, at: float) -> None:
    """A follower was answered with its assignment before `at`: so it was stored by then, though the line of the leader,
    who is answered in the same instant, is put behind what ends the generation."""
    synced = (one for one in group.members.values() if one.synced_generation == group.generation)
    answered = (one for one in synced if one.session_renewed_at_ms > one.returned_at_ms)  # not who has its seat again
    since = min((one.session_renewed_at_ms for one in answered), default=NEVER)
    if since >= 0 and group.rebalance is not None and not group.rebalance.left_after:
        on_assigned(facts, group, min(since, at))


def _may_explain(group: Group, why: Cause) -> None:
    """A LeaveGroup while a rebalance is under way of which it is not known what began it: that may have been this one,
    if others were told of the rebalance in the same instant or later, where its answer waited to be stored."""
    current, at, last = group.rebalance, why.at, group.previous
    if current is None or current.cause is not None or current.joined_at_ms >= 0:
        return
    over = group.ended.get(why.member_id)
    if over is not None and 0 <= over.member.rebalance_notified_at_ms <= at:
        if over.member.rebalance_notified_at_ms < at - TWO_STAMPS_MS:
            return  # it had been told of it before
        why.doubts = Doubt.STAMPS_TIED
    since = max(group.steady_at_ms, NEVER if last is None else last.started_at_ms)
    told_at = min([current.rebalance_notified_at_ms, *(join.handled_at_ms for join in current.refused)])
    told_then = min(since, told_at) - TWO_STAMPS_MS <= at <= told_at + TWO_STAMPS_MS
    if not told_then or abs(group.unsynced_at_ms - current.rebalance_notified_at_ms) <= TWO_STAMPS_MS:
        current.started_at_ms = NEVER  # in the second case who did not sync in time began it
        return
    if any(0 <= other.deadline <= at + TWO_STAMPS_MS for other in group.members.values()):
        why.doubts = Doubt.STAMPS_TIED  # whose session ended in that instant may have begun it
    current.cause, current.started_at_ms = why, at


def _somebody_else_may_have_gone(group: Group, at: float) -> bool:
    """Whether the session of somebody else may have ended before this instant: one of which it is not known when it
    ends, or one that is over, in a group that nobody has shown to be Stable since; or its time for SyncGroup."""
    if not group.membership_complete:
        return True
    sync_over_at = sync_deadline(group)
    if max(0.0, group.steady_at_ms - LATE_MS) < sync_over_at <= at + TWO_STAMPS_MS and unsynced(group):
        return True
    return at > group.steady_at_ms and any(
        other.deadline < 0
        or 0 <= other.session_renewed_at_ms <= group.unsure_to
        or group.steady_at_ms - LATE_MS < other.deadline < at
        for other in group.members.values()
    )


def begin(
    facts: Facts, group: Group, cause: Cause | None, rebalance_notified_at_ms: float, members_before: int
) -> None:
    """The group prepares a rebalance, by a known cause or by one that will be known later."""
    remember(group)
    take_back(facts, group)
    group.rebalance = Rebalance(
        generation_before=max(group.generation, 0),
        started_at_ms=cause.at if cause is not None else NEVER,
        cause=cause,
        rebalance_notified_at_ms=rebalance_notified_at_ms,
        members_before=members_before if group.membership_complete else -1,
        sync_over_at_ms=sync_deadline(group),
    )
    if cause is not None:
        group.rebalance.told_start = cause.at
        group.rebalance.told_from = group.told_state
        watch_join_timer(facts, group, group.rebalance)
        facts.set_state(group, cause.at, GroupState.PREPARING, cause.trigger, cause.doubts, cause.by)
    else:
        group.state = GroupState.PREPARING
        facts.samples.note(group.group_id)
    for member in group.members.values():
        member.rebalance_notified_at_ms = NEVER


def explain(facts: Facts, group: Group, current: Rebalance, why: Cause) -> None:
    """It is known now what began a rebalance that answers had shown to be under way."""
    current.cause, current.started_at_ms, current.told_start = why, why.at, why.at
    current.told_from = group.told_state
    watch_join_timer(facts, group, current)
    facts.set_state(group, why.at, GroupState.PREPARING, why.trigger, why.doubts, why.by)


def settle(facts: Facts, group: Group, current: Rebalance) -> None:
    """All answers of the join burst are in (or a late one came): who is in, who was dropped, what came first."""
    first_time = not current.settled
    current.settled = True
    if first_time and _was_none(current):
        _undo(facts, group, current)
        return
    if first_time:
        _correct_replaced(facts, group, current)
    taken = seats.taken_since(current)
    joins = {join.member_id: join for join in current.joins}
    gone = _missing_from_the_list(facts, group, current, taken)
    missing = Missing(group, current)
    dropped = [how_dropped(facts, group, current, missing, member) for member in gone]
    began_at_ms = current.started_at_ms
    causes.choose(facts, group, current, dropped)
    current.caused_by = follows_from(group, current)
    if first_time:
        _correct_unsynced(facts, group, current)
        _tell_phases(facts, group, current, joins)
    elif current.started_at_ms < began_at_ms and current.cause is not None:
        facts.correct(group, current, current.cause.doubts)
    last = max([*(join.handled_at_ms for join in current.joins), *(one.at for one in dropped)], default=NEVER)
    for member, at, by, cause, doubts in dropped:
        group.said.ends.pop(member.member_id, None)
        lives.end(facts, group, member, at, cause, "", doubts, by)
        if not stands(doubts):
            lives.rival(group, member.member_id)
        if cause == "rebalance_timeout" or (cause == "session_expired" and stands(doubts)):
            # The join phase is over with the end of the last one that it waits for, which may be late.
            _note_removed(current, member, current.joined_at_ms if at >= last else at)
    if first_time:
        _score(facts, group, current)
        _confirm(facts, group, current)
        current.sync_within_ms = longest_ms(group)
        watch_sync_timer(facts, group)
    group.leader = current.leader or group.leader
    group.protocol_name = current.protocol_name or group.protocol_name
    seats.hand_over(facts, group, current, taken)
    if first_time:
        current.blocked = pending.blocked(group, current)
    emit(facts, group, current)
    for left in current.left_after:
        again = group.members.get(left.member_id)
        if again is not None:
            end_member(facts, group, again, left.left_at_ms, left.cause, left.reason, left.doubts, left.by)
    current.left_after.clear()


def _note_removed(current: Rebalance, member: Member, at: float) -> None:
    """The join phase waited for a member in vain: to its end, or until the member's session was over."""
    waited_ms = int(min(at, current.joined_at_ms) - current.started_at_ms)
    began_it = current.cause is not None and current.cause.member_id == member.member_id
    if waited_ms > 0 and not (began_it or current.began_unseen):
        current.removed.append(Waited(member.member_id, member.client_id, waited_ms))


def note_removed(facts: Facts, group: Group, member: Member, at: float) -> None:
    """A member that was missing when the join phase ended at `at` had not joined in time, which was not known when its
    row was written."""
    current = group.rebalance
    if current is None or not current.settled or abs(current.joined_at_ms - at) > LATE_MS:
        return
    if all(one.member_id != member.member_id for one in current.removed):
        _note_removed(current, member, at)
        emit(facts, group, current)


def _missing_from_the_list(
    facts: Facts, group: Group, current: Rebalance, taken: list[tuple[str, Join]]
) -> list[Member]:
    """Members that the leader was not told of, who are none any more; whoever it was told of is one. Without the list
    it is not known who is. `taken`: who came since."""
    if current.listed is None:
        group.membership_complete = False
        _doubt_who_was_not_answered(group, current)
        return []
    for member_id, instance_id in current.listed.items():
        if member_id not in group.members:
            _add_listed(facts, group, member_id, instance_id, current.joined_at_ms)
    group.membership_complete = True
    known = {*current.listed, *(join.member_id for _, join in taken)}
    return [member for member in group.members.values() if member.member_id not in known]


def _doubt_who_was_not_answered(group: Group, current: Rebalance) -> None:
    """The end of a join phase renews who is in it. Whether who has not joined is, as a static member may be, only the
    list for the leader says."""
    joined = {join.member_id for join in current.joins}
    for member in group.members.values():
        if member.member_id not in joined and member.session_renewed_at_ms == current.joined_at_ms:
            member.doubtful_at_ms = member.session_renewed_at_ms


def _correct_unsynced(facts: Facts, group: Group, current: Rebalance) -> None:
    """The rebalance began before the time for SyncGroup of the generation before was over, which nobody could see then:
    who was said to have gone by that went later."""
    over_at = current.sync_over_at_ms
    for over in list(group.ended.values()):
        member = over.member
        if over.cause != "sync_timeout" or not 0 <= over_at <= over.ended_at_ms <= over_at + LATE_MS:
            continue
        if current.started_at_ms >= over.ended_at_ms - TWO_STAMPS_MS or over.doubts == SURE:
            continue
        ran_out_at = member.session_renewed_at_ms + member.session_ms
        taken_at = _taken_at(current, member)
        if member.session_renewed_at_ms >= 0 and ran_out_at <= (current.joined_at_ms if taken_at < 0 else taken_at):
            lives.correct(facts, group, over, ran_out_at, "session_expired", Doubt.BY_ELIMINATION, current.joined_at_ms)
        elif taken_at >= 0:
            lives.correct(facts, group, over, taken_at, "static_replaced", Doubt.BY_ELIMINATION)
        else:
            lives.correct(facts, group, over, current.joined_at_ms, "rebalance_timeout", Doubt.BY_ELIMINATION)


def _taken_at(current: Rebalance, member: Member) -> float:
    """When another process took the place of a static member in this rebalance; NEVER if none did."""
    takers = (join for join in current.joins if join.instance_id == member.instance_id != "" and not join.asked_id)
    return min((join.handled_at_ms for join in takers), default=NEVER)


def _correct_replaced(facts: Facts, group: Group, current: Rebalance) -> None:
    """A process took the place of a static member that had let the time for SyncGroup pass: if nothing began this
    rebalance before, the coordinator had removed that member, and the process was somebody new. So it was if something
    did, and the session of that member was over."""
    over_at = current.sync_over_at_ms
    if over_at < 0 or over_at < group.steady_at_ms - LATE_MS:
        return
    signs = [
        current.started_at_ms,
        current.rebalance_notified_at_ms,
        *(join.handled_at_ms for join in (*current.joins, *current.refused)),
    ]
    began = min((at for at in signs if at >= 0), default=NEVER)
    for join in current.joins:
        over = group.ended.get(join.replaces)
        if over is None or over.cause != "static_replaced" or not over.member.seen_joining:
            continue
        waited_for = (
            over.member.synced_generation != current.generation_before and over.member.rebalance_notified_at_ms < 0
        )
        if not waited_for or over.member.joined_at_ms > over_at:
            continue
        ran_out_at = over.member.session_renewed_at_ms + over.member.session_ms
        if began >= over_at - TWO_STAMPS_MS:
            lives.correct(facts, group, over, over_at, "sync_timeout", Doubt.BY_ELIMINATION, began)
            join.replaces = ""
        elif (
            certainty_of(over.doubts) == "provisional"
            and over.member.session_renewed_at_ms >= 0
            and ran_out_at <= join.handled_at_ms - TWO_STAMPS_MS
        ):
            lives.correct(facts, group, over, ran_out_at, "session_expired", Doubt.BY_ELIMINATION, join.handled_at_ms)
            join.replaces = ""


def _score(facts: Facts, group: Group, current: Rebalance) -> None:
    """Who is in the new generation was renewed with it, whatever was foretold; without a list it is known of nobody who
    was not answered."""
    for member in group.members.values():
        if (
            member.session_prediction_at_ms >= 0
            and member.session_renewed_at_ms >= current.joined_at_ms
            and not member.overdue
        ):
            outcome = "averted" if current.listed is not None else "unknown"
            facts.close_prediction(group, member, "session", outcome, current.joined_at_ms)


def _was_none(current: Rebalance) -> bool:
    """Whether what looks like a join burst, of a group of which too little was known, was static members that took
    their places again while it was Stable: they are answered at once, and in a burst somebody is told the members."""
    begun = current.started_at_ms >= 0 or current.rebalance_notified_at_ms >= 0
    known = current.listed is not None or begun or (current.members_before >= 0 and current.generation_before > 0)
    return (
        bool(current.joins)
        and not known
        and all(
            join.instance_id and not join.asked_id and current.joined_at_ms - join.handled_at_ms <= DID_NOT_WAIT_MS
            for join in current.joins
        )
    )


def _undo(facts: Facts, group: Group, current: Rebalance) -> None:
    """There was no rebalance: the group is Stable in the generation that was answered."""
    group.rebalance = None
    if current.joining:
        withdraw(facts, group, current)
    group.membership_complete = False
    group.stored = None
    for member in group.members.values():
        if member.session_renewed_at_ms == current.joined_at_ms and member.renewed_before_join_at_ms >= 0:
            member.session_renewed_at_ms = member.renewed_before_join_at_ms
    for join in current.joins:
        if join.member_id not in group.members:
            continue  # gone since: replaced by another one of this burst
        member = group.members[join.member_id]
        member.session_renewed_at_ms = member.doubtful_at_ms = (
            join.handled_at_ms
        )  # it runs on the timeout of whom it replaced
        facts.emit_transition(
            group, join.handled_at_ms, join.member_id, "Absent", "Member", "static_replaced", Doubt.SEEN_LATER
        )
        facts.emit_member(group, member, join.handled_at_ms, Doubt.SEEN_LATER)
        facts.watch(group, member)
    facts.set_state(group, current.joined_at_ms, GroupState.STABLE, "generation seen", Doubt.SEEN_LATER)
    group.steady_at_ms = current.joined_at_ms


def note_left_after(facts: Facts, current: Rebalance | None, over: Ended) -> None:
    """Somebody who asked to leave in the instant in which the join phase ended is in the new generation all the same:
    it left right after, and the order of the two was lost in the stamps. Who ended otherwise was ended wrongly."""
    since = current.joined_at_ms - facts.settings.burst_ms if current is not None else inf
    if current is None or over.cause not in LEAVE_CAUSES or over.ended_at_ms < since:
        facts.divergences += 1
        return
    at = max(over.ended_at_ms, current.joined_at_ms)
    current.left_after.append(Left(over.member.member_id, at, over.cause, over.reason, over.doubts, over.by))


def _add_listed(facts: Facts, group: Group, member_id: str, instance_id: str, joined_at_ms: float) -> None:
    """A member that the leader was told of and that we have not seen: it is one, since when is not known."""
    over = group.ended.get(member_id)
    if over is not None:
        note_left_after(facts, group.rebalance, over)
        lives.reinstate(facts, group, over, joined_at_ms)
        return
    member = Member(member_id, joined_at_ms, instance_id=instance_id, session_renewed_at_ms=joined_at_ms)
    group.members[member_id] = member
    if instance_id:
        group.instances[instance_id] = member_id
    facts.emit_member(group, member, joined_at_ms, Doubt.THERE_BEFORE)
    facts.emit_transition(group, joined_at_ms, member_id, "Absent", "Member", "listed", Doubt.THERE_BEFORE)


def _tell_phases(facts: Facts, group: Group, current: Rebalance, joins: dict[str, Join]) -> None:
    """Write the transitions of the join phase in their order: prepared, members added, completed."""
    doubts = current.cause.doubts if current.cause is not None else Doubt.NOT_SEEN
    if group.told_state != GroupState.PREPARING:
        facts.set_state(
            group,
            current.started_at_ms,
            GroupState.PREPARING,
            current.cause.trigger if current.cause else "unknown",
            doubts,
            current.cause.by if current.cause else None,
        )
    elif current.cause is not None and 0 <= current.started_at_ms < current.told_start - facts.settings.tolerance_ms:
        # It was told by what showed it first; what began it lies before and is known only now.
        facts.correct(group, current, doubts)
    new = [one for one in joins.values() if (one.is_new or one.first_seen) and one.member_id in group.members]
    for join in sorted(new, key=lambda item: (item.handled_at_ms, item.member_id)):
        cause, of_join = _came_as(join)
        at, by = join.came
        facts.emit_transition(group, at, join.member_id, "Absent", "Member", cause, of_join, by)
        of_life: Doubts = of_join if join.since < 0 else Doubt.SEEN_LATER
        facts.emit_member(group, group.members[join.member_id], join.handled_at_ms if join.since >= 0 else at, of_life)
    facts.set_state(group, current.joined_at_ms, GroupState.COMPLETING, "join phase completed", SURE)


def _came_as(join: Join) -> tuple[str, Doubts]:
    """How somebody who had not been held before became a member, and what is in doubt about that."""
    if join.replaces:
        return "static_replaced", SURE
    return ("first seen", Doubt.THERE_BEFORE) if join.first_seen else ("member_joined", SURE)


def _confirm(facts: Facts, group: Group, current: Rebalance) -> None:
    """Evictions inferred from silence are confirmed by the list of the new generation, where they are missing."""
    if current.listed is None:
        return
    began = current.cause.member_id if current.cause is not None and current.cause.trigger == "sync_timeout" else ""
    for over in group.ended.values():
        lives.confirm(facts, group, over, current.joined_at_ms)
        # Its session may have ended before, or that of somebody else have begun the rebalance before its time was over.
        tied = 0 <= over.member.deadline <= over.ended_at_ms + LATE_MS or _ended_beside(group, over)
        by_silence = over.cause == "sync_timeout" and certainty_of(over.doubts) == "provisional"
        if by_silence and over.member.member_id == began and not tied:
            over.doubts = Doubt.SEEN_LATER
            facts.emit_member(group, over.member, over.ended_at_ms, Doubt.SEEN_LATER, over)


def _ended_beside(group: Group, over: Ended) -> bool:
    others = (one for one in group.ended.values() if one is not over and one.cause == "session_expired")
    return any(abs(one.ended_at_ms - over.ended_at_ms) <= LATE_MS for one in others)


def on_assigned(facts: Facts, group: Group, at: float, since: float | None = None) -> None:
    """The leader's SyncGroup is answered: the assignment is stored and handed out, the group is Stable. It was received
    before that by what the append took: some 5 ms on a Java coordinator, which gathers records before it writes.
    `since`: the earliest that it was, where the broker was slow."""
    current, begun_at_ms, by = group.rebalance, at, None
    if current is not None and since is not None:
        begun_at_ms, by = max(since, current.joined_at_ms), at
    if current is not None:
        if not current.settled:
            settle(facts, group, current)
        current.assigned_at_ms, current.assigned_by = begun_at_ms, by
        current.partitions_stopped_ms = partitions_stopped_ms(group, current)
        emit(facts, group, current)
    facts.set_state(group, begun_at_ms, GroupState.STABLE, "assignment stored", SURE, by)
    group.stable_at_ms = at
    group.steady_at_ms = at
    loads.note(group)
