"""ShareGroupHeartbeat: checks, epochs, target, the answer; and how members leave or are fenced.

One step brings a member to its target: nobody waits for anybody. Follows `GroupMetadataManager.shareGroupHeartbeat`,
`ShareGroupAssignmentBuilder`, `shareGroupLeave` and `shareGroupFenceMember`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from kardia.coordinator.consumer.operations import BeatAnswer, Partition, Topic
from kardia.coordinator.errors import RefusedError
from kardia.coordinator.share.assignor import Subscriber, Target, broken_law
from kardia.coordinator.share.group import Member, ShareGroup
from kardia.coordinator.share.initialization import ask_for_states, is_pending
from kardia.coordinator.share.operations import NONE_OF, ShareBeat
from kardia.coordinator.share.shard import SESSION, Shard
from kardia.coordinator.timers import Timer
from kardia.kafka.states import ErrorCode

_JOIN, _LEAVE = 0, -1


def heartbeat(shard: Shard, beat: ShareBeat) -> None:
    """A heartbeat arrives."""
    code = ErrorCode.NONE
    if _is_invalid(beat) and (shard.loaded or shard.behaviour.request_checked_before_ownership):
        code = ErrorCode.INVALID_REQUEST
    elif not shard.loaded:
        code = ErrorCode.NOT_COORDINATOR
    if code:
        shard.answers.append(BeatAnswer(beat.number, shard.now_ms, int(code)))
        return
    try:
        answer = _leave(shard, beat) if beat.member_epoch == _LEAVE else _stay(shard, beat)
    except RefusedError as refused:
        answer = BeatAnswer(beat.number, shard.now_ms, int(refused.code))
    shard.answers.append(answer)


def _is_invalid(beat: ShareBeat) -> bool:
    if (
        not beat.member_id.strip()
        or not beat.group_id.strip()
        or (beat.rack_id is not None and not beat.rack_id.strip())
    ):
        return True
    return beat.member_epoch < _LEAVE or (beat.member_epoch == _JOIN and not beat.names)


def _stay(shard: Shard, beat: ShareBeat) -> BeatAnswer:
    behaviour = shard.behaviour
    joins = beat.member_epoch == _JOIN
    group = shard.groups.get(beat.group_id)
    is_new = group is None
    if group is None:
        if not joins:
            missing = behaviour.missing_group_is_an_error
            raise RefusedError(ErrorCode.UNKNOWN_SERVER_ERROR if missing else ErrorCode.GROUP_ID_NOT_FOUND)
        first = int(behaviour.groups_start_at_one)
        group = ShareGroup(beat.group_id, first, first)
    before = _who(shard, group, beat)
    # Kafka keeps a new member from here on, whatever follows.
    group.members.setdefault(before.member_id, before)
    updated = replace(
        before,
        rack_id=beat.rack_id if beat.rack_id is not None else before.rack_id,
        client_id=beat.client_id,
        client_host=beat.client_host,
        names=frozenset(beat.names) if beat.names is not None else before.names,
    )
    bumped, names, metadata = _look(shard, group, before, updated)
    target, epoch = None, group.group_epoch + bumped
    if epoch > group.assignment_epoch and _may_assign(shard, group):
        target = _target(shard, group, updated)
    # Nothing has changed up to here but that topics were looked at.
    if bumped:
        group.group_epoch, group.metadata = epoch, metadata
        shard.happen(group.group_id, "epoch", detail=str(epoch))
    group.members[updated.member_id] = updated
    if is_new:
        shard.groups[group.group_id] = group
        group.refreshed, group.refreshed_epoch = False, 0
        shard.happen(group.group_id, "created")
    if target is not None:
        group.target, group.assignment_epoch = target, epoch
        group.assigned_at_ms = shard.now_ms if behaviour.waits_for_assignment_interval else 0
        shard.happen(group.group_id, "assigned", detail=str(epoch))
    after = _reconciled(shard, group, updated, bumped)
    group.members[after.member_id] = after
    shard.arm_session(group.group_id, after.member_id)
    ask_for_states(shard, group, names)
    carries = joins or (behaviour.names_call_for_the_assignment and beat.names is not None)
    return BeatAnswer(
        beat.number,
        shard.now_ms,
        int(ErrorCode.NONE),
        after.member_id,
        after.epoch,
        shard.settings_of(group.group_id).group_share_heartbeat_interval_ms,
        _shown(after.assigned) if carries or after.assigned != before.assigned else None,
    )


def _shown(assigned: frozenset[Partition]) -> tuple[Partition, ...]:
    return tuple(sorted(one for one in assigned if one[1] != NONE_OF))


def _who(shard: Shard, group: ShareGroup, beat: ShareBeat) -> Member:
    """The member as it was. Raises RefusedError."""
    member = group.members.get(beat.member_id)
    if member is None and len(group.members) >= shard.settings.group_share_max_size:
        raise RefusedError(ErrorCode.GROUP_MAX_SIZE_REACHED)
    if member is None:
        if beat.member_epoch != _JOIN:
            raise RefusedError(ErrorCode.UNKNOWN_MEMBER_ID)
        return Member(beat.member_id)
    epoch = beat.member_epoch
    rejoins = epoch == _JOIN and shard.behaviour.rejoins_with_epoch_zero
    if epoch != member.epoch and not rejoins and (epoch > member.epoch or epoch != member.previous_epoch):
        raise RefusedError(ErrorCode.FENCED_MEMBER_EPOCH)
    return member


def _look(
    shard: Shard, group: ShareGroup, before: Member, updated: Member
) -> tuple[bool, list[str], Mapping[str, Topic]]:
    """Whether something calls for a new epoch, the names subscribed to, and the topics of these that there are."""
    bump = updated.names != before.names
    if not shard.behaviour.awaits_after_the_target or group.assignment_epoch >= group.group_epoch:
        bump = bump or is_pending(shard, group)
    if not bump and group.refreshed and group.group_epoch >= group.refreshed_epoch:
        return False, group.names(group.members.values()), group.metadata
    names = group.names(group.with_member(updated))
    metadata = {name: shard.topics[name] for name in names if name in shard.topics}
    bump = bump or metadata != group.metadata
    group.refreshed, group.refreshed_epoch = True, group.group_epoch + bump
    return bump, names, metadata


def _may_assign(shard: Shard, group: ShareGroup) -> bool:
    interval_ms = shard.settings.group_share_assignment_interval_ms
    if not shard.behaviour.waits_for_assignment_interval or not group.assigned_at_ms or not interval_ms:
        return True
    return shard.now_ms >= group.assigned_at_ms + interval_ms


def _target(shard: Shard, group: ShareGroup, updated: Member) -> Target:
    """The new target. Raises RefusedError where the assignor gives up."""
    subscribers = []
    for one in group.with_member(updated):
        open_to: set[Partition] = set()
        for topic in (shard.topics[name] for name in one.names if name in shard.topics):
            numbers: frozenset[int] = frozenset(range(topic.partitions))
            if shard.behaviour.partitions_are_initialized:
                initialized = group.states.initialized if group.states is not None else {}
                numbers &= initialized.get(topic.topic_id, frozenset())
            open_to |= {(topic.topic_id, number) for number in numbers}
        had = group.target.get(one.member_id, frozenset())
        subscribers.append(Subscriber(one.member_id, frozenset(open_to), had))
    target = shard.choose.share(group.group_id, subscribers)
    if target is None:
        raise RefusedError(ErrorCode.UNKNOWN_SERVER_ERROR)
    broken = broken_law(subscribers, target, shard.behaviour.every_partition_is_given)
    if broken:
        raise ValueError(f"group {group.group_id!r}: {broken}; expected what the assignor of share groups does")
    return {one.member_id: target.get(one.member_id, frozenset()) for one in subscribers}


def _reconciled(shard: Shard, group: ShareGroup, member: Member, bumped: bool) -> Member:
    """The member with its part of the target."""
    target = group.target.get(member.member_id, frozenset())
    if shard.behaviour.assigned_must_be_subscribed:
        subscribed = {shard.topics[name].topic_id for name in member.names if name in shard.topics}
        target = frozenset(one for one in target if one[0] in subscribed)
    if member.epoch != group.assignment_epoch:
        return replace(member, epoch=group.assignment_epoch, previous_epoch=member.epoch, assigned=target)
    if bumped and shard.behaviour.assigned_must_be_subscribed:
        return replace(member, assigned=target)
    return member


def _leave(shard: Shard, beat: ShareBeat) -> BeatAnswer:
    group = shard.groups.get(beat.group_id)
    if group is None:
        raise RefusedError(ErrorCode.GROUP_ID_NOT_FOUND)
    if beat.member_id not in group.members:
        raise RefusedError(ErrorCode.UNKNOWN_MEMBER_ID)
    shard.happen(group.group_id, "left", beat.member_id)
    _fence(shard, group, beat.member_id)
    return BeatAnswer(beat.number, shard.now_ms, int(ErrorCode.NONE), beat.member_id, beat.member_epoch)


def _fence(shard: Shard, group: ShareGroup, member_id: str) -> None:
    """It is no member any more, and the group needs a new target."""
    del group.members[member_id]
    group.target.pop(member_id, None)
    names = group.names(group.members.values())
    group.metadata = {name: shard.topics[name] for name in names if name in shard.topics}
    group.group_epoch += 1
    if not group.members and shard.behaviour.emptying_assigns:
        group.assignment_epoch, group.assigned_at_ms = group.group_epoch, 0
    shard.timers.cancel((SESSION, group.group_id, member_id))
    shard.happen(group.group_id, "epoch", detail=str(group.group_epoch))


def session_fired(shard: Shard, timer: Timer) -> None:
    """A session is over."""
    _, group_id, member_id = timer.key
    group = shard.groups.get(group_id)
    if group is not None and member_id in group.members:
        shard.happen(group_id, "session_expired", member_id)
        _fence(shard, group, member_id)
