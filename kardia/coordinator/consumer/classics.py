"""Members of the classic protocol in a consumer group: JoinGroup, SyncGroup, Heartbeat, LeaveGroup, without a barrier.

A JoinGroup does what a heartbeat does and is answered at once; the generation is the epoch of the member. Follows
`classicGroupJoinToConsumerGroup` and its neighbours. What goes to a group that is no consumer group, or to one without
members, is handed to the classic coordinator.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from kardia.coordinator.classic import heartbeats as classic_heartbeats
from kardia.coordinator.classic import leaves as classic_leaves
from kardia.coordinator.classic import syncs as classic_syncs
from kardia.coordinator.classic.operations import Answer, Heartbeat, Join, Leave, Leaving, Sync
from kardia.coordinator.consumer.conversions import join_classic, may_downgrade_replacing
from kardia.coordinator.consumer.group import ConsumerGroup
from kardia.coordinator.consumer.leaves import fence
from kardia.coordinator.consumer.member import NOBODY, Classic, Member, MemberState
from kardia.coordinator.consumer.operations import SyncAnswer
from kardia.coordinator.consumer.progress import Arrival, progress, refuse_if_full
from kardia.coordinator.consumer.shard import JOIN, SYNC, Shard
from kardia.coordinator.consumer.wire import read_subscription
from kardia.coordinator.errors import RefusedError
from kardia.kafka.states import ErrorCode

_CONSUMER = "consumer"
_IDS_REQUIRED = 4
"""The version of JoinGroup from which on a new dynamic member is told its id first (79)."""
_SEVERAL = 3
"""The version of LeaveGroup from which on it lists members."""


def join(shard: Shard, request: Join) -> None:
    """JoinGroup."""
    settings = shard.settings
    least_ms, most_ms = settings.group_min_session_timeout_ms, settings.group_max_session_timeout_ms
    if not request.group_id:
        _answer_join(shard, request, ErrorCode.INVALID_GROUP_ID, request.member_id)
    elif not least_ms <= request.session_timeout_ms <= most_ms:
        _answer_join(shard, request, ErrorCode.INVALID_SESSION_TIMEOUT, request.member_id)
    elif not shard.loaded:
        _answer_join(shard, request, ErrorCode.NOT_COORDINATOR, "")
    else:
        try:
            _join(shard, request)
        except RefusedError as refused:
            _answer_join(shard, request, refused.code, "")


def _answer_join(shard: Shard, request: Join, code: ErrorCode, member_id: str) -> None:
    shard.answers.append(Answer(request.number, shard.now_ms, int(code), member_id=member_id))


def _join(shard: Shard, request: Join) -> None:
    group = shard.groups.get(request.group_id)
    if group is None or not group.members:
        join_classic(shard, request)
        return
    policy = shard.settings.group_consumer_migration_policy
    if shard.behaviour.policy_refuses_classic and policy == "disabled":
        raise RefusedError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    member_id = request.member_id or request.new_id
    refuse_if_full(shard, group, member_id, request.group_instance_id)
    if request.protocol_type != _CONSUMER or not _supported(group, request):
        raise RefusedError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    if not request.member_id and request.group_instance_id is None and request.version >= _IDS_REQUIRED:
        _answer_join(shard, request, ErrorCode.MEMBER_ID_REQUIRED, member_id)
        return
    before, replaced = _who(group, request, member_id)
    holder = group.holder(request.group_instance_id)
    downgrades = holder is not None and may_downgrade_replacing(shard, group, holder)
    subscription = read_subscription(request.protocols[0][1])
    merged = replace(
        before,
        instance_id=request.group_instance_id if request.group_instance_id is not None else before.instance_id,
        rack_id=subscription.rack_id if subscription.rack_id is not None else before.rack_id,
        rebalance_timeout_ms=_rebalance_timeout_ms(request),
        client_id=request.client_id,
        client_host=request.client_host,
        names=frozenset(subscription.topics),
        regex="",
        classic=Classic(request.session_timeout_ms, request.protocols),
    )
    topics = shard.topics
    owned = [(topics[name].topic_id, number) for name, number in subscription.owned if name in topics]
    after = progress(shard, Arrival(group, False, before, replaced, merged, owned, downgrades))
    shard.cancel(group.group_id, after.member_id, JOIN)
    if not downgrades:
        shard.arm_session(group.group_id, after.member_id, request.session_timeout_ms)
        key = (SYNC, group.group_id, after.member_id)
        shard.timers.arm(key, shard.now_ms, _rebalance_timeout_ms(request))
    name = request.protocols[0][0]
    shard.answers.append(Answer(request.number, shard.now_ms, 0, after.epoch, "", after.member_id, name))


def _rebalance_timeout_ms(request: Join) -> int:
    return request.session_timeout_ms if request.version == 0 else request.rebalance_timeout_ms


def _supported(group: ConsumerGroup, request: Join) -> bool:
    """Whether one of its protocols is known to every member of the classic protocol."""
    classics = [member.classic for member in group.members.values() if member.classic is not None]
    known = Counter(name for classic in classics for name, _ in classic.protocols)
    return any(known[name] == len(classics) for name, _ in request.protocols)


def _who(group: ConsumerGroup, request: Join, member_id: str) -> tuple[Member, str | None]:
    """The member as it was before, and the id of the one whose place it takes."""
    if request.group_instance_id is None:
        return group.members.get(member_id) or Member(member_id), None
    holder = group.holder(request.group_instance_id)
    if request.member_id:
        return _holder(group, member_id, request.group_instance_id), None
    if holder is None:
        return group.members.get(member_id) or Member(member_id), None
    return replace(holder, member_id=member_id, epoch=0, previous_epoch=0), holder.member_id


def _holder(group: ConsumerGroup, member_id: str, instance_id: str | None) -> Member:
    """The member that names itself so. Raises RefusedError."""
    member = group.members.get(member_id) if instance_id is None else group.holder(instance_id)
    if member is None:
        raise RefusedError(ErrorCode.UNKNOWN_MEMBER_ID)
    if instance_id is not None and member.member_id != member_id:
        raise RefusedError(ErrorCode.FENCED_INSTANCE_ID)
    return member


def _asker(shard: Shard, request: Sync | Heartbeat) -> tuple[ConsumerGroup, Member, Classic]:
    """Group and member of a request. Raises RefusedError."""
    if not request.group_id:
        raise RefusedError(ErrorCode.INVALID_GROUP_ID)
    if not shard.loaded:
        raise RefusedError(ErrorCode.NOT_COORDINATOR)
    group = shard.groups.get(request.group_id)
    if group is None or (not group.members and isinstance(request, Sync)):
        raise RefusedError(ErrorCode.UNKNOWN_MEMBER_ID)
    member = _holder(group, request.member_id, request.group_instance_id)
    if member.classic is None:
        raise RefusedError(ErrorCode.UNKNOWN_MEMBER_ID)
    if member.epoch != request.generation_id:
        raise RefusedError(ErrorCode.ILLEGAL_GENERATION)
    return group, member, member.classic


def _is_behind(shard: Shard, group: ConsumerGroup, member: Member) -> bool:
    newest = group.assignment_epoch if shard.behaviour.classic_rejoins_for_target else group.group_epoch
    return member.epoch < newest


def _must_join(shard: Shard, group: ConsumerGroup, member: Member) -> None:
    """It is told to; the time it has for that runs from the first time."""
    key = (JOIN, group.group_id, member.member_id)
    if shard.timers.deadline(key) < 0:
        shard.timers.arm(key, shard.now_ms, member.rebalance_timeout_ms)


def sync(shard: Shard, request: Sync) -> None:
    """SyncGroup: what the member is assigned now."""
    if request.group_id not in shard.groups:
        classic_syncs.sync(shard.classic, request)
        return
    try:
        group, member, classic = _asker(shard, request)
        protocol_name = classic.protocols[0][0]
        if request.protocol_type not in (None, _CONSUMER) or request.protocol_name not in (None, protocol_name):
            raise RefusedError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        if _is_behind(shard, group, member) and member.state is not MemberState.UNREVOKED:
            _must_join(shard, group, member)
            raise RefusedError(ErrorCode.REBALANCE_IN_PROGRESS)
    except RefusedError as refused:
        shard.answer(request.number, refused.code)
        return
    shard.cancel(group.group_id, member.member_id, SYNC)
    shard.arm_session(group.group_id, member.member_id, classic.session_timeout_ms)
    names = {topic.topic_id: topic.name for topic in shard.topics.values()}
    assignment = sorted((names[topic_id], number) for topic_id, number in member.assigned if topic_id in names)
    shard.answers.append(SyncAnswer(request.number, shard.now_ms, int(ErrorCode.NONE), tuple(assignment)))


def heartbeat(shard: Shard, request: Heartbeat) -> None:
    """Heartbeat: renews the session also when it tells the member to join again."""
    if request.group_id not in shard.groups:
        classic_heartbeats.heartbeat(shard.classic, request)
        return
    try:
        group, member, classic = _asker(shard, request)
    except RefusedError as refused:
        shard.answer(request.number, refused.code)
        return
    shard.arm_session(group.group_id, member.member_id, classic.session_timeout_ms)
    missing = (one for one in group.target.get(member.member_id, ()) if one not in member.assigned)
    waits = any(group.owners.get(one, NOBODY) != NOBODY for one in missing)
    released = member.state is MemberState.UNRELEASED and not waits
    if _is_behind(shard, group, member) or member.state is MemberState.UNREVOKED or released:
        _must_join(shard, group, member)
        shard.answer(request.number, ErrorCode.REBALANCE_IN_PROGRESS)
    else:
        shard.answer(request.number, ErrorCode.NONE)


def leave(shard: Shard, request: Leave) -> None:
    """LeaveGroup, of members of any protocol; those that are none have an error of their own."""
    group = shard.groups.get(request.group_id)
    if group is None or not shard.loaded:
        classic_leaves.leave(shard.classic, request)
        return
    codes: list[ErrorCode] = []
    gone: dict[str, Member] = {}
    for one in request.members:
        try:
            member = _leaving(group, one)
            gone[member.member_id] = member
            codes.append(ErrorCode.NONE)
        except RefusedError as refused:
            codes.append(refused.code)
    try:
        if gone:
            fence(shard, group, list(gone.values()), "left")
    except RefusedError as refused:
        shard.answer(request.number, refused.code)
        return
    if request.version < _SEVERAL:
        shard.answer(request.number, codes[0])
        return
    left = tuple(
        (one.member_id, one.group_instance_id, int(code)) for one, code in zip(request.members, codes, strict=True)
    )
    shard.answers.append(Answer(request.number, shard.now_ms, int(ErrorCode.NONE), left=left))


def _leaving(group: ConsumerGroup, one: Leaving) -> Member:
    if one.group_instance_id is not None and not one.member_id:
        holder = group.holder(one.group_instance_id)
        if holder is None:
            raise RefusedError(ErrorCode.UNKNOWN_MEMBER_ID)
        return holder
    return _holder(group, one.member_id, one.group_instance_id)
