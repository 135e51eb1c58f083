"""OffsetCommit and TxnOffsetCommit, as far as they touch liveness: who may commit, whose session starts anew.

The session starts before anything is stored, so it does even when the offset's metadata is too large. Follows
`validateOffsetCommit` and `doCommitOffsets` (Scala), `OffsetMetadataManager.commitOffset` (Java).
"""

from __future__ import annotations

from kardia.coordinator.classic.group import Group
from kardia.coordinator.classic.offsets import hold, store
from kardia.coordinator.classic.operations import Commit, TxnCommit
from kardia.coordinator.classic.reactions import REACTIONS
from kardia.coordinator.classic.records import Offset
from kardia.coordinator.classic.shard import Shard
from kardia.kafka.states import ErrorCode, GroupState

BY_TOPIC_ID_FROM = 10
"""First OffsetCommit version that names a topic by its id."""
GROUP_ID_NOT_FOUND_FROM = 9
"""First OffsetCommit version whose sender understands answer 69."""


def commit(shard: Shard, request: Commit) -> None:
    """Handle an OffsetCommit. Without a generation it needs no membership, and creates a group that is unknown."""
    if not shard.loaded:
        shard.answer(request.number, ErrorCode.NOT_COORDINATOR)
        return
    group = shard.groups.get(request.group_id)
    if group is None:
        if request.generation_id >= 0:
            late = shard.behaviour.unknown_group_is_69 and request.version >= GROUP_ID_NOT_FOUND_FROM
            error = ErrorCode.GROUP_ID_NOT_FOUND if late else ErrorCode.ILLEGAL_GENERATION
            shard.answer(request.number, error)
            return
        group = shard.create(request.group_id)
    error = _wrong(shard, group, request)
    if error is ErrorCode.NONE:
        reaction = REACTIONS["OffsetCommit"][group.state]
        error = reaction.error
        if reaction.arms:
            shard.arm_session(group, group.members[request.member_id])
    if error is ErrorCode.NONE:
        if request.too_large:
            error = ErrorCode.OFFSET_METADATA_TOO_LARGE
        else:
            expires_at_ms = -1 if request.retention_ms < 0 else shard.now_ms + request.retention_ms
            topic_id = shard.topic_ids.get(request.topic, "") if request.version >= BY_TOPIC_ID_FROM else ""
            offset = Offset(request.offset, shard.now_ms, expires_at_ms, shard.records.next_position(), topic_id)
            store(shard, group, (request.topic, request.partition), offset)
    shard.answer(request.number, error)


def _wrong(shard: Shard, group: Group, request: Commit) -> ErrorCode:
    behaviour = shard.behaviour
    instance_id = request.group_instance_id if behaviour.static_members else None
    simple = request.generation_id < 0 and group.state is GroupState.EMPTY
    if simple and (behaviour.simple_commit_ignores_member or (not request.member_id and instance_id is None)):
        return ErrorCode.NONE
    error = group.member_error(request.member_id, instance_id, behaviour.unmapped_instance_is_25)
    if group.state is GroupState.COMPLETING and not behaviour.commit_checks_member_first:
        # Anybody, member or not, but an instance id held by another member was looked at before.
        fenced = error is ErrorCode.FENCED_INSTANCE_ID
        return error if fenced else ErrorCode.REBALANCE_IN_PROGRESS
    if error is not ErrorCode.NONE:
        return error
    if request.generation_id != group.generation_id:
        return ErrorCode.ILLEGAL_GENERATION
    return ErrorCode.NONE


def txn_commit(shard: Shard, request: TxnCommit) -> None:
    """Handle a TxnOffsetCommit. It never lets a session start anew, and no state stops it."""
    if not request.group_id:
        shard.answer(request.number, ErrorCode.INVALID_GROUP_ID)
        return
    if not shard.loaded:
        shard.answer(request.number, ErrorCode.NOT_COORDINATOR)
        return
    group = shard.groups.get(request.group_id)
    if group is None:
        if request.generation_id >= 0 and not shard.behaviour.txn_commit_creates_group:
            shard.answer(request.number, ErrorCode.ILLEGAL_GENERATION)
            return
        group = shard.create(request.group_id)
    error = _wrong_txn(shard, group, request)
    if error is ErrorCode.NONE:
        partition = (request.topic, request.partition)
        offset = Offset(request.offset, shard.now_ms, -1, shard.records.next_position())
        if request.producer_id < 0:
            store(shard, group, partition, offset)
        else:
            hold(shard, group, request.producer_id, partition, offset)
    shard.answer(request.number, error)


def _wrong_txn(shard: Shard, group: Group, request: TxnCommit) -> ErrorCode:
    behaviour = shard.behaviour
    if not behaviour.txn_commit_is_checked:
        return ErrorCode.NONE
    if not behaviour.unmapped_instance_is_25:
        return _wrong_txn_piecewise(group, request)
    if request.generation_id < 0 and group.state is GroupState.EMPTY and behaviour.simple_commit_ignores_member:
        return ErrorCode.NONE
    if request.generation_id < 0 and not request.member_id and request.group_instance_id is None:
        return ErrorCode.NONE
    error = group.member_error(request.member_id, request.group_instance_id)
    if error is ErrorCode.NONE and request.generation_id != group.generation_id:
        return ErrorCode.ILLEGAL_GENERATION
    return error


def _wrong_txn_piecewise(group: Group, request: TxnCommit) -> ErrorCode:
    """2.5 to 2.8: instance id, member id and generation are each checked when sent, and only then."""
    if group.instances.get(request.group_instance_id or "", request.member_id) != request.member_id:
        return ErrorCode.FENCED_INSTANCE_ID
    if request.member_id and request.member_id not in group.members:
        return ErrorCode.UNKNOWN_MEMBER_ID
    if 0 <= request.generation_id != group.generation_id:
        return ErrorCode.ILLEGAL_GENERATION
    return ErrorCode.NONE
