"""JoinGroup: who is let in, who waits, what starts a rebalance.

Checks come in Kafka's order, the first that hits answers. Follows `handleJoinGroup` and
`updateStaticMemberAndRebalance` (Scala), `classicGroupJoinToClassicGroup` and
`updateStaticMemberThenRebalanceOrCompleteJoin` (Java).
"""

from __future__ import annotations

from kardia.coordinator.classic.group import Group, Member
from kardia.coordinator.classic.held_up import Replaced
from kardia.coordinator.classic.operations import Join
from kardia.coordinator.classic.reactions import REACTIONS
from kardia.coordinator.classic.rebalances import add_member, answer_joined, prepare, prepare_or_try, try_complete, vote
from kardia.coordinator.classic.shard import Shard, session_key
from kardia.coordinator.classic.stores import answer_replaced, store
from kardia.kafka.states import ErrorCode, GroupState

MEMBER_ID_REQUIRED_FROM = 4
"""First JoinGroup version whose sender understands answer 79."""


def join(shard: Shard, request: Join) -> None:
    """Handle a JoinGroup; it is answered now or waits."""
    error = _refused_at_the_door(shard, request)
    if error is not ErrorCode.NONE:
        named = error is not ErrorCode.NOT_COORDINATOR or shard.behaviour.moved_names_member
        shard.answer_join(request.number, error, request.member_id if named else "")
        return
    if not shard.behaviour.static_members:
        request = request._replace(group_instance_id=None)
    group = shard.groups.get(request.group_id)
    if group is None:
        if request.member_id:
            shard.answer_join(request.number, ErrorCode.UNKNOWN_MEMBER_ID, request.member_id)
            return
        group = shard.create(request.group_id)
        _enter(shard, group, request)
        if shard.behaviour.creation_is_recorded:
            # Whatever became of the JoinGroup, also 79 and 23. As it was created: no type, no members.
            _record_creation(shard, group)
        return
    _enter(shard, group, request)


def _refused_at_the_door(shard: Shard, request: Join) -> ErrorCode:
    settings = shard.settings
    least_ms, most_ms = settings.group_min_session_timeout_ms, settings.group_max_session_timeout_ms
    in_bounds = least_ms <= request.session_timeout_ms <= most_ms
    if not request.group_id:
        return ErrorCode.INVALID_GROUP_ID
    if not in_bounds and (shard.loaded or shard.behaviour.bounds_before_ownership):
        return ErrorCode.INVALID_SESSION_TIMEOUT
    return ErrorCode.NONE if shard.loaded else ErrorCode.NOT_COORDINATOR


def _record_creation(shard: Shard, group: Group) -> None:
    blank = Group(group.group_id, group.state_since_at_ms)
    shard.record(blank, {})


def _enter(shard: Shard, group: Group, request: Join) -> None:
    if not _has_room(shard, group, request.member_id):
        _reject(shard, group, request)
    elif not group.accepts_protocols(request.protocol_type, request.protocols):
        shard.answer_join(request.number, ErrorCode.INCONSISTENT_GROUP_PROTOCOL, request.member_id)
    elif not request.member_id:
        _join_unknown(shard, group, request)
    elif request.member_id in group.pending:
        if request.group_instance_id is not None:
            shard.answer_join(request.number, ErrorCode.UNKNOWN_SERVER_ERROR, "")
        else:
            _add(shard, group, request, request.member_id)
    else:
        _join_known(shard, group, request)


def _has_room(shard: Shard, group: Group, member_id: str) -> bool:
    """Whether group.max.size admits the JoinGroup. A restarting static member counts by its (empty) id."""
    behaviour, most = shard.behaviour, shard.settings.group_max_size
    if not behaviour.max_size:
        return True
    member = group.members.get(member_id)
    if not behaviour.max_size_counts_joined:
        if not member_id:
            return len(group.members) < most
        return member is None or member.waiting_join is not None or len(group.members) <= most
    if group.state is GroupState.EMPTY:
        return True
    if group.state is GroupState.PREPARING:
        if member is not None and member.waiting_join is not None:
            return True
        return group.joined < most
    return member is not None or len(group.members) < most


def _reject(shard: Shard, group: Group, request: Join) -> None:
    """Answer 81 and forget the id, be it a member or pending."""
    if request.member_id in group.members or (request.member_id and shard.behaviour.rejection_drops_pending):
        shard.forget_one(group, request.member_id)
    if shard.behaviour.rejection_drops_instance and request.group_instance_id is not None:
        group.instances.pop(request.group_instance_id, None)
    shard.happen(group.group_id, "rejected", request.member_id)
    shard.answer_join(request.number, ErrorCode.GROUP_MAX_SIZE_REACHED, "")
    if shard.behaviour.rejection_tries_completion:
        try_complete(shard, group)


def _join_unknown(shard: Shard, group: Group, request: Join) -> None:
    """A JoinGroup without member id: a new member, a new pending id, or a static member that restarted."""
    instance_id = request.group_instance_id
    if instance_id is not None:
        holder = group.instances.get(instance_id)
        if holder is not None:
            _replace(shard, group, request, holder)
            return
    elif shard.behaviour.member_id_required and request.version >= MEMBER_ID_REQUIRED_FROM:
        group.pending.add(request.new_id)
        shard.timers.arm(session_key(group.group_id, request.new_id), shard.now_ms, request.session_timeout_ms)
        shard.happen(group.group_id, "pending", request.new_id)
        shard.answer_join(request.number, ErrorCode.MEMBER_ID_REQUIRED, request.new_id)
        return
    _add(shard, group, request, request.new_id)


def _join_known(shard: Shard, group: Group, request: Join) -> None:
    """A JoinGroup with a member id that is not pending."""
    error = group.member_error(request.member_id, request.group_instance_id)
    if error is not ErrorCode.NONE:
        shard.answer_join(request.number, error, request.member_id)
        return
    member = group.members[request.member_id]
    does = REACTIONS["JoinGroup of a member"][group.state].does
    leads = group.leader == member.member_id
    changed = member.protocols != request.protocols
    if does == "wait" or changed or (does == "lead" and leads):
        _update(shard, group, member, request)
        prepare_or_try(
            shard, group, _why("leader rejoined" if does == "lead" and leads else "metadata changed", request)
        )
    else:
        # Nothing is stored and no session starts anew. Only a leader gets the list, which here means Completing.
        answer_joined(shard, group, member, request.number)


def _replace(shard: Shard, group: Group, request: Join, old_id: str) -> None:
    """A static member restarts without its id: whoever holds the instance id is fenced, and the member gets a new one.

    The old id stays in `pending_sync`, and the session starts with the timeout stored before this request.
    """
    behaviour = shard.behaviour
    leader_before = group.leader
    member = group.members[old_id]
    shard.timers.cancel(session_key(group.group_id, old_id))
    shard.dismiss_join(group, member, ErrorCode.FENCED_INSTANCE_ID, old_id)
    shard.dismiss_sync(member, ErrorCode.FENCED_INSTANCE_ID)
    group.remove(old_id)
    member.member_id = request.new_id
    member.is_new = member.is_new and behaviour.replaced_stays_new
    group.add(member)
    if group.leader == old_id:
        group.leader = request.new_id
    shard.happen(group.group_id, "member_replaced", request.new_id, old_id)
    shard.arm_session(group, member)
    before = member.protocols, member.session_timeout_ms, member.rebalance_timeout_ms
    _update(shard, group, member, request)

    if group.state is GroupState.PREPARING:
        try_complete(shard, group)
    elif group.state is GroupState.COMPLETING:
        if behaviour.completing_replacement_rebalances:
            prepare(shard, group, _why("static member replaced", request))
        else:
            answer_replaced(shard, group, member, request, leader_before)
    elif not behaviour.replacement_is_recorded:
        answer_replaced(shard, group, member, request, leader_before)
    elif vote(shard, group) == group.protocol_name:
        shard.record(group, {one.member_id: one.assignment for one in group.members.values()})
        store(shard, Replaced(group.group_id, request.number, member, request, old_id, leader_before, *before))
    else:
        prepare(shard, group, _why("static member replaced", request))


def _update(shard: Shard, group: Group, member: Member, request: Join) -> None:
    """Store what the JoinGroup says and let it wait; an older one of the same member is never answered."""
    group.change_protocols(member, request.protocols)
    if shard.behaviour.rejoin_updates_timeouts:
        member.session_timeout_ms = request.session_timeout_ms
        member.rebalance_timeout_ms = _rebalance_timeout_ms(request)
    group.wait(member, request.number)


def _add(shard: Shard, group: Group, request: Join, member_id: str) -> None:
    member = Member(
        member_id,
        request.group_instance_id,
        request.client_id,
        request.client_host,
        request.session_timeout_ms,
        _rebalance_timeout_ms(request),
        request.protocols,
        waiting_join=request.number,
    )
    add_member(shard, group, member, request.protocol_type, _why("member added", request))


def _why(cause: str, request: Join) -> str:
    """Why a rebalance begins, with the reason the client sent (JoinGroup v8)."""
    return f"{cause}; client reason: {request.reason}" if request.reason else cause


def _rebalance_timeout_ms(request: Join) -> int:
    """Version 0 does not send one; the session timeout stands for it."""
    return request.session_timeout_ms if request.version == 0 else request.rebalance_timeout_ms
