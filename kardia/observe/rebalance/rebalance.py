"""The ledger of a rebalance: what started it, whom it waited for, who was dropped, when it was over.

A rebalance is seen from its end: its JoinGroups are answered, and so logged, all in one instant when the join phase is
over. Only then is it known who had been waiting, since when, and therefore what came first. So a rebalance is opened
by what is seen first (an eviction, a leave, an answer 27), and settled shortly after the join phase: the earliest of
all causes is the trigger. Sources: `prepareRebalance`, `onCompleteJoin`, `tryCompleteJoin`.
"""

from __future__ import annotations

from kardia.certainty import Certainty, stands, weaker
from kardia.events import Event
from kardia.kafka.states import GroupState
from kardia.lateness import LATE_MS
from kardia.observe.deadlines import deadlines, pending
from kardia.observe.deadlines.late import fired_from
from kardia.observe.deadlines.missing import Missing
from kardia.observe.deadlines.phases import STAMP_MS, how_ended, is_tied, longest_ms, sync_deadline, unsynced
from kardia.observe.facts.facts import Facts
from kardia.observe.ledger import causes
from kardia.observe.ledger.costs import partitions_stopped_ms
from kardia.observe.ledger.ledger import emit, follows_from, remember
from kardia.observe.members import lives
from kardia.observe.moves import loads
from kardia.observe.rebalance.watches import watch_deserted, watch_join_timer, watch_sync_timer
from kardia.observe.state.group import NEVER, Cause, Ended, Group, Join, Member, Rebalance
from kardia.tables import LEAVE_CAUSES

AT_ONCE_MS = 100.0
"""Who did not wait is answered within that."""


def end_member(
    observer: Facts,
    group: Group,
    member: Member,
    at: float,
    cause: str,
    reason: str,
    certainty: Certainty,
    by: float | None = None,
) -> None:
    """A member is gone: a Stable or Completing group begins to prepare a rebalance in the same instant. `by`: the
    latest that this can have been, as `Ended.by`."""
    lives.end(observer, group, member, at, cause, reason, certainty, by)
    if cause == "static_replaced":
        return
    if group.state == GroupState.COMPLETING and group.rebalance is not None and not group.rebalance.settled:
        settle(observer, group, group.rebalance)
        if group.rebalance is not None and group.rebalance.joined_at_ms < 0:
            return  # it left right after the join phase: said, and begun, when that was settled
    trigger = causes.CAUSE_TO_TRIGGER.get(cause, "unknown")
    why = Cause(at, trigger, member.member_id, member.client_id, member.instance_id, reason, certainty, by)
    if stands(why.certainty) and _somebody_else_may_have_gone(group, at):
        why.certainty = "provisional"
    if why.certainty == "inferred" and pending.may_have_joined(group, at):
        why.certainty = "provisional"
    current = group.rebalance
    unexplained = current is not None and current.cause is None and current.joined_at_ms < 0
    if group.state == GroupState.PREPARING and current is not None and unexplained and cause in LEAVE_CAUSES:
        near = (
            abs(at - current.rebalance_notified_at_ms) <= STAMP_MS
        )  # others were told of the rebalance in the same instant
        near = (
            near and abs(group.unsynced_at_ms - current.rebalance_notified_at_ms) > STAMP_MS
        )  # else who did not sync in time began it
        if near and any(0 <= other.deadline <= at + STAMP_MS for other in group.members.values()):
            why.certainty = "provisional"  # whose session ended in that instant may have begun it
        current.cause, current.started_at_ms = (why, at) if near else (None, NEVER)
    if group.state in (GroupState.STABLE, GroupState.COMPLETING, GroupState.UNKNOWN):
        begin(observer, group, why, NEVER, len(group.members) + 1)
    watch_deserted(observer, group, at)


def _somebody_else_may_have_gone(group: Group, at: float) -> bool:
    """Whether the session of somebody else may have ended before this instant: one of which it is not known when it
    ends, or one that is over, in a group that nobody has shown to be Stable since."""
    if not group.membership_complete:
        return True
    return at > group.steady_at_ms and any(
        other.deadline < 0
        or 0 <= other.session_renewed_at_ms <= group.unsure_to
        or group.steady_at_ms - LATE_MS < other.deadline < at
        for other in group.members.values()
    )


def begin(
    observer: Facts, group: Group, cause: Cause | None, rebalance_notified_at_ms: float, members_before: int
) -> None:
    """The group prepares a rebalance, by a known cause or by one that will be known later."""
    remember(group)
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
        watch_join_timer(observer, group, group.rebalance)
        observer.move(group, cause.at, GroupState.PREPARING, cause.trigger, cause.certainty, cause.by)
    else:
        group.state = GroupState.PREPARING
    for member in group.members.values():
        member.rebalance_notified_at_ms = NEVER


def on_told(observer: Facts, group: Group, member: Member | None, at: float) -> None:
    """An answer 27, or another sign: a rebalance is under way, and began before it."""
    tolerance = observer.settings.tolerance_ms
    current = group.rebalance
    if group.state == GroupState.PREPARING and current is not None:
        if current.rebalance_notified_at_ms < 0:
            current.rebalance_notified_at_ms = at
            if current.cause is not None and _is_of_an_old_id(group, current.cause):
                # One that had begun untold is shown.
                current.cause.certainty, current.cause.by = _sure_of_an_old_id(group), at
        return
    if current is not None and current.joined_at_ms >= 0 and at <= current.joined_at_ms + tolerance:
        return  # logged a little out of order: it belongs to the join phase that just ended
    if group.state == GroupState.COMPLETING and current is not None and not current.settled:
        settle(observer, group, current)
        if group.rebalance is not current and group.rebalance is not None:
            group.rebalance.rebalance_notified_at_ms = at
            return  # somebody left right after the join phase, and began this one
    silent = [
        other
        for other in group.members.values()
        if other is not member
        and 0 <= other.deadline <= at + STAMP_MS
        and other.deadline >= group.steady_at_ms - LATE_MS
    ]
    unsynced_at_ms = sync_deadline(group)
    unsynced_due = unsynced_at_ms >= 0 and group.steady_at_ms - LATE_MS <= unsynced_at_ms <= at + STAMP_MS
    unsynced_due = unsynced_due and bool(unsynced(group))
    if group.state == GroupState.COMPLETING and (silent or unsynced_due):
        # Whoever waited in SyncGroup was protected, and is sent back in this same instant: who is not was the cause.
        group.unsynced_at_ms = unsynced_at_ms if unsynced_due else NEVER
        begin(observer, group, None, at, len(group.members))
        observer.schedule(group, at + observer.settings.burst_ms, "silent", "")
    elif silent and _went_by_session(group, first := _first(silent)):
        how_sure = deadlines.sureness(group, first)
        ended_at_ms = min(fired_from(group, first.deadline), at)
        tied = is_tied(group, first)
        if tied:
            how_sure = weaker(how_sure, "provisional")
        if group.pending and at < first.deadline + LATE_MS:
            how_sure = weaker(
                how_sure, "provisional"
            )  # who was handed an id may have joined before a timer that is late
        end_member(observer, group, first, ended_at_ms, "session_expired", "", how_sure, at)
        if tied:
            lives.rival(group, first.member_id)
    elif unsynced_due and not group.pending:  # an id that was handed out may have been used, unseen, before that
        for one in unsynced(group):
            if one is not member:
                # Provisional, because somebody may have joined before that, unseen, and ended the wait.
                ended_at_ms = min(fired_from(group, unsynced_at_ms), at)
                end_member(observer, group, one, ended_at_ms, "sync_timeout", "", "provisional", at)
    elif current is not None and current.never_synced and max(0, group.steady_at_ms - LATE_MS) <= unsynced_at_ms <= at:
        began_at = min(fired_from(group, unsynced_at_ms), at)
        why = Cause(began_at, "sync_timeout", current.never_synced, certainty=_sure_of_an_old_id(group), by=at)
        begin(observer, group, why, at, -1)
    else:
        begin(observer, group, None, at, len(group.members))
    if group.rebalance is not None and group.rebalance.rebalance_notified_at_ms < 0:
        group.rebalance.rebalance_notified_at_ms = at


def _went_by_session(group: Group, member: Member) -> bool:
    """Whether a member whose session is over is gone for that, not for its SyncGroup, whose time was over before."""
    return deadlines.surely_silent(group, member) and how_ended(group, member)[2] == "session_expired"


def _first(silent: list[Member]) -> Member:
    return min(silent, key=lambda other: (other.deadline, other.member_id))


def note_never_synced(observer: Facts, group: Group, old: Member) -> None:
    """A static member took its place again before its old id had synced: when the time for SyncGroup is over, the
    coordinator begins a rebalance because of that id."""
    current = group.rebalance
    if current is not None and current.settled and old.synced_generation != group.generation:
        current.never_synced = old.member_id
        watch_sync_timer(observer, group)


def begin_untold(observer: Facts, group: Group, at: float, now: float) -> None:
    """The time for SyncGroup was over at `at`, and an old id had sent none: the coordinator began a rebalance that
    nobody was told of so far. Provisional, because somebody may have begun one unseen before. Where members are
    answered as in a Stable group still, the timer is late, and is looked at again a moment later."""
    current = group.rebalance
    if current is None or not current.never_synced or group.steady_at_ms > at + LATE_MS:
        return
    if group.steady_at_ms > at and now < group.steady_at_ms + deadlines.GRACE_MS:
        again_at = group.steady_at_ms + deadlines.GRACE_MS
        observer.schedule(group, again_at, "unsynced", str(group.generation))
        return
    why = Cause(fired_from(group, at), "sync_timeout", current.never_synced, certainty="provisional")
    begin(observer, group, why, NEVER, -1)


def _is_of_an_old_id(group: Group, cause: Cause) -> bool:
    """Whether a rebalance was begun by the SyncGroup that an id of a static member never sent, which is replaced."""
    over = group.ended.get(cause.member_id)
    replaced = over is None or over.cause == "static_replaced"
    return cause.trigger == "sync_timeout" and cause.certainty == "provisional" and replaced


def _sure_of_an_old_id(group: Group) -> Certainty:
    """Who has not sent SyncGroup either is removed in the same instant, and may as well be named for it."""
    return "provisional" if unsynced(group) else "inferred"


def on_pending_left(observer: Facts, group: Group, member_id: str, event: Event, at: float) -> None:
    """An id that was never used left. The Java coordinator rebalances for it as for a member."""
    if group.state in (GroupState.STABLE, GroupState.COMPLETING):
        cause = Cause(at, "member_left", member_id, event.client_id, "", "its id was never used", "inferred")
        begin(observer, group, cause, NEVER, len(group.members))


def on_contradicted(observer: Facts, group: Group, at: float) -> None:
    """A heartbeat of the old generation is answered 0 although a rebalance was thought to be under way."""
    current = group.rebalance
    tolerance = observer.settings.tolerance_ms
    if current is None or at <= max(current.started_at_ms, current.rebalance_notified_at_ms) + tolerance:
        return
    cause = current.cause
    if cause is not None and cause.trigger in causes.BY_LEAVE and cause.by is not None and at <= cause.by + tolerance:
        return  # it was begun while the request was handled, and maybe after this
    observer.divergences += 1
    over = group.ended.get(cause.member_id) if cause is not None else None
    by_silence = over is not None and over.certainty != "exact" and over.cause != "unknown"  # that was an answer
    group.rebalance = None
    # One that was started again answers so while it still loads, whoever asks.
    doubted = observer.is_doubted(group.broker, max(current.started_at_ms, current.rebalance_notified_at_ms), at)
    sure: Certainty = "provisional" if doubted else "inferred"
    observer.move(group, at, GroupState.STABLE, "no rebalance: answered as stable", sure)
    group.steady_at_ms = at
    if over is not None and by_silence:
        lives.reinstate(observer, group, over, at, certainty=sure)


def settle(observer: Facts, group: Group, current: Rebalance) -> None:
    """All answers of the join burst are in (or a late one came): who is in, who was dropped, what came first."""
    first_time = not current.settled
    current.settled = True
    if first_time and _was_none(current):
        _undo(observer, group, current)
        return
    joined_at_ms = current.joined_at_ms
    if first_time:
        _correct_replaced(observer, group, current)
    joins = {join.member_id: join for join in current.joins}
    if current.listed is not None:
        listed = {entry[0]: entry[1] for entry in current.listed}
        for member_id, instance_id in listed.items():
            if member_id not in group.members:
                _add_listed(observer, group, member_id, instance_id, joined_at_ms)
        gone = [member for member in group.members.values() if member.member_id not in listed]
        group.membership_complete = True
    else:
        gone = []
        group.membership_complete = False
    missing = Missing(group, current)
    dropped = [causes.how_dropped(observer, group, current, missing, member) for member in gone]
    causes.choose(observer, group, current, dropped)
    current.caused_by = follows_from(group, current)
    if first_time:
        _correct_unsynced(observer, group, current)
        _tell_phases(observer, group, current, joins)
    for member, at, by, cause, certainty in dropped:
        lives.end(observer, group, member, at, cause, "", certainty, by)
        if not stands(certainty):
            lives.rival(group, member.member_id)
        if cause == "rebalance_timeout":
            current.removed.append([member.member_id, member.client_id, int(joined_at_ms - current.started_at_ms)])
    if first_time:
        _score(observer, group, current)
        _confirm(observer, group, current)
        current.sync_within_ms = longest_ms(group)
        watch_sync_timer(observer, group)
    group.leader = current.leader or group.leader
    group.protocol_name = current.protocol_name or group.protocol_name
    if first_time:
        current.blocked = pending.blocked(group, current)
    emit(observer, group, current)
    for member_id, at, cause, reason, certainty, by in current.left_after:
        again = group.members.get(member_id)
        if again is not None:
            end_member(observer, group, again, at, cause, reason, certainty, by)
    current.left_after.clear()


def _correct_unsynced(observer: Facts, group: Group, current: Rebalance) -> None:
    """The rebalance began before the time for SyncGroup of the generation before was over, which nobody could see then:
    who was said to have gone by that went later."""
    for over in list(group.ended.values()):
        member = over.member
        if over.cause != "sync_timeout" or over.ended_at_ms != current.sync_over_at_ms:
            continue
        if current.started_at_ms >= over.ended_at_ms - STAMP_MS or over.certainty == "exact":
            continue
        ran_out_at = member.session_renewed_at_ms + member.session_ms
        taken_at = _taken_at(current, member)
        if member.session_renewed_at_ms >= 0 and ran_out_at <= (current.joined_at_ms if taken_at < 0 else taken_at):
            lives.correct(observer, group, over, ran_out_at, "session_expired", "provisional", current.joined_at_ms)
        elif taken_at >= 0:
            lives.correct(observer, group, over, taken_at, "static_replaced", "provisional")
        else:
            lives.correct(observer, group, over, current.joined_at_ms, "rebalance_timeout", "provisional")


def _taken_at(current: Rebalance, member: Member) -> float:
    """When another process took the place of a static member in this rebalance; NEVER if none did."""
    takers = (join for join in current.joins if join.instance_id == member.instance_id != "" and not join.asked_id)
    return min((join.handled_at_ms for join in takers), default=NEVER)


def _correct_replaced(observer: Facts, group: Group, current: Rebalance) -> None:
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
        if began >= over_at - STAMP_MS:
            lives.correct(observer, group, over, over_at, "sync_timeout", "provisional", began)
            join.replaces = ""
        elif (
            over.certainty == "provisional"
            and over.member.session_renewed_at_ms >= 0
            and ran_out_at <= join.handled_at_ms - STAMP_MS
        ):
            lives.correct(observer, group, over, ran_out_at, "session_expired", "provisional", join.handled_at_ms)
            join.replaces = ""


def _score(observer: Facts, group: Group, current: Rebalance) -> None:
    """Who is in the new generation was renewed with it, whatever was foretold; without a list it is known of nobody who
    was not answered."""
    for member in group.members.values():
        if (
            member.session_prediction_at_ms >= 0
            and member.session_renewed_at_ms >= current.joined_at_ms
            and not member.overdue
        ):
            outcome = "averted" if current.listed is not None else "unknown"
            observer.close_prediction(group, member, "session", outcome, current.joined_at_ms)


def _was_none(current: Rebalance) -> bool:
    """Whether what looks like a join burst, of a group of which too little was known, was static members that took
    their places again while it was Stable: they are answered at once, and in a burst somebody is told the members."""
    begun = current.started_at_ms >= 0 or current.rebalance_notified_at_ms >= 0
    known = current.listed is not None or begun or (current.members_before >= 0 and current.generation_before > 0)
    return (
        bool(current.joins)
        and not known
        and all(
            join.instance_id and not join.asked_id and current.joined_at_ms - join.handled_at_ms <= AT_ONCE_MS
            for join in current.joins
        )
    )


def _undo(observer: Facts, group: Group, current: Rebalance) -> None:
    """There was no rebalance: the group is Stable in the generation that was answered."""
    group.rebalance = None
    group.membership_complete = False
    group.stored = []
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
        observer.emit_transition(
            group, join.handled_at_ms, join.member_id, "Absent", "Member", "static_replaced", "inferred"
        )
        observer.emit_member(group, member, join.handled_at_ms, "inferred")
        observer.watch(group, member)
    observer.move(group, current.joined_at_ms, GroupState.STABLE, "generation seen", "inferred")
    group.steady_at_ms = current.joined_at_ms


def note_left_after(observer: Facts, current: Rebalance, over: Ended) -> None:
    """Somebody who asked to leave in the instant in which the join phase ended is in the new generation all the same:
    it left right after, and the order of the two was lost in the stamps."""
    if over.cause in LEAVE_CAUSES and over.ended_at_ms >= current.joined_at_ms - observer.settings.burst_ms:
        at = max(over.ended_at_ms, current.joined_at_ms)
        current.left_after.append([over.member.member_id, at, over.cause, over.reason, over.certainty, over.by])


def _add_listed(observer: Facts, group: Group, member_id: str, instance_id: str, joined_at_ms: float) -> None:
    """A member that the leader was told of and that we have not seen: it is one, since when is not known."""
    over = group.ended.get(member_id)
    if over is not None:
        observer.divergences += 1
        if group.rebalance is not None:
            note_left_after(observer, group.rebalance, over)
        lives.reinstate(observer, group, over, joined_at_ms)
        return
    member = Member(member_id, joined_at_ms, instance_id=instance_id, session_renewed_at_ms=joined_at_ms)
    group.members[member_id] = member
    if instance_id:
        group.instances[instance_id] = member_id
    observer.emit_member(group, member, joined_at_ms, "inferred")
    observer.emit_transition(group, joined_at_ms, member_id, "Absent", "Member", "listed", "inferred")


def _tell_phases(observer: Facts, group: Group, current: Rebalance, joins: dict[str, Join]) -> None:
    """Write the transitions of the join phase in their order: prepared, members added, completed."""
    certainty = current.cause.certainty if current.cause is not None else "unknown"
    if group.told_state != GroupState.PREPARING:
        observer.move(
            group,
            current.started_at_ms,
            GroupState.PREPARING,
            current.cause.trigger if current.cause else "unknown",
            certainty,
            current.cause.by if current.cause else None,
        )
    elif current.cause is not None and 0 <= current.started_at_ms < current.told_start - observer.settings.tolerance_ms:
        # It was told by what showed it first; what began it lies before and is known only now.
        observer.correct(group, current, certainty)
    new = [join for join in joins.values() if join.is_new and join.member_id in group.members]
    for join in sorted(new, key=lambda item: (item.handled_at_ms, item.member_id)):
        cause = "static_replaced" if join.replaces else "member_joined"
        at, by = join.came
        observer.emit_transition(group, at, join.member_id, "Absent", "Member", cause, "exact", by)
        sure: Certainty = "exact" if join.since < 0 else "inferred"
        observer.emit_member(group, group.members[join.member_id], join.handled_at_ms if join.since >= 0 else at, sure)
    observer.move(group, current.joined_at_ms, GroupState.COMPLETING, "join phase completed", "exact")


def _confirm(observer: Facts, group: Group, current: Rebalance) -> None:
    """Evictions inferred from silence are confirmed by the list of the new generation, where they are missing."""
    if current.listed is None:
        return
    began = current.cause.member_id if current.cause is not None and current.cause.trigger == "sync_timeout" else ""
    for over in group.ended.values():
        lives.confirm(observer, group, over, current.joined_at_ms)
        tied = 0 <= over.member.deadline <= over.ended_at_ms + LATE_MS  # its session may have ended before
        by_silence = over.cause == "sync_timeout" and over.certainty == "provisional"
        if by_silence and over.member.member_id == began and not tied:
            over.certainty = "inferred"
            observer.emit_member(group, over.member, over.ended_at_ms, "inferred", over)


def on_assigned(observer: Facts, group: Group, at: float) -> None:
    """The leader's SyncGroup is answered: the assignment is stored and handed out, the group is Stable. It was received
    before that by what the append took: some 5 ms on a Java coordinator, which gathers records before it writes."""
    current = group.rebalance
    if current is not None:
        if not current.settled:
            settle(observer, group, current)
        current.assigned_at_ms = at
        current.partitions_stopped_ms = partitions_stopped_ms(group, current)
        emit(observer, group, current)
    observer.move(group, at, GroupState.STABLE, "assignment stored", "exact")
    group.stable_at_ms = at
    group.steady_at_ms = at
    loads.note(group)
