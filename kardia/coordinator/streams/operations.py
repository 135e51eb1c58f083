"""What is asked of a coordinator of streams groups, and what can be seen of it: the words of model and oracle alike.

Topics, load and unload are those of consumer groups. Instants are ms of one clock; -1 stands for none.
"""

from __future__ import annotations

from typing import NamedTuple

from kardia.coordinator.consumer.operations import Topics
from kardia.coordinator.operations import Load, Unload

Task = tuple[str, int]
"""A subtopology's id, and the number of the partition of its sources."""
Endpoint = tuple[str, int]
"""Host and port at which a client answers queries of its state."""


class InternalTopic(NamedTuple):
    """A topic that the application makes for itself. No `partitions` (0): as many as what flows into it."""

    name: str
    partitions: int = 0


class Subtopology(NamedTuple):
    """A part of the application whose tasks run apart from the others'."""

    subtopology_id: str
    sources: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()
    """Regular expressions for sources, which no release takes yet."""
    sinks: tuple[str, ...] = ()
    """Repartition topics that it writes to."""
    repartitions: tuple[InternalTopic, ...] = ()
    """Repartition topics that it reads from."""
    changelogs: tuple[InternalTopic, ...] = ()
    copartitioned: tuple[tuple[str, ...], ...] = ()
    """Sets of its sources and repartition topics that must have equally many partitions."""


class Topology(NamedTuple):
    """What the application consists of. A change of it must come with a greater epoch, and is not taken yet."""

    epoch: int
    subtopologies: tuple[Subtopology, ...]


class StreamsBeat(NamedTuple):
    """StreamsGroupHeartbeat. `member_epoch` 0 joins, -1 leaves, -2 leaves for a while as a static member. None, and -1
    of the timeout, mean "as before"."""

    number: int
    version: int
    group_id: str
    member_id: str
    member_epoch: int
    instance_id: str | None
    rack_id: str | None
    rebalance_timeout_ms: int
    topology: Topology | None
    active: tuple[Task, ...] | None
    """Owned tasks. None is no report: it proves no revocation."""
    standby: tuple[Task, ...] | None
    warmup: tuple[Task, ...] | None
    process_id: str | None
    endpoint: Endpoint | None
    tags: tuple[tuple[str, str], ...] | None
    offsets: tuple[tuple[Task, int], ...] | None
    """Changelog offsets of tasks, from 4.4."""
    shutdown: bool
    endpoint_epoch: int
    """Of the endpoints that the client knows."""
    client_id: str
    client_host: str


class ConfigureStreams(NamedTuple):
    """A group has a configuration of its own from now on."""

    number: int
    group_id: str
    session_timeout_ms: int
    """streams.session.timeout.ms: for sessions that are armed from now on."""
    heartbeat_interval_ms: int
    """streams.heartbeat.interval.ms."""
    num_standby_replicas: int
    """streams.num.standby.replicas."""
    initial_rebalance_delay_ms: int
    """streams.initial.rebalance.delay.ms, from 4.2."""
    assignment_interval_ms: int
    """streams.assignment.interval.ms, from 4.3."""


StreamsOperation = StreamsBeat | Topics | ConfigureStreams | Load | Unload


def groups_named(operation: StreamsOperation) -> tuple[str, ...]:
    """Groups that an operation names; none where it may concern all of the shard."""
    return (operation.group_id,) if isinstance(operation, StreamsBeat | ConfigureStreams) else ()


class EndpointView(NamedTuple):
    """What can be asked for at an endpoint: partitions by topic name, sorted."""

    endpoint: Endpoint
    active: tuple[tuple[str, tuple[int, ...]], ...]
    standby: tuple[tuple[str, tuple[int, ...]], ...]


class StreamsAnswer(NamedTuple):
    """Answer to a heartbeat. Tasks, statuses and endpoints are sorted, and None where the answer carries none."""

    number: int
    at_ms: int
    error_code: int
    member_id: str = ""
    member_epoch: int = 0
    heartbeat_interval_ms: int = 0
    active: tuple[Task, ...] | None = None
    standby: tuple[Task, ...] | None = None
    warmup: tuple[Task, ...] | None = None
    statuses: tuple[int, ...] | None = None
    endpoint_epoch: int = 0
    endpoints: tuple[EndpointView, ...] | None = None
    missing: tuple[tuple[str, int], ...] = ()
    """Topics that the broker is to create, with their partitions."""


class StreamsMemberView(NamedTuple):
    """A member. Tasks are sorted; active ones carry the epoch they were assigned in (from 4.2; 0 before)."""

    member_id: str
    instance_id: str | None
    rack_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    topology_epoch: int
    process_id: str
    endpoint: Endpoint | None
    tags: tuple[tuple[str, str], ...]
    epoch: int
    previous_epoch: int
    state: str
    active: tuple[tuple[Task, int], ...]
    standby: tuple[Task, ...]
    warmup: tuple[Task, ...]
    pending_active: tuple[tuple[Task, int], ...]
    """What it has to give up first."""
    pending_standby: tuple[Task, ...]
    pending_warmup: tuple[Task, ...]
    target_active: tuple[Task, ...]
    target_standby: tuple[Task, ...]
    target_warmup: tuple[Task, ...]
    session_deadline_at_ms: int
    rebalance_deadline_at_ms: int


class StreamsView(NamedTuple):
    """A streams group after a step."""

    state: str
    group_epoch: int
    assignment_epoch: int
    assigned_at_ms: int
    """When the target was computed (from 4.3; 0 before)."""
    topology_epoch: int
    validated_epoch: int
    """Epoch of the topology for which every topic was there (from 4.2; 0 before)."""
    members: tuple[StreamsMemberView, ...]
    configured: int
    """The status that the topology has for its topics, -1 when all fit; -2 when nobody has looked."""
    tasks: tuple[tuple[str, int], ...]
    """Subtopologies with how many tasks they have, where that is known."""
    missing: tuple[tuple[str, int], ...]
    """Topics that the application needs and nobody has created, with their partitions."""
    shutdown_by: str
    """The member that asked everybody to end; "" for none."""
    endpoint_epoch: int
    processes: tuple[tuple[Task, str, tuple[str, ...]], ...]
    """Tasks that some process has, as active, standby or warmup: what others wait for."""
    initial_deadline_at_ms: int
