"""Records that the coordinator would have written to `__consumer_offsets`, and the state that a load makes of them.

The records are all that survives an unload. Written and committed in one instant (no replication latency). Follows
`storeGroup`, `storeOffsets`, `cleanupGroupMetadata` and `doLoadGroupsAndOffsets` (Scala),
`GroupCoordinatorRecordHelpers`, `OffsetMetadataManager.replay` and `replayEndTransactionMarker` (Java).
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple


class RecordedMember(NamedTuple):
    """A member in a group's record: one protocol only, the group's."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    subscription: bytes
    assignment: bytes


class GroupRecord(NamedTuple):
    """A group's metadata record. `state_since_at_ms`: the last change of state before it was written; of a record
    with members that is the completion of the join phase, not the instant of Stable."""

    written_at_ms: int
    generation_id: int
    protocol_type: str | None
    protocol_name: str | None
    leader: str | None
    state_since_at_ms: int
    members: tuple[RecordedMember, ...]


Partition = tuple[str, int]
"""Topic and partition."""


class Offset(NamedTuple):
    """An offset. `expires_at_ms`: -1 when the broker's retention decides. `position`: place of its record in the log.

    Of two for one partition the one later in the log counts, in whatever order they take effect.
    """

    offset: int
    committed_at_ms: int
    expires_at_ms: int
    position: int
    topic_id: str = ""
    """Of the topic, where the commit named it by its id."""


Open = dict[int, dict[Partition, Offset]]
"""Offsets of transactions that have not ended, by producer id."""


class Records:
    """The log of one shard. A missing group is one without record or with a tombstone."""

    def __init__(self) -> None:
        self.groups: dict[str, GroupRecord] = {}
        self.offsets: dict[str, dict[Partition, Offset]] = {}
        """By group: committed partitions. Without the empty ones, as `open_offsets`."""
        self.open_offsets: dict[str, Open] = {}
        """By group."""
        self.named: set[str] = set()
        """Groups of which the log has an offset, of whatever became of it, and no tombstone since: nothing is compacted
        here."""
        self._position = 0

    def next_position(self) -> int:
        """Place of the next record of an offset."""
        self._position += 1
        return self._position

    def commit(self, group_id: str, partition: Partition, offset: Offset) -> None:
        """Record an offset."""
        self.offsets.setdefault(group_id, {})[partition] = offset
        self.named.add(group_id)

    def commit_open(self, group_id: str, producer_id: int, partition: Partition, offset: Offset) -> None:
        """Record an offset of a transaction that is open."""
        self.open_offsets.setdefault(group_id, {}).setdefault(producer_id, {})[partition] = offset
        self.named.add(group_id)

    def end(self, producer_id: int, commits: bool) -> None:
        """Record the end of a producer's transaction."""
        for group_id, held in list(self.open_offsets.items()):
            ended = held.pop(producer_id, {})
            if commits and ended:
                materialize(self.offsets.setdefault(group_id, {}), ended)
            if not held:
                del self.open_offsets[group_id]

    def drop_offsets(self, group_id: str, partitions: Collection[Partition], open_too: bool = False) -> None:
        """Tombstones for offsets; with `open_too` they reach those of open transactions as well."""
        kept = self.offsets.get(group_id, {})
        for partition in partitions:
            kept.pop(partition, None)
        if not kept:
            self.offsets.pop(group_id, None)
        held = self.open_offsets.get(group_id)
        if open_too and held is not None:
            drop_open(held, partitions)
            if not held:
                del self.open_offsets[group_id]


def materialize(offsets: dict[Partition, Offset], ended: dict[Partition, Offset]) -> None:
    """Offsets of a transaction that was committed take effect, but for those that came before what is there."""
    for partition, offset in ended.items():
        there = offsets.get(partition)
        if there is None or there.position < offset.position:
            offsets[partition] = offset


def drop_open(held: Open, partitions: Collection[Partition]) -> None:
    """Take partitions out of all open transactions, and those without any more out of the list."""
    for producer_id, of_producer in list(held.items()):
        for partition in partitions:
            of_producer.pop(partition, None)
        if not of_producer:
            del held[producer_id]
