"""How groups are deleted, expire with their offsets, and are unloaded and loaded when their coordinator moves.

Follows `handleDeleteGroups`, `cleanupGroupMetadata`, `onGroupUnloaded` and `onGroupLoaded` (Scala), `deleteGroups`,
`cleanupExpiredOffsets`, `onUnloaded`, `onLoaded` and `replay` (Java).
"""

from __future__ import annotations

from kardia.coordinator.classic.group import Group, Member
from kardia.coordinator.classic.offsets import delete_all, delete_offsets, expire
from kardia.coordinator.classic.operations import Answer, DeleteGroups, OffsetDelete
from kardia.coordinator.classic.reactions import REACTIONS
from kardia.coordinator.classic.rebalances import prepare
from kardia.coordinator.classic.records import GroupRecord
from kardia.coordinator.classic.shard import EXPIRE_KEY, Shard, join_key, session_key, sync_key
from kardia.coordinator.operations import Load, Unload
from kardia.kafka.states import ErrorCode, GroupState


def delete_groups(shard: Shard, request: DeleteGroups) -> None:
    """Handle a DeleteGroups: each Empty group goes with its offsets, pending ids or not. Each has its own answer."""
    errors = [(group_id, int(delete_group(shard, group_id))) for group_id in request.group_ids]
    shard.answers.append(Answer(request.number, shard.now_ms, errors[0][1], parts=tuple(sorted(errors))))


def delete_group(shard: Shard, group_id: str) -> ErrorCode:
    """Delete one group; what is answered for it."""
    group = shard.groups.get(group_id)
    if not shard.loaded:
        return ErrorCode.NOT_COORDINATOR
    if group is None:
        return ErrorCode.GROUP_ID_NOT_FOUND
    reaction = REACTIONS["DeleteGroups"][group.state]
    if reaction.does == "delete":
        delete_all(shard, group)
        shard.happen(group_id, "deleted")
        bury(shard, group)
    return reaction.error


def offset_delete(shard: Shard, request: OffsetDelete) -> None:
    """Handle an OffsetDelete. The Scala coordinator looks at once whether the group is over."""
    group = shard.groups.get(request.group_id)
    if delete_offsets(shard, request) and group is not None and shard.behaviour.offset_delete_ends_group:
        die_if_over(shard, group)


def bury(shard: Shard, group: Group) -> None:
    """Dead, and out of memory; the next JoinGroup starts again with generation 0."""
    shard.move(group, GroupState.DEAD, "removed")
    # An Empty group has no join and no sync phase; what an older life of the name has left behind stays.
    _drop_sessions(shard, group)
    del shard.groups[group.group_id]
    if group.generation_id > 0 or shard.behaviour.deletion_always_recorded:
        shard.records.groups.pop(group.group_id, None)
        shard.records.named.discard(group.group_id)


def _drop_sessions(shard: Shard, group: Group) -> None:
    for member_id in (*group.members, *group.pending):
        shard.timers.cancel(session_key(group.group_id, member_id))


def _drop_timers(shard: Shard, group: Group) -> None:
    _drop_sessions(shard, group)
    shard.timers.cancel(join_key(group.group_id))
    shard.timers.cancel(sync_key(group.group_id))


def expire_timer_fired(shard: Shard) -> None:
    """Offsets past their retention go, then Empty groups without any. No retention protects a group itself."""
    shard.timers.arm(EXPIRE_KEY, shard.now_ms, shard.settings.offsets_retention_check_interval_ms)
    for group in list(shard.groups.values()):
        expired = expire(shard, group)
        if expired:
            shard.happen(group.group_id, "offsets_expired", detail=str(expired))
        die_if_over(shard, group)


def die_if_over(shard: Shard, group: Group) -> None:
    """An Empty group dies when it has no offset, nor a transaction that could still give it one."""
    if group.state is GroupState.EMPTY and not group.offsets and not group.open_offsets:
        shard.happen(group.group_id, "died")
        bury(shard, group)


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
    shard.stores.clear()
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
    for group_id in sorted(_recorded(shard)):
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


def _recorded(shard: Shard) -> set[str]:
    """Groups that a load brings back."""
    records = shard.records
    named = records.named if shard.behaviour.offset_records_bring_group else {*records.offsets, *records.open_offsets}
    return {*records.groups, *named}


def _restored(shard: Shard, group_id: str, record: GroupRecord | None) -> Group:
    offsets = dict(shard.records.offsets.get(group_id, {}))
    open_offsets = {one: dict(held) for one, held in shard.records.open_offsets.get(group_id, {}).items()}
    if record is None:  # Offsets only.
        return Group(group_id, shard.now_ms, offsets=offsets, open_offsets=open_offsets)
    since_ms = record.state_since_at_ms if shard.behaviour.state_instant_is_loaded else -1
    group = Group(
        group_id,
        since_ms,
        GroupState.STABLE if record.members else GroupState.EMPTY,
        record.generation_id,
        record.protocol_type,
        record.protocol_name,
        record.leader,
        offsets=offsets,
        open_offsets=open_offsets,
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
            loaded_as_static=shard.behaviour.loaded_members_are_static,
        )
        group.add(member)
    group.read_subscriptions()
    return group
