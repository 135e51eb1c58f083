"""Who sends a heartbeat: a member as it was, a new one, or a static one that comes back; and whether it may.

Follows `throwIfStreamsGroupIsFull`, `getOrMaybeCreateDynamicStreamsGroupMember`,
`getOrMaybeCreateStaticStreamsGroupMember` and `throwIfStreamsGroupMemberEpochIsInvalid`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from kardia.coordinator.errors import RefusedError
from kardia.coordinator.streams.group import Member, StreamsGroup
from kardia.coordinator.streams.operations import StreamsBeat
from kardia.coordinator.streams.requests import JOIN, LEAVE_FOR_A_WHILE
from kardia.coordinator.streams.shard import Shard
from kardia.kafka.states import ErrorCode


class Sender(NamedTuple):
    """The member as it was, or as it starts. `replaces`: whose place it takes, with all that this one has."""

    member: Member
    replaces: Member | None = None


def sender_of(shard: Shard, group: StreamsGroup, beat: StreamsBeat) -> Sender:
    """Find the member that a heartbeat is from. Raises RefusedError."""
    joins = beat.member_epoch == JOIN
    if joins:
        _refuse_if_full(shard, group, beat)
    if beat.instance_id is None:
        member = group.members.get(beat.member_id)
        if member is None:
            if not joins:
                raise RefusedError(ErrorCode.UNKNOWN_MEMBER_ID)
            member = Member(beat.member_id)
        _refuse_epoch(shard, member, beat)
        return Sender(member)
    _relabel(group, beat)
    if not joins:
        member = static_member(group, beat)
        _refuse_epoch(shard, member, beat)
        return Sender(member)
    existing = group.static_member(beat.instance_id)
    if existing is None:
        return Sender(group.members.get(beat.member_id, Member(beat.member_id)))
    if existing.epoch != LEAVE_FOR_A_WHILE:
        raise RefusedError(ErrorCode.UNRELEASED_INSTANCE_ID)
    return Sender(replace(existing, member_id=beat.member_id, epoch=0, previous_epoch=0), existing)


def static_member(group: StreamsGroup, beat: StreamsBeat) -> Member:
    """The static member that a request speaks for. Raises RefusedError when it is another's instance id."""
    member = group.static_member(beat.instance_id or "")
    if member is None:
        raise RefusedError(ErrorCode.UNKNOWN_MEMBER_ID)
    if member.member_id != beat.member_id:
        raise RefusedError(ErrorCode.FENCED_INSTANCE_ID)
    return member


def _refuse_if_full(shard: Shard, group: StreamsGroup, beat: StreamsBeat) -> None:
    if len(group.members) < shard.settings.group_streams_max_size:
        return
    is_known = beat.member_id in group.members or beat.instance_id in group.instances
    if shard.behaviour.full_for_everybody or not is_known:
        raise RefusedError(ErrorCode.GROUP_MAX_SIZE_REACHED)


def _refuse_epoch(shard: Shard, member: Member, beat: StreamsBeat) -> None:
    epoch = beat.member_epoch
    if epoch == member.epoch or (epoch == JOIN and shard.behaviour.rejoins_with_epoch_zero):
        return
    # The answer with the newer epoch may have been lost: then it owns nothing that it was not given.
    if epoch < member.epoch and epoch == member.previous_epoch:
        has = member.assigned
        owned = ((beat.active, has.active), (beat.standby, has.standby), (beat.warmup, has.warmup))
        if all(said is not None and all(task in part for task in said) for said, part in owned):
            return
    raise RefusedError(ErrorCode.FENCED_MEMBER_EPOCH)


def _relabel(group: StreamsGroup, beat: StreamsBeat) -> None:
    """What the member with this instance id is led to in this epoch goes to whoever speaks for it: before it is known
    whether that one may, so that one who is refused takes it away all the same."""
    existing = group.static_member(beat.instance_id or "")
    epoch, refined = group.refined
    if existing is None or existing.member_id == beat.member_id or existing.member_id not in refined:
        return
    others = {one: tasks for one, tasks in refined.items() if one != existing.member_id}
    group.refined = epoch, others | {beat.member_id: refined[existing.member_id]}
