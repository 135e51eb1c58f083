"""SyncGroup: members fetch their assignment, the leader brings them all.

A leader's SyncGroup makes the group Stable when its record is stored. Follows `doSyncGroup` and `validateSyncGroup`
(Scala), `classicGroupSync` (Java).
"""

from __future__ import annotations

from kardia.coordinator.classic.group import Group, Member
from kardia.coordinator.classic.held_up import Assigned
from kardia.coordinator.classic.operations import Sync
from kardia.coordinator.classic.reactions import REACTIONS
from kardia.coordinator.classic.rebalances import answer_synced
from kardia.coordinator.classic.shard import Shard, sync_key
from kardia.coordinator.classic.stores import store
from kardia.kafka.states import ErrorCode, GroupState


def sync(shard: Shard, request: Sync) -> None:
    """Handle a SyncGroup; it is answered now or waits for the leader's."""
    group = shard.groups.get(request.group_id)
    if not request.group_id:
        error = ErrorCode.INVALID_GROUP_ID
    elif not shard.loaded:
        error = ErrorCode.NOT_COORDINATOR
    elif group is None:
        error = ErrorCode.UNKNOWN_MEMBER_ID
    else:
        error = _wrong(shard, group, request)
        if error is ErrorCode.NONE:
            _react(shard, group, group.members[request.member_id], request)
            return
    shard.answer(request.number, error)


def _wrong(shard: Shard, group: Group, request: Sync) -> ErrorCode:
    behaviour = shard.behaviour
    if group.state is GroupState.EMPTY and behaviour.sync_is_25_when_empty:
        return REACTIONS["SyncGroup"][group.state].error
    instance_id = request.group_instance_id if behaviour.static_members else None
    error = group.member_error(request.member_id, instance_id, behaviour.unmapped_instance_is_25)
    if error is not ErrorCode.NONE:
        return error
    if request.generation_id != group.generation_id:
        return ErrorCode.ILLEGAL_GENERATION
    if behaviour.sync_names_protocol:
        named = ((request.protocol_type, group.protocol_type), (request.protocol_name, group.protocol_name))
        for asked, held in named:
            if asked is None or asked == held or (held is None and behaviour.absent_protocol_matches):
                continue
            return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    return ErrorCode.NONE


def _react(shard: Shard, group: Group, member: Member, request: Sync) -> None:
    reaction = REACTIONS["SyncGroup"][group.state]
    if reaction.does == "refuse":
        shard.answer(request.number, reaction.error)
        return
    group.pending_sync.discard(member.member_id)
    if not group.pending_sync:
        shard.timers.cancel(sync_key(group.group_id))
    if reaction.does == "serve":
        answer_synced(shard, member, request.number)
        if shard.behaviour.sync_when_stable_arms:
            shard.arm_session(group, member)
        return
    member.waiting_sync = request.number  # An older one of the same member is never answered.
    if group.leader == member.member_id:
        assignments = dict(request.assignments)
        shard.record(group, assignments)
        store(shard, Assigned(group.group_id, request.number, group.generation_id, assignments))
