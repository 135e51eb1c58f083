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

from kardia.certainty import Certainty, weaker
from kardia.lateness import LATE_MS
from kardia.observe.facts.facts import Facts
from kardia.observe.members import lives, owners
from kardia.observe.modern import epochs
from kardia.observe.state.group import NEVER, Cause, Ended, Group, Member

NEAR_MS = 25.0
"""Two deadlines that near may have been met in either order."""

EARLY_MS = 3.0
"""A timer may seem to fire so much before its deadline: its begin is the answer of a request, which is later than the
operation, and stamps are cut."""

DEFAULT_SESSION_MS = 45_000
"""`group.consumer.session.timeout.ms`, `group.share.session.timeout.ms`, `group.streams.session.timeout.ms` of a broker
that was not told otherwise."""

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

ROUND_MS = 100
"""A session timeout that an eviction shows is taken for a whole number of these if it is that near to one."""


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


def arm_session(group: Group, member: Member) -> None:
    """The session timeout in force of a member: its own if it speaks the classic protocol, else that of its group; the
    broker's default where nothing says it."""
    own, modern = member.modern, group.modern
    if own is not None and modern is not None and not own.classic:
        member.session_ms = modern.session_ms if modern.session_from else DEFAULT_SESSION_MS


def learn_session(facts: Facts, group: Group, session_ms: float) -> None:
    """An eviction shows how long a session is. What the configuration says stands."""
    modern = group.modern
    if modern is None or modern.session_from or session_ms <= 0:
        return
    nearest = round(session_ms / ROUND_MS) * ROUND_MS
    modern.session_ms = int(nearest if abs(nearest - session_ms) <= NEAR_MS else session_ms)
    modern.session_from = "seen"
    for member in group.members.values():
        arm_session(group, member)
        if member.modern is not None and not member.modern.classic:
            facts.emit_member(group, member, member.joined_at_ms, "inferred")
            facts.watch(group, member)


def why_at(facts: Facts, group: Group, member: Member, at: float) -> tuple[str, Certainty]:
    """Why the coordinator took a member out at an instant, which is known: by the timers that were due then. `unknown`
    where none was, or where nothing shows it."""
    due = [one for one in timers(group, member) if one.at_ms - EARLY_MS <= at <= one.at_ms + LATE_MS]
    if due:
        sure: Certainty = "exact" if len(due) == 1 and at - due[0].at_ms <= NEAR_MS else "inferred"
        if len(due) > 1 and due[1].at_ms - due[0].at_ms <= NEAR_MS:
            sure = "provisional"
        return due[0].cause, weaker(sure, _begin_of(facts, group, member, due[0]))
    return "unknown", "exact"


def _begin_of(facts: Facts, group: Group, member: Member, due: Due) -> Certainty:
    """How sure it is when a timer began: a load begins sessions anew, a gap may hide a later renewal."""
    if due.cause != "session_expired":
        return "exact"
    if 0 <= member.session_renewed_at_ms <= group.unsure_to or member.renewed_unseen:
        return "inferred"
    return "exact" if facts.silent_at(group.broker, due.at_ms) is False else "inferred"


def remove(
    facts: Facts,
    group: Group,
    member: Member,
    at: float,
    cause: str,
    reason: str,
    certainty: Certainty,
    by: float | None = None,
    *,
    told: bool = False,
) -> Cause:
    """A member is one no more, at `at` or up to `by` (see `Ended.by`). `told`: a record says so, or its own leave.
    Returns it as the cause of a new group epoch."""
    owners.release(group, member, at)
    epochs.ended(group, member, at)
    if cause == "session_expired" and certainty == "unknown":
        certainty = "provisional"
    lives.end(facts, group, member, at, cause, reason, certainty, by)
    over = group.ended.get(member.member_id)
    if over is not None:
        over.told = told
    return cause_of(member, at, cause, reason, certainty, by)


def cause_of(
    member: Member, at: float, cause: str, reason: str, certainty: Certainty, by: float | None = None
) -> Cause:
    """The end of a member as the cause of a new group epoch."""
    trigger = TRIGGERS_BY_END.get(cause, "unknown")
    return Cause(at, trigger, member.member_id, member.client_id, member.instance_id, reason, certainty, by)


def remove_counted(
    facts: Facts,
    group: Group,
    member: Member,
    at: float,
    cause: str,
    reason: str,
    certainty: Certainty,
    by: float | None = None,
    *,
    told: bool = False,
) -> None:
    """The same where no record says that the group has a new epoch: it has, unless one that nothing explained is it."""
    members_before = len(group.members)
    why = remove(facts, group, member, at, cause, reason, certainty, by, told=told)
    open_bump = next((bump for bump in epochs.unexplained(group) if _fits(bump.cause, at, by)), None)
    if open_bump is not None:
        why.at = max(why.at, 0.0)
        epochs.explain(facts, group, open_bump, why)
    elif group.generation >= 0:
        epochs.raised(facts, group, group.generation + 1, why, members_before)
    epochs.conclude(facts, group, at)
    epochs.update_state(facts, group, at, why.trigger)


def _fits(unknown: Cause, at: float, by: float | None) -> bool:
    """Whether something between `at` and `by` may be what began a rebalance whose begin is known within bounds."""
    last = unknown.at if unknown.by is None else unknown.by
    first = at if by is None or by < 0 else max(at, min(by, last))
    return unknown.at - LATE_MS <= first <= last + EARLY_MS if last >= 0 else True


def confirm(facts: Facts, group: Group, over: Ended, by: float) -> None:
    """An answer shows that a member which silence alone had ended is none, by `by` at the latest."""
    lives.confirm(facts, group, over, by)


def correct(facts: Facts, group: Group, over: Ended, at: float, cause: str, certainty: Certainty) -> None:
    """An end was another one; the rebalance that it began is explained by it."""
    before = over.ended_at_ms
    lives.correct(facts, group, over, at, cause, certainty)
    if group.modern is None:
        return
    why = cause_of(over.member, over.ended_at_ms, cause, over.reason, certainty)
    for bump in group.modern.bumps:
        same = bump.cause.member_id == over.member.member_id and abs(bump.cause.at - before) <= LATE_MS
        if same:
            why.at = bump.started_at_ms if abs(bump.started_at_ms - over.ended_at_ms) <= epochs.STAMP_MS else why.at
            epochs.explain(facts, group, bump, why)


def back(facts: Facts, group: Group, over: Ended, at: float, why: str = "still a member") -> Member:
    """A member that was taken for ended is one still."""
    member = lives.reinstate(facts, group, over, at, why)
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
