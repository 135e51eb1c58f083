"""Where releases differ in how they coordinate streams groups, as data: one row a switch, as for consumer groups.

Each row was put to the classes of 4.1.2, 4.2.1, 4.3.1 and 4.4.0 by `tests/truth`. Streams groups are an early access of
4.1, and finished in 4.2.
"""

from __future__ import annotations

from typing import NamedTuple

from kardia.coordinator.switches import Switch, flags_since
from kardia.kafka.releases import Span, Version, since

FIRST: Version = (4, 1, 0)
_ONLY_4_1 = (Span(FIRST, (4, 2, 0)),)
_ONLY_4_2 = (Span((4, 2, 0), (4, 3, 0)),)
_BEFORE_4_4 = (Span(FIRST, (4, 4, 0)),)


class StreamsBehaviour(NamedTuple):
    """How one release coordinates streams groups. Every flag is a row of `SWITCHES`, which says what it means."""

    kafka_version: str
    groups_start_at_one: bool
    first_epoch_is_two: bool
    rejoins_with_epoch_zero: bool
    full_for_everybody: bool
    takes_static_members: bool
    takes_offsets: bool
    validation_is_recorded: bool
    nothing_is_validated_at_first: bool
    configuration_makes_an_epoch: bool
    fencing_forgets_the_topics: bool
    delays_the_first_assignment: bool
    waits_for_assignment_interval: bool
    counts_the_epoch_of_a_task: bool
    keeps_replicas_in_place: bool
    settled_groups_are_refined: bool
    emptying_assigns: bool
    statuses_are_always_listed: bool
    endpoints_start_at_none: bool
    joining_takes_the_endpoint_away: bool
    endpoints_change_by_themselves: bool
    endpoints_have_own_partitions: bool
    asks_for_tags: bool


SWITCHES: dict[str, Switch] = {
    switch.name: switch
    for switch in (
        Switch(
            "groups_start_at_one",
            since((4, 3, 0)),
            "a new group is in epoch 1 and has a target for it before anything happened; the first change leads to 2",
            "KAFKA-20268",
        ),
        Switch("first_epoch_is_two", _ONLY_4_2, "the first change leads from 0 to 2", "KAFKA-19829"),
        Switch(
            "rejoins_with_epoch_zero",
            since((4, 2, 0)),
            "a known member may send epoch 0 at any time; before, only while its previous epoch is 0",
            "KAFKA-19233",
        ),
        Switch(
            "full_for_everybody",
            _BEFORE_4_4,
            "in a full group not even a member may send epoch 0; later, members and known static ids may",
            "throwIfStreamsGroupIsFull",
        ),
        Switch(
            "takes_static_members",
            since((4, 4, 0)),
            "a member may have an instance id, and leave for a while with -2; before, a request with one is refused",
            "KAFKA-20169",
        ),
        Switch(
            "takes_offsets",
            since((4, 4, 0)),
            "a heartbeat may tell the offsets of changelogs and warmup tasks; before, it is refused",
            "throwIfStreamsGroupHeartbeatRequestIsUsingUnsupportedFeatures",
        ),
        Switch(
            "validation_is_recorded",
            since((4, 2, 0)),
            "that the topics fit the topology is recorded with the group epoch, and a change of it makes a new one; "
            "before, it is known in memory only, so that a load makes the group not ready",
            "validatedTopologyEpoch",
        ),
        Switch(
            "nothing_is_validated_at_first",
            since((4, 4, 0)),
            "no topology counts as validated in a new group; before, one of epoch 0",
            "StreamsGroup",
        ),
        Switch(
            "configuration_makes_an_epoch",
            since((4, 2, 0)),
            "the group's configuration of assignments, when it changes, makes a new epoch with the next heartbeat",
            "lastAssignmentConfigs",
        ),
        Switch(
            "fencing_forgets_the_topics",
            _ONLY_4_1,
            "what is recorded of the topics is lost when a member goes",
            "streamsGroupFenceMember",
        ),
        Switch(
            "delays_the_first_assignment",
            since((4, 2, 0)),
            "the first member of an empty group starts a delay, in which nobody gets a task",
            "KAFKA-19829",
        ),
        Switch(
            "waits_for_assignment_interval",
            since((4, 3, 0)),
            "a target is computed no sooner than group.streams.assignment.interval.ms after the last one",
            "KIP-1263",
        ),
        Switch(
            "counts_the_epoch_of_a_task",
            since((4, 2, 0)),
            "an active task has the epoch in which it was assigned",
            "TasksTupleWithEpochs",
        ),
        Switch(
            "keeps_replicas_in_place",
            since((4, 4, 0)),
            "a member whose standby becomes active keeps it until then, one whose active task becomes a standby gets "
            "that at once; before, either waits until the old one is given up",
            "CurrentAssignmentBuilder",
        ),
        Switch(
            "settled_groups_are_refined",
            since((4, 4, 0)),
            "what members of a stable group are led to is decided once for each epoch, and a member of it that has "
            "something else than its target makes a new epoch",
            "refineAssignment",
        ),
        Switch(
            "emptying_assigns",
            since((4, 4, 0)),
            "the epoch in which the last member goes is also the epoch of the target, of instant 0",
            "KAFKA-20442",
        ),
        Switch(
            "statuses_are_always_listed",
            since((4, 2, 0)),
            "an answer without a status carries an empty list; before, none",
            "streamsGroupHeartbeat",
        ),
        Switch(
            "endpoints_start_at_none",
            _ONLY_4_1,
            "endpoints are counted from -1, with each assignment, and told without the member that joins",
            "maybeBuildEndpointToPartitions",
        ),
        Switch(
            "joining_takes_the_endpoint_away",
            since((4, 4, 0)),
            "a member that sends epoch 0 without an endpoint has none any more",
            "streamsGroupHeartbeat",
        ),
        Switch(
            "endpoints_change_by_themselves",
            since((4, 4, 0)),
            "a new endpoint is counted when it comes, tasks only when they change; before, with every answer that "
            "carries tasks",
            "hasUserEndpointChanged",
        ),
        Switch(
            "endpoints_have_own_partitions",
            since((4, 4, 0)),
            "an endpoint is told with the partitions that exist, standby and warmup tasks together",
            "EndpointToPartitionsManager",
        ),
        Switch(
            "asks_for_tags",
            since((4, 4, 0)),
            "a member without the tags that the group needs is told so",
            "KAFKA-20744",
        ),
    )
}


def streams_behaviour_of(kafka_version: str) -> StreamsBehaviour:
    """The row of a release. Raises ValueError for one that is older than 4.1."""
    return StreamsBehaviour(kafka_version, **flags_since(SWITCHES, kafka_version, FIRST))
