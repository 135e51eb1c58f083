"""StreamsGroupHeartbeat: what calls for a new epoch, the step of the member, the answer, and what is recorded.

Follows `GroupMetadataManager.streamsGroupHeartbeat`, whose middle is in `progress`. Kafka decides first and applies its
records when all is decided: a heartbeat that fails half-way has armed timers, and looked at the topics, and changed
nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from kardia.coordinator.consumer.operations import Topic
from kardia.coordinator.errors import RefusedError
from kardia.coordinator.streams import leaves
from kardia.coordinator.streams.endpoints import endpoints
from kardia.coordinator.streams.group import NO_TASKS, Held, Member, MemberState, StreamsGroup, Tasks
from kardia.coordinator.streams.membership import sender_of
from kardia.coordinator.streams.operations import StreamsAnswer, StreamsBeat, Task, Topology
from kardia.coordinator.streams.progress import Decided, new_epoch_and_target
from kardia.coordinator.streams.reconcile import Aim, reconcile
from kardia.coordinator.streams.requests import JOIN, LEAVE, LEAVE_FOR_A_WHILE, refusal
from kardia.coordinator.streams.shard import REBALANCE, Shard
from kardia.coordinator.streams.status import Status
from kardia.coordinator.streams.topology import Configured, configure, required_topics
from kardia.kafka.states import ErrorCode

_Told = tuple[tuple[Task, ...] | None, tuple[Task, ...] | None, tuple[Task, ...] | None]


def heartbeat(shard: Shard, beat: StreamsBeat) -> None:
    """A heartbeat arrives."""
    code = refusal(beat, shard.behaviour)
    if not code and not shard.loaded:
        code = ErrorCode.NOT_COORDINATOR
    if code:
        shard.answers.append(StreamsAnswer(beat.number, shard.now_ms, int(code)))
        return
    try:
        answer = leaves.leave(shard, beat) if beat.member_epoch in (LEAVE, LEAVE_FOR_A_WHILE) else _stay(shard, beat)
    except RefusedError as refused:
        answer = StreamsAnswer(beat.number, shard.now_ms, int(refused.code))
    shard.answers.append(answer)


def _stay(shard: Shard, beat: StreamsBeat) -> StreamsAnswer:
    group = shard.groups.get(beat.group_id)
    if group is None:
        if beat.member_epoch != JOIN:
            raise RefusedError(ErrorCode.GROUP_ID_NOT_FOUND)
        group = shard.new_group(beat.group_id)
    sender = sender_of(shard, group, beat)
    updated = _updated(sender.member, beat, shard.behaviour.joining_takes_the_endpoint_away)
    topology = _topology(group, beat)
    statuses: list[Status] = []
    if group.topology is not None and updated.topology_epoch < group.topology.epoch:
        statuses.append(Status.STALE_TOPOLOGY)
    bump = _calls_for_an_epoch(sender.member, updated, beat)
    configured, metadata = _look_at_topics(shard, group, topology)
    bump = bump or metadata != group.metadata
    if configured.is_ready:
        _refuse_tasks_that_are_none(beat, configured.tasks or {})
    if beat.offsets is not None and len({task for task, _ in beat.offsets}) < len(beat.offsets):
        raise RefusedError(ErrorCode.INVALID_REQUEST)
    validated = topology.epoch if configured.is_ready else -1
    if shard.behaviour.validation_is_recorded:
        bump = bump or validated != group.validated_epoch
    settings = shard.settings_of(group.group_id)
    tags = settings.group_streams_rack_aware_assignment_tags if shard.behaviour.asks_for_tags else ()
    configuration = (settings.group_streams_num_standby_replicas, tags)
    if shard.behaviour.configuration_makes_an_epoch:
        bump = bump or configuration != group.configuration
    decided = Decided(
        group, sender, updated, topology, configured, metadata, validated, configuration, statuses,
        group.group_epoch, group.assignment_epoch, group.assigned_at_ms, group.target,
    )  # fmt: skip
    led_to = new_epoch_and_target(shard, decided, bump)
    after = _reconciled(shard, decided, beat, led_to.get(updated.member_id, NO_TASKS))
    shard.arm_session(group.group_id, updated.member_id)
    if beat.shutdown:
        group.shutdown_by = group.shutdown_by or updated.member_id
    answer = _answer(shard, decided, beat, after)
    _apply(shard, decided, after)
    return answer


def _updated(member: Member, beat: StreamsBeat, joining_takes_the_endpoint_away: bool) -> Member:
    """The member with what it says of itself."""
    endpoint = beat.endpoint
    if endpoint is None and not (joining_takes_the_endpoint_away and beat.member_epoch == JOIN):
        endpoint = member.endpoint
    return replace(
        member,
        instance_id=beat.instance_id if beat.instance_id is not None else member.instance_id,
        rack_id=beat.rack_id if beat.rack_id is not None else member.rack_id,
        client_id=beat.client_id,
        client_host=beat.client_host,
        rebalance_timeout_ms=beat.rebalance_timeout_ms
        if beat.rebalance_timeout_ms != -1
        else member.rebalance_timeout_ms,
        topology_epoch=beat.topology.epoch if beat.topology is not None else member.topology_epoch,
        process_id=beat.process_id if beat.process_id is not None else member.process_id,
        endpoint=endpoint,
        tags=tuple(sorted(beat.tags)) if beat.tags is not None else member.tags,
    )


def _calls_for_an_epoch(before: Member, after: Member, beat: StreamsBeat) -> bool:
    """Whether what a member says of itself makes a new epoch: of a dynamic one all of it, of a static one what
    assignments go by."""
    if beat.instance_id is None:
        return after != before
    ours = (after.topology_epoch, after.rack_id, after.tags, after.process_id)
    return ours != (before.topology_epoch, before.rack_id, before.tags, before.process_id)


def _topology(group: StreamsGroup, beat: StreamsBeat) -> Topology:
    """The topology of the group: the first one that comes. Raises RefusedError for another one."""
    if beat.topology is None:
        if group.topology is None:
            raise RefusedError(ErrorCode.UNKNOWN_SERVER_ERROR)
        return group.topology
    if group.topology is None:
        return beat.topology
    if beat.topology.epoch >= group.topology.epoch and beat.topology != group.topology:
        raise RefusedError(ErrorCode.INVALID_REQUEST)
    return group.topology


def _look_at_topics(shard: Shard, group: StreamsGroup, topology: Topology) -> tuple[Configured, Mapping[str, Topic]]:
    """The topology as it can run now, and the topics that it needs; looked up where they may have changed."""
    metadata = group.metadata
    is_recent = group.refreshed and group.group_epoch >= group.refreshed_epoch
    if group.topology is not None and group.configured is not None and is_recent:
        return group.configured, metadata
    names = required_topics(topology)
    metadata = {name: shard.topics[name] for name in sorted(names) if name in shard.topics}
    if group.topology is None or group.configured is None or metadata != group.metadata:
        group.configured = configure(topology, shard.topics)
        group.endpoints.clear()
        if not shard.behaviour.validation_is_recorded:
            group.forget_shutdown_if_empty()
    return group.configured, metadata


def _refuse_tasks_that_are_none(beat: StreamsBeat, tasks: Mapping[str, int]) -> None:
    for part in (beat.active, beat.standby, beat.warmup):
        if any(not 0 <= number < tasks.get(subtopology_id, 0) for subtopology_id, number in part or ()):
            raise RefusedError(ErrorCode.INVALID_REQUEST)


def _reconciled(shard: Shard, decided: Decided, beat: StreamsBeat, target: Tasks) -> Member:
    """The member one step further, with its timer."""
    owned = None
    if beat.active is not None and beat.standby is not None and beat.warmup is not None:
        owned = Tasks(frozenset(beat.active), frozenset(beat.standby), frozenset(beat.warmup))
    group = decided.group
    aim = Aim(decided.assignment_epoch, target, owned, group.processes)
    after = reconcile(decided.updated, aim, shard.behaviour)
    if after != decided.updated:
        if after.state is MemberState.UNREVOKED:
            shard.arm_rebalance(group.group_id, after)
        else:
            shard.cancel(group.group_id, after.member_id, REBALANCE)
    return after


def _answer(shard: Shard, decided: Decided, beat: StreamsBeat, after: Member) -> StreamsAnswer:
    """What the member is told. Raises RefusedError."""
    group, behaviour = decided.group, shard.behaviour
    before = decided.sender.member
    changed = after.assigned != before.assigned
    told = after.assigned if changed or beat.member_epoch == JOIN else None
    _count_endpoints(shard, decided, beat, after, told)
    found = None
    if group.endpoint_epoch != beat.endpoint_epoch:
        found = endpoints(shard, group, decided.topology, after, decided.sender.replaces)
    configured = decided.configured
    statuses = list(decided.statuses)
    statuses += [configured.status] if configured.status is not None else []
    statuses += [Status.SHUTDOWN_APPLICATION] if group.shutdown_by else []
    tags = {tag for tag, _ in after.tags}
    if beat.version >= 1 and any(tag not in tags for tag in decided.configuration[1]):
        statuses.append(Status.MISSING_CLIENT_TAGS)
    # The count of a group that has just come into being is lost.
    counts = behaviour.endpoints_start_at_none or group.group_id in shard.groups
    return StreamsAnswer(
        beat.number,
        shard.now_ms,
        int(ErrorCode.NONE),
        after.member_id,
        after.epoch,
        shard.settings_of(group.group_id).group_streams_heartbeat_interval_ms,
        *_told(told),
        tuple(sorted(map(int, statuses))) if statuses or behaviour.statuses_are_always_listed else None,
        group.endpoint_epoch if counts else 0,
        found,
        tuple(sorted(configured.missing.items())) if configured.status is not None else (),
    )


def _told(held: Held | None) -> _Told:
    if held is None:
        return None, None, None
    return tuple(sorted(held.active)), tuple(sorted(held.standby)), tuple(sorted(held.warmup))


def _count_endpoints(shard: Shard, decided: Decided, beat: StreamsBeat, after: Member, told: Held | None) -> None:
    """Whether members have to learn the endpoints anew."""
    before = decided.sender.member
    group, replaced = decided.group, decided.sender.replaces
    if told is not None:
        group.endpoints.pop(after.member_id, None)
    if shard.behaviour.endpoints_change_by_themselves:
        is_new = before.endpoint != after.endpoint
        counts = is_new or (before.assigned != after.assigned and after.endpoint is not None)
        if is_new or replaced is not None:
            group.endpoints.pop(after.member_id, None)
            group.endpoints.pop(replaced.member_id if replaced is not None else "", None)
    elif shard.behaviour.endpoints_start_at_none:
        # Every answer with tasks counts, but not the one of a member that joins and gets none.
        counts = told is not None and (bool(told) or beat.member_epoch != JOIN)
    else:
        counts = told is not None and after.endpoint is not None
    group.endpoint_epoch += counts


def _apply(shard: Shard, decided: Decided, after: Member) -> None:
    """The records of a heartbeat take effect, in their order."""
    group = decided.group
    stored = shard.groups.get(group.group_id)
    if stored is None:
        # What the heartbeat has learnt of a new group is with an object that nobody keeps.
        shard.groups[group.group_id] = stored = shard.new_group(group.group_id)
        shard.happen(group.group_id, "created")
    replaced, started = decided.sender.replaces, decided.sender.member
    if replaced is not None:
        part = stored.target.get(replaced.member_id, NO_TASKS)
        stored.remove(replaced.member_id)
        # Another member may have had the id: its tasks are its own until the last of the records.
        had = stored.members.get(started.member_id, Member(started.member_id))
        stored.put(replace(started, assigned=had.assigned, pending=had.pending))
        stored.put(started)
        stored.target[started.member_id] = part
        shard.happen(group.group_id, "member_replaced", started.member_id, replaced.member_id)
    if started.member_id not in stored.members:
        shard.happen(group.group_id, "member_added", started.member_id, decided.updated.instance_id or "")
    if stored.members.get(started.member_id) != decided.updated:
        stored.put(decided.updated)
    if stored.topology is None:
        stored.topology = decided.topology
        shard.concerned.setdefault(group.group_id, set()).update(required_topics(decided.topology))
    if decided.epoch > group.group_epoch or stored is not group:
        stored.group_epoch, stored.metadata = decided.epoch, decided.metadata
        stored.validated_epoch = decided.validated if shard.behaviour.validation_is_recorded else 0
        if shard.behaviour.configuration_makes_an_epoch:
            stored.configuration = decided.configuration
        shard.happen(group.group_id, "epoch", detail=str(decided.epoch))
    if decided.assignment_epoch > stored.assignment_epoch and decided.assignment_epoch == decided.epoch:
        stored.assignment_epoch, stored.assigned_at_ms = decided.assignment_epoch, decided.assigned_at_ms
        stored.target = {one: decided.target.get(one, NO_TASKS) for one in stored.members}
        shard.happen(group.group_id, "assigned", detail=str(decided.assignment_epoch))
    if after != decided.updated:
        stored.put(after)
