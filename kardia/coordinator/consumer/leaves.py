"""How members go: they leave, for good or for a while, or are fenced by a timer.

Follows `consumerGroupLeave`, `consumerGroupFenceMembers` and the timers' operations.
"""

from __future__ import annotations

from dataclasses import replace

from kardia.coordinator.consumer.conversions import downgrade, downgraded, may_downgrade
from kardia.coordinator.consumer.group import ConsumerGroup
from kardia.coordinator.consumer.member import LEAVE_FOR_A_WHILE, Member
from kardia.coordinator.consumer.operations import Beat, BeatAnswer
from kardia.coordinator.consumer.shard import JOIN, REBALANCE, SESSION, SYNC, Shard
from kardia.coordinator.errors import RefusedError
from kardia.coordinator.timers import Timer
from kardia.kafka.states import ErrorCode

_FIRED = {SESSION: "session_expired", REBALANCE: "rebalance_timeout", JOIN: "join_timeout", SYNC: "sync_timeout"}
"""What has happened when a timer of a member fences it."""


_AGAIN_MS = 500
"""After what time a timer fires again whose operation threw."""


def leave(shard: Shard, beat: Beat) -> BeatAnswer:
    """A heartbeat with epoch -1 or -2."""
    group = shard.groups.get(beat.group_id)
    if group is None:
        raise RefusedError(ErrorCode.GROUP_ID_NOT_FOUND)
    if beat.instance_id is None:
        member = group.members.get(beat.member_id)
        if member is None:
            raise RefusedError(ErrorCode.UNKNOWN_MEMBER_ID)
    else:
        member = group.holder(beat.instance_id)
        if member is None:
            raise RefusedError(ErrorCode.UNKNOWN_MEMBER_ID)
        if member.member_id != beat.member_id:
            raise RefusedError(ErrorCode.FENCED_INSTANCE_ID)
    if beat.member_epoch == LEAVE_FOR_A_WHILE:
        _leave_for_a_while(shard, group, member)
    else:
        fence(shard, group, [member], "left")
    return BeatAnswer(beat.number, shard.now_ms, int(ErrorCode.NONE), beat.member_id, beat.member_epoch)


def _leave_for_a_while(shard: Shard, group: ConsumerGroup, member: Member) -> None:
    """The place of a static member is kept for it. No timer is touched: the session that runs decides for how long."""
    assigned = dict.fromkeys(member.assigned, 0) if shard.behaviour.partitions_have_epochs else member.assigned
    group.put(replace(member, epoch=LEAVE_FOR_A_WHILE, assigned=assigned, pending={}))
    shard.happen(group.group_id, "left_for_a_while", member.member_id)


def fence(shard: Shard, group: ConsumerGroup, members: list[Member], why: str) -> None:
    """These are no members any more; what they held is free, and the group needs a new target: one epoch for all. Or
    it becomes a classic group, in the same epoch. Raises RefusedError where Kafka throws."""
    gone = {member.member_id for member in members}
    remaining = [member for member_id, member in group.members.items() if member_id not in gone]
    classic = downgraded(shard, group, remaining, None) if may_downgrade(shard, remaining) else None
    for member in members:
        shard.happen(group.group_id, why, member.member_id)
    if classic is not None:
        downgrade(shard, classic, rebalance=True)
        return
    for member in members:
        group.remove(member.member_id)
    subscribed = group.expressions(group.members.values())
    for member in members:
        if member.regex and not subscribed[member.regex]:
            group.regexes.pop(member.regex, None)
        shard.cancel(group.group_id, member.member_id, SESSION, REBALANCE, JOIN, SYNC)
    counts = group.subscriptions(group.members.values())
    group.metadata = {name: shard.topics[name] for name in counts if name in shard.topics}
    group.group_epoch += 1
    if not group.members and shard.behaviour.emptying_assigns:
        group.assignment_epoch, group.assigned_at_ms = group.group_epoch, 0
    shard.happen(group.group_id, "epoch", detail=str(group.group_epoch))


def timer_fired(shard: Shard, timer: Timer) -> None:
    """A timer of a member is due."""
    kind, group_id, member_id = timer.key
    group = shard.groups.get(group_id)
    member = None if group is None else group.members.get(member_id)
    captured = shard.rebalance_epochs.pop(timer.key, None)
    if group is None or member is None or (kind == REBALANCE and member.epoch != captured):
        return
    try:
        fence(shard, group, [member], _FIRED[kind])
    except RefusedError:
        # What throws is tried again.
        shard.timers.arm(timer.key, shard.now_ms, _AGAIN_MS)
        if captured is not None:
            shard.rebalance_epochs[timer.key] = captured
