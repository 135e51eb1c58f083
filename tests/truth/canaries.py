"""Models with one mistake each: what the comparison must notice, or it proves nothing.

`EVERY` are mistakes a person would make, each made while its patch is entered; `flipped` turns one row of a release
table around.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, TypeVar
from unittest.mock import patch

from kardia.coordinator.classic import coordinator, joins, offsets, removal_and_loading
from kardia.coordinator.classic.behaviour import Behaviour
from kardia.coordinator.classic.group import Group, Member
from kardia.coordinator.classic.operations import Commit, DeleteGroups, Join, OffsetDelete, TxnEnd
from kardia.coordinator.classic.shard import Shard
from kardia.coordinator.consumer.behaviour import ConsumerBehaviour
from kardia.coordinator.share.behaviour import ShareBehaviour
from kardia.coordinator.streams.behaviour import StreamsBehaviour
from kardia.coordinator.timers import Timers

Patch = AbstractContextManager[Any]
"""What `unittest.mock.patch` gives."""

AnyBehaviour = TypeVar("AnyBehaviour", Behaviour, ConsumerBehaviour, ShareBehaviour, StreamsBehaviour)


def _join_renews_the_session() -> Patch:
    def wrong(shard: Shard, request: Join) -> None:
        joins.join(shard, request)
        group = shard.groups.get(request.group_id)
        member = group.members.get(request.member_id) if group is not None else None
        if group is not None and member is not None:
            shard.arm_session(group, member)

    return patch.dict(coordinator.HANDLERS, {Join: wrong})


def _sessions_last_one_ms_longer() -> Patch:
    right = Shard.arm_session

    def wrong(self: Shard, group: Group, member: Member) -> None:
        timeout_ms = member.session_timeout_ms
        member.session_timeout_ms = timeout_ms + 1
        right(self, group, member)
        member.session_timeout_ms = timeout_ms

    return patch.object(Shard, "arm_session", wrong)


def _pending_ids_block_nothing() -> Patch:
    def wrong(self: Group) -> bool:
        return self.joined == len(self.members)

    return patch.object(Group, "all_joined", wrong)


def _waiting_members_can_expire() -> Patch:
    return patch.object(Member, "protected", lambda _: False)


def _refused_commits_renew_the_session() -> Patch:
    right = coordinator.HANDLERS[Commit]

    def wrong(shard: Shard, request: Commit) -> None:
        right(shard, request)
        group = shard.groups.get(request.group_id)
        member = group.members.get(request.member_id) if group is not None else None
        if group is not None and member is not None and not member.protected():
            shard.arm_session(group, member)

    return patch.dict(coordinator.HANDLERS, {Commit: wrong})


def _equal_deadlines_fire_last_armed_first() -> Patch:
    right = Timers.arm

    def wrong(self: Timers, *arguments: Any, **named: Any) -> None:
        self._number -= 2
        right(self, *arguments, **named)

    return patch.object(Timers, "arm", wrong)


def _rebalance_timeout_of_the_youngest() -> Patch:
    def wrong(self: Group) -> int:
        members = list(self.members.values())
        return members[-1].rebalance_timeout_ms if members else 0

    return patch.object(Group, "rebalance_timeout_ms", wrong)


def _syncs_leave_the_sync_timer_alone() -> Patch:
    right = Timers.cancel

    def wrong(self: Timers, key: Any) -> None:
        if key[0] != "sync":
            right(self, key)

    return patch.object(Timers, "cancel", wrong)


def _heartbeats_while_preparing_are_in_vain() -> Patch:
    right = Shard.arm_session

    def wrong(self: Shard, group: Group, member: Member) -> None:
        if group.state != "PreparingRebalance" or member.is_new:
            right(self, group, member)

    return patch.object(Shard, "arm_session", wrong)


def _aborts_commit() -> Patch:
    def wrong(shard: Shard, request: TxnEnd) -> None:
        offsets.end_transaction(shard, request._replace(commits=True))

    return patch.dict(coordinator.HANDLERS, {TxnEnd: wrong})


def _transactions_overwrite_later_commits() -> Patch:
    return patch.object(offsets, "materialize", dict.update)


def _transactions_keep_no_group() -> Patch:
    def wrong(shard: Shard, group: Group) -> None:
        if group.state == "Empty" and not group.offsets:
            removal_and_loading.bury(shard, group)

    return patch.object(removal_and_loading, "die_if_over", wrong)


def _subscribed_offsets_are_deleted() -> Patch:
    right = coordinator.HANDLERS[OffsetDelete]

    def wrong(shard: Shard, request: OffsetDelete) -> None:
        group = shard.groups.get(request.group_id)
        if group is None:
            right(shard, request)
        else:
            known, group.subscribed = group.subscribed, frozenset()
            right(shard, request)
            group.subscribed = known

    return patch.dict(coordinator.HANDLERS, {OffsetDelete: wrong})


def _several_groups_share_an_error() -> Patch:
    right = coordinator.HANDLERS[DeleteGroups]

    def wrong(shard: Shard, request: DeleteGroups) -> None:
        right(shard, request)
        answer = shard.answers.pop()
        first = next((error for _, error in answer.parts if error), 0)
        parts = tuple((group_id, first) for group_id, _ in answer.parts)
        shard.answers.append(answer._replace(error_code=first, parts=parts))

    return patch.dict(coordinator.HANDLERS, {DeleteGroups: wrong})


def refused_heartbeats_renew_the_session(handlers: dict[type, Callable[[Any, Any], None]], beat_type: type) -> Patch:
    """Of groups with epochs, by whose coordinator these are the handlers."""
    right = handlers[beat_type]

    def wrong(shard: Any, beat: Any) -> None:
        right(shard, beat)
        group = shard.groups.get(beat.group_id)
        if shard.loaded and shard.answers[-1].error_code and group is not None and beat.member_id in group.members:
            shard.arm_session(beat.group_id, beat.member_id)

    return patch.dict(handlers, {beat_type: wrong})


PLANTED: dict[str, Callable[[], Patch]] = {
    "a JoinGroup renews the session": _join_renews_the_session,
    "sessions last 1 ms longer": _sessions_last_one_ms_longer,
    "pending ids block no join phase": _pending_ids_block_nothing,
    "members that wait can expire": _waiting_members_can_expire,
    "refused commits renew the session": _refused_commits_renew_the_session,
    "of equal deadlines the last armed fires first": _equal_deadlines_fire_last_armed_first,
    "a rebalance waits as long as its youngest member asks": _rebalance_timeout_of_the_youngest,
    "the sync timer is never stopped": _syncs_leave_the_sync_timer_alone,
    "a heartbeat while the group prepares renews nothing": _heartbeats_while_preparing_are_in_vain,
}
"""Mistakes about members, which the traces of `tests/golden` notice as well."""

OF_OFFSETS: dict[str, Callable[[], Patch]] = {
    "an aborted transaction takes effect": _aborts_commit,
    "a transaction overwrites what was committed after it": _transactions_overwrite_later_commits,
    "an open transaction keeps no group": _transactions_keep_no_group,
    "offsets of subscribed topics are deleted": _subscribed_offsets_are_deleted,
    "groups that are deleted together share an error": _several_groups_share_an_error,
}
"""Mistakes about transactions, offsets and several groups at once, for which the language of traces has no words."""

EVERY = PLANTED | OF_OFFSETS


def flipped(right: AnyBehaviour, switch: str) -> AnyBehaviour:
    """A release's behaviour with one row of its table turned around."""
    turned: dict[str, Any] = {switch: not getattr(right, switch)}
    return right._replace(**turned)
