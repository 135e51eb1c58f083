"""Models of streams groups with one mistake each: what the comparison must notice, or it proves nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from kardia.coordinator.operations import Load
from kardia.coordinator.streams import coordinator, heartbeats, leaves, membership, progress, reconcile, shard
from kardia.coordinator.streams.behaviour import StreamsBehaviour
from kardia.coordinator.streams.group import Member, MemberState, StreamsGroup
from kardia.coordinator.streams.operations import StreamsBeat
from kardia.coordinator.streams.shard import SESSION, Shard
from tests.truth.canaries import Patch, refused_heartbeats_renew_the_session


def _sessions_last_one_ms_longer() -> Patch:
    def wrong(self: Shard, group_id: str, member_id: str) -> None:
        session_ms = self.settings_of(group_id).group_streams_session_timeout_ms
        self.timers.arm((SESSION, group_id, member_id), self.now_ms, session_ms + 1)

    return patch.object(Shard, "arm_session", wrong)


def _refused_heartbeats_renew_the_session() -> Patch:
    return refused_heartbeats_renew_the_session(coordinator.HANDLERS, StreamsBeat)


def _leaving_for_a_while_renews_the_session() -> Patch:
    right = leaves._leave_for_a_while

    def wrong(one: Shard, group: StreamsGroup, member_id: str) -> None:
        right(one, group, member_id)
        one.arm_session(group.group_id, member_id)

    return patch.object(leaves, "_leave_for_a_while", wrong)


def _a_load_gives_all_the_time_to_give_up() -> Patch:
    right = coordinator.HANDLERS[Load]

    def wrong(one: Shard, operation: Load) -> None:
        with patch.object(shard.Shard, "arm_rebalance"):
            right(one, operation)

    return patch.dict(coordinator.HANDLERS, {Load: wrong})


def _no_report_proves_a_revocation() -> Patch:
    right = reconcile._holds

    def wrong(aim: reconcile.Aim, tasks: Any) -> bool:
        return aim.owned is not None and right(aim, tasks)

    return patch.object(reconcile, "_holds", wrong)


def _giving_up_adds_no_epoch() -> Patch:
    right = reconcile._next

    def wrong(member: Member, aim: reconcile.Aim, epoch: int, behaviour: StreamsBehaviour) -> Member:
        return right(member, aim, member.epoch if member.state is MemberState.UNREVOKED else epoch, behaviour)

    return patch.object(reconcile, "_next", wrong)


def _a_process_may_have_a_task_twice() -> Patch:
    return patch.object(reconcile._Step, "_standby_is_taken", lambda *_: False)


def _every_join_starts_the_delay_anew() -> Patch:
    def wrong(one: Shard, group_id: str) -> None:
        delay_ms = one.settings_of(group_id).group_streams_initial_rebalance_delay_ms
        if delay_ms:
            one.timers.arm(one.initial_key(group_id), one.now_ms, delay_ms)

    return patch.object(progress, "_start_delay", wrong)


def _a_new_group_remembers_its_first_heartbeat() -> Patch:
    right = heartbeats._apply

    def wrong(one: Shard, decided: Any, after: Member) -> None:
        right(one, decided, after)
        one.groups[decided.group.group_id].configured = decided.configured

    return patch.object(heartbeats, "_apply", wrong)


def _who_is_refused_takes_nothing_away() -> Patch:
    return patch.object(membership, "_relabel", lambda *_: None)


def _a_shutdown_outlives_the_application() -> Patch:
    return patch.object(StreamsGroup, "forget_shutdown_if_empty", lambda _: None)


def _another_host_makes_no_epoch() -> Patch:
    right = heartbeats._calls_for_an_epoch

    def wrong(before: Member, after: Member, beat: StreamsBeat) -> bool:
        return right(before, replace(after, client_host=before.client_host), beat)

    return patch.object(heartbeats, "_calls_for_an_epoch", wrong)


EVERY: dict[str, Callable[[], Patch]] = {
    "sessions last 1 ms longer": _sessions_last_one_ms_longer,
    "refused heartbeats renew the session": _refused_heartbeats_renew_the_session,
    "leaving for a while renews the session": _leaving_for_a_while_renews_the_session,
    "a load stops the time to give tasks up": _a_load_gives_all_the_time_to_give_up,
    "no report proves a revocation": _no_report_proves_a_revocation,
    "giving up adds no epoch": _giving_up_adds_no_epoch,
    "a process may have a task twice": _a_process_may_have_a_task_twice,
    "every join starts the delay anew": _every_join_starts_the_delay_anew,
    "a new group remembers its first heartbeat": _a_new_group_remembers_its_first_heartbeat,
    "who is refused takes nothing away": _who_is_refused_takes_nothing_away,
    "a shutdown outlives the application": _a_shutdown_outlives_the_application,
    "another host makes no epoch": _another_host_makes_no_epoch,
}
