"""Where releases differ in how they coordinate consumer groups, as data: one row a switch, as for classic groups.

Sources are issues, proposals, or the method of `GroupMetadataManager.java` (unless said) that was changed. Each row was
put to the classes of 4.0.2, 4.1.2, 4.2.1, 4.3.1 and 4.4.0 by `tests/truth`.
"""

from __future__ import annotations

from typing import NamedTuple

from kardia.coordinator.switches import Switch, flags_since
from kardia.kafka.releases import Span, Version, since

FIRST: Version = (4, 0, 0)
"""The first release whose brokers coordinate consumer groups without being asked to."""


class ConsumerBehaviour(NamedTuple):
    """How one release coordinates consumer groups. Every flag is a row of `SWITCHES`, which says what it means."""

    kafka_version: str
    groups_start_at_one: bool
    rejoins_with_epoch_zero: bool
    revocation_adds_an_epoch: bool
    assigned_must_be_subscribed: bool
    unsubscribing_sets_previous_epoch: bool
    waits_for_assignment_interval: bool
    emptying_assigns: bool
    assignor_counts: bool
    static_rejoins_full_group: bool
    changed_instance_id_is_free: bool
    dropped_regex_counts: bool
    regexes_age: bool
    request_checked_before_ownership: bool
    partitions_have_epochs: bool
    classic_rejoins_for_target: bool
    policy_refuses_classic: bool
    stale_target_rebalances_downgraded: bool
    downgrade_needs_every_target: bool
    topics_take_all_offsets: bool


SWITCHES: dict[str, Switch] = {
    switch.name: switch
    for switch in (
        Switch(
            "groups_start_at_one",
            since((4, 3, 0)),
            "a new group is in epoch 1 and has a target for it before anything happened, so the first change leads to "
            "2; before, to 1, and the first heartbeat counts as a change",
            "KAFKA-20268",
        ),
        Switch(
            "rejoins_with_epoch_zero",
            since((4, 2, 0)),
            "a known dynamic member may send epoch 0 at any time; before, only while its previous epoch is 0",
            "KAFKA-19233",
        ),
        Switch(
            "revocation_adds_an_epoch",
            (Span(FIRST, (4, 2, 0)),),
            "a member that gave up what it had to, and must give up more, goes to its epoch plus one",
            "KAFKA-19974",
        ),
        Switch(
            "assigned_must_be_subscribed",
            since((4, 2, 0)),
            "partitions of topics that a member no longer subscribes to are taken from it at once, whatever its target",
            "KAFKA-19431",
        ),
        Switch(
            "unsubscribing_sets_previous_epoch",
            since((4, 3, 0)),
            "partitions taken by a changed subscription make the epoch of the member its previous one as well",
            "CurrentAssignmentBuilder.updateCurrentAssignment",
        ),
        Switch(
            "waits_for_assignment_interval",
            since((4, 3, 0)),
            "a target is computed no sooner than group.consumer.assignment.interval.ms after the last one",
            "KIP-1263",
        ),
        Switch(
            "emptying_assigns",
            since((4, 4, 0)),
            "the epoch in which the last member goes is also the epoch of the target, of instant 0",
            "KAFKA-20442",
        ),
        Switch(
            "assignor_counts",
            since((4, 4, 0)),
            "a heartbeat that changes the assignor most members prefer makes a new epoch",
            "KAFKA-20434",
        ),
        Switch(
            "static_rejoins_full_group",
            since((4, 4, 0)),
            "an instance id that the group knows may come back under another member id although the group is full",
            "KAFKA-20601",
        ),
        Switch(
            "changed_instance_id_is_free",
            since((4, 4, 0)),
            "a member that comes with another instance id gives up its old one; before, the old one leads to it as "
            "long as it lives and is refused (25) afterwards",
            "ConsumerGroup.updateStaticMember",
        ),
        Switch(
            "dropped_regex_counts",
            since((4, 1, 0)),
            "a member that drops its regular expression makes a new epoch",
            "KAFKA-19891",
        ),
        Switch(
            "regexes_age",
            since((4, 1, 0)),
            "regular expressions are resolved anew after group.consumer.regex.refresh.interval.ms",
            "KAFKA-18813",
        ),
        Switch(
            "request_checked_before_ownership",
            since((4, 1, 0)),
            "a request with impossible fields is refused (42, 112) by a broker that is not the coordinator",
            "GroupCoordinatorService.consumerGroupHeartbeat",
        ),
        Switch(
            "partitions_have_epochs",
            since((4, 3, 0)),
            "a commit in an older epoch is taken for a partition that the member has had since then",
            "KIP-1251",
        ),
        Switch(
            "classic_rejoins_for_target",
            since((4, 3, 0)),
            "a member of the classic protocol is told to join again (27) when there is a target of a later epoch; "
            "before, as soon as there is a later epoch",
            "KAFKA-20272",
        ),
        Switch(
            "policy_refuses_classic",
            since((4, 3, 1)),
            "a JoinGroup of the classic protocol is refused (23) where group.consumer.migration.policy is disabled",
            "KAFKA-20640",
        ),
        Switch(
            "stale_target_rebalances_downgraded",
            since((4, 3, 0)),
            "a group that becomes classic because a static member comes back with JoinGroup rebalances at once if its "
            "target is older than its epoch; before, if the subscription of that member has changed",
            "classicGroupJoinToConsumerGroup",
        ),
        Switch(
            "downgrade_needs_every_target",
            (Span(FIRST, (4, 3, 0)),),
            "a group does not become classic while a member is in no target, which happens to members without "
            "subscription: the request is answered -1, a timer fires again every 500 ms",
            "ClassicGroup.fromConsumerGroup",
        ),
        Switch(
            "topics_take_all_offsets",
            since((4, 3, 0)),
            "with a topic that is deleted all its offsets go; before, those of the partitions that it had, and one of "
            "another number stays",
            "GroupCoordinatorService.onPartitionsDeleted, from 4.3 on onMetadataUpdate",
        ),
    )
}


def consumer_behaviour_of(kafka_version: str) -> ConsumerBehaviour:
    """The row of a release. Raises ValueError for one that is older than 4.0."""
    return ConsumerBehaviour(kafka_version, **flags_since(SWITCHES, kafka_version, FIRST))
