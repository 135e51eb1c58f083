"""The lives of groups: deletion, death by expiry of offsets, and what a move of the coordinator does to them.

Follows `handleDeleteGroups`, `cleanupGroupMetadata`, `onGroupUnloaded` and `onGroupLoaded` (Scala), `deleteGroups`,
`cleanupExpiredOffsets`, `onUnloaded`, `onLoaded` and `replay` (Java).
"""

from __future__ import annotations

from kardia.model.group import CONSUMER, Group, Member
from kardia.model.operations import DeleteGroups, Load, Unload
from kardia.model.reactions import REACTIONS
from kardia.model.rebalances import prepare
from kardia.model.records import GroupRecord, Offset, Partition
from kardia.model.shard import EXPIRE_KEY, Shard, join_key, session_key, sync_key
from kardia.model.states import ErrorCode, GroupState


def delete_groups(shard: Shard, request: DeleteGroups) -> None:
    """Handle a DeleteGroups: an Empty group goes with its offsets, pending ids or not."""
    group = shard.groups.get(request.group_id)
    if not shard.loaded:
        error = ErrorCode.NOT_COORDINATOR
    elif group is None:
        error = ErrorCode.GROUP_ID_NOT_FOUND
    else:
        reaction = REACTIONS["DeleteGroups"][group.state]
        error = reaction.error
        if reaction.does == "delete":
            shard.records.offsets.pop(group.group_id, None)
            if shard.behaviour.deletion_drops_open_offsets:
                shard.records.open_offsets.pop(group.group_id, None)
            shard.happen(group.group_id, "deleted")
            _bury(shard, group)
    shard.answer(request.number, error)


def _bury(shard: Shard, group: Group) -> None:
    """Dead, and out of memory; the next JoinGroup starts again with generation 0."""
    shard.move(group, GroupState.DEAD, "removed")
    _drop_timers(shard, group)
    del shard.groups[group.group_id]
    if group.generation_id > 0 or shard.behaviour.deletion_always_recorded:
        shard.records.groups.pop(group.group_id, None)


def _drop_timers(shard: Shard, group: Group) -> None:
    for member_id in (*group.members, *group.pending):
        shard.timers.cancel(session_key(group.group_id, member_id))
    shard.timers.cancel(join_key(group.group_id))
    shard.timers.cancel(sync_key(group.group_id))


def expire_timer_fired(shard: Shard) -> None:
    """Offsets past their retention go, then Empty groups without any. No retention protects a group itself."""
    shard.timers.arm(EXPIRE_KEY, shard.now_ms, shard.settings.offsets_retention_check_interval_ms)
    for group in list(shard.groups.values()):
        expired = _expired(shard, group)
        if expired:
            shard.records.drop_offsets(group.group_id, expired)
            shard.happen(group.group_id, "offsets_expired", detail=str(len(expired)))
        kept = group.has_open_offsets or group.group_id in shard.records.offsets
        if group.state is GroupState.EMPTY and not kept:
            shard.happen(group.group_id, "died")
            _bury(shard, group)


def _expired(shard: Shard, group: Group) -> set[Partition]:
    """Offsets to remove now. An offset that was committed with a retention of its own goes when that is over; else what
    counts is the end of membership, where there was one, or each commit."""
    behaviour = shard.behaviour
    offsets = shard.records.offsets.get(group.group_id, {})
    since_ms = -1
    if behaviour.empty_since_counts and group.protocol_type is not None:
        if group.state is GroupState.EMPTY:
            since_ms = group.state_since_at_ms
        elif (group.state is not GroupState.STABLE and behaviour.only_stable_offsets_expire) or (
            not behaviour.unsubscribed_offsets_expire or group.protocol_type != CONSUMER or group.subscribed is None
        ):
            return set()
        else:
            offsets = {(topic, one): kept for (topic, one), kept in offsets.items() if topic not in group.subscribed}
    return {partition for partition, offset in offsets.items() if _is_over(shard, offset, since_ms)}


def _is_over(shard: Shard, offset: Offset, since_ms: int) -> bool:
    """Whether an offset's retention has ended. `since_ms`: when it began, -1 for the commit."""
    if offset.expires_at_ms >= 0:
        return offset.expires_at_ms <= shard.now_ms
    kept_ms = shard.now_ms - (offset.committed_at_ms if since_ms < 0 else since_ms)
    if not shard.behaviour.empty_since_counts:
        return kept_ms > shard.settings.offsets_retention_ms
    return kept_ms >= shard.settings.offsets_retention_ms


def unload(shard: Shard, _: Unload) -> None:
    """The broker leads the shard no longer: what waits is answered 16, everything in memory is lost.

    An act of the cluster, not a request: it has no answer, and does nothing when the shard is not loaded.
    """
    for group in list(shard.groups.values()):
        shard.move(group, GroupState.DEAD, "unloaded")
        shard.happen(group.group_id, "unloaded")
        for member in group.members.values():
            shard.dismiss_join(group, member, ErrorCode.NOT_COORDINATOR, member.member_id)
            shard.dismiss_sync(member, ErrorCode.NOT_COORDINATOR)
        _drop_timers(shard, group)
    shard.groups.clear()
    shard.loaded = False
    if shard.behaviour.retention_counts_from_load:
        shard.timers.cancel(EXPIRE_KEY)


def load(shard: Shard, request: Load) -> None:
    """The broker leads the shard: groups come back from their records, Stable or Empty, and every session starts anew.

    Lost are pending ids, who has synced, who waits, and all protocols of a member but the group's. An act of the
    cluster, not a request: it has no answer, and does nothing when the shard is loaded.
    """
    if shard.loaded:
        return
    shard.loaded = True
    if request.group_max_size is not None:
        shard.settings = shard.settings._replace(group_max_size=request.group_max_size)
    rebalances_first = shard.behaviour.overfull_rebalances_before_arming
    for group_id in sorted(shard.records.group_ids()):
        group = _restored(shard, group_id, shard.records.groups.get(group_id))
        shard.groups[group_id] = group
        shard.happen(group_id, "loaded")
        overfull = shard.behaviour.max_size and len(group.members) > shard.settings.group_max_size
        if overfull and rebalances_first:
            prepare(shard, group, "loaded over group.max.size")
        shard.arm_sessions(group, group.members)
        if overfull and not rebalances_first:
            prepare(shard, group, "loaded over group.max.size")
    if shard.behaviour.retention_counts_from_load:
        shard.timers.arm(EXPIRE_KEY, shard.now_ms, shard.settings.offsets_retention_check_interval_ms)


def _restored(shard: Shard, group_id: str, record: GroupRecord | None) -> Group:
    has_open_offsets = group_id in shard.records.open_offsets
    if record is None:  # Offsets only.
        return Group(group_id, shard.now_ms, has_open_offsets=has_open_offsets)
    since_ms = record.state_since_at_ms if shard.behaviour.state_instant_is_loaded else -1
    group = Group(
        group_id,
        since_ms,
        GroupState.STABLE if record.members else GroupState.EMPTY,
        record.generation_id,
        record.protocol_type,
        record.protocol_name,
        record.leader,
        has_open_offsets=has_open_offsets,
    )
    absent_is_session = shard.behaviour.absent_rebalance_timeout_is_session
    for kept in record.members:
        member = Member(
            kept.member_id,
            kept.group_instance_id,
            kept.client_id,
            kept.client_host,
            kept.session_timeout_ms,
            kept.session_timeout_ms
            if absent_is_session and kept.rebalance_timeout_ms == -1
            else kept.rebalance_timeout_ms,
            ((record.protocol_name or "", kept.subscription),),
            kept.assignment,
        )
        group.add(member)
    group.read_subscriptions()
    return group
