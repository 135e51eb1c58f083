"""States of a classic group, the legal moves between them, and the error codes by which the coordinator shows them.

The states and moves are Kafka's (`ClassicGroupState`, `GroupMetadata`). UNKNOWN is ours: we have not seen enough.
"""

from __future__ import annotations

from enum import IntEnum, StrEnum


class GroupState(StrEnum):
    """State of a group. Kafka's log says "Stabilized" on entering CompletingRebalance, not Stable."""

    UNKNOWN = "Unknown"
    EMPTY = "Empty"
    PREPARING = "PreparingRebalance"
    COMPLETING = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


PROTOCOLS_WITH_EPOCHS = ("consumer", "share", "streams")
"""Protocols of groups that have epochs (KIP-848, KIP-932, KIP-1071); the settings of brokers have the same words."""


class ModernState(StrEnum):
    """State of a group of the consumer, share or streams protocol (`ConsumerGroup`, `ShareGroup`, `StreamsGroup`).
    Reconciling: a member has not come to the target assignment yet."""

    UNKNOWN = "Unknown"
    EMPTY = "Empty"
    NOT_READY = "NotReady"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"
    DEAD = "Dead"


class MemberState(StrEnum):
    """State of a member of such a group (`MemberState`). Unrevoked: it must give partitions up; unreleased: it waits
    for partitions that others have not given up."""

    UNKNOWN = "unknown"
    STABLE = "stable"
    UNREVOKED = "unrevoked"
    UNRELEASED = "unreleased"


LEGAL_MOVES: dict[GroupState, frozenset[GroupState]] = {
    GroupState.UNKNOWN: frozenset(GroupState),
    GroupState.EMPTY: frozenset({GroupState.PREPARING, GroupState.DEAD}),
    GroupState.PREPARING: frozenset({GroupState.COMPLETING, GroupState.EMPTY, GroupState.DEAD}),
    GroupState.COMPLETING: frozenset({GroupState.STABLE, GroupState.PREPARING, GroupState.DEAD}),
    GroupState.STABLE: frozenset({GroupState.PREPARING, GroupState.DEAD}),
    GroupState.DEAD: frozenset({GroupState.EMPTY, GroupState.PREPARING}),
}
"""From a state to the states that may follow. A dead group's name may be used again: a new life."""

MOVES: dict[tuple[GroupState, GroupState], str] = {
    (GroupState.EMPTY, GroupState.PREPARING): "first JoinGroup",
    (GroupState.EMPTY, GroupState.DEAD): "deleted, died without offsets, unloaded",
    (GroupState.PREPARING, GroupState.COMPLETING): "join phase complete, next generation",
    (GroupState.PREPARING, GroupState.EMPTY): "nobody is left, next generation",
    (GroupState.PREPARING, GroupState.DEAD): "unloaded",
    (GroupState.COMPLETING, GroupState.STABLE): "assignment of the leader stored",
    (GroupState.COMPLETING, GroupState.PREPARING): "a member came, changed, left or expired, or never synced",
    (GroupState.COMPLETING, GroupState.DEAD): "unloaded",
    (GroupState.STABLE, GroupState.PREPARING): "a member came, changed, left or expired, or never synced",
    (GroupState.STABLE, GroupState.DEAD): "unloaded",
    (GroupState.DEAD, GroupState.EMPTY): "a new life of the name",
    (GroupState.DEAD, GroupState.PREPARING): "a new life of the name, seen late",
}
"""What makes a group move: one entry for each legal move. A load is none: it makes new groups, Stable or Empty."""


class ErrorCode(IntEnum):
    """Answers of the coordinator; those from 110 on only about consumer groups."""

    UNKNOWN_SERVER_ERROR = -1
    NONE = 0
    REQUEST_TIMED_OUT = 7
    OFFSET_METADATA_TOO_LARGE = 12
    COORDINATOR_LOAD_IN_PROGRESS = 14
    COORDINATOR_NOT_AVAILABLE = 15
    NOT_COORDINATOR = 16
    ILLEGAL_GENERATION = 22
    INCONSISTENT_GROUP_PROTOCOL = 23
    INVALID_GROUP_ID = 24
    UNKNOWN_MEMBER_ID = 25
    INVALID_SESSION_TIMEOUT = 26
    REBALANCE_IN_PROGRESS = 27
    UNSUPPORTED_VERSION = 35
    INVALID_REQUEST = 42
    NON_EMPTY_GROUP = 68
    GROUP_ID_NOT_FOUND = 69
    MEMBER_ID_REQUIRED = 79
    GROUP_MAX_SIZE_REACHED = 81
    FENCED_INSTANCE_ID = 82
    GROUP_SUBSCRIBED_TO_TOPIC = 86
    FENCED_MEMBER_EPOCH = 110
    UNRELEASED_INSTANCE_ID = 111
    UNSUPPORTED_ASSIGNOR = 112
    STALE_MEMBER_EPOCH = 113
    INVALID_REGULAR_EXPRESSION = 128
    STREAMS_INVALID_TOPOLOGY = 130


COORDINATOR_MOVED = frozenset(
    {ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR}
)
"""Errors that say nothing about the member: the broker does not lead the group's shard, or not yet."""
