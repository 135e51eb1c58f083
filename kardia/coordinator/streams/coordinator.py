"""`StreamsCoordinator`: one shard of the coordinator of streams groups behind perform, advance and view."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kardia.coordinator.consumer.operations import Topics
from kardia.coordinator.operations import Load, Unload
from kardia.coordinator.stepped import Stepped
from kardia.coordinator.streams import heartbeats, leaves, progress, topics_and_loading
from kardia.coordinator.streams.assignor import Choose, RoundRobin
from kardia.coordinator.streams.behaviour import StreamsBehaviour
from kardia.coordinator.streams.group import NO_TASKS, Member, StreamsGroup
from kardia.coordinator.streams.operations import ConfigureStreams, StreamsBeat, StreamsMemberView, StreamsView, Task
from kardia.coordinator.streams.settings import StreamsSettings
from kardia.coordinator.streams.shard import EXPIRE, EXPIRE_KEY, INITIAL, REBALANCE, SESSION, Shard
from kardia.coordinator.timers import Timer

HANDLERS: dict[type, Callable[[Shard, Any], None]] = {
    StreamsBeat: heartbeats.heartbeat,
    Topics: topics_and_loading.change_topics,
    ConfigureStreams: topics_and_loading.configure,
    Load: topics_and_loading.load,
    Unload: topics_and_loading.unload,
}

FIRES: dict[str, Callable[[Shard, Timer], None]] = {
    SESSION: leaves.session_fired,
    REBALANCE: leaves.rebalance_fired,
    INITIAL: progress.delay_fired,
    EXPIRE: topics_and_loading.expire,
}

NOBODY_LOOKED = -2
"""In a view: the topics were not held against the topology yet."""


class StreamsCoordinator(Stepped):
    """A shard that is loaded at `settings.started_at_ms`, with nothing in it and no topic in the cluster."""

    handlers = HANDLERS
    kind = "streams"

    def __init__(
        self, behaviour: StreamsBehaviour, settings: StreamsSettings | None = None, choose: Choose | None = None
    ) -> None:
        self._shard = Shard(behaviour, settings or StreamsSettings(), choose or RoundRobin())
        super().__init__(self._shard, EXPIRE_KEY, self._shard.settings.offsets_retention_check_interval_ms)

    def _fire(self, timer: Timer) -> None:
        FIRES[timer.key[0]](self._shard, timer)

    def group_ids(self) -> tuple[str, ...]:
        """Groups in memory, sorted."""
        return tuple(sorted(self._shard.groups)) if self._shard.loaded else ()

    def view(self, group_id: str) -> StreamsView | None:
        """The group as it is now, None when the coordinator does not know it."""
        group = self._shard.groups.get(group_id)
        if group is None or not self._shard.loaded:
            return None
        configured = group.configured
        return StreamsView(
            group.state(),
            group.group_epoch,
            group.assignment_epoch,
            group.assigned_at_ms,
            group.topology.epoch if group.topology is not None else -1,
            group.validated_epoch,
            tuple(self._member_view(group, member) for _, member in sorted(group.members.items())),
            NOBODY_LOOKED if configured is None else -1 if configured.status is None else int(configured.status),
            tuple(sorted((configured.tasks or {}).items())) if configured is not None else (),
            tuple(sorted(configured.missing.items())) if configured is not None else (),
            group.shutdown_by,
            group.endpoint_epoch,
            _processes(group),
            self._shard.timers.deadline(self._shard.initial_key(group_id)),
        )

    def committed(self, group_id: str) -> dict[tuple[str, int], Any]:  # noqa: ARG002
        """Commits of streams groups are not modelled."""
        return {}

    def _member_view(self, group: StreamsGroup, member: Member) -> StreamsMemberView:
        target = group.target.get(member.member_id, NO_TASKS)
        deadline, member_id = self._shard.timers.deadline, member.member_id
        return StreamsMemberView(
            member_id,
            member.instance_id,
            member.rack_id,
            member.client_id,
            member.client_host,
            member.rebalance_timeout_ms,
            member.topology_epoch,
            member.process_id,
            member.endpoint,
            member.tags,
            member.epoch,
            member.previous_epoch,
            str(member.state),
            tuple(sorted(member.assigned.active.items())),
            tuple(sorted(member.assigned.standby)),
            tuple(sorted(member.assigned.warmup)),
            tuple(sorted(member.pending.active.items())),
            tuple(sorted(member.pending.standby)),
            tuple(sorted(member.pending.warmup)),
            tuple(sorted(target.active)),
            tuple(sorted(target.standby)),
            tuple(sorted(target.warmup)),
            deadline((SESSION, group.group_id, member_id)),
            deadline((REBALANCE, group.group_id, member_id)),
        )


def _processes(group: StreamsGroup) -> tuple[tuple[Task, str, tuple[str, ...]], ...]:
    processes = group.processes
    found: list[tuple[Task, str, tuple[str, ...]]] = []
    found += [(task, "active", (process_id,)) for task, process_id in processes.active.items()]
    for role, by_task in (("standby", processes.standby), ("warmup", processes.warmup)):
        found += [(task, role, tuple(sorted(by_task[task]))) for task in by_task if by_task[task]]
    return tuple(sorted(found))
