"""`ConsumerCoordinator`: one shard of the Java coordinator behind perform, advance and view: consumer groups, and the
classic groups beside them, that they come from and become."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from kardia.coordinator.classic.coordinator import fire, view_of
from kardia.coordinator.classic.group import StuckError
from kardia.coordinator.classic.operations import Commit, DeleteGroups, Heartbeat, Join, Leave, Sync, View
from kardia.coordinator.classic.records import GroupRecord, Offset
from kardia.coordinator.consumer import (
    classics,
    conversions,
    expressions,
    heartbeats,
    leaves,
    offsets,
    topics_and_loading,
)
from kardia.coordinator.consumer.assignors import Choose, Uniform
from kardia.coordinator.consumer.behaviour import ConsumerBehaviour
from kardia.coordinator.consumer.group import ConsumerGroup
from kardia.coordinator.consumer.member import Member
from kardia.coordinator.consumer.operations import (
    Beat,
    Configure,
    ConsumerAnswer,
    ConsumerMemberView,
    ConsumerView,
    Fetch,
    Resolve,
    Topics,
)
from kardia.coordinator.consumer.settings import ConsumerSettings
from kardia.coordinator.consumer.shard import EXPIRE, EXPIRE_KEY, JOIN, REBALANCE, SESSION, SYNC, Shard
from kardia.coordinator.operations import Load, Unload
from kardia.coordinator.stepped import Stepped
from kardia.coordinator.timers import Timer, TimerKind
from kardia.kafka.states import ErrorCode, GroupState

HANDLERS: dict[type, Callable[[Shard, Any], None]] = {
    Beat: heartbeats.heartbeat,
    Join: classics.join,
    Sync: classics.sync,
    Heartbeat: classics.heartbeat,
    Leave: classics.leave,
    Commit: offsets.commit,
    Fetch: offsets.fetch,
    DeleteGroups: offsets.delete_groups,
    Topics: topics_and_loading.change_topics,
    Configure: topics_and_loading.configure,
    Resolve: expressions.resolve,
    Load: topics_and_loading.load,
    Unload: topics_and_loading.unload,
}


class ConsumerCoordinator(Stepped):
    """A shard that is loaded at `settings.started_at_ms`, with nothing in it and no topic in the cluster."""

    handlers = HANDLERS
    kind = "consumer"

    def __init__(
        self, behaviour: ConsumerBehaviour, settings: ConsumerSettings | None = None, choose: Choose | None = None
    ) -> None:
        self._shard = Shard(behaviour, settings or ConsumerSettings(), choose or Uniform())
        super().__init__(self._shard, EXPIRE_KEY, self._shard.settings.offsets_retention_check_interval_ms)

    def _handle(self, handler: Callable[[Any, Any], None], operation: Any) -> None:
        try:
            handler(self._shard, operation)
        except StuckError:
            self._shard.answer(operation.number, ErrorCode.UNKNOWN_SERVER_ERROR)
            self._shard.classic.failed[operation.number] = ErrorCode.UNKNOWN_SERVER_ERROR
        topics_and_loading.unlist(self._shard)

    def group_ids(self) -> tuple[str, ...]:
        """Groups in memory, sorted."""
        shard = self._shard
        return tuple(sorted((*shard.groups, *shard.classic.groups))) if shard.loaded else ()

    def view(self, group_id: str) -> ConsumerView | View | None:
        """The group as it is now, None when the coordinator does not know it. A classic group has a view of its own."""
        shard = self._shard
        group, classic = shard.groups.get(group_id), shard.classic.groups.get(group_id)
        if classic is not None:
            return view_of(shard.classic, classic)
        if group is None or not shard.loaded:
            return None
        return ConsumerView(
            group.state(),
            group.group_epoch,
            group.assignment_epoch,
            group.assigned_at_ms,
            tuple(self._member_view(group, member) for _, member in sorted(group.members.items())),
            tuple(sorted((regex, tuple(sorted(found.topics))) for regex, found in group.regexes.items())),
            tuple(sorted(group.owners.items())),
        )

    def committed(self, group_id: str) -> dict[tuple[str, int], Offset]:
        """Committed offsets, by topic name and partition."""
        shard = self._shard
        group = shard.groups.get(group_id) or shard.classic.groups.get(group_id) or shard.lost.get(group_id)
        return {} if group is None or not shard.loaded else dict(group.offsets)

    def record(self, group_id: str) -> GroupRecord | None:
        """The last record of a classic group, None when there is none or a tombstone."""
        return self._shard.classic.records.groups.get(group_id)

    def _member_view(self, group: ConsumerGroup, member: Member) -> ConsumerMemberView:
        timers = self._shard.timers
        with_epochs = self._shard.behaviour.partitions_have_epochs
        assigned = member.assigned if with_epochs else dict.fromkeys(member.assigned, 0)
        classic = member.classic
        pending = member.pending if with_epochs else dict.fromkeys(member.pending, 0)
        return ConsumerMemberView(
            member.member_id,
            member.instance_id,
            member.rack_id,
            member.client_id,
            member.client_host,
            member.rebalance_timeout_ms,
            tuple(sorted(member.names)),
            member.regex or None,
            member.assignor,
            member.epoch,
            member.previous_epoch,
            member.state.value,
            tuple(sorted(assigned.items())),
            tuple(sorted(pending.items())),
            tuple(sorted(group.target.get(member.member_id, frozenset()))),
            timers.deadline((SESSION, group.group_id, member.member_id)),
            timers.deadline((REBALANCE, group.group_id, member.member_id)),
            timers.deadline((JOIN, group.group_id, member.member_id)),
            timers.deadline((SYNC, group.group_id, member.member_id)),
            classic and (classic.session_timeout_ms, tuple(name for name, _ in classic.protocols)),
        )

    def _take_answers(self) -> list[ConsumerAnswer]:
        taken = super()._take_answers()
        failed = self._shard.classic.failed
        return [one for one in taken if failed.get(one.number, one.error_code) == one.error_code] if failed else taken

    def _fire(self, timer: Timer) -> None:
        """Timers that a group of the other kind has left behind do nothing."""
        shard = self._shard
        kind, group_id, member_id = timer.key
        if kind == EXPIRE:
            offsets.expire(shard)
            return
        if kind in (SESSION, REBALANCE) or (member_id and kind in (JOIN, SYNC)):
            leaves.timer_fired(shard, timer)
            topics_and_loading.unlist(shard)
            return
        classic = shard.classic.groups.get(group_id)
        if classic is None or (kind == TimerKind.SYNC and not classic.pending_sync):
            return
        with suppress(StuckError):
            if kind == TimerKind.JOIN and classic.state is not GroupState.PREPARING:
                conversions.older_join_timer_fired(shard, classic)
            else:
                fire(shard.classic, timer)
