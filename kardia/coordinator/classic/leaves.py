"""LeaveGroup: members go, one or several, by their own wish or by an administrator's.

An administrator names the instance id and no member id. Follows `handleLeaveGroup` (Scala),
`classicGroupLeaveToClassicGroup` (Java).
"""

from __future__ import annotations

from kardia.coordinator.classic.group import Group
from kardia.coordinator.classic.operations import Answer, Leave, Leaving
from kardia.coordinator.classic.rebalances import REBALANCED, prepare, try_complete
from kardia.coordinator.classic.shard import Shard
from kardia.kafka.states import ErrorCode, GroupState

MEMBERS_FROM = 3
"""First LeaveGroup version that lists members."""


def leave(shard: Shard, request: Leave) -> None:
    """Handle a LeaveGroup; answered at once, each entry with its own error, versions 0 to 2 with that of their one."""
    group = shard.groups.get(request.group_id)
    if not request.group_id:
        shard.answer(request.number, ErrorCode.INVALID_GROUP_ID)
        return
    if not shard.loaded:
        shard.answer(request.number, ErrorCode.NOT_COORDINATOR)
        return
    errors = []
    for one in request.members:
        error = ErrorCode.UNKNOWN_MEMBER_ID if group is None else _leave_one(shard, group, one)
        if error is ErrorCode.UNKNOWN_SERVER_ERROR:  # Kafka throws: entries before this one have left, the rest stay.
            shard.answer(request.number, error)
            return
        errors.append(error)
    if group is not None and shard.behaviour.leaves_in_one_go and ErrorCode.NONE in errors:
        _rebalance_once(shard, group)
    if request.version < MEMBERS_FROM:
        shard.answer(request.number, errors[0])
        return
    left = tuple(
        (one.member_id, one.group_instance_id, int(error)) for one, error in zip(request.members, errors, strict=True)
    )
    shard.answers.append(Answer(request.number, shard.now_ms, int(ErrorCode.NONE), left=left))


def _leave_one(shard: Shard, group: Group, one: Leaving) -> ErrorCode:
    behaviour = shard.behaviour
    instance_id = one.group_instance_id if behaviour.static_members else None
    member_id = one.member_id
    if not member_id:
        holder = None if instance_id is None else group.instances.get(instance_id)
        if holder is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        member_id = holder
    elif member_id in group.pending:
        if instance_id is not None and behaviour.pending_leave_refuses_instance:
            held = instance_id in group.instances
            return ErrorCode.FENCED_INSTANCE_ID if held else ErrorCode.UNKNOWN_SERVER_ERROR
        shard.forget(group, member_id)
        shard.happen(group.group_id, "pending_left", member_id)
        if not behaviour.leaves_in_one_go:
            try_complete(shard, group)
        return ErrorCode.NONE
    else:
        error = group.member_error(member_id, instance_id, behaviour.unmapped_instance_is_25)
        if error is not ErrorCode.NONE:
            return error
    _remove(shard, group, member_id, one)
    return ErrorCode.NONE


def _remove(shard: Shard, group: Group, member_id: str, one: Leaving) -> None:
    """A waiting JoinGroup is answered 25; a waiting SyncGroup never is."""
    member = group.members[member_id]
    shard.happen(group.group_id, "left" if one.member_id else "removed_by_admin", member_id, one.reason or "")
    if shard.behaviour.removed_joiner_is_answered:
        shard.dismiss_join(group, member, ErrorCode.UNKNOWN_MEMBER_ID, "")
    shard.forget_one(group, member_id)
    if shard.behaviour.leaves_in_one_go:
        return
    if group.state in REBALANCED:
        prepare(shard, group, "member left")
    else:
        try_complete(shard, group)


def _rebalance_once(shard: Shard, group: Group) -> None:
    if group.state in REBALANCED:
        prepare(shard, group, "member left")
    elif group.state is GroupState.PREPARING:
        try_complete(shard, group)
