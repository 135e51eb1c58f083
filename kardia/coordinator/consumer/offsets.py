"""Offsets of consumer groups: who may commit and fetch, and when they and their group expire.

Follows `ConsumerGroup.validateOffsetCommit`, `validateOffsetFetch` and `OffsetMetadataManager`. Transactions are not
modelled.
"""

from __future__ import annotations

from kardia.coordinator.classic import commits, removal_and_loading
from kardia.coordinator.classic.operations import Answer, Commit, DeleteGroups
from kardia.coordinator.classic.records import Offset
from kardia.coordinator.consumer.conversions import commit_to_lost
from kardia.coordinator.consumer.group import ConsumerGroup
from kardia.coordinator.consumer.operations import Fetch
from kardia.coordinator.consumer.shard import Shard
from kardia.coordinator.errors import RefusedError
from kardia.kafka.states import ErrorCode

_BY_ID = 10
"""The version of OffsetCommit from which on a topic is named by its id."""
_KNOWS_EPOCHS = 9
"""The version of OffsetCommit from which on members of the consumer protocol may use it."""


def commit(shard: Shard, request: Commit) -> None:
    """OffsetCommit. Never touches a session of a consumer group."""
    group = shard.groups.get(request.group_id)
    if group is None or not shard.loaded:
        if shard.loaded and request.generation_id < 0:
            commit_to_lost(shard, request.group_id)
        commits.commit(shard.classic, request)
        return
    topic = shard.topics.get(request.topic)
    topic_id = topic.topic_id if topic is not None and request.version >= _BY_ID else ""
    try:
        _check_commit(shard, group, request, topic_id)
    except RefusedError as refused:
        shard.answer(request.number, refused.code)
        return
    place = (request.topic, request.partition)
    records = shard.classic.records
    expires_at_ms = -1 if request.retention_ms < 0 else shard.now_ms + request.retention_ms
    group.offsets[place] = Offset(request.offset, shard.now_ms, expires_at_ms, records.next_position(), topic_id)
    records.offsets.setdefault(group.group_id, {})[place] = group.offsets[place]
    shard.answer(request.number, ErrorCode.NONE)


def _check_commit(shard: Shard, group: ConsumerGroup, request: Commit, topic_id: str) -> None:
    epoch = request.generation_id
    if epoch < 0 and not group.members:
        return _refuse_large(request)
    member = group.members.get(request.member_id)
    if member is None:
        raise RefusedError(ErrorCode.UNKNOWN_MEMBER_ID)
    stale = ErrorCode.STALE_MEMBER_EPOCH if member.classic is None else ErrorCode.ILLEGAL_GENERATION
    if request.version < _KNOWS_EPOCHS and member.classic is None:
        raise RefusedError(ErrorCode.UNSUPPORTED_VERSION)
    if epoch == member.epoch:
        return _refuse_large(request)
    if epoch > member.epoch or not shard.behaviour.partitions_have_epochs:
        raise RefusedError(stale)
    _refuse_large(request)
    partition = (topic_id, request.partition)
    since = member.assigned.get(partition, member.pending.get(partition))
    if since is None or epoch < since:
        raise RefusedError(stale)
    return None


def _refuse_large(request: Commit) -> None:
    if request.too_large:
        raise RefusedError(ErrorCode.OFFSET_METADATA_TOO_LARGE)


def fetch(shard: Shard, request: Fetch) -> None:
    """OffsetFetch: only whether it is answered."""
    if not shard.loaded:
        shard.answer(request.number, ErrorCode.NOT_COORDINATOR)
        return
    group = shard.groups.get(request.group_id)
    code = ErrorCode.NONE
    by_member = request.member_id is not None or request.member_epoch >= 0
    lost = shard.lost.get(request.group_id)
    if by_member and lost is not None:  # also of a classic group that a refused commit has made in memory alone
        group = lost if shard.choose.sees_lost(request.group_id) else None
    if group is not None and by_member:
        member = None if request.member_id is None else group.members.get(request.member_id)
        if request.member_id is None:
            code = ErrorCode.UNKNOWN_SERVER_ERROR  # Kafka looks for the member without a name.
        elif member is None:
            code = ErrorCode.UNKNOWN_MEMBER_ID
        elif member.epoch != request.member_epoch:
            code = ErrorCode.STALE_MEMBER_EPOCH if member.classic is None else ErrorCode.ILLEGAL_GENERATION
    shard.answer(request.number, code)


def delete_groups(shard: Shard, request: DeleteGroups) -> None:
    """DeleteGroups: Empty groups go, with their offsets."""
    errors: dict[str, int] = {}
    for group_id in request.group_ids:
        group = shard.groups.get(group_id)
        if group is None or not shard.loaded:
            errors[group_id] = int(removal_and_loading.delete_group(shard.classic, group_id))
            if not errors[group_id]:
                shard.lost.pop(group_id, None)
        elif group.members:
            errors[group_id] = int(ErrorCode.NON_EMPTY_GROUP)
        else:
            errors[group_id] = int(ErrorCode.NONE)
            bury(shard, group)
    answer = Answer(request.number, shard.now_ms, errors[request.group_ids[0]], parts=tuple(sorted(errors.items())))
    shard.answers.append(answer)


def bury(shard: Shard, group: ConsumerGroup) -> None:
    """The group is gone; the next one of the name starts from nothing."""
    del shard.groups[group.group_id]
    shard.classic.records.drop_offsets(group.group_id, group.offsets)
    shard.happen(group.group_id, "deleted")


def expire(shard: Shard) -> None:
    """The periodic look for offsets that nobody needs, and for groups that have none."""
    settings = shard.settings
    classic = set(shard.classic.groups)
    removal_and_loading.expire_timer_fired(shard.classic)
    for group_id in classic - shard.classic.groups.keys():
        shard.lost.pop(group_id, None)
    for group in list(shard.groups.values()):
        for (topic, number), offset in list(group.offsets.items()):
            # One that was committed with version 2 to 4 may have a retention of its own.
            over_at_ms = offset.expires_at_ms
            if over_at_ms < 0:
                over_at_ms = offset.committed_at_ms + settings.offsets_retention_ms
            if not group.is_subscribed(topic) and shard.now_ms >= over_at_ms:
                del group.offsets[topic, number]
                shard.classic.records.drop_offsets(group.group_id, [(topic, number)])
        if not group.offsets and not group.members:
            bury(shard, group)
