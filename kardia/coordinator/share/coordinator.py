"""`ShareCoordinator`: one shard of the coordinator of share groups behind perform, advance and view."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kardia.coordinator.consumer.operations import Topics
from kardia.coordinator.operations import Load, Unload
from kardia.coordinator.share import heartbeats, initialization, topics_and_loading
from kardia.coordinator.share.assignor import Choose, EveryPartition
from kardia.coordinator.share.behaviour import ShareBehaviour
from kardia.coordinator.share.group import Member, ShareGroup, partitions
from kardia.coordinator.share.operations import (
    ConfigureShare,
    ShareBeat,
    ShareMemberView,
    ShareView,
)
from kardia.coordinator.share.settings import ShareSettings
from kardia.coordinator.share.shard import EXPIRE, EXPIRE_KEY, INITIALIZE, SESSION, Shard
from kardia.coordinator.stepped import Stepped
from kardia.coordinator.timers import Timer

HANDLERS: dict[type, Callable[[Shard, Any], None]] = {
    ShareBeat: heartbeats.heartbeat,
    Topics: topics_and_loading.change_topics,
    ConfigureShare: topics_and_loading.configure,
    Load: topics_and_loading.load,
    Unload: topics_and_loading.unload,
}

FIRES: dict[str, Callable[[Shard, Timer], None]] = {
    SESSION: heartbeats.session_fired,
    INITIALIZE: initialization.told,
    EXPIRE: topics_and_loading.expire,
}


class ShareCoordinator(Stepped):
    """A shard that is loaded at `settings.started_at_ms`, with nothing in it and no topic in the cluster."""

    handlers = HANDLERS
    kind = "share"

    def __init__(
        self, behaviour: ShareBehaviour, settings: ShareSettings | None = None, choose: Choose | None = None
    ) -> None:
        self._shard = Shard(behaviour, settings or ShareSettings(), choose or EveryPartition())
        super().__init__(self._shard, EXPIRE_KEY, self._shard.settings.offsets_retention_check_interval_ms)

    def _fire(self, timer: Timer) -> None:
        FIRES[timer.key[0]](self._shard, timer)

    def group_ids(self) -> tuple[str, ...]:
        """Groups in memory, sorted."""
        return tuple(sorted(self._shard.groups)) if self._shard.loaded else ()

    def view(self, group_id: str) -> ShareView | None:
        """The group as it is now, None when the coordinator does not know it."""
        group = self._shard.groups.get(group_id)
        if group is None or not self._shard.loaded:
            return None
        states = group.states
        return ShareView(
            group.state(),
            group.group_epoch,
            group.assignment_epoch,
            group.assigned_at_ms,
            tuple(self._member_view(group, member) for _, member in sorted(group.members.items())),
            partitions(states.initializing) if states is not None else (),
            partitions(states.initialized) if states is not None else (),
        )

    def committed(self, group_id: str) -> dict[tuple[str, int], Any]:  # noqa: ARG002
        """Share groups have no committed offsets."""
        return {}

    def _member_view(self, group: ShareGroup, member: Member) -> ShareMemberView:
        return ShareMemberView(
            member.member_id,
            member.rack_id,
            member.client_id,
            member.client_host,
            tuple(sorted(member.names)),
            member.epoch,
            member.previous_epoch,
            tuple(sorted(member.assigned)),
            tuple(sorted(group.target.get(member.member_id, frozenset()))),
            self._shard.timers.deadline((SESSION, group.group_id, member.member_id)),
        )
