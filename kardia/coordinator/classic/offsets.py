"""Offsets of a group: stored, held until their transaction ends, deleted by request, expired.

The coordinator has them twice, in memory and in its log. The Java coordinator changes its memory by its records, so
both say the same. The Scala one does not: what OffsetDelete or DeleteGroups took from an open transaction is gone from
its memory and still in the log, and a load brings it back. Follows `handleDeleteOffsets`, `handleTxnCompletion`,
`completePendingTxnOffsetCommit`, `removeOffsets` and `removeExpiredOffsets` (Scala), `deleteOffsets`,
`deleteAllOffsets`, `cleanupExpiredOffsets`, `replay` and `replayEndTransactionMarker` (Java: `OffsetMetadataManager`).
"""

from __future__ import annotations

from collections.abc import Collection

from kardia.coordinator.classic.group import CONSUMER, Group
from kardia.coordinator.classic.operations import Answer, OffsetDelete, TxnEnd
from kardia.coordinator.classic.reactions import REACTIONS
from kardia.coordinator.classic.records import Offset, Partition, drop_open, materialize
from kardia.coordinator.classic.shard import Shard
from kardia.kafka.states import ErrorCode, GroupState

_SUBSCRIBED = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC


def store(shard: Shard, group: Group, partition: Partition, offset: Offset) -> None:
    """A committed offset."""
    group.offsets[partition] = offset
    shard.records.commit(group.group_id, partition, offset)


def hold(shard: Shard, group: Group, producer_id: int, partition: Partition, offset: Offset) -> None:
    """An offset of a transaction, until the transaction ends."""
    group.open_offsets.setdefault(producer_id, {})[partition] = offset
    shard.records.commit_open(group.group_id, producer_id, partition, offset)


def end_transaction(shard: Shard, request: TxnEnd) -> None:
    """Handle the marker that ends a transaction: its offsets take effect in every group, or are forgotten.

    It moves no session and no state; an Empty group that only the transaction kept may die at the next look for expired
    offsets.
    """
    if not shard.loaded:
        shard.answer(request.number, ErrorCode.NOT_COORDINATOR)
        return
    for group in shard.groups.values():
        ended = group.open_offsets.pop(request.producer_id, None)
        if ended is None:
            continue
        if request.commits:
            materialize(group.offsets, ended)
        shard.happen(
            group.group_id,
            "transaction_committed" if request.commits else "transaction_aborted",
            detail=str(len(ended)),
        )
    shard.records.end(request.producer_id, request.commits)
    shard.answer(request.number, ErrorCode.NONE)


def delete_offsets(shard: Shard, request: OffsetDelete) -> bool:
    """Handle an OffsetDelete (KIP-496): of an Empty group all, else of topics to which no member subscribes.

    Returns whether the group may have lost its last offset, so that it is to be looked at.
    """
    number, group = request.number, shard.groups.get(request.group_id)
    if not request.group_id:
        shard.answer(number, ErrorCode.INVALID_GROUP_ID)
    elif not shard.loaded:
        shard.answer(number, ErrorCode.NOT_COORDINATOR)
    elif group is None:
        shard.answer(number, ErrorCode.GROUP_ID_NOT_FOUND)
    else:
        reaction = REACTIONS["OffsetDelete"][group.state]
        if reaction.does == "drop":
            refused = set[Partition]()
        elif group.protocol_type == CONSUMER:
            # What the members subscribe to may not be known yet, or not be readable: then all topics count.
            refused = {one for one in request.partitions if group.subscribed is None or one[0] in group.subscribed}
        else:
            shard.answer(number, ErrorCode.NON_EMPTY_GROUP)
            return False
        wanted = set(request.partitions) - refused
        if wanted:
            _delete(shard, group, wanted)
        parts = sorted(
            (f"{topic}-{partition}", int(_SUBSCRIBED if (topic, partition) in refused else ErrorCode.NONE))
            for topic, partition in request.partitions
        )
        shard.answers.append(Answer(number, shard.now_ms, int(ErrorCode.NONE), parts=tuple(parts)))
        return bool(wanted)
    return False


def _delete(shard: Shard, group: Group, partitions: Collection[Partition]) -> None:
    """Take partitions out, also of open transactions; see above what the log keeps."""
    gone = [one for one in partitions if group.offsets.pop(one, None) is not None]
    if shard.behaviour.tombstones_reach_open_offsets:
        drop_open(group.open_offsets, partitions)
        shard.records.drop_offsets(group.group_id, partitions, open_too=True)
    else:
        for held in group.open_offsets.values():
            for partition in partitions:
                held.pop(partition, None)
        shard.records.drop_offsets(group.group_id, gone)
    shard.happen(group.group_id, "offsets_deleted", detail=str(len(gone)))


def delete_all(shard: Shard, group: Group) -> None:
    """All offsets of a group that is deleted."""
    reach = shard.behaviour.tombstones_reach_open_offsets
    held = {partition for of_producer in group.open_offsets.values() for partition in of_producer} if reach else set()
    shard.records.drop_offsets(group.group_id, {*group.offsets, *held}, open_too=reach)
    group.offsets.clear()
    group.open_offsets.clear()


def expire(shard: Shard, group: Group) -> int:
    """Remove offsets past their retention; returns how many those were."""
    expired = _expired(shard, group)
    for partition in expired:
        del group.offsets[partition]
    shard.records.drop_offsets(group.group_id, expired)
    return len(expired)


def _expired(shard: Shard, group: Group) -> set[Partition]:
    """Offsets to remove now. An offset that was committed with a retention of its own goes when that is over; else what
    counts is the end of membership, where there was one, or each commit."""
    behaviour = shard.behaviour
    offsets = group.offsets
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
    over = {partition for partition, offset in offsets.items() if _is_over(shard, offset, since_ms)}
    if behaviour.open_offsets_keep_committed:
        over -= {partition for of_producer in group.open_offsets.values() for partition in of_producer}
    return over


def _is_over(shard: Shard, offset: Offset, since_ms: int) -> bool:
    """Whether an offset's retention has ended. `since_ms`: when it began, -1 for the commit."""
    if offset.expires_at_ms >= 0:
        return offset.expires_at_ms <= shard.now_ms
    kept_ms = shard.now_ms - (offset.committed_at_ms if since_ms < 0 else since_ms)
    if not shard.behaviour.empty_since_counts:
        return kept_ms > shard.settings.offsets_retention_ms
    return kept_ms >= shard.settings.offsets_retention_ms
