"""What is asked of a coordinator of share groups, and what can be seen of it. Topics, load, unload and
the answer to a heartbeat are those of consumer groups. Instants are ms of one clock; -1 stands for none."""

from __future__ import annotations

from typing import NamedTuple

from kardia.coordinator.consumer.operations import Partition, Topics
from kardia.coordinator.operations import Load, Unload


class ShareBeat(NamedTuple):
    """ShareGroupHeartbeat. `member_epoch` 0 joins, -1 leaves. None means "as before"."""

    number: int
    group_id: str
    member_id: str
    member_epoch: int
    rack_id: str | None
    names: tuple[str, ...] | None
    client_id: str
    client_host: str


class ConfigureShare(NamedTuple):
    """A group has a configuration of its own from now on."""

    number: int
    group_id: str
    session_timeout_ms: int
    """share.session.timeout.ms: for sessions that are armed from now on."""
    heartbeat_interval_ms: int
    """share.heartbeat.interval.ms."""


ShareOperation = ShareBeat | Topics | ConfigureShare | Load | Unload


def groups_named(operation: ShareOperation) -> tuple[str, ...]:
    """Groups that an operation names; none where it may concern all of the shard."""
    return (operation.group_id,) if isinstance(operation, ShareBeat | ConfigureShare) else ()


NONE_OF = -1
"""In place of a number: an assignment names a topic and gives nothing of it. Kafka's assignor leaves one there whose
last partition it has taken away; that it comes or goes is a change of the assignment, which an answer tells."""


class ShareMemberView(NamedTuple):
    """A member. Partitions are sorted; `NONE_OF` among them."""

    member_id: str
    rack_id: str | None
    client_id: str
    client_host: str
    names: tuple[str, ...]
    epoch: int
    previous_epoch: int
    assigned: tuple[Partition, ...]
    target: tuple[Partition, ...]
    session_deadline_at_ms: int


class ShareView(NamedTuple):
    """A share group after a step."""

    state: str
    group_epoch: int
    assignment_epoch: int
    assigned_at_ms: int
    """When the target was computed (from 4.3; 0 before)."""
    members: tuple[ShareMemberView, ...]
    initializing: tuple[Partition, ...]
    """Partitions whose state at the share coordinator has been asked for."""
    initialized: tuple[Partition, ...]
    """Partitions that have a state there."""
