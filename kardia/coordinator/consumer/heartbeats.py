"""ConsumerGroupHeartbeat: what is checked, and what is answered. Epochs and assignments change in `progress`.

Follows `GroupMetadataManager.consumerGroupHeartbeat` and what it calls.
"""

from __future__ import annotations

from dataclasses import replace

from kardia.coordinator.consumer.behaviour import ConsumerBehaviour
from kardia.coordinator.consumer.conversions import found_by_heartbeat
from kardia.coordinator.consumer.group import ConsumerGroup
from kardia.coordinator.consumer.leaves import leave
from kardia.coordinator.consumer.member import LEAVE, LEAVE_FOR_A_WHILE, Member
from kardia.coordinator.consumer.operations import Beat, BeatAnswer
from kardia.coordinator.consumer.progress import Arrival, progress, refuse_if_full
from kardia.coordinator.consumer.settings import ConsumerSettings
from kardia.coordinator.consumer.shard import Shard
from kardia.coordinator.errors import NotModelledError, RefusedError
from kardia.kafka.states import ErrorCode

_JOIN = 0
_CLIENT_MAKES_IDS = 1
"""The version of the request from which on the client makes up its member id."""


def heartbeat(shard: Shard, beat: Beat) -> None:
    """A heartbeat arrives."""
    invalid = _invalid(beat, shard.settings)
    if invalid and (shard.loaded or shard.behaviour.request_checked_before_ownership):
        shard.answers.append(BeatAnswer(beat.number, shard.now_ms, int(invalid)))
        return
    if not shard.loaded:
        shard.answers.append(BeatAnswer(beat.number, shard.now_ms, int(ErrorCode.NOT_COORDINATOR)))
        return
    try:
        leaves = beat.member_epoch in (LEAVE, LEAVE_FOR_A_WHILE)
        answer = leave(shard, beat) if leaves else _stay(shard, beat)
    except RefusedError as refused:
        answer = BeatAnswer(beat.number, shard.now_ms, int(refused.code))
    shard.answers.append(answer)


def _invalid(beat: Beat, settings: ConsumerSettings) -> ErrorCode | None:
    """What is wrong with the request itself."""
    needs_id = beat.version >= _CLIENT_MAKES_IDS or beat.member_epoch > 0 or beat.member_epoch == LEAVE
    if (needs_id and not beat.member_id.strip()) or not beat.group_id.strip():
        return ErrorCode.INVALID_REQUEST
    if any(one is not None and not one.strip() for one in (beat.instance_id, beat.rack_id)):
        return ErrorCode.INVALID_REQUEST
    if beat.member_epoch == _JOIN:
        if beat.rebalance_timeout_ms == -1 or beat.owned != () or (beat.names is None and beat.regex is None):
            return ErrorCode.INVALID_REQUEST
    elif beat.member_epoch < LEAVE_FOR_A_WHILE or (beat.member_epoch == LEAVE_FOR_A_WHILE and beat.instance_id is None):
        return ErrorCode.INVALID_REQUEST
    if beat.assignor is not None and beat.assignor not in settings.group_consumer_assignors:
        return ErrorCode.UNSUPPORTED_ASSIGNOR
    return None


def _stay(shard: Shard, beat: Beat) -> BeatAnswer:
    if beat.member_epoch != _JOIN and beat.group_id not in shard.groups:
        raise RefusedError(ErrorCode.GROUP_ID_NOT_FOUND)
    group, is_new = found_by_heartbeat(shard, beat.group_id)
    refuse_if_full(shard, group, beat.member_id, beat.instance_id)
    before, replaced = _who(shard, group, beat)
    after = progress(shard, Arrival(group, is_new, before, replaced, _merged(before, beat), beat.owned))
    shard.arm_session(beat.group_id, after.member_id)
    full = beat.rebalance_timeout_ms != -1 and (beat.names, beat.regex) != (None, None) and beat.owned is not None
    told = beat.member_epoch == _JOIN or full or set(after.assigned) != set(before.assigned)
    return BeatAnswer(
        beat.number,
        shard.now_ms,
        int(ErrorCode.NONE),
        after.member_id,
        after.epoch,
        shard.settings_of(beat.group_id).group_consumer_heartbeat_interval_ms,
        tuple(sorted(after.assigned)) if told else None,
    )


def _who(shard: Shard, group: ConsumerGroup, beat: Beat) -> tuple[Member, str | None]:
    """The member that sends the heartbeat as it was before, and the id of the one it takes the place of."""
    member_id = beat.member_id or beat.new_id
    joins = beat.member_epoch == _JOIN
    if beat.instance_id is None:
        member = group.members.get(member_id)
        if member is None:
            if not joins:
                raise RefusedError(ErrorCode.UNKNOWN_MEMBER_ID)
            member = Member(member_id)
        _refuse_epoch(shard.behaviour, member, beat)
        return member, None
    holder = group.holder(beat.instance_id)
    if not joins:
        if holder is None:
            raise RefusedError(ErrorCode.UNKNOWN_MEMBER_ID)
        if holder.member_id != member_id:
            raise RefusedError(ErrorCode.FENCED_INSTANCE_ID)
        _refuse_epoch(shard.behaviour, holder, beat)
        return holder, None
    if holder is None:
        return group.members.get(member_id) or Member(member_id), None
    if holder.epoch != LEAVE_FOR_A_WHILE and holder.classic is None:
        raise RefusedError(ErrorCode.UNRELEASED_INSTANCE_ID)
    if member_id != holder.member_id and member_id in group.members:
        # Kafka then keeps or replaces its target by what the member had before.
        raise NotModelledError(f"group {group.group_id!r}: a member takes the place of another one")
    return replace(holder, member_id=member_id, epoch=0, previous_epoch=0), holder.member_id


def _refuse_epoch(behaviour: ConsumerBehaviour, member: Member, beat: Beat) -> None:
    epoch = beat.member_epoch
    if epoch == member.epoch or (epoch == _JOIN and behaviour.rejoins_with_epoch_zero):
        return
    lost = epoch < member.epoch and epoch == member.previous_epoch and beat.owned is not None
    if not lost or not all(one in member.assigned for one in beat.owned or ()):
        raise RefusedError(ErrorCode.FENCED_MEMBER_EPOCH)


def _merged(member: Member, beat: Beat) -> Member:
    """The member with what the request changes of it."""
    return replace(
        member,
        instance_id=beat.instance_id if beat.instance_id is not None else member.instance_id,
        rack_id=beat.rack_id if beat.rack_id is not None else member.rack_id,
        rebalance_timeout_ms=(
            beat.rebalance_timeout_ms if beat.rebalance_timeout_ms != -1 else member.rebalance_timeout_ms
        ),
        client_id=beat.client_id,
        client_host=beat.client_host,
        names=frozenset(beat.names) if beat.names is not None else member.names,
        regex=beat.regex if beat.regex is not None else member.regex,
        assignor=beat.assignor if beat.assignor is not None else member.assignor,
        classic=None,
    )
