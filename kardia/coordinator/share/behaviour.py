"""Where releases differ in how they coordinate share groups, as data: one row a switch, as for consumer groups.

Each row was put to the classes of 4.0.2, 4.1.2, 4.2.1, 4.3.1 and 4.4.0 by `tests/truth`. Share groups are an early
access of 4.0, a preview of 4.1, and finished in 4.2.
"""

from __future__ import annotations

from typing import NamedTuple

from kardia.coordinator.switches import Switch, flags_since
from kardia.kafka.releases import Span, Version, since

FIRST: Version = (4, 0, 0)


class ShareBehaviour(NamedTuple):
    """How one release coordinates share groups. Every flag is a row of `SWITCHES`, which says what it means."""

    kafka_version: str
    groups_start_at_one: bool
    rejoins_with_epoch_zero: bool
    request_checked_before_ownership: bool
    missing_group_is_an_error: bool
    partitions_are_initialized: bool
    names_call_for_the_assignment: bool
    only_subscribed_are_awaited: bool
    awaits_after_the_target: bool
    retries_by_setting: bool
    assigned_must_be_subscribed: bool
    waits_for_assignment_interval: bool
    emptying_assigns: bool
    sessions_start_at_load: bool
    empty_groups_expire: bool
    every_partition_is_given: bool


SWITCHES: dict[str, Switch] = {
    switch.name: switch
    for switch in (
        Switch(
            "groups_start_at_one",
            since((4, 3, 0)),
            "a new group is in epoch 1 and has a target for it before anything happened; the first change leads to 2",
            "KAFKA-20268",
        ),
        Switch(
            "rejoins_with_epoch_zero",
            since((4, 2, 0)),
            "a known member may send epoch 0 at any time; before, only while its previous epoch is 0",
            "KAFKA-19233",
        ),
        Switch(
            "request_checked_before_ownership",
            since((4, 1, 0)),
            "a request with impossible fields is refused (42) by a broker that is not the coordinator",
            "GroupCoordinatorService.shareGroupHeartbeat",
        ),
        Switch(
            "missing_group_is_an_error",
            (Span(FIRST, (4, 1, 0)),),
            "a heartbeat with an epoch to a group that does not exist is answered -1; later, 69",
            "getOrMaybeCreatePersistedShareGroup; getOrMaybeCreateShareGroup",
        ),
        Switch(
            "partitions_are_initialized",
            since((4, 1, 0)),
            "a partition is given out when it has a state at the share coordinator, which the heartbeats of the group "
            "ask for; before, at once",
            "KAFKA-18827",
        ),
        Switch(
            "names_call_for_the_assignment",
            since((4, 1, 0)),
            "the answer to a heartbeat that names topics carries the assignment",
            "shareGroupHeartbeat",
        ),
        Switch(
            "only_subscribed_are_awaited",
            since((4, 2, 0)),
            "a partition that has a state and is in no target makes a new epoch if its topic is subscribed to; before, "
            "any such partition, and then with every heartbeat",
            "initializedAssignmentPending",
        ),
        Switch(
            "awaits_after_the_target",
            since((4, 3, 0)),
            "and only when there is a target for the epoch",
            "shareGroupHeartbeat",
        ),
        Switch(
            "retries_by_setting",
            since((4, 2, 0)),
            "a state that was asked for is asked for again after group.share.initialize.retry.interval.ms",
            "subscribedTopicsChangeMap",
        ),
        Switch(
            "assigned_must_be_subscribed",
            since((4, 2, 0)),
            "a member has nothing of topics that it does not subscribe to, whatever its target",
            "ShareGroupAssignmentBuilder",
        ),
        Switch(
            "waits_for_assignment_interval",
            since((4, 3, 0)),
            "a target is computed no sooner than group.share.assignment.interval.ms after the last one",
            "KIP-1263",
        ),
        Switch(
            "emptying_assigns",
            since((4, 4, 0)),
            "the epoch in which the last member goes is also the epoch of the target, of instant 0",
            "KAFKA-20442",
        ),
        Switch(
            "sessions_start_at_load",
            since((4, 1, 0)),
            "a load starts the sessions of members; before, a member that sends no heartbeat any more stays for ever",
            "KAFKA-18931",
        ),
        Switch(
            "empty_groups_expire",
            (Span(FIRST, (4, 1, 0)),),
            "a group without members is deleted at the next look for expired offsets; later, never by itself",
            "KAFKA-19016",
        ),
        Switch(
            "every_partition_is_given",
            since((4, 2, 0)),
            "every partition that may be given out is in a member's target; before, some were in none",
            "SimpleAssignor",
        ),
    )
}


def share_behaviour_of(kafka_version: str) -> ShareBehaviour:
    """The row of a release. Raises ValueError for one that is older than 4.0."""
    return ShareBehaviour(kafka_version, **flags_since(SWITCHES, kafka_version, FIRST))
