"""What the coordinator would have written to `__consumer_offsets`, compacted: the last record of every key.

The records are all that survives an unload. Written and committed in one instant (no replication latency). Follows
`storeGroup`, `storeOffsets` and `cleanupGroupMetadata` (Scala), `GroupCoordinatorRecordHelpers` (Java).
"""

from __future__ import annotations

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
    """A committed offset. `expires_at_ms`: -1 when the broker's retention decides."""

    committed_at_ms: int
    expires_at_ms: int = -1


class Records:
    """The log of one shard. A missing group is one without record or with a tombstone."""

    def __init__(self) -> None:
        self.groups: dict[str, GroupRecord] = {}
        self.offsets: dict[str, dict[Partition, Offset]] = {}
        """By group: committed partitions."""
        self.open_offsets: dict[str, set[tuple[int, Partition]]] = {}
        """By group: producer id and partition committed in a transaction that has not ended."""

    def group_ids(self) -> set[str]:
        """Groups that a load brings back."""
        return {*self.groups, *self.offsets, *self.open_offsets}

    def commit(self, group_id: str, partition: Partition, offset: Offset) -> None:
        """Record an offset."""
        self.offsets.setdefault(group_id, {})[partition] = offset

    def commit_open(self, group_id: str, partition: Partition, producer_id: int) -> None:
        """Record an offset of a transaction; no operation ends one, so it stays open."""
        self.open_offsets.setdefault(group_id, set()).add((producer_id, partition))

    def drop_offsets(self, group_id: str, partitions: set[Partition]) -> None:
        """Tombstones for offsets."""
        kept = self.offsets.get(group_id, {})
        for partition in partitions:
            kept.pop(partition, None)
        if not kept:
            self.offsets.pop(group_id, None)
