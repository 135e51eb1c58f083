"""`ShareCoordinator`: one shard of the coordinator of share groups behind perform, advance and view."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kardia.coordinator.consumer.errors import NotModelledError
from kardia.coordinator.consumer.operations import Topics
from kardia.coordinator.happenings import Happening
from kardia.coordinator.operations import Load, Unload
from kardia.coordinator.share import heartbeats, initialization, topics_and_loading
from kardia.coordinator.share.assignor import Choose, EveryPartition
from kardia.coordinator.share.behaviour import ShareBehaviour
from kardia.coordinator.share.group import Member, ShareGroup, partitions
from kardia.coordinator.share.operations import (
    ConfigureShare,
    ShareAnswer,
    ShareBeat,
    ShareMemberView,
    ShareOperation,
    ShareView,
)
from kardia.coordinator.share.settings import ShareSettings
from kardia.coordinator.share.shard import EXPIRE, EXPIRE_KEY, INITIALIZE, SESSION, Shard
from kardia.coordinator.timers import Timer, refuse_going_back, refuse_overtaking

HANDLERS: dict[type, Callable[[Shard, Any], None]] = {
    ShareBeat: heartbeats.heartbeat,
    Topics: topics_and_loading.change_topics,
    ConfigureShare: topics_and_loading.configure,
    Load: topics_and_loading.load,
    Unload: topics_and_loading.unload,
}


class ShareCoordinator:
    """A shard that is loaded at `settings.started_at_ms`, with nothing in it and no topic in the cluster."""

    def __init__(
        self, behaviour: ShareBehaviour, settings: ShareSettings | None = None, choose: Choose | None = None
    ) -> None:
        self._shard = Shard(behaviour, settings or ShareSettings(), choose or EveryPartition())
        interval_ms = self._shard.settings.offsets_retention_check_interval_ms
        self._shard.timers.arm(EXPIRE_KEY, self._shard.now_ms, interval_ms)

    @property
    def now_ms(self) -> int:
        """The instant of the last step."""
        return self._shard.now_ms

    def perform(self, operation: ShareOperation, at_ms: int) -> list[ShareAnswer]:
        """Apply an operation at `at_ms` and return its answer. Fires no timer, not even one due at `at_ms`.

        Raises ValueError when `at_ms` lies before the last step or beyond a timer that has not fired, NotModelledError
        for what the model does not know.
        """
        shard = self._shard
        refuse_going_back("at_ms", at_ms, shard.now_ms)
        refuse_overtaking(shard.timers, at_ms)
        handler = HANDLERS.get(type(operation))
        if handler is None:
            raise NotModelledError(f"{type(operation).__name__} to a share group is not modelled")
        shard.now_ms = at_ms
        handler(shard, operation)
        taken, shard.answers = shard.answers, []
        return taken

    def advance(self, to_ms: int) -> list[ShareAnswer]:
        """Let time pass to `to_ms`: fires what is due at or before it, by deadline, then in the order of arming."""
        shard = self._shard
        refuse_going_back("to_ms", to_ms, shard.now_ms)
        fires: dict[str, Callable[[Shard, Timer], None]] = {
            SESSION: heartbeats.session_fired,
            INITIALIZE: initialization.told,
            EXPIRE: topics_and_loading.expire,
        }
        while (timer := shard.timers.pop_due(to_ms)) is not None:
            shard.now_ms = max(shard.now_ms, timer.deadline_at_ms)
            fires[timer.key[0]](shard, timer)
        shard.now_ms = to_ms
        return []

    def next_deadline_at_ms(self) -> int:
        """When the next timer is due; -1 when none is armed."""
        timer = self._shard.timers.next()
        return -1 if timer is None else timer.deadline_at_ms

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

    def take_happenings(self) -> list[Happening]:
        """What happened since this was last called, oldest first. Kept until taken."""
        taken, self._shard.happenings = self._shard.happenings, []
        return taken

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
