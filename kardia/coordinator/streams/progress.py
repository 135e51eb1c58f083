"""What a heartbeat changes of its group: a new epoch, a new target, and when the first one comes.

Follows the middle of `GroupMetadataManager.streamsGroupHeartbeat`, `maybeUpdateStreamsTargetAssignment`,
`refineAssignment` and `computeDelayedTargetAssignment`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kardia.coordinator.consumer.operations import Topic
from kardia.coordinator.errors import NotModelledError
from kardia.coordinator.streams.assignor import Work, Worker, broken_law
from kardia.coordinator.streams.group import NO_TASKS, Member, StreamsGroup, Tasks
from kardia.coordinator.streams.membership import Sender
from kardia.coordinator.streams.operations import Topology
from kardia.coordinator.streams.shard import Shard
from kardia.coordinator.streams.status import Status
from kardia.coordinator.streams.topology import Configured, required_topics
from kardia.coordinator.timers import Timer


@dataclass(slots=True)
class Decided:
    """What a heartbeat will have changed, when all of it is decided."""

    group: StreamsGroup
    sender: Sender
    updated: Member
    topology: Topology
    configured: Configured
    metadata: Mapping[str, Topic]
    validated: int
    configuration: tuple[int, tuple[str, ...]]
    statuses: list[Status]
    epoch: int
    assignment_epoch: int
    assigned_at_ms: int
    target: Mapping[str, Tasks]


def new_epoch_and_target(shard: Shard, decided: Decided, bump: bool) -> Mapping[str, Tasks]:
    """Decide the group's epoch and target. What members are led to."""
    group, behaviour = decided.group, shard.behaviour
    refined: Mapping[str, Tasks] | None = None
    refines = False
    if behaviour.settled_groups_are_refined and not bump and group.state() == "Stable":
        refined = group.target
        refines = refined.get(decided.updated.member_id, NO_TASKS) != decided.updated.assigned.plain()
    if bump or refines:
        first = behaviour.first_epoch_is_two and group.group_epoch == 0
        decided.epoch = 2 if first else group.group_epoch + 1
        group.refreshed, group.refreshed_epoch = True, decided.epoch
    if behaviour.delays_the_first_assignment and not group.members:
        _start_delay(shard, group.group_id)
    _decide_target(shard, decided, refines)
    if not behaviour.settled_groups_are_refined:
        return decided.target
    if refined is None:
        known_epoch, known = group.refined
        refined = known if known_epoch == decided.assignment_epoch else decided.target
    group.refined = decided.assignment_epoch, dict(refined)
    return refined


def _start_delay(shard: Shard, group_id: str) -> None:
    delay_ms = shard.settings_of(group_id).group_streams_initial_rebalance_delay_ms
    key = shard.initial_key(group_id)
    if delay_ms > 0 and shard.timers.deadline(key) < 0:
        shard.timers.arm(key, shard.now_ms, delay_ms)


def _decide_target(shard: Shard, decided: Decided, refines: bool) -> None:
    group = decided.group
    if shard.timers.deadline(shard.initial_key(group.group_id)) >= 0:
        decided.statuses.append(Status.ASSIGNMENT_DELAYED)
        decided.assignment_epoch = max(1, group.assignment_epoch)
        decided.target = {}
        return
    decided.target = _relabelled(decided)
    if group.assignment_epoch >= decided.epoch:
        return
    if refines and group.assignment_epoch >= group.group_epoch:
        decided.assignment_epoch = decided.epoch
    elif not _may_assign(shard, group):
        decided.statuses.append(Status.ASSIGNMENT_DELAYED)
    else:
        _refuse_hidden_target(shard, decided)
        gone = decided.sender.replaces.member_id if decided.sender.replaces is not None else ""
        members = {one: member for one, member in group.members.items() if one != gone}
        members[decided.updated.member_id] = decided.updated
        decided.target = _assigned(
            shard, group.group_id, members, decided.topology, decided.configured, decided.configuration[0]
        )
        decided.assignment_epoch = decided.epoch
        decided.assigned_at_ms = shard.now_ms if shard.behaviour.waits_for_assignment_interval else 0


def _refuse_hidden_target(shard: Shard, decided: Decided) -> None:
    """4.1 does not miss topics that are deleted after a member has gone. A heartbeat that has to tell endpoints then
    fails after the target was computed, which nobody sees, and timers are armed by it."""
    is_stale = decided.configured.is_ready and not required_topics(decided.topology) <= shard.topics.keys()
    members = (*decided.group.members.values(), decided.updated)
    if is_stale and any(one.endpoint is not None for one in members):
        raise NotModelledError(f"group {decided.group.group_id!r}: topics are gone that the last look at them found")


def _relabelled(decided: Decided) -> Mapping[str, Tasks]:
    """The target with that of a member whose place is taken."""
    replaced = decided.sender.replaces
    if replaced is None:
        return decided.group.target
    target = dict(decided.group.target)
    target[decided.updated.member_id] = target.pop(replaced.member_id, NO_TASKS)
    return target


def _may_assign(shard: Shard, group: StreamsGroup) -> bool:
    interval_ms = shard.settings_of(group.group_id).group_streams_assignment_interval_ms
    if not shard.behaviour.waits_for_assignment_interval or not group.assigned_at_ms or not interval_ms:
        return True
    return shard.now_ms >= group.assigned_at_ms + interval_ms


def _assigned(
    shard: Shard,
    group_id: str,
    members: Mapping[str, Member],
    topology: Topology,
    configured: Configured,
    standbys: int,
) -> dict[str, Tasks]:
    """A new target: nothing for anybody as long as topics are missing."""
    if not configured.is_ready or configured.tasks is None:
        return dict.fromkeys(members, NO_TASKS)
    workers = [Worker(one.member_id, one.process_id) for one in members.values()]
    stateful = frozenset(one.subtopology_id for one in topology.subtopologies if one.changelogs)
    work = Work(configured.tasks, stateful, standbys)
    target = shard.choose.assign(group_id, workers, work)
    broken = broken_law(workers, work, target)
    if broken:
        raise ValueError(f"group {group_id!r}: {broken}; expected what the assignor of streams groups does")
    return {one: target.get(one, NO_TASKS) for one in members}


def delay_fired(shard: Shard, timer: Timer) -> None:
    """The delay is over: the first assignment, of which members hear at their next heartbeat."""
    group = shard.groups.get(timer.key[1])
    if group is None or not group.members or group.topology is None or group.configured is None:
        return
    if group.group_epoch <= group.assignment_epoch or not _may_assign(shard, group):
        return
    standbys = group.configuration[0] if group.configuration is not None else 0
    group.target = _assigned(shard, group.group_id, group.members, group.topology, group.configured, standbys)
    group.assignment_epoch = group.group_epoch
    group.assigned_at_ms = shard.now_ms if shard.behaviour.waits_for_assignment_interval else 0
    shard.happen(group.group_id, "assigned", detail=str(group.assignment_epoch))
