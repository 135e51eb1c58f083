"""The group coordinator as an executable model: give it operations and instants, get Kafka's answers.

One `Coordinator` is one shard with its groups. It reads no clock and does no input or output; it must agree exactly
with Kafka's own classes in answers, states, members and deadlines (`operations.View`). Records are stored at once, or
when it is told so (`stores`); no queue takes time here. This file only dispatches; each rule has its file.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import suppress
from typing import Any

from kardia.coordinator.classic.behaviour import Behaviour
from kardia.coordinator.classic.choices import Choose, FirstById
from kardia.coordinator.classic.commits import commit, txn_commit
from kardia.coordinator.classic.group import Group, Member, StuckError
from kardia.coordinator.classic.heartbeats import heartbeat
from kardia.coordinator.classic.joins import join
from kardia.coordinator.classic.leaves import leave
from kardia.coordinator.classic.offsets import end_transaction
from kardia.coordinator.classic.operations import (
    Answer,
    Commit,
    DeleteGroups,
    Heartbeat,
    Join,
    Leave,
    MemberView,
    OffsetDelete,
    Operation,
    Stored,
    Sync,
    TxnCommit,
    TxnEnd,
    View,
)
from kardia.coordinator.classic.rebalances import join_timer_fired, session_fired, sync_timer_fired
from kardia.coordinator.classic.records import GroupRecord, Offset, Partition
from kardia.coordinator.classic.removal_and_loading import (
    delete_groups,
    expire_timer_fired,
    load,
    offset_delete,
    unload,
)
from kardia.coordinator.classic.settings import CoordinatorSettings
from kardia.coordinator.classic.shard import EXPIRE_KEY, Shard, join_key, session_key, sync_key
from kardia.coordinator.classic.stores import stored
from kardia.coordinator.classic.syncs import sync
from kardia.coordinator.happenings import Happening
from kardia.coordinator.operations import Load, Unload
from kardia.coordinator.timers import Timer, TimerKind, refuse_going_back, refuse_overtaking
from kardia.kafka.states import ErrorCode

HANDLERS: dict[type, Callable[[Shard, Any], None]] = {
    Join: join,
    Sync: sync,
    Heartbeat: heartbeat,
    Leave: leave,
    Commit: commit,
    TxnCommit: txn_commit,
    TxnEnd: end_transaction,
    OffsetDelete: offset_delete,
    DeleteGroups: delete_groups,
    Load: load,
    Unload: unload,
    Stored: stored,
}
"""Who handles which operation."""


class Coordinator:
    """One shard, loaded and without groups at `settings.started_at_ms`. Instants only grow.

    A request and a timer at one instant have no order of their own: `advance` to the instant and then `perform` is
    the timer first, `perform` at the instant and then `advance` to it is the request first. A timer armed without delay
    is due in the instant it is armed, and fires when that instant is advanced to again: as in Kafka's `SystemTimer`,
    no time need pass for it, but it is not part of the request.
    """

    def __init__(
        self, behaviour: Behaviour, settings: CoordinatorSettings | None = None, choose: Choose | None = None
    ) -> None:
        self._shard = Shard(behaviour, settings or CoordinatorSettings(), choose or FirstById())
        interval_ms = self._shard.settings.offsets_retention_check_interval_ms
        self._shard.timers.arm(EXPIRE_KEY, self._shard.now_ms, interval_ms)

    @property
    def now_ms(self) -> int:
        """The instant of the last step."""
        return self._shard.now_ms

    def perform(self, operation: Operation, at_ms: int, *, overtakes: bool = False) -> list[Answer]:
        """Apply an operation at `at_ms`; returns what is answered by it, waiting requests that end now among them.

        Fires no timer, not even one due at `at_ms`. Raises ValueError when `at_ms` lies before the last step, or beyond
        a timer that has not fired. With `overtakes` it may: the timer is late, as those of a busy broker are.
        """
        shard = self._shard
        refuse_going_back("at_ms", at_ms, shard.now_ms)
        if not overtakes:
            refuse_overtaking(shard.timers, at_ms)
        shard.now_ms = at_ms
        try:
            HANDLERS[type(operation)](shard, operation)
        except StuckError:
            # What it waits for may come, but it has its answer.
            shard.answer(operation.number, ErrorCode.UNKNOWN_SERVER_ERROR)
            shard.failed[operation.number] = ErrorCode.UNKNOWN_SERVER_ERROR
        return self._take_answers()

    def advance(self, to_ms: int) -> list[Answer]:
        """Let time pass to `to_ms`: fires what is due at or before it, by deadline, then in the order of arming.

        Returns the answers given on the way, each with its own instant. Raises ValueError when `to_ms` lies before the
        last step.
        """
        shard = self._shard
        refuse_going_back("to_ms", to_ms, shard.now_ms)
        while (timer := shard.timers.pop_due(to_ms)) is not None:
            shard.now_ms = max(shard.now_ms, timer.deadline_at_ms)
            with suppress(StuckError):
                fire(shard, timer)
        shard.now_ms = to_ms
        return self._take_answers()

    def fire_late(self, kinds: Collection[TimerKind], due_to_ms: int, at_ms: int) -> list[Answer]:
        """Fire at `at_ms` the timers of some kinds that were due at or before `due_to_ms`; the others wait.

        Real brokers fire late, sessions and phases each in a thread of its own (Scala). What a timer finds is the group
        as it is at `at_ms`: a session that was renewed since its deadline has no timer at that deadline any more.
        Raises ValueError when `at_ms` lies before the last step or before `due_to_ms`.
        """
        shard = self._shard
        if at_ms < max(shard.now_ms, due_to_ms):
            raise ValueError(
                f"at_ms {at_ms}: expected {max(shard.now_ms, due_to_ms)} or later; no timer fires before its deadline"
            )
        shard.now_ms = at_ms
        while (timer := shard.timers.pop_due(due_to_ms, kinds)) is not None:
            with suppress(StuckError):
                fire(shard, timer)
        return self._take_answers()

    def next_deadline_at_ms(self, kinds: Collection[TimerKind] = ()) -> int:
        """When the next timer is due, of these kinds if any are named; -1 when none is armed."""
        timer = self._shard.timers.next(kinds)
        return -1 if timer is None else timer.deadline_at_ms

    def group_ids(self) -> tuple[str, ...]:
        """Groups in memory, sorted."""
        return tuple(sorted(self._shard.groups))

    def view(self, group_id: str) -> View | None:
        """The group as it is now, None when the coordinator does not know it."""
        group = self._shard.groups.get(group_id)
        return None if group is None else view_of(self._shard, group)

    def record(self, group_id: str) -> GroupRecord | None:
        """The group's last record, None when there is none or a tombstone."""
        return self._shard.records.groups.get(group_id)

    def committed_at_ms(self, group_id: str) -> dict[tuple[str, int], int]:
        """Topic and partition of every committed offset with the instant of its commit."""
        return {partition: offset.committed_at_ms for partition, offset in self.committed(group_id).items()}

    def committed(self, group_id: str) -> dict[Partition, Offset]:
        """Committed offsets as the coordinator holds them; none of a group that it does not know."""
        group = self._shard.groups.get(group_id)
        return {} if group is None else dict(group.offsets)

    def take_happenings(self) -> list[Happening]:
        """What happened since this was last called, oldest first. Kept until taken."""
        taken, self._shard.happenings = self._shard.happenings, []
        return taken

    def _take_answers(self) -> list[Answer]:
        return self._shard.take_answers()


def view_of(shard: Shard, group: Group) -> View:
    """What can be seen of a group of a shard."""
    timers, group_id = shard.timers, group.group_id
    return View(
        str(group.state),
        group.generation_id,
        group.protocol_type,
        group.protocol_name,
        group.leader,
        tuple(_member_view(shard, group, member) for _, member in sorted(group.members.items())),
        tuple((one, timers.deadline(session_key(group_id, one))) for one in sorted(group.pending)),
        tuple(sorted(group.pending_sync)),
        timers.deadline(join_key(group_id)),
        timers.deadline(sync_key(group_id)),
    )


def _member_view(shard: Shard, group: Group, member: Member) -> MemberView:
    deadline_at_ms = shard.timers.deadline(session_key(group.group_id, member.member_id))
    return MemberView(
        member.member_id,
        member.group_instance_id,
        member.session_timeout_ms,
        member.rebalance_timeout_ms,
        member.waiting_join is not None,
        member.waiting_sync is not None,
        member.is_new,
        -1 if member.protected() else deadline_at_ms,
    )


def fire(shard: Shard, timer: Timer) -> None:
    """A timer of a shard is due. Raises StuckError."""
    kind, group_id, member_id = timer.key
    if kind is TimerKind.EXPIRE:
        expire_timer_fired(shard)
        return
    group = shard.groups.get(group_id)
    if group is None:
        return
    if kind is TimerKind.SESSION:
        session_fired(shard, group, member_id, timer.deadline_at_ms)
    elif kind is TimerKind.JOIN:
        join_timer_fired(shard, group, timer)
    else:
        sync_timer_fired(shard, group)
