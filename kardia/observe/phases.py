"""The phases of a rebalance as timers see them: who has not synced, until when the broker waits, when to look again.

Arithmetic and scheduling only; what is concluded when a timer is due is in `timeouts`. Sources: `prepareRebalance`,
`schedulePendingSync` (both: the highest rebalance timeout of the members, fixed when the phase begins).
"""

from __future__ import annotations

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
    if current is None or current.joined_at < 0 or current.generation_after != group.generation:
        return NEVER
    within_ms = current.sync_within_ms if current.settled else longest_ms(group)
    return current.joined_at + within_ms if within_ms > 0 else NEVER


def longest_ms(group: Group) -> int:
    """Highest rebalance timeout of the members, -1 where none is known."""
    return max((member.rebalance_ms for member in group.members.values()), default=-1)


def watch_join_timer(observer: Facts, group: Group, current: Rebalance) -> None:
    """Look again when the rebalance timeout is over: whoever waits is let in then, and if nobody waits, nobody is."""
    longest = longest_ms(group)
    if current.started_at >= 0 and longest > 0:
        observer.schedule(group, current.started_at + longest + GRACE_MS, "drop", str(current.generation_before))


def watch_sync_timer(observer: Facts, group: Group) -> None:
    """Look again when the time for SyncGroup is over."""
    due = sync_deadline(group)
    if due >= 0:
        observer.schedule(group, due + GRACE_MS, "unsynced", str(group.generation))
