"""Groups that change from one protocol to the other, with their members or empty, and what goes with them.

Up: a heartbeat with epoch 0 comes to a classic group. Down: the last member of the consumer protocol goes, or comes
back as a static member of the classic one. An empty group is replaced in both directions. Follows
`getOrMaybeCreateConsumerGroup`, `convertToConsumerGroup`, `ConsumerGroup.fromClassicGroup`, `convertToClassicGroup`,
`ClassicGroup.fromConsumerGroup` and `maybeDeleteEmptyConsumerGroup`. Committed offsets stay with the name of the group.
Timers of before are not cancelled: they find a group of another kind, and do nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from kardia.coordinator.classic.group import CONSUMER, StuckError
from kardia.coordinator.classic.group import Group as ClassicGroup
from kardia.coordinator.classic.group import Member as ClassicMember
from kardia.coordinator.classic.joins import join
from kardia.coordinator.classic.operations import Join
from kardia.coordinator.classic.rebalances import prepare, vote
from kardia.coordinator.classic.shard import join_key
from kardia.coordinator.consumer.group import ConsumerGroup
from kardia.coordinator.consumer.member import Classic, Member
from kardia.coordinator.consumer.operations import Partition
from kardia.coordinator.consumer.shard import Shard
from kardia.coordinator.consumer.wire import read_assignment, read_subscription, version_of, write_assignment
from kardia.coordinator.errors import RefusedError
from kardia.kafka.states import ErrorCode, GroupState

# -- to the consumer protocol ---------------------------------------------------------------------------------------


def found_by_heartbeat(shard: Shard, group_id: str) -> tuple[ConsumerGroup, bool]:
    """The group that a heartbeat with epoch 0 goes to, and whether it is new or has just been converted: then nothing
    is stored yet (`take_place`). Raises RefusedError for a classic group that stays one."""
    group = shard.groups.get(group_id)
    if group is not None:
        return group, False
    classic = shard.classic.groups.get(group_id)
    if classic is not None and classic.state is not GroupState.EMPTY:
        return _upgraded(shard, classic), True
    first = int(shard.behaviour.groups_start_at_one)
    return ConsumerGroup(group_id, first, first), True


def take_place(shard: Shard, group: ConsumerGroup) -> None:
    """A new or converted group is stored, in the place of what had its name."""
    group_id, records = group.group_id, shard.classic.records
    classic, lost = shard.classic.groups.pop(group_id, None), shard.lost.pop(group_id, None)
    if classic is not None:
        group.offsets = classic.offsets
        records.groups.pop(group_id, None)
        records.named.discard(group_id)
        shard.happen(group_id, "upgraded" if classic.members else "replaced")
    elif lost is not None:
        group.offsets = lost.offsets
        group.over = lost
    shard.groups[group_id] = group
    group.refreshed, group.refreshed_epoch = False, 0


def _upgraded(shard: Shard, classic: ClassicGroup) -> ConsumerGroup:
    """Whoever waits is told to join again, and sessions start anew, whatever becomes of the conversion."""
    settings = shard.settings
    fits = len(classic.members) <= settings.group_consumer_max_size
    if not settings.upgrades() or classic.protocol_type != CONSUMER or not fits:
        raise RefusedError(ErrorCode.GROUP_ID_NOT_FOUND)
    for member in classic.members.values():
        shard.classic.dismiss_join(classic, member, ErrorCode.REBALANCE_IN_PROGRESS, member.member_id)
        shard.classic.dismiss_sync(member, ErrorCode.REBALANCE_IN_PROGRESS)
    members = _members(shard, classic)
    group = ConsumerGroup(classic.group_id, classic.generation_id, classic.generation_id)
    for one in members:
        group.target[one.member_id] = frozenset(one.assigned)
        group.put(one)
    group.metadata = {name: shard.topics[name] for name in group.subscriptions(members) if name in shard.topics}
    for member_id in shard.in_order(group.group_id, group.members):
        shard.arm_session(group.group_id, member_id, classic.members[member_id].session_timeout_ms)
    return group


def _members(shard: Shard, classic: ClassicGroup) -> list[Member]:
    """Members of the classic group as members of the consumer group. Raises RefusedError if one of them cannot be."""
    members, codes = [], set[int]()
    for one in classic.members.values():
        try:
            members.append(_as_consumer(shard, classic, one))
        except RefusedError as refused:
            codes.add(int(refused.code))
    held = Counter(partition for one in members for partition in one.assigned)
    if any(count > 1 for count in held.values()):
        codes.add(int(ErrorCode.UNKNOWN_SERVER_ERROR))
    if codes:
        ordered = sorted(codes)
        code = ordered[0] if len(ordered) == 1 else shard.choose.fault(classic.group_id, ordered)
        raise RefusedError(ErrorCode(code))
    return members


def _as_consumer(shard: Shard, classic: ClassicGroup, member: ClassicMember) -> Member:
    generation = classic.generation_id
    assigned: dict[Partition, int] = {}
    if member.assignment:
        try:
            partitions, user_data = read_assignment(member.assignment)
        except ValueError:
            raise RefusedError(ErrorCode.GROUP_ID_NOT_FOUND) from None
        if user_data:  # An assignor of the client's own would lose it.
            raise RefusedError(ErrorCode.GROUP_ID_NOT_FOUND)
        topics = shard.topics
        assigned = {(topics[name].topic_id, number): generation for name, number in partitions if name in topics}
    metadata = next((found for name, found in member.protocols if name == classic.protocol_name), None)
    if metadata is None:
        # A group that prepares its first generation, or one out of Empty, has no protocol yet: Kafka throws here.
        raise RefusedError(ErrorCode.UNKNOWN_SERVER_ERROR)
    subscription = read_subscription(metadata)
    return Member(
        member.member_id,
        generation,
        generation,
        member.group_instance_id,
        subscription.rack_id,
        member.rebalance_timeout_ms,
        member.client_id,
        member.client_host,
        frozenset(subscription.topics),
        assigned=assigned,
        classic=Classic(member.session_timeout_ms, member.protocols),
    )


# -- to the classic protocol ----------------------------------------------------------------------------------------


def may_downgrade(shard: Shard, members: Sequence[Member]) -> bool:
    """Whether a group of these alone becomes a classic one."""
    fits = 0 < len(members) <= shard.settings.group_max_size
    return fits and shard.settings.downgrades() and all(one.classic is not None for one in members)


def may_downgrade_replacing(shard: Shard, group: ConsumerGroup, holder: Member) -> bool:
    """Whether a group becomes classic when a static member of it comes back with JoinGroup."""
    others = [one for one in group.members.values() if one is not holder]
    fits = len(group.members) <= shard.settings.group_max_size
    all_classic = holder.classic is None and all(one.classic is not None for one in others)
    return fits and shard.settings.downgrades() and all_classic


def downgraded(shard: Shard, group: ConsumerGroup, members: Sequence[Member], joiner: Member | None) -> ClassicGroup:
    """The classic group of these, and of a static member that comes back. Raises RefusedError where Kafka throws."""
    classic = ClassicGroup(group.group_id, shard.now_ms, GroupState.STABLE, group.group_epoch, CONSUMER)
    try:
        for one in (*members, *([] if joiner is None else [joiner])):
            classic.add(_as_classic(one))
        first = sorted(one.member_id for one in members) or list(classic.members)
        classic.leader = first[0] if len(first) == 1 else shard.choose.leader(group.group_id, first)
        classic.protocol_name = vote(shard.classic, classic)
        classic.read_subscriptions()
    except StuckError:
        raise RefusedError(ErrorCode.UNKNOWN_SERVER_ERROR) from None
    names = {topic.topic_id: topic.name for topic in shard.topics.values()}
    for member in classic.members.values():
        had_by = member.member_id
        if joiner is not None and had_by == joiner.member_id:
            had_by = group.instances.get(joiner.instance_id or "", had_by)
        if had_by not in group.target and shard.behaviour.downgrade_needs_every_target:
            raise RefusedError(ErrorCode.UNKNOWN_SERVER_ERROR)
        target = group.target.get(had_by, frozenset())
        partitions = [(names[topic_id], number) for topic_id, number in target if topic_id in names]
        member.assignment = write_assignment(version_of(member.metadata(classic.protocol_name)), partitions)
    return classic


def _as_classic(member: Member) -> ClassicMember:
    if member.classic is None:
        raise RefusedError(ErrorCode.UNKNOWN_SERVER_ERROR)
    return ClassicMember(
        member.member_id,
        member.instance_id,
        member.client_id,
        member.client_host,
        member.classic.session_timeout_ms,
        member.rebalance_timeout_ms,
        member.classic.protocols,
    )


def downgrade(shard: Shard, classic: ClassicGroup, rebalance: bool) -> None:
    """A converted group is stored, and rebalances if so. Its generation is the epoch of the group before."""
    group = shard.groups.pop(classic.group_id)
    shard.listed.setdefault(group.group_id, set()).update(group.subscriptions(group.members.values()))
    shard.classic.groups[classic.group_id] = classic
    classic.offsets = group.offsets
    shard.happen(classic.group_id, "downgraded")
    shard.classic.record(classic, {one.member_id: one.assignment for one in classic.members.values()})
    shard.classic.arm_sessions(classic, classic.members)
    if rebalance:
        prepare(shard.classic, classic, "the last member of the consumer protocol is gone")


# -- empty groups -----------------------------------------------------------------------------------------------------


def join_classic(shard: Shard, request: Join) -> None:
    """JoinGroup where no consumer group has members. One without members is gone: at once from memory, from the log
    only if a new group follows, which takes a JoinGroup without member id."""
    group_id = request.group_id
    emptied = shard.groups.pop(group_id, None)
    if emptied is not None:
        shard.lost[group_id] = emptied
    known = group_id in shard.classic.groups
    join(shard.classic, request)
    made = shard.classic.groups.get(group_id)
    if made is not None and not known and group_id in shard.lost:
        made.offsets = shard.lost.pop(group_id).offsets
        shard.happen(group_id, "replaced")


def commit_to_lost(shard: Shard, group_id: str) -> None:
    """A commit without a member makes a classic group, whose offsets are those of a group that memory has lost."""
    lost = shard.lost.get(group_id)
    if lost is not None and group_id not in shard.classic.groups:
        shard.classic.create(group_id).offsets = lost.offsets


# -- what is left behind --------------------------------------------------------------------------------------------


def older_join_timer_fired(shard: Shard, classic: ClassicGroup) -> None:
    """The join timer of an older life of the name finds a classic group that does not prepare. Kafka ends a join phase
    all the same: dynamic members go, statics wait on; with nobody left it counts a generation and throws."""
    if classic.state is not GroupState.EMPTY:
        absent = [one.member_id for one in classic.members.values() if one.group_instance_id is None]
        for member_id in sorted(absent):
            shard.classic.forget(classic, member_id)
            shard.happen(classic.group_id, "rebalance_timeout", member_id)
        if classic.members:
            if classic.leader is None:
                shard.classic.lead(classic, classic.ids)
            shard.timers.arm(join_key(classic.group_id), shard.now_ms, classic.rebalance_timeout_ms())
            return
    classic.generation_id += 1
    classic.protocol_name = None
    classic.read_subscriptions()
