"""Where Kafka's releases differ for classic groups, as data: one row for each difference, with the releases it holds in
and where that was found.

Up to 3.9 the Scala coordinator answers, from 4.0 the Java one; what differs between the two is a row like any other. A
source is the issue or proposal that brought a change, the release tags it was found between, or, where Scala and Java
differ, the method of each (`GroupCoordinator.scala` first, then `GroupMetadataManager.java` unless said). Reads
nothing, decides nothing: the rest of the model asks `Behaviour` and never a version.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from kardia.coordinator.switches import Switch, flags_of
from kardia.kafka.releases import JAVA_ONLY, OLDEST, SCALA_ONLY, Span, since, version_of
from kardia.kafka.sessions import Coordinator, coordinator_of


class Behaviour(NamedTuple):
    """How the coordinator of one release behaves. Every flag is a row of `SWITCHES`, which says what it means."""

    kafka_version: str
    coordinator: Coordinator
    sync_when_stable_arms: bool
    leaves_in_one_go: bool
    restart_extends_delay: bool
    expiry_ends_initial_delay: bool
    rejection_tries_completion: bool
    replaced_stays_new: bool
    creation_is_recorded: bool
    deletion_always_recorded: bool
    tombstones_reach_open_offsets: bool
    open_offsets_keep_committed: bool
    offset_records_bring_group: bool
    offset_delete_ends_group: bool
    bounds_before_ownership: bool
    moved_names_member: bool
    unknown_group_is_69: bool
    sync_is_25_when_empty: bool
    absent_protocol_matches: bool
    txn_commit_creates_group: bool
    retention_counts_from_load: bool
    overfull_rebalances_before_arming: bool
    join_phase_ends_once: bool
    absent_rebalance_timeout_is_session: bool
    new_member_timeout: bool
    removed_joiner_is_answered: bool
    empty_since_counts: bool
    member_id_required: bool
    max_size: bool
    static_members: bool
    completing_checks_generation: bool
    commit_checks_member_first: bool
    unsubscribed_offsets_expire: bool
    completing_replacement_rebalances: bool
    new_member_keeps_short_timer: bool
    waiting_new_member_keeps_short_timer: bool
    txn_commit_is_checked: bool
    sync_names_protocol: bool
    max_size_counts_joined: bool
    completing_heartbeat_arms: bool
    replacement_is_recorded: bool
    state_instant_is_loaded: bool
    sync_timer: bool
    replaced_id_breaks_sync_timer: bool
    loaded_members_are_static: bool
    rejection_drops_instance: bool
    rejection_drops_pending: bool
    only_stable_offsets_expire: bool
    unmapped_instance_is_25: bool
    pending_leave_refuses_instance: bool
    simple_commit_ignores_member: bool
    skips_assignment: bool
    rejoin_updates_timeouts: bool


SWITCHES: dict[str, Switch] = {
    switch.name: switch
    for switch in (
        Switch(
            "sync_when_stable_arms",
            SCALA_ONLY,
            "a SyncGroup served while Stable arms the session timer",
            "doSyncGroup; classicGroupSyncToClassicGroup",
        ),
        Switch(
            "leaves_in_one_go",
            JAVA_ONLY,
            "a LeaveGroup of several members removes all, then rebalances once, also if it names only pending ids",
            "handleLeaveGroup; classicGroupLeaveToClassicGroup",
        ),
        Switch(
            "restart_extends_delay",
            JAVA_ONLY,
            "the initial rebalance delay can be extended in every life out of Empty, not only in generation 0",
            "addMemberAndRebalance; addMemberThenRebalanceOrCompleteJoin",
        ),
        Switch(
            "expiry_ends_initial_delay",
            JAVA_ONLY,
            "the expiry of a member or pending id ends the initial delay when everybody left waits in JoinGroup",
            "InitialDelayedJoin.tryComplete; removeMemberAndUpdateClassicGroup",
        ),
        Switch(
            "rejection_tries_completion",
            SCALA_ONLY,
            "a rejoin rejected with 81 lets the join phase complete when it was the last one missing",
            "handleJoinGroup; classicGroupJoinToClassicGroup",
        ),
        Switch(
            "replaced_stays_new",
            SCALA_ONLY,
            "a static member replaced in its first JoinGroup is still new, so its session can expire while it waits",
            "GroupMetadata.replaceStaticMember; ClassicGroup.replaceStaticMember",
        ),
        Switch(
            "creation_is_recorded",
            JAVA_ONLY,
            "a group created by a JoinGroup is recorded at once, Empty in generation 0",
            "classicGroupJoinToClassicGroup",
        ),
        Switch(
            "deletion_always_recorded",
            JAVA_ONLY,
            "a deleted group gets a tombstone in generation 0 too",
            "cleanupGroupMetadata; ClassicGroup.createGroupTombstoneRecords",
        ),
        Switch(
            "tombstones_reach_open_offsets",
            JAVA_ONLY,
            "DeleteGroups and OffsetDelete remove offsets of open transactions for good; else only from memory, and a "
            "load brings them back; after OffsetDelete the transaction still keeps the group",
            "handleDeleteGroups, removeOffsets; OffsetMetadataManager.deleteAllOffsets, replay",
        ),
        Switch(
            "open_offsets_keep_committed",
            JAVA_ONLY,
            "a committed offset does not expire while an open transaction has one for the same partition",
            "removeExpiredOffsets; OffsetMetadataManager.cleanupExpiredOffsets",
        ),
        Switch(
            "offset_records_bring_group",
            JAVA_ONLY,
            "a load brings back a group of which the log has an offset, even one that was deleted or whose transaction "
            "was aborted",
            "doLoadGroupsAndOffsets; OffsetMetadataManager.replay",
        ),
        Switch(
            "offset_delete_ends_group",
            SCALA_ONLY,
            "an Empty group without offsets dies at once by an OffsetDelete, else at the next look for expired ones",
            "handleDeleteOffsets; OffsetMetadataManager.deleteOffsets",
        ),
        Switch(
            "bounds_before_ownership",
            JAVA_ONLY,
            "a session timeout out of bounds is refused (26) by a broker that is not the coordinator",
            "handleJoinGroup; GroupCoordinatorService.joinGroup",
        ),
        Switch(
            "moved_names_member",
            SCALA_ONLY,
            "a JoinGroup answered 16 at arrival repeats the member id asked with",
            "handleJoinGroup; GroupCoordinatorService.joinGroup",
        ),
        Switch(
            "unknown_group_is_69",
            JAVA_ONLY,
            "OffsetCommit v9 with a generation to an unknown group is answered 69 instead of 22",
            "handleCommitOffsets; OffsetMetadataManager.validateOffsetCommit",
        ),
        Switch(
            "sync_is_25_when_empty",
            JAVA_ONLY,
            "SyncGroup to an Empty group is answered 25 before instance ids are looked at",
            "doSyncGroup; classicGroupSync",
        ),
        Switch(
            "absent_protocol_matches",
            JAVA_ONLY,
            "a SyncGroup that names a protocol matches a group that has none yet",
            "validateSyncGroup, in both",
        ),
        Switch(
            "txn_commit_creates_group",
            SCALA_ONLY,
            "a TxnOffsetCommit with a generation to an unknown group leaves an Empty group behind",
            "handleTxnCommitOffsets; OffsetMetadataManager.validateTransactionalOffsetCommit",
        ),
        Switch(
            "retention_counts_from_load",
            JAVA_ONLY,
            "expired offsets are looked for one interval after the load, else in the rhythm of the broker's start",
            "GroupMetadataManager.startup; GroupCoordinatorShard.onLoaded",
        ),
        Switch(
            "overfull_rebalances_before_arming",
            SCALA_ONLY,
            "a loaded group over group.max.size starts its rebalance before its members' sessions are armed",
            "onGroupLoaded; onLoaded",
        ),
        Switch(
            "join_phase_ends_once",
            SCALA_ONLY,
            "a join phase whose end threw is not tried again: the group prepares until it is loaded anew",
            "DelayedJoin (a DelayedOperation completes once); tryCompleteJoin",
        ),
        Switch(
            "absent_rebalance_timeout_is_session",
            JAVA_ONLY,
            "a rebalance timeout of -1 comes back from a load as the session timeout",
            "readGroupMessageValue; replay of GroupMetadataValue",
        ),
        Switch(
            "new_member_timeout",
            since((2, 1, 1)),
            "a new member has five minutes in its first JoinGroup; before, no timer at all",
            "tags 2.1.0, 2.1.1 (KAFKA-7610)",
        ),
        Switch(
            "removed_joiner_is_answered",
            since((2, 1, 1)),
            "a member removed while it waits in JoinGroup is answered 25; before, never",
            "tags 2.1.0, 2.1.1",
        ),
        Switch(
            "empty_since_counts",
            since((2, 1, 0)),
            "offsets of a group with a protocol type are kept while it has members and expire after it became Empty; "
            "before, each by its own commit",
            "tags 2.0.1, 2.1.0 (KIP-211)",
        ),
        Switch(
            "member_id_required",
            since((2, 2, 0)),
            "JoinGroup v4 without member id is answered 79 and a pending id",
            "KIP-394",
        ),
        Switch("max_size", since((2, 2, 0)), "group.max.size bounds a group (81)", "KIP-389"),
        Switch(
            "static_members",
            since((2, 3, 0)),
            "instance ids: kept through the rebalance timeout, replaced, fenced (82)",
            "KIP-345",
        ),
        Switch(
            "completing_checks_generation",
            since((2, 3, 0)),
            "a Heartbeat while Completing is checked for its generation; before, 27 to every member",
            "tags 2.2.2, 2.3.0",
        ),
        Switch(
            "commit_checks_member_first",
            since((2, 4, 0)),
            "an OffsetCommit while Completing is answered 25 or 22 before 27; before, 27 to anybody",
            "KAFKA-8487",
        ),
        Switch(
            "unsubscribed_offsets_expire",
            since((2, 4, 0)),
            "offsets of topics that no member of a consumer group subscribes to expire by their commit",
            "tags 2.2.2, 2.4.1 (KAFKA-8730)",
        ),
        Switch(
            "completing_replacement_rebalances",
            since((2, 5, 0)),
            "a static member replaced while Completing starts a rebalance; before, answered at once",
            "KAFKA-9801",
        ),
        Switch(
            "new_member_keeps_short_timer",
            (Span(OLDEST, (2, 4, 0)), Span((2, 5, 0))),
            "a new member armed with its own session timeout can expire by it; else its five minutes make a shorter "
            "timer void, and it lives until the next rebalance drops it",
            "tags 2.4.1, 2.5.1 (KAFKA-9232, 9752); recordings of 2.0.1, 2.2.2, 2.3.1 and 2.5.1 have it, 2.4.1 has not",
        ),
        Switch(
            "waiting_new_member_keeps_short_timer",
            since((2, 5, 0)),
            "the same while it waits in its first JoinGroup, of a heartbeat, a commit, or another process of a static "
            "member; before, nothing times it until its JoinGroup is answered",
            "tags 2.4.1, 2.5.1 (KAFKA-9752); seen in the classes of 2.3.1",
        ),
        Switch(
            "txn_commit_is_checked",
            since((2, 5, 0)),
            "TxnOffsetCommit is checked for member and generation when they are sent",
            "KIP-447",
        ),
        Switch(
            "sync_names_protocol",
            since((2, 5, 0)),
            "SyncGroup names protocol type and name, which are compared",
            "tags 2.4.1, 2.5.1 (KIP-559)",
        ),
        Switch(
            "max_size_counts_joined",
            since((2, 6, 0)),
            "group.max.size counts waiting members while preparing; before, only known members of an overfull group "
            "and new ids of a full one are rejected",
            "KAFKA-9844, 9885",
        ),
        Switch(
            "completing_heartbeat_arms",
            since((2, 6, 1)),
            "a Heartbeat while Completing is answered 0 and arms; before, 27 and nothing",
            "KAFKA-10134",
        ),
        Switch(
            "replacement_is_recorded",
            since((2, 6, 1)),
            "a static member replaced while Stable is recorded, and rebalances when the vote changes; before, answered "
            "at once whatever its protocols",
            "KAFKA-10284",
        ),
        Switch(
            "state_instant_is_loaded",
            since((2, 6, 1)),
            "the instant of the last state change is read back at load",
            "KAFKA-10401",
        ),
        Switch(
            "sync_timer",
            since((2, 8, 1)),
            "members that never send SyncGroup are removed a rebalance timeout after the join phase",
            "KAFKA-12890",
        ),
        Switch(
            "replaced_id_breaks_sync_timer",
            (Span((2, 8, 1), (3, 0, 0)),),
            "the sync timeout fails at the old id of a replaced static member: who comes before it is removed, and no "
            "rebalance starts",
            "tags 2.8.1, 2.8.2, 3.0.0: onExpirePendingSync",
        ),
        Switch(
            "loaded_members_are_static",
            (Span((2, 3, 0), (2, 8, 0)),),
            "every member that a load brings back counts as static: who does not rejoin stays until its session ends",
            "tags 2.2.2, 2.3.0, 2.7.2, 2.8.0: readGroupMessageValue; seen in the classes of 2.3.1, 2.5.1 and 2.7.2",
        ),
        Switch(
            "rejection_drops_instance",
            (Span((2, 3, 0), (2, 8, 0)),),
            "a JoinGroup rejected with 81 also forgets the instance id it was sent with",
            "tags 2.3.0, 2.7.2, 2.8.0",
        ),
        Switch(
            "rejection_drops_pending",
            since((3, 0, 0)),
            "a JoinGroup rejected with 81 also forgets a pending id; before, it is pending until its time is over",
            "tags 2.8.2, 3.0.0: GroupMetadata.remove",
        ),
        Switch(
            "only_stable_offsets_expire",
            since((2, 8, 2), (3, 0, 2), (3, 1, 2), (3, 2, 0)),
            "offsets of a group with members expire only while it is Stable; before, while it rebalances too",
            "KAFKA-13636",
        ),
        Switch(
            "unmapped_instance_is_25",
            since((3, 0, 0)),
            "an instance id that nobody holds is answered 25 everywhere; before, only in JoinGroup",
            "tags 2.8.2, 3.0.0: validateCurrentMember",
        ),
        Switch(
            "pending_leave_refuses_instance",
            (Span((2, 4, 0), (3, 0, 0)),),
            "a LeaveGroup of a pending id that also names an instance fails as a whole (-1)",
            "tags 2.4.1, 2.8.2, 3.0.0",
        ),
        Switch(
            "simple_commit_ignores_member",
            (Span(OLDEST, (3, 0, 0)), Span((3, 3, 0))),
            "an OffsetCommit without generation to an Empty group is stored whatever member or instance it names",
            "KAFKA-14201",
        ),
        Switch(
            "skips_assignment",
            since((3, 2, 0)),
            "JoinGroup v9 tells a replaced static leader to skip the assignment",
            "KIP-814",
        ),
        Switch(
            "rejoin_updates_timeouts",
            since((3, 3, 2)),
            "a rejoin stores its session and rebalance timeout; before, those of the first JoinGroup stay",
            "KAFKA-14009",
        ),
    )
}
"""Every difference that a model which applies each request at one instant can show."""


class Invisible(NamedTuple):
    """A difference between releases that this model does not show, and why."""

    meaning: str
    first: str
    why: str


INVISIBLE: tuple[Invisible, ...] = (
    Invisible("a Dead group answers 15 instead of 25", "2.3.0", "a group that dies is gone in the same instant"),
    Invisible("a static member's id ends in a UUID instead of a time", "2.3.1", "the caller hands the ids in"),
    Invisible("heartbeats count by a flag instead of the wall clock", "2.5.0", "differs only in races of threads"),
    Invisible("loads and unloads are ordered by epoch", "2.8.1, 3.0.0", "the caller orders them"),
    Invisible("a failing callback answers -1", "3.4.0", "nothing fails here"),
    Invisible("a Java broker holds Heartbeat and LeaveGroup back until earlier writes commit", "4.0.0", "no latency"),
    Invisible("a Java broker may reload by itself", "4.0.0", "no write goes astray here"),
)


@cache
def behaviour_of(kafka_version: str) -> Behaviour:
    """Behaviour of a release, by its default coordinator (Scala up to 3.9, Java from 4.0).

    Raises ValueError as `version_of`.
    """
    version = version_of(kafka_version)
    coordinator = coordinator_of(kafka_version) or Coordinator.SCALA
    return Behaviour(kafka_version=kafka_version, coordinator=coordinator, **flags_of(SWITCHES, version))
