"""A streams group: its members with their tasks, its target, its epochs, its topology. Counts and finds only.

Follows `StreamsGroup`, `StreamsGroupMember`, `TasksTuple` and `TasksTupleWithEpochs`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from kardia.coordinator.consumer.operations import Topic
from kardia.coordinator.streams.operations import Endpoint, EndpointView, Task, Topology
from kardia.coordinator.streams.topology import Configured


class MemberState(StrEnum):
    """What a member does, in Kafka's words."""

    STABLE = "STABLE"
    UNREVOKED = "UNREVOKED_TASKS"
    UNRELEASED = "UNRELEASED_TASKS"


class Tasks(NamedTuple):
    """Tasks by their role."""

    active: frozenset[Task] = frozenset()
    standby: frozenset[Task] = frozenset()
    warmup: frozenset[Task] = frozenset()


class Held(NamedTuple):
    """Tasks that a member has; active ones with the epoch in which each was assigned. Replaced as a whole."""

    active: Mapping[Task, int] = {}
    standby: frozenset[Task] = frozenset()
    warmup: frozenset[Task] = frozenset()

    def plain(self) -> Tasks:
        """Without epochs."""
        return Tasks(frozenset(self.active), self.standby, self.warmup)

    def __bool__(self) -> bool:
        """Whether there is any."""
        return bool(self.active or self.standby or self.warmup)


NO_TASKS, NOTHING_HELD = Tasks(), Held()


@dataclass(frozen=True, slots=True)
class Member:
    """Identity, what it said of itself, and what it has."""

    member_id: str
    epoch: int = 0
    previous_epoch: int = 0
    state: MemberState = MemberState.STABLE
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout_ms: int = -1
    topology_epoch: int = -1
    process_id: str = ""
    endpoint: Endpoint | None = None
    tags: tuple[tuple[str, str], ...] = ()
    assigned: Held = NOTHING_HELD
    pending: Held = NOTHING_HELD

    def reached(self, epoch: int) -> bool:
        """Whether it has all of the target of an epoch."""
        return self.state is MemberState.STABLE and self.epoch == epoch


class Processes:
    """Which process has which task. Kafka keeps one process for an active task and a set for a replica: where two
    members of one process had the same, the first that gives it up takes it from both."""

    def __init__(self) -> None:
        self.active: dict[Task, str] = {}
        self.standby: dict[Task, set[str]] = {}
        self.warmup: dict[Task, set[str]] = {}

    def add(self, held: Held, process_id: str) -> None:
        """A process has these."""
        self.active |= dict.fromkeys(held.active, process_id)
        for tasks, processes in ((held.standby, self.standby), (held.warmup, self.warmup)):
            for task in tasks:
                processes.setdefault(task, set()).add(process_id)

    def remove(self, held: Held, process_id: str) -> None:
        """It has them no longer."""
        for task in held.active:
            if self.active.get(task) == process_id:
                del self.active[task]
        for tasks, processes in ((held.standby, self.standby), (held.warmup, self.warmup)):
            for task in tasks:
                processes.get(task, set()).discard(process_id)

    def replicas(self, task: Task) -> tuple[set[str], set[str]]:
        """Processes that have it as a standby, and as a warmup."""
        return self.standby.get(task, set()), self.warmup.get(task, set())


@dataclass(slots=True)
class StreamsGroup:
    """A group. `group_epoch` grows with whatever calls for a new target; `assignment_epoch` is that of the target."""

    group_id: str
    group_epoch: int
    assignment_epoch: int
    validated_epoch: int
    endpoint_epoch: int
    validation_is_recorded: bool
    assigned_at_ms: int = 0
    members: dict[str, Member] = field(default_factory=dict)
    instances: dict[str, str] = field(default_factory=dict)
    """Member ids by instance id."""
    target: dict[str, Tasks] = field(default_factory=dict)
    topology: Topology | None = None
    metadata: Mapping[str, Topic] = field(default_factory=dict)
    """The topics of the topology as of the last change of the group epoch."""
    configuration: tuple[int, tuple[str, ...]] | None = None
    """What assignments were configured with at the last change of the group epoch: standbys and tags."""
    processes: Processes = field(default_factory=Processes)
    # What follows is not recorded: it is forgotten with a load, and with the first heartbeat of a group.
    configured: Configured | None = None
    refreshed: bool = False
    """Whether the topics were looked at since the last change of any of them."""
    refreshed_epoch: int = 0
    shutdown_by: str = ""
    refined: tuple[int, Mapping[str, Tasks]] = (-1, {})
    """What members are led to in an epoch."""
    endpoints: dict[str, EndpointView] = field(default_factory=dict)
    """What was told last of the endpoints of members: it is told again as long as nothing takes it away."""

    def state(self) -> str:
        """Kafka's word."""
        if not self.members:
            return "Empty"
        if not self._is_ready():
            return "NotReady"
        if self.group_epoch > self.assignment_epoch:
            return "Assigning"
        settled = all(one.reached(self.assignment_epoch) for one in self.members.values())
        return "Stable" if settled else "Reconciling"

    def _is_ready(self) -> bool:
        if self.topology is None:
            return False
        if self.validation_is_recorded:
            return self.topology.epoch == self.validated_epoch
        return self.configured is not None and self.configured.is_ready

    def static_member(self, instance_id: str) -> Member | None:
        """Who has an instance id."""
        member_id = self.instances.get(instance_id)
        return None if member_id is None else self.members[member_id]

    def put(self, member: Member) -> None:
        """A member as it is now."""
        before = self.members.get(member.member_id)
        if before is not None:
            self._release(before)
        self.members[member.member_id] = member
        self.endpoints.pop(member.member_id, None)
        self.processes.add(member.assigned, member.process_id)
        self.processes.add(member.pending, member.process_id)
        if member.instance_id is not None:
            self.instances[member.instance_id] = member.member_id

    def remove(self, member_id: str) -> None:
        """It is no member any more, and nobody's target. Without members nobody asks for a shutdown."""
        self._release(self.members.pop(member_id))
        self.target.pop(member_id, None)
        self.endpoints.pop(member_id, None)
        self.forget_shutdown_if_empty()

    def forget_shutdown_if_empty(self) -> None:
        """An application that has ended does not have to."""
        if not self.members:
            self.shutdown_by = ""

    def forget_unrecorded(self, endpoint_epoch: int) -> None:
        """As after a load."""
        self.configured, self.refreshed, self.refreshed_epoch = None, False, 0
        self.endpoints.clear()
        self.shutdown_by, self.refined, self.endpoint_epoch = "", (-1, {}), endpoint_epoch

    def _release(self, member: Member) -> None:
        self.processes.remove(member.assigned, member.process_id)
        self.processes.remove(member.pending, member.process_id)
        if member.instance_id is not None:
            self.instances.pop(member.instance_id, None)
