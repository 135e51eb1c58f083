"""What is asked of the classic coordinator and what it answers: the common language of the model and of Kafka's
classes.

An operation is a request, or an act of the cluster (`Load`, `Unload`), sent at an instant the caller chooses. Answers
come at once, later (a waiting JoinGroup) or never; each names its operation by `number`. `View` is what can be seen of
a group after every step. All instants are ms of one clock; -1 stands for none.
"""

from __future__ import annotations

from typing import NamedTuple

from kardia.coordinator.operations import Load, Unload


class Join(NamedTuple):
    """JoinGroup. `new_id` is the member id the coordinator will hand out if it must make one up."""

    number: int
    version: int
    group_id: str
    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    """Not sent in version 0: the session timeout stands for it."""
    protocol_type: str
    protocols: tuple[tuple[str, bytes], ...]
    reason: str | None
    new_id: str


class Sync(NamedTuple):
    """SyncGroup. `assignments` is empty for a follower."""

    number: int
    version: int
    group_id: str
    generation_id: int
    member_id: str
    group_instance_id: str | None
    protocol_type: str | None
    protocol_name: str | None
    assignments: tuple[tuple[str, bytes], ...]


class Heartbeat(NamedTuple):
    """Heartbeat."""

    number: int
    version: int
    group_id: str
    generation_id: int
    member_id: str
    group_instance_id: str | None


class Leaving(NamedTuple):
    """One entry of a LeaveGroup."""

    member_id: str
    group_instance_id: str | None
    reason: str | None


class Leave(NamedTuple):
    """LeaveGroup; versions 0 to 2 have one entry."""

    number: int
    version: int
    group_id: str
    members: tuple[Leaving, ...]


class Commit(NamedTuple):
    """OffsetCommit of one partition. `too_large`: its metadata is over the bound, so nothing is stored (error 12).
    `retention_ms`: how long the offset is to be kept, from version 2 to 4; -1 for as long as the broker keeps them."""

    number: int
    version: int
    group_id: str
    generation_id: int
    member_id: str
    group_instance_id: str | None
    topic: str
    partition: int
    offset: int
    too_large: bool = False
    retention_ms: int = -1


class TxnCommit(NamedTuple):
    """TxnOffsetCommit of one partition."""

    number: int
    version: int
    group_id: str
    producer_id: int
    producer_epoch: int
    generation_id: int
    member_id: str
    group_instance_id: str | None
    topic: str
    partition: int
    offset: int


class TxnEnd(NamedTuple):
    """The marker that ends a producer's transaction reaches the shard's partition: a commit or an abort. No request of
    a client: it comes from the coordinator of transactions, and the log has it whoever leads the shard by then."""

    number: int
    producer_id: int
    commits: bool


class OffsetDelete(NamedTuple):
    """OffsetDelete of some partitions, each a topic and a number."""

    number: int
    group_id: str
    partitions: tuple[tuple[str, int], ...]


class DeleteGroups(NamedTuple):
    """DeleteGroups of groups of one shard, each named once."""

    number: int
    group_ids: tuple[str, ...]


class Stored(NamedTuple):
    """The record that was written for request `of` is stored, or could not be in time: then with the error that its
    sender is told; or something that was written before a request could not be, which waits for that as well (Java).
    Only where `CoordinatorSettings.appends_take_time`."""

    number: int
    group_id: str
    of: int
    error_code: int = 0


Operation = (
    Join | Sync | Heartbeat | Leave | Commit | TxnCommit | TxnEnd | OffsetDelete | DeleteGroups | Load | Unload | Stored
)


def groups_of(operation: Operation) -> tuple[str, ...]:
    """Groups that an operation names; none where it may concern all of the shard."""
    if isinstance(operation, DeleteGroups):
        return operation.group_ids
    return () if isinstance(operation, TxnEnd | Load | Unload) else (operation.group_id,)


class Answer(NamedTuple):
    """Answer to the operation `number` at `at_ms`. Fields that the kind of answer lacks are left at their defaults."""

    number: int
    at_ms: int
    error_code: int
    generation_id: int = -1
    leader: str = ""
    member_id: str = ""
    protocol_name: str | None = None
    members: tuple[tuple[str, str | None, bytes], ...] = ()
    """Member id, instance id, metadata: for the leader only; sorted by id."""
    skip_assignment: bool = False
    assignment: bytes = b""
    left: tuple[tuple[str, str | None, int], ...] = ()
    """LeaveGroup: member id, instance id, error, in the order asked."""
    parts: tuple[tuple[str, int], ...] = ()
    """DeleteGroups: group and error, whose first is the error of the whole; OffsetDelete: TOPIC-PARTITION and error.
    Sorted."""


class MemberView(NamedTuple):
    """A member as held by the coordinator. `session_deadline_at_ms` is -1 while no timer counts for it."""

    member_id: str
    group_instance_id: str | None
    session_timeout_ms: int
    rebalance_timeout_ms: int
    waits_for_join: bool
    waits_for_sync: bool
    is_new: bool
    session_deadline_at_ms: int


class View(NamedTuple):
    """A group after a step. Everything sorted by id; deadlines -1 when the timer is not set."""

    state: str
    generation_id: int
    protocol_type: str | None
    protocol_name: str | None
    leader: str | None
    members: tuple[MemberView, ...]
    pending: tuple[tuple[str, int], ...]
    """Handed-out id and when it is dropped."""
    pending_sync: tuple[str, ...]
    join_deadline_at_ms: int
    sync_deadline_at_ms: int
