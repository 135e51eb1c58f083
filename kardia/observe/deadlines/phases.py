"""The phases of a rebalance as timers see them: who has not synced, and until when the broker waits for whom.

Arithmetic only; when to look again is in `watches`, what is concluded then in `timeouts`. Sources: `prepareRebalance`,
`schedulePendingSync` (both: the highest rebalance timeout of the members, fixed when the phase begins).
"""

from __future__ import annotations

from math import inf
from typing import NamedTuple, Self

from kardia.coordinator.classic.behaviour import behaviour_of
from kardia.kafka.states import GroupState
from kardia.observe.deadlines.late import fired_from, near
from kardia.observe.state.entries import DueEnd
from kardia.observe.state.group import NEVER, Cause, Group, Member, Rebalance
from kardia.tolerances import LATE_MS, TWO_STAMPS_MS


def unsynced(group: Group) -> list[Member]:
    """Members of this generation whose SyncGroup was never answered, by id. A waiting one is not seen either."""
    members = sorted(group.members.values(), key=lambda item: item.member_id)
    return [member for member in members if is_unsynced(group, member)]


def is_unsynced(group: Group, member: Member) -> bool:
    """Whether the SyncGroup of a member of this generation was never answered. Nobody waits for that of a static member
    that took its place again in the Stable group."""
    current = group.rebalance
    came_later = current is not None and 0 <= current.joined_at_ms < member.joined_at_ms
    return member.synced_generation != group.generation and not came_later


def sync_deadline(group: Group) -> float:
    """When the coordinator removes who has not sent SyncGroup: the highest rebalance timeout after the join phase."""
    current = group.rebalance
    if current is None or current.joined_at_ms < 0 or current.generation_after != group.generation:
        return NEVER
    if group.loaded_at_ms >= current.joined_at_ms:
        return NEVER  # who loads a group waits for no SyncGroup
    if group.release and not behaviour_of(group.release).sync_timer:
        return NEVER
    if current.settled and not group.membership_complete:
        return NEVER  # lines are lost: who was not seen to sync may have done so
    within_ms = current.sync_within_ms if current.settled else longest_ms(group)
    return current.joined_at_ms + within_ms if within_ms > 0 else NEVER


def longest_ms(group: Group) -> int:
    """Highest rebalance timeout of the members, -1 where none is known."""
    return max((member.rebalance_ms for member in group.members.values()), default=-1)


def longest_when_begun_ms(group: Group, current: Rebalance, began: float, first: str = "") -> int:
    """The same when a join phase began: then it is fixed, whoever comes or goes before its end. `first`: whose end
    began it, if that is held as a member still."""
    later = {first} | {
        join.member_id
        for join in (*current.joins, *current.refused)
        if join.is_new and not join.replaces and join.handled_at_ms > began + TWO_STAMPS_MS
    }
    there = (member.rebalance_ms for member in group.members.values() if member.member_id not in later)
    since = (over.member.rebalance_ms for over in group.ended.values() if over.ended_at_ms > began >= 0)
    return max((*there, *since), default=-1)


class PhaseEnds(NamedTuple):
    """When the phases of a group end by their timers, NEVER without one: asked for once for many members, because each
    answer looks at all of them."""

    synced_by_ms: float
    joined_by_ms: float

    @classmethod
    def of(cls, group: Group) -> Self:
        return cls(sync_deadline(group), join_deadline(group))


def how_ended(group: Group, member: Member, phases: PhaseEnds | None = None) -> DueEnd:
    """The end of a silent member that is gone: by its session, or by a timer of a phase before that."""
    phases = phases or PhaseEnds.of(group)
    if group.state in (GroupState.COMPLETING, GroupState.STABLE):
        unsynced_since = is_unsynced(group, member) and member.seen_joining
        phase_at, why = phases.synced_by_ms if unsynced_since else NEVER, "sync_timeout"
        if phase_at < group.steady_at_ms - LATE_MS:
            phase_at = NEVER  # others were answered as in a Stable group long after it
    else:
        phase_at, why = NEVER if member.instance_id else phases.joined_by_ms, "rebalance_timeout"
    if 0 <= phase_at <= member.deadline:
        return DueEnd(fired_from(group, phase_at), member.member_id, why)
    return DueEnd(fired_from(group, member.deadline_from), member.member_id, "session_expired")


def due_between(group: Group, cause: Cause) -> tuple[float, float]:
    """From when to when the session may have been over that a rebalance is said to have been begun by; twice the
    instant of the cause where that is not held."""
    member = group.members.get(cause.member_id)
    if member is not None and member.renewed_before_join_at_ms >= 0 and member.session_ms >= 0:
        due = member.renewed_before_join_at_ms + member.session_ms
        return member.over_from(due), due
    over = group.ended.get(cause.member_id)
    if over is not None and over.member.deadline >= 0:
        due_from, due = over.member.deadline_from, over.member.deadline
        return min(due_from, cause.at), min(due, cause.at + due - due_from)
    return cause.at, cause.at


def in_no_order(first: tuple[float, float], second: tuple[float, float]) -> bool:
    """Whether stamps that are cut to 1 ms do not show which of two sessions was over first."""
    return first[0] <= second[1] + TWO_STAMPS_MS and second[0] <= first[1] + TWO_STAMPS_MS


def all_ends(group: Group) -> list[DueEnd]:
    """The ends of all members, the first first, if nobody of them was heard any more. With the first end a Stable or
    Completing group begins a join phase, and with that the time of those who are left to rejoin: the highest rebalance
    timeout among them."""
    phases = PhaseEnds.of(group)
    ends = sorted(
        how_ended(group, one, phases)._replace(tied=is_tied(group, one, phases)) for one in group.members.values()
    )
    if group.state == GroupState.PREPARING or not ends:
        return ends
    began = ends[0].at_ms
    if began < 0:  # of one that was never heard: when that join phase began is not known, and so not when it was over
        return [end if group.members[end.member_id].instance_id else end._replace(tied=True) for end in ends]
    left = [group.members[end.member_id] for end in ends if end.at_ms > began]
    longest = max((member.rebalance_ms for member in left), default=-1)
    if longest <= 0:
        return ends
    over_at, found = began + longest, []
    for end in ends:
        waited_for = end.at_ms > began and not group.members[end.member_id].instance_id
        tied = waited_for and near(over_at, end.at_ms)
        if waited_for and over_at < end.at_ms:
            found.append(DueEnd(over_at, end.member_id, "rebalance_timeout", tied))
        else:
            found.append(end._replace(tied=end.tied or tied))
    return sorted(found)


def is_tied(group: Group, member: Member, phases: PhaseEnds | None = None) -> bool:
    """Whether two timers that end a member are due so near each other that either may have fired first."""
    phases = phases or PhaseEnds.of(group)
    end = how_ended(group, member, phases)
    at = end.at_ms
    if end.cause == "session_expired":
        at = NEVER if member.instance_id else phases.joined_by_ms
    return at >= 0 and near(at, member.deadline)


def is_deserted(group: Group, at: float = inf) -> bool:
    """Whether nobody of the group was heard in time: every member that is left is overdue, and no id can be used that
    was handed out by an instant."""
    nobody_known = group.state in (GroupState.EMPTY, GroupState.DEAD, GroupState.UNKNOWN)
    if not group.membership_complete or group.is_undone or nobody_known:
        return False
    if any(one.handed_out_at_ms <= at + TWO_STAMPS_MS for one in group.pending.values()):
        return False
    # The latest first: who joined first is mostly due first, and one who is not due is enough.
    return all(member.overdue and member.deadline >= 0 for member in reversed(group.members.values()))


def may_be_stored(group: Group) -> bool:
    """Whether the assignment of a leader whose SyncGroup was never answered may wait to be stored: nobody who waits in
    SyncGroup is evicted."""
    leader = group.members.get(group.leader)
    return group.state == GroupState.COMPLETING and leader is not None and is_unsynced(group, leader)


def delayed_to(group: Group) -> float:
    """Until when a join phase that began out of Empty may go on although nobody is left: its delay
    (`group.initial.rebalance.delay.ms`), which no leave ends, is extended up to the rebalance timeout at most. NEVER
    where it began otherwise. Source: `maybeCompleteJoinPhase`."""
    current = group.rebalance
    if group.state != GroupState.PREPARING or current is None or current.joined_at_ms >= 0:
        return NEVER
    waited = [join.handled_at_ms for join in (*current.joins, *current.refused)]
    told_from = current.told_from if current.told_start >= 0 else group.told_state
    return min(waited) + longest_unseen_ms(group) if waited and told_from == GroupState.EMPTY else NEVER


def may_wait_in_full(group: Group, at: float) -> bool:
    """Whether whoever is left may wait in a JoinGroup at an instant although nobody is left to be waited for: a full
    group refused the last one, and only the end of the phase lets them in."""
    longest = longest_unseen_ms(group)
    began_by = group.rejected_at_ms
    return began_by > group.steady_at_ms and (longest <= 0 or at < began_by + longest + LATE_MS)


def join_deadline(group: Group) -> float:
    """When the coordinator drops dynamic members that have not rejoined; NEVER outside of a join phase."""
    current = group.rebalance
    if current is None or group.state != GroupState.PREPARING or current.started_at_ms < 0 or longest_ms(group) <= 0:
        return NEVER
    return current.started_at_ms + longest_when_begun_ms(group, current, current.started_at_ms)


def longest_unseen_ms(group: Group) -> int:
    """The same if ids that were handed out, or clients that were members before, wait in a JoinGroup unseen."""
    return max(longest_ms(group), group.asked_ms, *(over.member.rebalance_ms for over in group.ended.values()), -1)
