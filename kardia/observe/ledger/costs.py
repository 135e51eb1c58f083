"""What a rebalance cost: how long partitions were read by nobody because of it. Arithmetic over counts, not over names.

Which partitions a member has is told by the leader's SyncGroup, or by the group's record. With an eager assignor a
member gives all of them up before it joins again; with a cooperative one it goes on with what it keeps, and what is to
move is read by nobody from one assignment to the next. Unknown where either is not known.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kardia.kafka.assignors import COOPERATIVE, EAGER
from kardia.observe.state.group import NEVER, Group, Rebalance


def take_assignment(group: Group, entries: Iterable[Any]) -> None:
    """The partitions of this generation: entries of [member id, [[topic, [partition, ...]], ...]]."""
    held = {str(entry[0]): sum(len(partitions) for _, partitions in entry[1]) for entry in entries}
    total = sum(held.values())
    moving = max(0, group.partitions - total) if group.protocol_name in COOPERATIVE else 0
    group.held, group.held_in, group.partitions = held, group.generation, total + moving
    if group.protocol_type not in ("", "consumer") or total == 0:
        forget_assignment(group)


def forget_assignment(group: Group) -> None:
    """Nobody holds a partition, or who holds which is not known any more."""
    group.held, group.held_in, group.partitions = {}, -1, 0


def partitions_stopped_ms(group: Group, current: Rebalance) -> float:
    """Partition-milliseconds without a reader, from the start to the assignment; NEVER where it is not known.

    `group` still holds the assignment of the generation before.
    """
    if current.assigned_at_ms < 0 or current.started_at_ms < 0:
        return NEVER
    if current.generation_before == 0:
        return 0.0  # nobody had read before
    if group.held_in != current.generation_before or group.held_in < 0:
        return NEVER
    rejoined = {join.asked_id: join.handled_at_ms for join in current.joins}
    lasted_ms = current.assigned_at_ms - current.started_at_ms
    left = [member_id for member_id in group.held if member_id not in rejoined]
    gone = sum(group.held[member_id] for member_id in left)
    unread_ms = sum(group.held[member_id] * _silent_ms(group, member_id, current.started_at_ms) for member_id in left)
    if current.protocol_name in COOPERATIVE:
        return unread_ms + (gone + group.partitions - sum(group.held.values())) * lasted_ms
    if current.protocol_name not in EAGER:
        return NEVER
    stopped_ms = unread_ms + gone * lasted_ms
    for member_id, count in group.held.items():
        if member_id in rejoined:
            stopped_ms += count * (current.assigned_at_ms - max(current.started_at_ms, rejoined[member_id]))
    return stopped_ms


def _silent_ms(group: Group, member_id: str, at: float) -> float:
    """For how long a member that was evicted had been silent before an instant: nobody read its partitions since it was
    last heard, or its client fetched."""
    over = group.ended.get(member_id)
    if over is None or over.cause != "session_expired":
        return 0.0
    heard_at_ms = max(over.member.last_heard_at_ms, over.member.fetched_at_ms)
    return max(0.0, at - heard_at_ms) if heard_at_ms >= 0 else 0.0
