"""Kafka's Java coordinator as it is asked about streams groups, and their view."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

from kardia.coordinator.streams.coordinator import NOBODY_LOOKED
from kardia.coordinator.streams.operations import StreamsMemberView, StreamsView, Task
from kardia.coordinator.streams.settings import StreamsSettings
from tests.truth.oracle.clock import Clock
from tests.truth.oracle.consumer_release import ConsumerRelease
from tests.truth.oracle.jvm import each, field, jclass
from tests.truth.oracle.read_before import Members

_GROUP = "org.apache.kafka.coordinator.group.streams.StreamsGroup"
_ROLES = {
    "active": "currentActiveTaskToProcessId",
    "standby": "currentStandbyTaskToProcessIds",
    "warmup": "currentWarmupTaskToProcessIds",
}


class StreamsRelease(ConsumerRelease):
    """One shard of the Java coordinator that holds streams groups."""

    def __init__(self, clock: Clock, settings: StreamsSettings) -> None:
        """Build it and become its coordinator, in a cluster without topics."""
        super().__init__(clock, settings)
        self._members = Members(_read_member)
        self._nobody = jclass("java.util.Optional").empty()
        self._topologies: dict[str, tuple[Any, Any]] = {}
        """By group: what is configured, and what was read of it."""
        self._roles = {role: field(_GROUP, name) for role, name in _ROLES.items()}
        self._has_instances = hasattr(jclass(_GROUP), "hasStaticMember")

    def wipe(self) -> None:
        """As any shard, without the configurations of its groups."""
        self._field(self._group_configs, "configMap").clear()
        self._configured.clear()
        self._topologies.clear()
        super().wipe()

    def configure(self, request: Any) -> None:
        """A group has a configuration of its own."""
        given = jclass("java.util.Properties")()
        names = jclass("org.apache.kafka.coordinator.group.GroupConfig")
        for name, value in (
            ("STREAMS_SESSION_TIMEOUT_MS_CONFIG", request.session_timeout_ms),
            ("STREAMS_HEARTBEAT_INTERVAL_MS_CONFIG", request.heartbeat_interval_ms),
            ("STREAMS_NUM_STANDBY_REPLICAS_CONFIG", request.num_standby_replicas),
            ("STREAMS_INITIAL_REBALANCE_DELAY_MS_CONFIG", request.initial_rebalance_delay_ms),
            ("STREAMS_ASSIGNMENT_INTERVAL_MS_CONFIG", request.assignment_interval_ms),
        ):
            if hasattr(names, name):
                given.put(getattr(names, name), str(value))
        self._group_configs.updateGroupConfig(request.group_id, given)

    def streams_view(self, group_id: str) -> StreamsView | None:
        """What is held about a streams group, or None."""
        group = None if self._groups is None else self._groups.get(group_id)
        if group is None:
            return None
        topology, configured = group.topology(), group.configuredTopology()
        status, tasks, missing = (
            self._read_topology(group_id, configured.get()) if configured.isPresent() else (NOBODY_LOOKED, (), ())
        )
        shutdown = group.getShutdownRequestMemberId()
        members = self._members.of(group_id, group, partial(self._target, group))
        return StreamsView(
            str(group.stateAsString()),
            int(group.groupEpoch()),
            int(group.assignmentEpoch()),
            int(group.assignmentTimestamp()) if hasattr(group, "assignmentTimestamp") else 0,
            int(topology.get().topologyEpoch()) if topology.isPresent() else -1,
            int(group.validatedTopologyEpoch()) if hasattr(group, "validatedTopologyEpoch") else 0,
            tuple(sorted(self._timed(group_id, member) for member in members.values())),
            status,
            tasks,
            missing,
            str(shutdown.get()) if shutdown.isPresent() else "",
            int(group.endpointInformationEpoch()),
            self._processes(group),
            self._deadline(f"initial-rebalance-timeout-{group_id}"),
        )

    def _read_topology(self, group_id: str, configured: Any) -> Any:
        """As `_configured`; what it reads is never changed, but replaced."""
        known = self._topologies.get(group_id)
        if known is None or not known[0].equals(configured):
            known = self._topologies[group_id] = (configured, _configured(configured))
        return known[1]

    def _processes(self, group: Any) -> tuple[tuple[Task, str, tuple[str, ...]], ...]:
        found: list[tuple[Task, str, tuple[str, ...]]] = []
        for role, by_subtopology in self._roles.items():
            for one in each(by_subtopology.get(group).entrySet()):
                subtopology_id = str(one.getKey())
                read = partial(_processes_of, role, subtopology_id)
                found += self._texts.of(self._map(one.getValue()), read, f"{role} {subtopology_id}")
        return tuple(sorted(found))

    def _target(self, group: Any, member_id: str) -> Any:
        return group.targetAssignment(member_id, *((self._nobody,) if self._has_instances else ()))

    def _timed(self, group_id: str, member: StreamsMemberView) -> StreamsMemberView:
        member_id = member.member_id
        return member._replace(
            session_deadline_at_ms=self._deadline(f"session-timeout-{group_id}-{member_id}"),
            rebalance_deadline_at_ms=self._deadline(f"rebalance-timeout-{group_id}-{member_id}"),
        )


def _processes_of(role: str, subtopology_id: str, by_task: Any) -> list[tuple[Task, str, tuple[str, ...]]]:
    found: list[tuple[Task, str, tuple[str, ...]]] = []
    for entry in each(by_task.entrySet()):
        held = entry.getValue()
        names = (str(held),) if role == "active" else tuple(sorted(str(name) for name in held))
        if names:
            found.append(((subtopology_id, int(entry.getKey())), role, names))
    return found


def _configured(configured: Any) -> tuple[int, tuple[tuple[str, int], ...], tuple[tuple[str, int], ...]]:
    problem, parts = configured.topicConfigurationException(), configured.subtopologies()
    missing = configured.internalTopicsToBeCreated().entrySet()
    tasks: Iterable[Any] = parts.get().entrySet() if parts.isPresent() else ()
    return (
        int(problem.get().status().code()) if problem.isPresent() else -1,
        tuple(sorted((str(one.getKey()), int(one.getValue().numberOfTasks())) for one in tasks)),
        tuple(sorted((str(one.getKey()), int(one.getValue().numPartitions())) for one in missing)),
    )


def _read_member(member_id: str, member: Any, given: Any) -> StreamsMemberView:
    endpoint = member.userEndpoint()
    return StreamsMemberView(
        member_id,
        _optional(member.instanceId()),
        _optional(member.rackId()),
        str(member.clientId()),
        str(member.clientHost()),
        int(member.rebalanceTimeoutMs()),
        int(member.topologyEpoch()),
        str(member.processId()),
        (str(endpoint.get().host()), int(endpoint.get().port())) if endpoint.isPresent() else None,
        tuple(sorted((str(one.getKey()), str(one.getValue())) for one in member.clientTags().entrySet())),
        int(member.memberEpoch()),
        int(member.previousMemberEpoch()),
        str(member.state().name()),
        *_held(member.assignedTasks()),
        *_held(member.tasksPendingRevocation()),
        _plain(given.activeTasks()),
        _plain(given.standbyTasks()),
        _plain(given.warmupTasks()),
        -1,
        -1,
    )


def _held(tasks: Any) -> tuple[tuple[tuple[Task, int], ...], tuple[Task, ...], tuple[Task, ...]]:
    """Tasks with their epochs, where the release counts those."""
    if hasattr(tasks, "activeTasksWithEpochs"):
        active = [
            ((str(one.getKey()), int(entry.getKey())), int(entry.getValue()))
            for one in tasks.activeTasksWithEpochs().entrySet()
            for entry in one.getValue().entrySet()
        ]
    else:
        active = [(task, 0) for task in _plain(tasks.activeTasks())]
    return tuple(sorted(active)), _plain(tasks.standbyTasks()), _plain(tasks.warmupTasks())


def _plain(by_subtopology: Any) -> tuple[Task, ...]:
    found = [(str(one.getKey()), int(number)) for one in by_subtopology.entrySet() for number in one.getValue()]
    return tuple(sorted(found))


def _optional(value: Any) -> str | None:
    return str(value.get()) if value.isPresent() else None
