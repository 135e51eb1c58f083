"""ConsumerGroupHeartbeat: who may, what it changes, and what the member is told.

Follows `GroupMetadataManager.consumerGroupHeartbeat` and what it calls.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from kardia.coordinator.consumer import expressions
from kardia.coordinator.consumer.assignors import Subscriber, assign_range, broken_law
from kardia.coordinator.consumer.behaviour import ConsumerBehaviour
from kardia.coordinator.consumer.errors import Code, NotModelledError, RefusedError
from kardia.coordinator.consumer.group import ConsumerGroup, subscribed_alike
from kardia.coordinator.consumer.leaves import leave
from kardia.coordinator.consumer.member import LEAVE, LEAVE_FOR_A_WHILE, Member, MemberState
from kardia.coordinator.consumer.operations import Beat, BeatAnswer, Partition, Topic
from kardia.coordinator.consumer.reconcile import Aim, reconcile
from kardia.coordinator.consumer.settings import ConsumerSettings
from kardia.coordinator.consumer.shard import REBALANCE, Shard

_JOIN = 0
_CLIENT_MAKES_IDS = 1
"""The version of the request from which on the client makes up its member id."""


def heartbeat(shard: Shard, beat: Beat) -> None:
    """A heartbeat arrives."""
    invalid = _invalid(beat, shard.settings)
    if invalid and (shard.loaded or shard.behaviour.request_checked_before_ownership):
        shard.answers.append(BeatAnswer(beat.number, shard.now_ms, int(invalid)))
        return
    if not shard.loaded:
        shard.answers.append(BeatAnswer(beat.number, shard.now_ms, int(Code.NOT_COORDINATOR)))
        return
    try:
        leaves = beat.member_epoch in (LEAVE, LEAVE_FOR_A_WHILE)
        answer = leave(shard, beat) if leaves else _stay(shard, beat)
    except RefusedError as refused:
        answer = BeatAnswer(beat.number, shard.now_ms, int(refused.code))
    shard.answers.append(answer)


def _invalid(beat: Beat, settings: ConsumerSettings) -> Code | None:
    """What is wrong with the request itself."""
    needs_id = beat.version >= _CLIENT_MAKES_IDS or beat.member_epoch > 0 or beat.member_epoch == LEAVE
    if (needs_id and not beat.member_id.strip()) or not beat.group_id.strip():
        return Code.INVALID_REQUEST
    if any(one is not None and not one.strip() for one in (beat.instance_id, beat.rack_id)):
        return Code.INVALID_REQUEST
    if beat.member_epoch == _JOIN:
        if beat.rebalance_timeout_ms == -1 or beat.owned != () or (beat.names is None and beat.regex is None):
            return Code.INVALID_REQUEST
    elif beat.member_epoch < LEAVE_FOR_A_WHILE or (beat.member_epoch == LEAVE_FOR_A_WHILE and beat.instance_id is None):
        return Code.INVALID_REQUEST
    if beat.assignor is not None and beat.assignor not in settings.group_consumer_assignors:
        return Code.UNSUPPORTED_ASSIGNOR
    return None


class _Change(NamedTuple):
    """What a heartbeat is about to do to the group; nothing is done before all of it is known."""

    replaced: str | None
    """The member whose place is taken."""
    before: Member
    merged: Member
    """With what the request says."""
    after: Member
    """With what it is assigned."""
    group_epoch: int
    metadata: dict[str, Topic] | None
    target: dict[str, frozenset[Partition]] | None


def _stay(shard: Shard, beat: Beat) -> BeatAnswer:
    behaviour = shard.behaviour
    found = shard.groups.get(beat.group_id)
    if found is None and beat.member_epoch != _JOIN:
        raise RefusedError(Code.GROUP_ID_NOT_FOUND)
    first = int(behaviour.groups_start_at_one)
    group = found or ConsumerGroup(beat.group_id, first, first)
    _refuse_if_full(shard, group, beat)
    member, replaced = _who(shard, group, beat)
    updated = _merged(member, beat)
    names_changed = updated.names != member.names
    regex = expressions.look(shard, group, member, updated)
    members = group.with_member(updated)
    counts = group.subscriptions(members, regex.dropped)
    bump = names_changed or regex.bumps
    bump = bump or group.group_epoch == 0 or (behaviour.assignor_counts and _assignor_changed(shard, group, members))
    group_epoch, metadata, alike = group.group_epoch, None, group.alike
    if bump or not group.refreshed or group.group_epoch < group.refreshed_epoch:
        metadata = {name: shard.topics[name] for name in counts if name in shard.topics}
        alike = subscribed_alike(counts, group.expressions(members), len(members))
        group_epoch += bump or metadata != group.metadata
        group.refreshed, group.refreshed_epoch = True, group_epoch
    target, target_epoch = None, group.assignment_epoch
    if group_epoch > group.assignment_epoch and _may_assign(shard, group):
        target, target_epoch = _assigned(shard, group, members, updated, alike), group_epoch
    held = (target or group.target).get(updated.member_id, frozenset())
    if target is None and updated.instance_id is not None:
        held = group.target.get(group.instances.get(updated.instance_id, ""), frozenset())
    aim = Aim(
        target_epoch,
        held,
        {topic.topic_id for topic in group.topics_of(updated, shard.topics)},
        not group.names_of(updated),
        names_changed or regex.changed,
        beat.owned,
        group.owners,
    )
    reconciled = reconcile(updated, aim, behaviour)
    if reconciled != updated:
        if reconciled.state is MemberState.UNREVOKED:
            shard.arm_rebalance(group.group_id, reconciled)
        else:
            shard.cancel(group.group_id, reconciled.member_id, REBALANCE)
    change = _Change(replaced, member, updated, reconciled, group_epoch, metadata, target)
    _apply(shard, group, found is None, change, regex)
    shard.arm_session(beat.group_id, updated.member_id)
    full = beat.rebalance_timeout_ms != -1 and (beat.names, beat.regex) != (None, None) and beat.owned is not None
    told = beat.member_epoch == _JOIN or full or set(reconciled.assigned) != set(member.assigned)
    return BeatAnswer(
        beat.number,
        shard.now_ms,
        int(Code.NONE),
        reconciled.member_id,
        reconciled.epoch,
        shard.settings.group_consumer_heartbeat_interval_ms,
        tuple(sorted(reconciled.assigned)) if told else None,
    )


def _refuse_if_full(shard: Shard, group: ConsumerGroup, beat: Beat) -> None:
    if len(group.members) < shard.settings.group_consumer_max_size or beat.member_id in group.members:
        return
    if shard.behaviour.static_rejoins_full_group and group.holder(beat.instance_id) is not None:
        return
    raise RefusedError(Code.GROUP_MAX_SIZE_REACHED)


def _who(shard: Shard, group: ConsumerGroup, beat: Beat) -> tuple[Member, str | None]:
    """The member that sends the heartbeat as it was before, and the id of the one it takes the place of."""
    member_id = beat.member_id or beat.new_id
    joins = beat.member_epoch == _JOIN
    if beat.instance_id is None:
        member = group.members.get(member_id)
        if member is None:
            if not joins:
                raise RefusedError(Code.UNKNOWN_MEMBER_ID)
            member = Member(member_id)
        _refuse_epoch(shard.behaviour, member, beat)
        return member, None
    holder = group.holder(beat.instance_id)
    if not joins:
        if holder is None:
            raise RefusedError(Code.UNKNOWN_MEMBER_ID)
        if holder.member_id != member_id:
            raise RefusedError(Code.FENCED_INSTANCE_ID)
        _refuse_epoch(shard.behaviour, holder, beat)
        return holder, None
    if holder is None:
        return group.members.get(member_id) or Member(member_id), None
    if holder.epoch != LEAVE_FOR_A_WHILE:
        raise RefusedError(Code.UNRELEASED_INSTANCE_ID)
    return replace(holder, member_id=member_id, epoch=0, previous_epoch=0), holder.member_id


def _refuse_epoch(behaviour: ConsumerBehaviour, member: Member, beat: Beat) -> None:
    epoch = beat.member_epoch
    if epoch == member.epoch or (epoch == _JOIN and behaviour.rejoins_with_epoch_zero):
        return
    lost = epoch < member.epoch and epoch == member.previous_epoch and beat.owned is not None
    if not lost or not all(one in member.assigned for one in beat.owned or ()):
        raise RefusedError(Code.FENCED_MEMBER_EPOCH)


def _merged(member: Member, beat: Beat) -> Member:
    """The member with what the request changes of it."""
    return replace(
        member,
        instance_id=beat.instance_id if beat.instance_id is not None else member.instance_id,
        rack_id=beat.rack_id if beat.rack_id is not None else member.rack_id,
        rebalance_timeout_ms=(
            beat.rebalance_timeout_ms if beat.rebalance_timeout_ms != -1 else member.rebalance_timeout_ms
        ),
        client_id=beat.client_id,
        client_host=beat.client_host,
        names=frozenset(beat.names) if beat.names is not None else member.names,
        regex=beat.regex if beat.regex is not None else member.regex,
        assignor=beat.assignor if beat.assignor is not None else member.assignor,
    )


def _assignor_changed(shard: Shard, group: ConsumerGroup, members: list[Member]) -> bool:
    default = [shard.settings.group_consumer_assignors[0]]
    before = group.preferred_assignor(group.members.values()) or default
    after = group.preferred_assignor(members) or default
    if set(before).isdisjoint(after) or len(before) == len(after) == 1:
        return before != after
    return shard.choose.assignor_changed(group.group_id, before, after)


def _may_assign(shard: Shard, group: ConsumerGroup) -> bool:
    interval_ms = shard.settings.group_consumer_assignment_interval_ms
    if not shard.behaviour.waits_for_assignment_interval or not group.assigned_at_ms or not interval_ms:
        return True
    return shard.now_ms >= group.assigned_at_ms + interval_ms


def _assigned(
    shard: Shard, group: ConsumerGroup, members: list[Member], updated: Member, alike: bool
) -> dict[str, frozenset[Partition]]:
    """The new target."""
    subscribers = []
    for one in members:
        had_by = one.member_id
        if one is updated and one.instance_id is not None:
            had_by = group.instances.get(one.instance_id, had_by)
        topics = tuple(group.topics_of(one, shard.topics))
        subscribers.append(Subscriber(one.member_id, one.instance_id, topics, group.target.get(had_by, frozenset())))
    by_range = assign_range(subscribers, alike)
    candidates = group.preferred_assignor(members) or shard.settings.group_consumer_assignors[:1]
    assignor = candidates[0]
    if len(candidates) > 1:
        assignor = shard.choose.assignor(group.group_id, candidates, by_range)
    if assignor == "range":
        return by_range
    if assignor != "uniform":
        raise NotModelledError(f"group {group.group_id!r}: the assignor {assignor!r} is none of Kafka's own")
    target = shard.choose.uniform(group.group_id, subscribers, alike)
    broken = broken_law(subscribers, alike, target)
    if broken:
        raise NotModelledError(f"group {group.group_id!r}: {broken}; the assignor `uniform` does not do so")
    return target


def _apply(shard: Shard, group: ConsumerGroup, is_new: bool, change: _Change, regex: expressions.Outcome) -> None:
    """In the order in which Kafka writes its records: some of what it remembers depends on that."""
    member_id = change.after.member_id
    if is_new:
        shard.groups[group.group_id] = group
        group.refreshed, group.refreshed_epoch = False, 0
        shard.happen(group.group_id, "created")
    if change.replaced is not None:
        target = group.target.get(change.replaced, frozenset())
        group.remove(change.replaced)
        group.put(change.before)
        group.target[member_id] = target
        shard.happen(group.group_id, "member_replaced", member_id, change.replaced)
    elif member_id not in group.members:
        shard.happen(group.group_id, "member_added", member_id, change.after.instance_id or "")
    if change.merged != change.before:
        _put(shard, group, change.merged)
    for one in regex.dropped:
        group.regexes.pop(one, None)
    if change.group_epoch != group.group_epoch:
        group.group_epoch = change.group_epoch
        group.metadata = change.metadata or {}
        shard.happen(group.group_id, "epoch", detail=str(group.group_epoch))
    if change.target is not None:
        group.target = dict(change.target)
        group.assignment_epoch = change.group_epoch
        group.assigned_at_ms = shard.now_ms if shard.behaviour.waits_for_assignment_interval else 0
        shard.happen(group.group_id, "assigned", detail=str(group.assignment_epoch))
    if change.after != change.merged:
        group.put(change.after)
    if regex.wanted:
        expressions.order(shard, group, regex.wanted)


def _put(shard: Shard, group: ConsumerGroup, member: Member) -> None:
    old = group.members.get(member.member_id)
    group.put(member)
    renamed = old is not None and old.instance_id is not None and old.instance_id != member.instance_id
    if shard.behaviour.changed_instance_id_is_free and old is not None and renamed:
        group.instances.pop(old.instance_id or "", None)
