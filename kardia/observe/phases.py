"""The phases of a rebalance as timers see them: who has not synced, until when the broker waits, when to look again.

Arithmetic and scheduling only; what is concluded when a timer is due is in `timeouts`. Sources: `prepareRebalance`,
`schedulePendingSync` (both: the highest rebalance timeout of the members, fixed when the phase begins).
"""

from __future__ import annotations

from kardia.model.states import GroupState
from kardia.observe.deadlines import GRACE_MS
from kardia.observe.facts import Facts
from kardia.observe.group import NEVER, Group, Member, Rebalance

STAMP_MS = 2.0
"""Two instants computed from stamps cut to 1 ms may be off by that much; a timer never fires before its deadline."""


def in_burst(observer: Facts, group: Group, at: float) -> bool:
    """Whether the answers of a join burst may still be coming in."""
    current = group.rebalance
    return (
        current is not None
        and not current.settled
        and current.joined_at >= 0
        and at <= current.joined_at + observer.settings.burst_ms
    )


def unsynced(group: Group) -> list[Member]:
    """Members of this generation whose SyncGroup was never answered, by id. A waiting one is not seen either."""
    members = sorted(group.members.values(), key=lambda item: item.member_id)
    return [member for member in members if member.synced_generation != group.generation]


def sync_deadline(group: Group) -> float:
    """When the coordinator removes who has not sent SyncGroup: the highest rebalance timeout after the join phase."""
    current = group.rebalance
    longest = max((member.rebalance_ms for member in group.members.values()), default=-1)
    if current is None or current.joined_at < 0 or current.generation_after != group.generation or longest <= 0:
        return NEVER
    return current.joined_at + longest


def is_deserted(group: Group) -> bool:
    """Whether nobody of the group was heard in time: every member that is left is overdue, and no id can be used."""
    if not group.whole or group.pending or group.state in (GroupState.EMPTY, GroupState.DEAD, GroupState.UNKNOWN):
        return False
    return all(member.overdue and member.deadline >= 0 for member in group.members.values())


def watch_deserted(observer: Facts, group: Group, at: float) -> None:
    """Look again a moment after the last member ended or was due: if anybody waits in a JoinGroup, it is answered now,
    because nobody is left to wait for. No answer shows that nobody waits, and that the group is Empty since."""
    if is_deserted(group):
        group.deserted_at = max([at, *(member.deadline for member in group.members.values())])
        observer.schedule(group, group.deserted_at + observer.settings.settle_ms, "deserted", str(group.generation))


def watch_overdue(observer: Facts, group: Group, member: Member) -> None:
    """Look again when a JoinGroup in which an overdue member of a Stable group may wait would have been answered."""
    longest = max(other.rebalance_ms for other in group.members.values())
    if group.state == GroupState.STABLE and longest > 0:
        observer.schedule(group, member.deadline + longest + GRACE_MS, "overdue", member.member_id)


def watch_join_timer(observer: Facts, group: Group, current: Rebalance) -> None:
    """Look again when the rebalance timeout is over: whoever waits is let in then, and if nobody waits, nobody is."""
    longest = max((member.rebalance_ms for member in group.members.values()), default=-1)
    if current.started_at >= 0 and longest > 0:
        observer.schedule(group, current.started_at + longest + GRACE_MS, "drop", str(current.generation_before))
