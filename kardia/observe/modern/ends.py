"""Why a member of a group with epochs is one no more, and what that does to the group.

A member ends by its own leave, by a timer of the coordinator (session; rebalance timeout of one that must give
partitions up; time to rejoin or to sync of a member of the classic protocol), by a replacement, or by an administrator.
Only the leave is seen on the wire; which timer it was follows from their deadlines. Sources:
`GroupMetadataManager.consumerGroupFenceMember`, `scheduleConsumerGroupSessionTimeout`,
`scheduleConsumerGroupRebalanceTimeout`, `scheduleConsumerGroupJoinTimeoutIfAbsent`,
`scheduleConsumerGroupSyncTimeout`.
"""

from __future__ import annotations

from typing import NamedTuple

from kardia.doubts import SURE, Doubt, Doubts, certainty_of
from kardia.events import Event
from kardia.observe.facts.groups_of_lane import Facts
from kardia.observe.members import lives, owners
from kardia.observe.modern import epochs, groups, session_length
from kardia.observe.state.group import NEVER, Cause, Ended, Group, Member
from kardia.tolerances import BUSY_MS, EARLY_MS, LATE_MS, STAMP_MS, TIMERS_NEAR_MS

TRIGGERS_BY_END = {
    "session_expired": "session_expired",
    "left": "member_left",
    "poll_timeout": "poll_timeout",
    "removed_by_admin": "removed_by_admin",
    "rebalance_timeout": "rebalance_timeout",
    "join_timeout": "rebalance_timeout",
    "sync_timeout": "sync_timeout",
    "static_replaced": "static_replaced",
}
"""`end_cause` -> `trigger` of the new group epoch."""

ONE_LESS = frozenset(TRIGGERS_BY_END.values()) - {"static_replaced"}
"""Triggers after which a group has one member less."""


class Due(NamedTuple):
    """A timer of a member: when it is due, and what its end is called."""

    at_ms: float
    cause: str


def timers(group: Group, member: Member) -> list[Due]:
    """The timers of a member that run, the first that is due first. The session only if its length is known."""
    own, modern = member.modern, group.modern
    found: list[Due] = []
    if own is None or modern is None:
        return found
    if member.deadline >= 0 and group.is_session_known(member):
        found.append(Due(member.deadline, "session_expired"))
    if member.rebalance_ms > 0:
        if own.revoke_since_at_ms >= 0 and not own.classic and own.away_since_at_ms < 0:
            found.append(Due(own.revoke_since_at_ms + member.rebalance_ms, "rebalance_timeout"))
        if own.classic and own.rejoin_since_at_ms >= 0:
            found.append(Due(own.rejoin_since_at_ms + member.rebalance_ms, "join_timeout"))
        if own.classic and own.sync_since_at_ms >= 0:
            found.append(Due(own.sync_since_at_ms + member.rebalance_ms, "sync_timeout"))
    return sorted(found)


def may_have_run_out(group: Group, member: Member, at: float) -> bool:
    """Whether the session of a member, whose length is not known, may have been over by an instant: it was silent."""
    own = member.modern
    interval_ms = own.interval_ms if own is not None else -1
    silent_ms = at - member.session_renewed_at_ms
    return not group.is_session_known(member) and not 0 <= silent_ms <= 2 * interval_ms


def was_over(group: Group, member: Member, at: float) -> bool:
    """Whether a timer of a member had been due so long before an instant that it had fired by then, unless it was
    uncommonly late."""
    due = timers(group, member)
    return bool(due) and due[0].at_ms < at - BUSY_MS


def seat_doubts(group: Group, old: Member, at: float) -> Doubts:
    """What is in doubt about a static member having been one still when another one came in its place at an instant, by
    requests alone: not if it had left for a while, or never came back, and one of its timers may have been over by
    then, nor if it was not heard since a gap or a load."""
    if group.modern is not None and group.modern.by_records:
        return SURE
    due = timers(group, old)
    unheard = old.unknown_since_at_ms >= 0 or 0 <= old.session_renewed_at_ms <= group.unsure_to
    if unheard:
        return Doubt.LOAD_UNSEEN if old.unknown_since_at_ms < 0 else Doubt.LINES_LOST
    if due and due[0].at_ms <= at:
        return Doubt.TIMER_PASSED_UNSEEN
    if not group.is_session_known(old):
        return Doubt.SESSION_GUESSED
    return Doubt.RENEWAL_UNSURE if old.renewed_unseen else SURE


def why_at(facts: Facts, group: Group, member: Member, at: float) -> tuple[str, Doubts]:
    """Why the coordinator took a member out at an instant, which is known: by the timers that were due then. `unknown`
    where none was, or where nothing shows it."""
    due = [one for one in timers(group, member) if one.at_ms - EARLY_MS <= at <= one.at_ms + LATE_MS]
    if not group.broker:  # of heartbeats no record is written: when its session would end is not shown
        due = [one for one in due if one.cause != "session_expired"]
    if due:
        doubts: Doubts = SURE if len(due) == 1 and at - due[0].at_ms <= TIMERS_NEAR_MS else Doubt.SEEN_LATER
        if len(due) > 1 and due[1].at_ms - due[0].at_ms <= TIMERS_NEAR_MS:
            doubts = Doubt.TIMERS_TIED
        return due[0].cause, doubts | _begin_of(facts, group, member, due[0])
    return "unknown", SURE


def _begin_of(facts: Facts, group: Group, member: Member, due: Due) -> Doubts:
    """What is in doubt about when a timer began: a load begins sessions anew, a gap may hide a later renewal."""
    if due.cause != "session_expired":
        return SURE
    if 0 <= member.session_renewed_at_ms <= group.unsure_to or member.renewed_unseen:
        return Doubt.SEEN_LATER
    return SURE if facts.silent_at(group.broker, due.at_ms) is False else Doubt.SEEN_LATER


def remove(
    facts: Facts,
    group: Group,
    member: Member,
    at: float,
    cause: str,
    reason: str,
    doubts: Doubts,
    by: float | None = None,
    *,
    told: bool = False,
) -> Cause:
    """A member is one no more, at `at` or up to `by` (see `Ended.by`). `told`: a record says so, or its own leave.
    Returns it as the cause of a new group epoch."""
    owners.release(group, member, at)
    epochs.ended(group, member, at, by)
    if cause == "session_expired" and certainty_of(doubts) == "unknown":
        doubts = Doubt.BY_ELIMINATION
    lives.end(facts, group, member, at, cause, reason, doubts, by)
    over = group.ended.get(member.member_id)
    if over is not None:
        over.told = told
    return cause_of(member, at, cause, reason, doubts, by)


def cause_of(member: Member, at: float, cause: str, reason: str, doubts: Doubts, by: float | None = None) -> Cause:
    """The end of a member as the cause of a new group epoch."""
    trigger = TRIGGERS_BY_END.get(cause, "unknown")
    return Cause(at, trigger, member.member_id, member.client_id, member.instance_id, reason, doubts, by)


def may_begin_anew(facts: Facts, group: Group, at: float) -> None:
    """The last member of the consumer protocol has gone: where that makes the group a classic one, the sessions of the
    others begin anew."""
    if group.may_be_classic:
        for one in group.members.values():
            lives.begin_in_doubt(facts, group, one, at)


def remove_counted(
    facts: Facts,
    group: Group,
    member: Member,
    at: float,
    cause: str,
    reason: str,
    doubts: Doubts,
    by: float | None = None,
    *,
    told: bool = False,
) -> None:
    """The same where no record says that the group has a new epoch: it has, unless one that nothing explained is it."""
    members_before = len(groups.present(group)) + groups.is_gone(member)
    by_timer = not told and any(abs(due.at_ms - at) <= EARLY_MS for due in timers(group, member))
    since = at if told or by != NEVER else _earliest(group, member, at, cause)
    fitting = [
        bump
        for bump in epochs.unexplained(group)
        if bump.cause.member_id in ("", member.member_id) and fits(bump.cause, since, at if since < at else by)
    ]
    if since < at and fitting:
        unknown = fitting[0].cause
        at, by = max(since, unknown.at), unknown.at if unknown.by is None else unknown.by
    why = remove(facts, group, member, at, cause, reason, doubts, by, told=told)
    open_bump = fitting[0] if fitting else None
    if open_bump is not None:
        why.at = max(why.at, 0.0)
        shown_at = open_bump.cause.at if open_bump.cause.by is None else open_bump.cause.by
        if len(fitting) > 1 or 0 <= shown_at < at - STAMP_MS:
            # Which of them it began is not shown; or it seems to have come a moment after that epoch was.
            why.doubts |= Doubt.EPOCH_UNSURE
        epochs.explain(facts, group, open_bump, why)
    elif _takes_spare(group, min(since, at)):
        pass  # one of several that an answer has shown
    elif group.is_left_to_classic and stands_by_record(group):
        pass  # either a new epoch or a classic group: the record of it says which (`left_to_classic`)
    elif group.generation >= 0:
        # What is not answered yet may have made one before it: an answer has yet to show its number.
        why.doubts |= Doubt.EPOCH_COUNTED
        epochs.count_in(facts, group, why, members_before, in_order=by_timer)
    epochs.conclude(facts, group, at)
    epochs.update_state(facts, group, at, why.trigger, by)
    if member.modern is not None and not member.modern.classic:
        may_begin_anew(facts, group, at)


def _earliest(group: Group, member: Member, at: float, cause: str) -> float:
    """The earliest that a session may have been over which is taken to be at `at`: it may run from a load that lies
    anywhere since the broker's last line before."""
    in_doubt = cause == "session_expired" and 0 <= member.session_renewed_at_ms <= group.unsure_to
    return min(at, group.broke_at_ms + member.session_ms) if in_doubt and group.broke_at_ms >= 0 else at


def left_to_classic(group: Group, at: float) -> Cause | None:
    """Whose end, told before its records, was that of the last member of the consumer protocol: it is why the group
    changes at `at`. A seat that was taken with the classic protocol is no reason to rebalance."""
    if not group.is_left_to_classic:
        return None
    over = max(group.ended.values(), key=lambda one: one.ended_at_ms, default=None)
    if over is None or over.member.modern is None or over.member.modern.classic or over.cause == "static_replaced":
        return None
    if at - over.ended_at_ms > LATE_MS:
        return None
    return cause_of(over.member, at, over.cause, over.reason, over.doubts)


def _takes_spare(group: Group, at: float) -> bool:
    """Whether the end is one of those that made several epochs at once, of which one is explained already."""
    for bump in group.modern.bumps if group.modern is not None else ():
        last = bump.cause.at if bump.cause.by is None else bump.cause.by
        if last < 0:  # of an end that silence alone shows it is not known: by the answer that showed the epochs
            last = bump.computed_at_ms
        if bump.spare > 0 and at <= last + EARLY_MS:
            bump.spare -= 1
            return True
    return False


def fits(unknown: Cause, at: float, by: float | None) -> bool:
    """Whether something between `at` and `by` may be what began a rebalance whose begin is known within bounds."""
    last = unknown.at if unknown.by is None else unknown.by
    first = at if by is None or by < 0 else max(at, min(by, last))
    return unknown.at - LATE_MS <= first <= last + EARLY_MS if last >= 0 else True


def confirm(facts: Facts, group: Group, over: Ended, by: float) -> None:
    """An answer shows that a member which silence alone had ended is none, by `by` at the latest."""
    lives.confirm(facts, group, over, by)


def by_request(facts: Facts, group: Group, over: Ended, event: Event, cause: str, doubts: Doubts) -> None:
    """A request says why a member has ended of which that was not known: within what was known, and not before it was
    handled."""
    at, by = over.ended_at_ms, over.by
    if by is not None:
        at = min(max(at, event.handled_at_ms), by)
    correct(facts, group, over, at, cause, doubts, by if by is not None and at < by else None)


def was_a_leave(facts: Facts, group: Group, over: Ended, event: Event, cause: str, doubts: Doubts) -> None:
    """A record had said that a member is gone, and silence why; its leave is answered now, as it is where what the
    coordinator writes is stored late."""
    session_length.unlearn(facts, group, over)
    by_request(facts, group, over, event, cause, doubts)


def correct(
    facts: Facts, group: Group, over: Ended, at: float, cause: str, doubts: Doubts, by: float | None = None
) -> None:
    """An end was another one; the rebalance that it began is explained by it."""
    before, began = over.ended_at_ms, _began_downgraded(group, over)
    lives.correct(facts, group, over, at, cause, doubts, by)
    why = cause_of(over.member, over.ended_at_ms, cause, over.reason, doubts, by)
    if began and group.rebalance is not None:
        group.rebalance.cause = why
    if group.modern is None:
        return
    for bump in group.modern.bumps:
        same = bump.cause.member_id == over.member.member_id and abs(bump.cause.at - before) <= LATE_MS
        if same:
            why.at = bump.started_at_ms if abs(bump.started_at_ms - over.ended_at_ms) <= STAMP_MS else why.at
            epochs.explain(facts, group, bump, why)


def _began_downgraded(group: Group, over: Ended) -> bool:
    """Whether the end made a classic group of a consumer group, and began the rebalance that is under way."""
    current = group.rebalance
    if group.modern is not None or current is None or current.cause is None or current.row_known >= 0:
        return False
    same = current.cause.member_id == over.member.member_id
    return same and abs(current.cause.at - over.ended_at_ms) <= LATE_MS


def was_before_its_end(group: Group, member_id: str, at: float) -> bool:
    """Whether a member was still one when something was handled whose answer is read after its end was told."""
    over = group.ended.get(member_id)
    return over is not None and over.told and at <= over.ended_at_ms + STAMP_MS


def back(facts: Facts, group: Group, over: Ended, at: float, doubts: Doubts = Doubt.SEEN_LATER) -> Member:
    """A member that was taken for ended is one still."""
    member = lives.reinstate(facts, group, over, at, doubts=doubts)
    owners.restore(group, member)
    if group.modern is not None and group.modern.bumps:
        last = group.modern.bumps[-1]
        if last.cause.member_id == member.member_id and not stands_by_record(group):
            epochs.withdraw_above(facts, group, last.epoch_before)
    if member.modern is not None:
        member.modern.gone_at_ms = NEVER
    return member


def stands_by_record(group: Group) -> bool:
    """Whether the group's epochs come from records, which are not taken back."""
    return group.modern is not None and group.modern.by_records
