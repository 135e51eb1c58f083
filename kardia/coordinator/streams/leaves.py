"""How members go: they leave, or their session or the time to give tasks up is over.

Follows `streamsGroupLeave`, `streamsGroupStaticMemberGroupLeave`, and `streamsGroupFenceMember` with the timers that
call it.
"""

from __future__ import annotations

from dataclasses import replace

from kardia.coordinator.errors import RefusedError
from kardia.coordinator.streams.group import NOTHING_HELD, Held, StreamsGroup
from kardia.coordinator.streams.membership import static_member
from kardia.coordinator.streams.operations import StreamsAnswer, StreamsBeat
from kardia.coordinator.streams.requests import LEAVE_FOR_A_WHILE
from kardia.coordinator.streams.shard import REBALANCE, SESSION, Shard
from kardia.coordinator.timers import Timer
from kardia.kafka.states import ErrorCode


def leave(shard: Shard, beat: StreamsBeat) -> StreamsAnswer:
    """A member leaves, a static one perhaps for a while. Raises RefusedError."""
    group = shard.groups.get(beat.group_id)
    if group is None:
        raise RefusedError(ErrorCode.GROUP_ID_NOT_FOUND)
    if beat.shutdown:
        # Kafka does not look first whether it is a member.
        group.shutdown_by = group.shutdown_by or beat.member_id
    if beat.instance_id is not None:
        member_id = static_member(group, beat).member_id
    elif beat.member_id in group.members:
        member_id = beat.member_id
    else:
        raise RefusedError(ErrorCode.UNKNOWN_MEMBER_ID)
    if beat.member_epoch == LEAVE_FOR_A_WHILE:
        _leave_for_a_while(shard, group, member_id)
    else:
        shard.happen(group.group_id, "left", member_id)
        fence(shard, group, member_id)
    statuses = () if shard.behaviour.statuses_are_always_listed else None
    return StreamsAnswer(
        beat.number, shard.now_ms, int(ErrorCode.NONE), beat.member_id, beat.member_epoch, statuses=statuses
    )


def _leave_for_a_while(shard: Shard, group: StreamsGroup, member_id: str) -> None:
    """What it has stays with it; no timer is touched, so that its session runs from the last heartbeat."""
    member = group.members[member_id]
    kept = Held(dict.fromkeys(member.assigned.active, 0), member.assigned.standby, member.assigned.warmup)
    group.put(replace(member, epoch=LEAVE_FOR_A_WHILE, assigned=kept, pending=NOTHING_HELD))
    shard.happen(group.group_id, "left_for_a_while", member_id)


def fence(shard: Shard, group: StreamsGroup, member_id: str) -> None:
    """It is no member any more, and the group needs a new target."""
    group.remove(member_id)
    group.group_epoch += 1
    if shard.behaviour.fencing_forgets_the_topics:
        group.metadata = {}
    if not group.members and shard.behaviour.emptying_assigns:
        group.assignment_epoch, group.assigned_at_ms = group.group_epoch, 0
    shard.cancel(group.group_id, member_id, SESSION, REBALANCE)
    shard.happen(group.group_id, "epoch", detail=str(group.group_epoch))


def session_fired(shard: Shard, timer: Timer) -> None:
    """A session is over."""
    _, group_id, member_id = timer.key
    group = shard.groups.get(group_id)
    if group is not None and member_id in group.members:
        shard.happen(group_id, "session_expired", member_id)
        fence(shard, group, member_id)


def rebalance_fired(shard: Shard, timer: Timer) -> None:
    """The time to give tasks up is over: who is still in that epoch goes."""
    _, group_id, member_id = timer.key
    group = shard.groups.get(group_id)
    member = group.members.get(member_id) if group is not None else None
    if group is not None and member is not None and member.epoch == shard.rebalance_epochs[timer.key]:
        shard.happen(group_id, "rebalance_timeout", member_id)
        fence(shard, group, member_id)
