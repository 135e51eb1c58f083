"""The rebalance: how it begins, when it completes, who drops out of it.

`prepare` begins it, `try_complete` and the join timer end it, `complete` makes the next generation (or an Empty group),
`propagate` hands assignments out. Follows `prepareRebalance`, `onCompleteJoin`, `InitialDelayedJoin`,
`onExpireHeartbeat` and `onExpirePendingSync` (Scala), `prepareRebalance`, `completeClassicGroupJoin`,
`tryCompleteInitialRebalanceElseSchedule`, `expireClassicGroupMemberHeartbeat` and `expirePendingSync` (Java).
"""

from __future__ import annotations

from itertools import takewhile

from kardia.coordinator.classic.group import Group, Member
from kardia.coordinator.classic.operations import Answer
from kardia.coordinator.classic.shard import Shard, join_key, session_key, sync_key
from kardia.coordinator.timers import Timer
from kardia.kafka.sessions import NEW_MEMBER_JOIN_TIMEOUT_MS
from kardia.kafka.states import ErrorCode, GroupState

REBALANCED = frozenset({GroupState.STABLE, GroupState.COMPLETING})
"""States in which the loss of a member starts a rebalance."""


def prepare(shard: Shard, group: Group, why: str) -> None:
    """Begin a rebalance out of Empty, Completing or Stable. One in progress is never begun again."""
    if group.state is GroupState.COMPLETING:
        for member in group.members.values():
            member.assignment = b""
        propagate(shard, group, ErrorCode.REBALANCE_IN_PROGRESS)
    group.pending_sync.clear()
    shard.timers.cancel(sync_key(group.group_id))
    group.from_empty = group.state is GroupState.EMPTY
    shard.move(group, GroupState.PREPARING, why)
    timeout_ms = group.rebalance_timeout_ms()
    if group.from_empty:
        delay_ms = shard.settings.initial_rebalance_delay_ms
        shard.timers.arm(join_key(group.group_id), shard.now_ms, delay_ms, max(timeout_ms - delay_ms, 0))
    elif group.all_joined():
        complete(shard, group)
    else:
        shard.timers.arm(join_key(group.group_id), shard.now_ms, timeout_ms)


def prepare_or_try(shard: Shard, group: Group, why: str) -> None:
    """Begin a rebalance, or see whether the one in progress can complete."""
    if group.state is GroupState.PREPARING:
        try_complete(shard, group)
    else:
        prepare(shard, group, why)


def try_complete(shard: Shard, group: Group, by_expiry: bool = False) -> None:
    """Complete the join phase when everybody waits; within the initial delay only, and not everywhere, by an expiry."""
    if group.state is not GroupState.PREPARING or not group.all_joined():
        return
    if shard.behaviour.join_phase_ends_once and shard.timers.deadline(join_key(group.group_id)) < 0:
        return  # its end threw
    if not group.from_empty or (by_expiry and shard.behaviour.expiry_ends_initial_delay):
        complete(shard, group)


def join_timer_fired(shard: Shard, group: Group, timer: Timer) -> None:
    """The join phase has waited long enough; an initial delay is extended while members are being added."""
    if group.from_empty and group.new_member_added and timer.remaining_ms != 0:
        group.new_member_added = False
        delay_ms = min(shard.settings.initial_rebalance_delay_ms, timer.remaining_ms)
        shard.timers.arm(timer.key, shard.now_ms, delay_ms, timer.remaining_ms - delay_ms)
    else:
        complete(shard, group)


def complete(shard: Shard, group: Group) -> None:
    """End the join phase: absent dynamic members go, the rest are the next generation."""
    shard.timers.cancel(join_key(group.group_id))
    absent = [
        member.member_id
        for member in group.members.values()
        if member.waiting_join is None and member.group_instance_id is None and not member.loaded_as_static
    ]
    for member_id in sorted(absent):
        shard.forget(group, member_id)
        shard.happen(group.group_id, "rebalance_timeout", member_id)
    if group.members and not _lead_among_joined(shard, group):
        shard.happen(group.group_id, "nobody_rejoined")
        # Who asks for no time keeps a broker busy with this timer; here it comes once in a ms, so that time goes on.
        shard.timers.arm(join_key(group.group_id), shard.now_ms, max(1, group.rebalance_timeout_ms()))
        return
    group.generation_id += 1
    group.pending_sync.clear()
    if not group.members:
        group.protocol_name = None
        group.read_subscriptions()
        shard.move(group, GroupState.EMPTY, "nobody is left")
        shard.happen(group.group_id, "generation", detail=str(group.generation_id))
        shard.record(group, {})
        return
    group.protocol_name = vote(shard, group)
    group.read_subscriptions()
    shard.move(group, GroupState.COMPLETING, "join phase complete")
    shard.happen(group.group_id, "generation", detail=str(group.generation_id))
    for member in group.members.values():
        number = group.end_wait(member)
        if number is not None:
            answer_joined(shard, group, member, number)
    # Kafka arms a member before it calls it new no longer; where that makes the timer void (2.4), none is left.
    shard.arm_sessions(group, group.members)
    for member in group.members.values():
        member.is_new = False
    if shard.behaviour.sync_timer:
        group.pending_sync.update(group.members)
        shard.timers.arm(sync_key(group.group_id), shard.now_ms, group.rebalance_timeout_ms())


def _lead_among_joined(shard: Shard, group: Group) -> bool:
    """Make sure a member that waits in JoinGroup leads; False when there is none."""
    if group.leader is not None and group.members[group.leader].waiting_join is not None:
        return True
    joined = [member_id for member_id in group.ids if group.members[member_id].waiting_join is not None]
    if joined:
        shard.lead(group, joined)
    elif group.leader is None:
        shard.lead(group, group.ids)
    return bool(joined)


def vote(shard: Shard, group: Group) -> str:
    """The protocol that the members as they are now would choose."""
    tied = group.votes()
    return tied[0] if len(tied) == 1 else shard.choose.protocol(group.group_id, tied)


def answer_joined(shard: Shard, group: Group, member: Member, number: int) -> None:
    """Answer a JoinGroup with the group's generation; the leader also gets the member list."""
    shard.answers.append(
        Answer(
            number,
            shard.now_ms,
            int(ErrorCode.NONE),
            generation_id=group.generation_id,
            leader=group.leader or "",
            member_id=member.member_id,
            protocol_name=group.protocol_name,
            members=group.listing() if group.leader == member.member_id else (),
        )
    )


def answer_synced(shard: Shard, member: Member, number: int) -> None:
    """Answer a SyncGroup with the member's assignment."""
    shard.answers.append(Answer(number, shard.now_ms, int(ErrorCode.NONE), assignment=member.assignment))


def propagate(shard: Shard, group: Group, error: ErrorCode) -> None:
    """Answer every waiting SyncGroup, with the assignment or with the error, and let those sessions start anew."""
    waiting = [member for member in group.members.values() if member.waiting_sync is not None]
    for member in waiting:
        if error is not ErrorCode.NONE:
            shard.dismiss_sync(member, error)
        elif member.waiting_sync is not None:
            answer_synced(shard, member, member.waiting_sync)
            member.waiting_sync = None
    shard.arm_sessions(group, [member.member_id for member in waiting])


def add_member(shard: Shard, group: Group, member: Member, protocol_type: str, why: str) -> None:
    """Take in a new member that waits in its first JoinGroup."""
    behaviour = shard.behaviour
    extends = group.from_empty if behaviour.restart_extends_delay else group.generation_id == 0
    if group.state is GroupState.PREPARING and extends:
        group.new_member_added = True
    if not group.members:
        group.protocol_type = protocol_type
    member.is_new = behaviour.new_member_timeout
    group.add(member)
    group.pending.discard(member.member_id)
    if group.leader is None:
        group.leader = member.member_id
    shard.happen(group.group_id, "member_added", member.member_id, member.group_instance_id or "")
    member.heard_at_ms = shard.now_ms
    if behaviour.new_member_timeout:
        shard.timers.arm(session_key(group.group_id, member.member_id), shard.now_ms, NEW_MEMBER_JOIN_TIMEOUT_MS)
    prepare_or_try(shard, group, why)


def session_fired(shard: Shard, group: Group, member_id: str, deadline_at_ms: int) -> None:
    """A session, new-member or pending timer ran out, which was due at an instant."""
    if member_id in group.pending:
        group.pending.discard(member_id)
        shard.happen(group.group_id, "pending_expired", member_id)
        try_complete(shard, group, by_expiry=True)
        return
    member = group.members.get(member_id)
    if member is None or member.protected() or shard.granted_five_minutes(member, deadline_at_ms):
        return  # A waiting member has no timer from here on; the end of its waiting arms the next one.
    shard.happen(group.group_id, "join_timeout" if member.is_new else "session_expired", member_id)
    if shard.behaviour.removed_joiner_is_answered:
        shard.dismiss_join(group, member, ErrorCode.UNKNOWN_MEMBER_ID, "")
    shard.forget_one(group, member_id)
    if group.state in REBALANCED:
        prepare(shard, group, "session expired")
    else:
        try_complete(shard, group, by_expiry=True)


def sync_timer_fired(shard: Shard, group: Group) -> None:
    """Members that got the generation and never sent SyncGroup are removed; the rest rebalances.

    An id left behind by a replaced static member removes nobody, and the rebalance starts all the same; in two releases
    it stops everything instead.
    """
    never_synced = sorted(group.pending_sync)
    left_behind = any(member_id not in group.members for member_id in never_synced)
    breaks = left_behind and shard.behaviour.replaced_id_breaks_sync_timer
    if breaks:
        ordered = shard.in_order(group, never_synced)
        never_synced = list(takewhile(lambda member_id: member_id in group.members, ordered))
    leader = group.leader
    for member_id in never_synced:
        if member_id in group.members:
            shard.happen(group.group_id, "sync_timeout", member_id)
        shard.forget(group, member_id)
    if group.leader != leader:
        shard.lead(group, group.ids)
    if not breaks:
        prepare(shard, group, "sync timeout")
