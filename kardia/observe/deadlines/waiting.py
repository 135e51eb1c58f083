"""Whom a rebalance waits for while it lasts, and until when at the latest. Arithmetic only; decides nothing.

A member that waits in its JoinGroup sends nothing, and its JoinGroup is not logged before it is answered. So a member
is only said to be waited for if it has been told of the rebalance and goes on with its heartbeats; of one that is
silent nothing is said. The end is the rebalance timeout, the highest of the members, from the start or, where that is
not known yet, from the first answer that told of it: at the latest.
"""

from __future__ import annotations

from collections.abc import Callable

from kardia.kafka.states import GroupState
from kardia.observe.deadlines.member_deadlines import may_be_waiting
from kardia.observe.deadlines.phases import longest_ms, sync_deadline
from kardia.observe.state.group import NEVER, Group, Member


def awaited(
    group: Group, member: Member, now: float, longest_of: Callable[[Group], int] = longest_ms
) -> tuple[float, float]:
    """(since, until) of the wait for a member at an instant; NEVER where nobody is known to wait for it. `longest_of`
    may remember what `longest_ms` says, for who asks about every member."""
    if group.modern is not None:
        return _holds_back(member)
    current = group.rebalance
    if current is None or current.assigned_at_ms >= 0:
        return NEVER, NEVER
    if group.state == GroupState.PREPARING and current.joined_at_ms < 0:
        began = current.started_at_ms if current.started_at_ms >= 0 else current.rebalance_notified_at_ms
        if began < 0 or may_be_waiting(group, member, now):
            return NEVER, NEVER
        longest = longest_of(group)
        return began, began + longest if longest > 0 else NEVER
    if group.state == GroupState.COMPLETING and current.settled and member.member_id == group.leader:
        return current.joined_at_ms, sync_deadline(group)
    return NEVER, NEVER


def _holds_back(member: Member) -> tuple[float, float]:
    """The same in a group that has epochs: of a member that was told to give partitions up, or of the classic protocol
    to rejoin. The coordinator evicts it then, unless it did."""
    own = member.modern
    if own is None or own.away_since_at_ms >= 0:
        return NEVER, NEVER
    since = own.revoke_since_at_ms if own.revoke_since_at_ms >= 0 else own.rejoin_since_at_ms
    return since, since + member.rebalance_ms if since >= 0 and member.rebalance_ms > 0 else NEVER
