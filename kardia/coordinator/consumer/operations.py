"""What is asked of a coordinator of consumer groups, and what can be seen of it: the words of model and oracle alike.

Operations that are not here are those of the classic coordinator, also those of its members. Instants are ms of one
clock; -1 stands for none.
"""

from __future__ import annotations

from typing import NamedTuple

from kardia.coordinator.classic.operations import Answer, Commit, DeleteGroups, Heartbeat, Join, Leave, Sync
from kardia.coordinator.operations import Load, Unload

Partition = tuple[str, int]
"""Topic id and number. A topic that is deleted and created again has another id."""


class Topic(NamedTuple):
    """A topic of the cluster."""

    name: str
    topic_id: str
    partitions: int


class Beat(NamedTuple):
    """ConsumerGroupHeartbeat. `member_epoch` 0 joins, -1 leaves, -2 leaves for a while as a static member. None and -1
    in the fields that follow mean "as before"."""

    number: int
    version: int
    group_id: str
    member_id: str
    member_epoch: int
    instance_id: str | None
    rack_id: str | None
    rebalance_timeout_ms: int
    names: tuple[str, ...] | None
    regex: str | None
    assignor: str | None
    owned: tuple[Partition, ...] | None
    """None is no report: it proves no revocation. An empty one says that nothing is owned."""
    client_id: str
    client_host: str
    new_id: str
    """The member id that the coordinator makes up where version 0 sends none."""


class Fetch(NamedTuple):
    """OffsetFetch of all partitions of a group, by a member or (None and -1) by anybody."""

    number: int
    group_id: str
    member_id: str | None
    member_epoch: int


class Topics(NamedTuple):
    """The cluster has these topics from now on."""

    number: int
    topics: tuple[Topic, ...]


class Configure(NamedTuple):
    """A group has a configuration of its own from now on; with -1 in all, that of the broker again."""

    number: int
    group_id: str
    session_timeout_ms: int
    """consumer.session.timeout.ms: for sessions that are armed from now on."""
    heartbeat_interval_ms: int
    """consumer.heartbeat.interval.ms."""
    assignment_interval_ms: int
    """consumer.assignment.interval.ms, from 4.3."""


class Resolve(NamedTuple):
    """A resolution of regular expressions that waits in the broker's executor is done now; nothing if none waits."""

    number: int


OfClassicMember = Join | Sync | Heartbeat | Leave
ConsumerOperation = (
    Beat | Fetch | Commit | OfClassicMember | DeleteGroups | Topics | Configure | Resolve | Load | Unload
)


def groups_named(operation: ConsumerOperation) -> tuple[str, ...]:
    """Groups that an operation names; none where it may concern all of the shard."""
    if isinstance(operation, DeleteGroups):
        return operation.group_ids
    return () if isinstance(operation, Topics | Resolve | Load | Unload) else (operation.group_id,)


class BeatAnswer(NamedTuple):
    """Answer to a heartbeat. `assignment` is None where the answer carries none."""

    number: int
    at_ms: int
    error_code: int
    member_id: str = ""
    member_epoch: int = 0
    heartbeat_interval_ms: int = 0
    assignment: tuple[Partition, ...] | None = None


class SyncAnswer(NamedTuple):
    """Answer to a SyncGroup; what is assigned by topic name, sorted."""

    number: int
    at_ms: int
    error_code: int
    assignment: tuple[tuple[str, int], ...] = ()


ConsumerAnswer = Answer | BeatAnswer | SyncAnswer


class ConsumerMemberView(NamedTuple):
    """A member. Partitions are sorted; `assigned` and `pending` carry the epoch each was assigned in (from 4.3; 0
    before)."""

    member_id: str
    instance_id: str | None
    rack_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    names: tuple[str, ...]
    regex: str | None
    assignor: str | None
    epoch: int
    previous_epoch: int
    state: str
    assigned: tuple[tuple[Partition, int], ...]
    pending: tuple[tuple[Partition, int], ...]
    target: tuple[Partition, ...]
    session_deadline_at_ms: int
    rebalance_deadline_at_ms: int
    join_deadline_at_ms: int
    sync_deadline_at_ms: int
    classic: tuple[int, tuple[str, ...]] | None
    """Session timeout and protocols of a member of the classic protocol."""


class ConsumerView(NamedTuple):
    """A consumer group after a step."""

    state: str
    group_epoch: int
    assignment_epoch: int
    assigned_at_ms: int
    """When the target was computed (from 4.3; 0 before)."""
    members: tuple[ConsumerMemberView, ...]
    regexes: tuple[tuple[str, tuple[str, ...]], ...]
    """Resolved regular expressions with the topics they match."""
    owners: tuple[tuple[Partition, int], ...]
    """Partitions that somebody holds, with the epoch they are held in."""
