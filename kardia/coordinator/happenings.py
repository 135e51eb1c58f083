"""What the coordinator model did to groups and members, as records: for tests, golden traces and `kardia trace`."""

from __future__ import annotations

from typing import NamedTuple

HAPPENINGS: dict[str, str] = {
    "created": "the group came into being",
    "state": "the group changed its state; detail: from, to and why",
    "generation": "the join phase completed; detail: the new generation",
    "leader": "another member became leader",
    "pending": "an id was handed out (79)",
    "pending_expired": "a pending id was dropped by its timer",
    "pending_left": "a pending id left",
    "member_added": "a new member waits in its first JoinGroup; detail: its instance id",
    "member_replaced": "a static member came back under a new id; detail: the old id",
    "member_given_back": "that could not be stored: the member has its old id again; detail: the new id",
    "session_expired": "a member was removed by its session timer",
    "join_timeout": "a new member was removed after five minutes in its first JoinGroup",
    "rebalance_timeout": "a member was removed because it did not rejoin in time",
    "sync_timeout": "a member was removed because it never sent SyncGroup",
    "left": "a member left; detail: the reason sent",
    "removed_by_admin": "a member was removed by its instance id; detail: the reason sent",
    "rejected": "a JoinGroup was rejected by group.max.size (81)",
    "nobody_rejoined": "the rebalance timeout ran out and nobody had rejoined; it starts again",
    "recorded": "the group's record was written; detail: generation and number of members",
    "offsets_expired": "offsets were removed; detail: how many",
    "offsets_deleted": "committed offsets were deleted by request; detail: how many",
    "transaction_committed": "offsets of a transaction took effect; detail: how many it had",
    "transaction_aborted": "offsets of a transaction were forgotten; detail: how many it had",
    "deleted": "the group was deleted by request",
    "died": "the group was Empty without offsets and was removed",
    "loaded": "the group was brought back from its records",
    "unloaded": "the broker gave the group up",
}
"""Kind to meaning: the closed list."""


class Happening(NamedTuple):
    """One thing that happened. `kind` is a key of `HAPPENINGS`; `member_id` and `detail` are empty where they do not
    apply."""

    at_ms: int
    group_id: str
    kind: str
    member_id: str = ""
    detail: str = ""
