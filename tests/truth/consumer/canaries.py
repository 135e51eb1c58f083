"""Models of consumer groups with one mistake each: what the comparison must notice, or it proves nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from kardia.coordinator.classic.group import Group as ClassicGroup
from kardia.coordinator.classic.group import Member as ClassicMember
from kardia.coordinator.classic.operations import Answer, Commit, Join
from kardia.coordinator.classic.shard import Shard as ClassicShard
from kardia.coordinator.consumer import (
    classics,
    conversions,
    coordinator,
    heartbeats,
    leaves,
    progress,
    reconcile,
    topics_and_loading,
)
from kardia.coordinator.consumer.assignors import Subscriber, Target, assign_range
from kardia.coordinator.consumer.behaviour import ConsumerBehaviour
from kardia.coordinator.consumer.group import ConsumerGroup
from kardia.coordinator.consumer.member import Member
from kardia.coordinator.consumer.operations import Beat
from kardia.coordinator.consumer.shard import JOIN, REBALANCE, SESSION, SYNC, Shard
from kardia.coordinator.operations import Load
from kardia.coordinator.timers import Timer
from tests.truth.canaries import Patch, refused_heartbeats_renew_the_session


def _sessions_last_one_ms_longer() -> Patch:
    def wrong(self: Shard, group_id: str, member_id: str, timeout_ms: int | None = None) -> None:
        session_ms = timeout_ms or self.settings.group_consumer_session_timeout_ms
        self.timers.arm((SESSION, group_id, member_id), self.now_ms, session_ms + 1)

    return patch.object(Shard, "arm_session", wrong)


def _refused_heartbeats_renew_the_session() -> Patch:
    return refused_heartbeats_renew_the_session(coordinator.HANDLERS, Beat)


def _leaving_for_a_while_renews_the_session() -> Patch:
    right = leaves._leave_for_a_while

    def wrong(shard: Shard, group: ConsumerGroup, member: Member) -> None:
        right(shard, group, member)
        shard.arm_session(group.group_id, member.member_id)

    return patch.object(leaves, "_leave_for_a_while", wrong)


def _no_report_proves_a_revocation() -> Patch:
    right = reconcile._owns

    def wrong(aim: reconcile.Aim, partitions: Any) -> bool:
        return aim.owned is not None and right(aim, partitions)

    return patch.object(reconcile, "_owns", wrong)


def _held_partitions_are_free() -> Patch:
    right = reconcile._next

    def wrong(member: Member, aim: reconcile.Aim, epoch: int, behaviour: ConsumerBehaviour) -> Member:
        return right(member, aim._replace(owners={}), epoch, behaviour)

    return patch.object(reconcile, "_next", wrong)


def _every_heartbeat_renews_the_rebalance_timer() -> Patch:
    right = Shard.arm_session

    def wrong(self: Shard, group_id: str, member_id: str, timeout_ms: int | None = None) -> None:
        right(self, group_id, member_id, timeout_ms)
        if self.timers.deadline((REBALANCE, group_id, member_id)) >= 0:
            self.arm_rebalance(group_id, self.groups[group_id].members[member_id])

    return patch.object(Shard, "arm_session", wrong)


def _rebalance_timers_look_at_no_epoch() -> Patch:
    right = leaves.timer_fired

    def wrong(shard: Shard, timer: Timer) -> None:
        group = shard.groups.get(timer.key[1])
        member = group.members.get(timer.key[2]) if group is not None else None
        if timer.key in shard.rebalance_epochs and member is not None:
            shard.rebalance_epochs[timer.key] = member.epoch
        right(shard, timer)

    return patch.object(leaves, "timer_fired", wrong)


def _a_load_arms_no_rebalance_timer() -> Patch:
    def wrong(shard: Shard, operation: Load) -> None:
        with patch.object(Shard, "arm_rebalance"):
            topics_and_loading.load(shard, operation)

    return patch.dict(coordinator.HANDLERS, {Load: wrong})


def _previous_epochs_need_no_report() -> Patch:
    right = heartbeats._refuse_epoch

    def wrong(behaviour: ConsumerBehaviour, member: Member, beat: Beat) -> None:
        right(behaviour, member, beat._replace(owned=beat.owned or ()))

    return patch.object(heartbeats, "_refuse_epoch", wrong)


def _range_gives_the_rest_to_the_last() -> Patch:
    def wrong(subscribers: Any, alike: bool) -> Target:
        turned = [Subscriber(one.member_id[::-1], *one[1:]) for one in subscribers]
        return {member_id[::-1]: part for member_id, part in assign_range(turned, alike).items()}

    return patch.object(progress, "assign_range", wrong)


def _a_static_member_starts_anew() -> Patch:
    right = heartbeats._who

    def wrong(shard: Shard, group: ConsumerGroup, beat: Beat) -> tuple[Member, str | None]:
        member, replaced = right(shard, group, beat)
        return (replace(member, assigned={}) if replaced is not None else member), replaced

    return patch.object(heartbeats, "_who", wrong)


def _every_refusal_extends_the_time_to_join() -> Patch:
    def wrong(shard: Shard, group: ConsumerGroup, member: Member) -> None:
        shard.timers.arm((JOIN, group.group_id, member.member_id), shard.now_ms, member.rebalance_timeout_ms)

    return patch.object(classics, "_must_join", wrong)


def _joined_members_need_not_sync() -> Patch:
    right = coordinator.HANDLERS[Join]

    def wrong(shard: Shard, request: Join) -> None:
        right(shard, request)
        answer = shard.answers[-1] if shard.answers else None
        if isinstance(answer, Answer) and not answer.error_code:
            shard.cancel(request.group_id, answer.member_id, SYNC)

    return patch.dict(coordinator.HANDLERS, {Join: wrong})


def _commits_renew_sessions_of_classic_members() -> Patch:
    right = coordinator.HANDLERS[Commit]

    def wrong(shard: Shard, request: Commit) -> None:
        right(shard, request)
        group = shard.groups.get(request.group_id)
        member = group.members.get(request.member_id) if group is not None else None
        if member is not None and member.classic is not None and not shard.answers[-1].error_code:
            shard.arm_session(request.group_id, member.member_id, member.classic.session_timeout_ms)

    return patch.dict(coordinator.HANDLERS, {Commit: wrong})


def _an_upgrade_leaves_members_waiting() -> Patch:
    right = conversions._upgraded

    def wrong(shard: Shard, classic: ClassicGroup) -> ConsumerGroup:
        with patch.object(ClassicShard, "dismiss_join"), patch.object(ClassicShard, "dismiss_sync"):
            return right(shard, classic)

    return patch.object(conversions, "_upgraded", wrong)


def _an_upgrade_gives_sessions_of_the_consumer_protocol() -> Patch:
    right = conversions._upgraded

    def wrong(shard: Shard, classic: ClassicGroup) -> ConsumerGroup:
        group = right(shard, classic)
        for member_id in group.members:
            shard.arm_session(group.group_id, member_id)
        return group

    return patch.object(conversions, "_upgraded", wrong)


def _an_upgrade_takes_partitions_away() -> Patch:
    right = conversions._as_consumer

    def wrong(shard: Shard, classic: ClassicGroup, member: ClassicMember) -> Member:
        return replace(right(shard, classic, member), assigned={})

    return patch.object(conversions, "_as_consumer", wrong)


def _a_first_generation_is_converted() -> Patch:
    right = conversions._as_consumer

    def wrong(shard: Shard, classic: ClassicGroup, member: ClassicMember) -> Member:
        before = classic.protocol_name
        if before is None and member.protocols:
            classic.protocol_name = member.protocols[0][0]
        try:
            return right(shard, classic, member)
        finally:
            classic.protocol_name = before

    return patch.object(conversions, "_as_consumer", wrong)


def _a_downgrade_counts_a_generation() -> Patch:
    right = conversions.downgraded

    def wrong(shard: Shard, group: ConsumerGroup, members: Any, joiner: Member | None) -> ClassicGroup:
        classic = right(shard, group, members, joiner)
        classic.generation_id += 1
        return classic

    return _in_both("downgraded", wrong)


def _a_downgrade_keeps_the_old_sessions() -> Patch:
    right = conversions.downgrade

    def wrong(shard: Shard, classic: ClassicGroup, rebalance: bool) -> None:
        with patch.object(ClassicShard, "arm_sessions"):
            right(shard, classic, rebalance)

    return _in_both("downgrade", wrong)


def _a_downgrade_never_rebalances() -> Patch:
    right = conversions.downgrade

    def wrong(shard: Shard, classic: ClassicGroup, rebalance: bool) -> None:
        right(shard, classic, rebalance=False)

    return _in_both("downgrade", wrong)


@contextmanager
def _in_both(name: str, wrong: Any) -> Iterator[None]:
    """What leaves and arrivals have by the same name."""
    with patch.object(leaves, name, wrong), patch.object(progress, name, wrong):
        yield


def _a_group_that_replaces_an_empty_one_goes_on_counting() -> Patch:
    right = conversions.found_by_heartbeat

    def wrong(shard: Shard, group_id: str) -> tuple[ConsumerGroup, bool]:
        group, is_new = right(shard, group_id)
        classic = shard.classic.groups.get(group_id)
        if is_new and classic is not None and not group.members:
            group.group_epoch = group.assignment_epoch = classic.generation_id
        return group, is_new

    return patch.object(heartbeats, "found_by_heartbeat", wrong)


EVERY: dict[str, Callable[[], Patch]] = {
    "sessions last 1 ms longer": _sessions_last_one_ms_longer,
    "refused heartbeats renew the session": _refused_heartbeats_renew_the_session,
    "leaving for a while renews the session": _leaving_for_a_while_renews_the_session,
    "no report of owned partitions proves a revocation": _no_report_proves_a_revocation,
    "partitions of others are free": _held_partitions_are_free,
    "every heartbeat renews the rebalance timer": _every_heartbeat_renews_the_rebalance_timer,
    "a rebalance timer fences in any epoch": _rebalance_timers_look_at_no_epoch,
    "a load arms no rebalance timer": _a_load_arms_no_rebalance_timer,
    "the previous epoch is taken without a report": _previous_epochs_need_no_report,
    "range orders members by the ends of their ids": _range_gives_the_rest_to_the_last,
    "a static member comes back with nothing": _a_static_member_starts_anew,
    "every 27 extends the time to join again": _every_refusal_extends_the_time_to_join,
    "members that joined need not sync": _joined_members_need_not_sync,
    "commits renew sessions of classic members": _commits_renew_sessions_of_classic_members,
    "an upgrade leaves members waiting": _an_upgrade_leaves_members_waiting,
    "an upgrade gives sessions of the consumer protocol": _an_upgrade_gives_sessions_of_the_consumer_protocol,
    "an upgrade takes partitions away": _an_upgrade_takes_partitions_away,
    "a first generation is converted": _a_first_generation_is_converted,
    "a downgrade counts a generation": _a_downgrade_counts_a_generation,
    "a downgrade starts no session": _a_downgrade_keeps_the_old_sessions,
    "a downgrade never rebalances": _a_downgrade_never_rebalances,
    "a group that replaces an empty one goes on counting": _a_group_that_replaces_an_empty_one_goes_on_counting,
}
