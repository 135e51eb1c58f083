"""Heartbeat: the session starts anew, and the answer says whether a rebalance wants the member.

Follows `handleHeartbeat` (Scala), `classicGroupHeartbeatToClassicGroup` (Java).
"""

from __future__ import annotations

from kardia.coordinator.classic.group import Group
from kardia.coordinator.classic.operations import Heartbeat
from kardia.coordinator.classic.reactions import REACTIONS
from kardia.coordinator.classic.shard import Shard
from kardia.kafka.states import ErrorCode, GroupState


def heartbeat(shard: Shard, request: Heartbeat) -> None:
    """Handle a Heartbeat; always answered at once."""
    group = shard.groups.get(request.group_id)
    if not request.group_id:
        error = ErrorCode.INVALID_GROUP_ID
    elif not shard.loaded:
        error = ErrorCode.NOT_COORDINATOR
    elif group is None:
        error = ErrorCode.UNKNOWN_MEMBER_ID
    else:
        error = _beat(shard, group, request)
    shard.answer(request.number, error)


def _beat(shard: Shard, group: Group, request: Heartbeat) -> ErrorCode:
    behaviour = shard.behaviour
    instance_id = request.group_instance_id if behaviour.static_members else None
    error = group.member_error(request.member_id, instance_id, behaviour.unmapped_instance_is_25)
    if error is not ErrorCode.NONE:
        return error
    completing = group.state is GroupState.COMPLETING
    if request.generation_id != group.generation_id and (behaviour.completing_checks_generation or not completing):
        return ErrorCode.ILLEGAL_GENERATION
    if completing and not behaviour.completing_heartbeat_arms:
        return ErrorCode.REBALANCE_IN_PROGRESS
    reaction = REACTIONS["Heartbeat"][group.state]
    if reaction.arms:
        shard.arm_session(group, group.members[request.member_id])
    return reaction.error
