"""What each state answers to each request of a member that passed its checks: states by operations, as data.

The handlers look their answer up here and do what `does` says. Checks before the table (unknown member 25, fenced 82,
wrong generation 22, protocol 23, group size 81) are in the handlers. A pair that is missing cannot be reached: a member
cannot belong to an Empty group, and a group that dies is gone.
"""

from __future__ import annotations

from typing import NamedTuple

from kardia.kafka.states import ErrorCode, GroupState

DOES: dict[str, str] = {
    "refuse": "answers the error",
    "keep": "answers",
    "wait": "is kept waiting",
    "rebalance": "is kept waiting, a rebalance starts",
    "compare": "unchanged: answered with the generation; changed: waits, a rebalance starts",
    "lead": "as CompletingRebalance, but a leader always starts a rebalance",
    "serve": "is answered with the assignment",
    "store": "is stored",
    "drop": "the offsets are removed",
    "drop unsubscribed": "removed but for topics that a member subscribes to (86); no consumer group: 68",
    "delete": "the group is deleted",
}
"""What a handler does, in words."""


class Reaction(NamedTuple):
    """One cell. `arms`: the session timer starts anew at once."""

    does: str
    error: ErrorCode = ErrorCode.NONE
    arms: bool = False


_EMPTY, _PREPARING, _COMPLETING, _STABLE = (
    GroupState.EMPTY,
    GroupState.PREPARING,
    GroupState.COMPLETING,
    GroupState.STABLE,
)

REACTIONS: dict[str, dict[GroupState, Reaction]] = {
    "first JoinGroup": {
        _EMPTY: Reaction("rebalance"),
        _PREPARING: Reaction("wait"),
        _COMPLETING: Reaction("rebalance"),
        _STABLE: Reaction("rebalance"),
    },
    "JoinGroup of a member": {
        _PREPARING: Reaction("wait"),
        _COMPLETING: Reaction("compare"),
        _STABLE: Reaction("lead"),
    },
    "SyncGroup": {
        _EMPTY: Reaction("refuse", ErrorCode.UNKNOWN_MEMBER_ID),
        _PREPARING: Reaction("refuse", ErrorCode.REBALANCE_IN_PROGRESS),
        _COMPLETING: Reaction("wait"),
        _STABLE: Reaction("serve"),
    },
    "Heartbeat": {
        _PREPARING: Reaction("keep", ErrorCode.REBALANCE_IN_PROGRESS, arms=True),
        _COMPLETING: Reaction("keep", arms=True),
        _STABLE: Reaction("keep", arms=True),
    },
    "OffsetCommit": {
        _EMPTY: Reaction("store"),
        _PREPARING: Reaction("store", arms=True),
        _COMPLETING: Reaction("refuse", ErrorCode.REBALANCE_IN_PROGRESS),
        _STABLE: Reaction("store", arms=True),
    },
    "TxnOffsetCommit": {
        _EMPTY: Reaction("store"),
        _PREPARING: Reaction("store"),
        _COMPLETING: Reaction("store"),
        _STABLE: Reaction("store"),
    },
    "OffsetDelete": {
        _EMPTY: Reaction("drop"),
        _PREPARING: Reaction("drop unsubscribed"),
        _COMPLETING: Reaction("drop unsubscribed"),
        _STABLE: Reaction("drop unsubscribed"),
    },
    "DeleteGroups": {
        _EMPTY: Reaction("delete"),
        _PREPARING: Reaction("refuse", ErrorCode.NON_EMPTY_GROUP),
        _COMPLETING: Reaction("refuse", ErrorCode.NON_EMPTY_GROUP),
        _STABLE: Reaction("refuse", ErrorCode.NON_EMPTY_GROUP),
    },
}
"""Operation, then state."""
