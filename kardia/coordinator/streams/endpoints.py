"""Where which state can be asked for: the endpoints of members, with the partitions of the tasks that they have.

Follows `EndpointToPartitionsManager` and `StreamsGroup.buildEndpointToPartitions`. Where Kafka cannot say it, because a
topic is missing, the whole heartbeat fails (-1).
"""

from __future__ import annotations

from collections.abc import Iterable

from kardia.coordinator.errors import RefusedError
from kardia.coordinator.streams.group import Member, StreamsGroup
from kardia.coordinator.streams.operations import Endpoint, EndpointView, Task, Topology
from kardia.coordinator.streams.shard import Shard
from kardia.kafka.states import ErrorCode

_Partitions = tuple[tuple[str, tuple[int, ...]], ...]


def endpoints(
    shard: Shard, group: StreamsGroup, topology: Topology, updated: Member, replaced: Member | None
) -> tuple[EndpointView, ...] | None:
    """All endpoints of the group as the sender of a heartbeat is told them. Raises RefusedError."""
    gone = replaced.member_id if replaced is not None else ""
    others = [one for one in group.members.values() if one.member_id not in (updated.member_id, gone)]
    if shard.behaviour.endpoints_start_at_none:
        # A member that joins is not told of itself, one that moves with the endpoint that it had.
        known = group.members.get(updated.member_id)
        told = [(one, one.endpoint) for one in others] + ([(updated, known.endpoint)] if known is not None else [])
        found = [_view(shard, group, topology, one, endpoint) for one, endpoint in told if endpoint is not None]
        return tuple(sorted(found)) if found else None
    found = []
    for one in (*others, updated):
        if one.endpoint is None:
            continue
        if one.member_id not in group.endpoints:
            group.endpoints[one.member_id] = _view(shard, group, topology, one, one.endpoint)
        found.append(group.endpoints[one.member_id])
    return tuple(sorted(found))


def _view(shard: Shard, group: StreamsGroup, topology: Topology, member: Member, endpoint: Endpoint) -> EndpointView:
    return EndpointView(endpoint, *_parts(shard, group, topology, member))


def _parts(shard: Shard, group: StreamsGroup, topology: Topology, member: Member) -> tuple[_Partitions, _Partitions]:
    if group.configured is None or group.configured.tasks is None:
        raise RefusedError(ErrorCode.UNKNOWN_SERVER_ERROR)
    replicas = member.assigned.standby
    if shard.behaviour.endpoints_have_own_partitions:
        replicas = replicas | member.assigned.warmup
    return _partitions(shard, topology, member.assigned.active), _partitions(shard, topology, replicas)


def _partitions(shard: Shard, topology: Topology, tasks: Iterable[Task]) -> _Partitions:
    numbers: dict[str, list[int]] = {}
    for subtopology_id, number in sorted(tasks):
        numbers.setdefault(subtopology_id, []).append(number)
    found: list[tuple[str, tuple[int, ...]]] = []
    for one in topology.subtopologies:
        held = numbers.get(one.subtopology_id, [])
        if not held:
            continue
        for name in {*one.sources, *(topic.name for topic in one.repartitions)}:
            topic = shard.topics.get(name)
            if topic is None:
                raise RefusedError(ErrorCode.UNKNOWN_SERVER_ERROR)
            if not shard.behaviour.endpoints_have_own_partitions:
                # As many as the topic has, whatever their numbers.
                found.append((name, tuple(held[: topic.partitions])))
            elif own := tuple(number for number in held if number < topic.partitions):
                found.append((name, own))
    return tuple(sorted(found))
