"""New epochs and new targets: what a ConsumerGroupHeartbeat, or a JoinGroup of a classic member, does to its group.

In order: a new epoch if something calls for one, a new target if there is none for the epoch, one step of the member
towards it. Nothing is changed before all of it is known. Follows `GroupMetadataManager.consumerGroupHeartbeat` and
`classicGroupJoinToConsumerGroup`, which do the same with different conditions.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from kardia.coordinator.consumer import expressions
from kardia.coordinator.consumer.assignors import Subscriber, assign_range, broken_law
from kardia.coordinator.consumer.conversions import downgrade, downgraded, take_place
from kardia.coordinator.consumer.group import ConsumerGroup, subscribed_alike
from kardia.coordinator.consumer.member import Member, MemberState
from kardia.coordinator.consumer.operations import Partition, Topic
from kardia.coordinator.consumer.reconcile import Aim, reconcile
from kardia.coordinator.consumer.shard import REBALANCE, Shard
from kardia.coordinator.errors import NotModelledError, RefusedError
from kardia.kafka.states import ErrorCode


class Arrival(NamedTuple):
    """A member arrives in a group."""

    group: ConsumerGroup
    is_new: bool
    """Whether the group is."""
    before: Member
    replaced: str | None
    """The member whose place is taken."""
    merged: Member
    """With what the request says."""
    owned: Collection[Partition] | None
    """What the request reports as owned."""
    downgrades: bool = False
    """Whether the group becomes a classic one by this: then no target is computed."""


class _Epoch(NamedTuple):
    """An epoch of the group."""

    group_epoch: int
    metadata: dict[str, Topic] | None
    """The subscribed topics, where they were looked at."""
    alike: bool
    """Whether all members subscribe alike."""


class _Change(NamedTuple):
    """What is about to be done to the group."""

    after: Member
    """With what it is assigned."""
    group_epoch: int
    metadata: dict[str, Topic] | None
    target: dict[str, frozenset[Partition]] | None


def refuse_if_full(shard: Shard, group: ConsumerGroup, member_id: str, instance_id: str | None) -> None:
    """Raises RefusedError when the group has no room for one that is no member."""
    if len(group.members) < shard.settings.group_consumer_max_size or member_id in group.members:
        return
    if shard.behaviour.static_rejoins_full_group and group.holder(instance_id) is not None:
        return
    raise RefusedError(ErrorCode.GROUP_MAX_SIZE_REACHED)


def progress(shard: Shard, arrival: Arrival) -> Member:
    """The member afterwards; all but its session is done. Raises RefusedError for a bad regular expression, and where
    the assignor gives up: then nothing is changed but when topics were looked at."""
    group, before, updated = arrival.group, arrival.before, arrival.merged
    regex = expressions.look(shard, group, before, updated)
    members = group.with_member(updated)
    epoch = _epoch(shard, arrival, regex, members)
    group_epoch, changed = epoch.group_epoch, updated.names != before.names or regex.changed
    if arrival.downgrades:
        return _downgraded(shard, arrival, group_epoch, changed)
    target, target_epoch = None, group.assignment_epoch
    if group_epoch > group.assignment_epoch and _may_assign(shard, group):
        target, target_epoch = _assigned(shard, group, members, updated, epoch.alike), group_epoch
    held = (target or group.target).get(updated.member_id, frozenset())
    if target is None and updated.instance_id is not None:
        held = group.in_place_of(updated.instance_id)
    after = reconcile(updated, _aim(shard, arrival, target_epoch, held, changed), shard.behaviour)
    # Members of the classic protocol have other timers for this.
    if after != updated and after.classic is None:
        if after.state is MemberState.UNREVOKED:
            shard.arm_rebalance(group.group_id, after)
        else:
            shard.cancel(group.group_id, after.member_id, REBALANCE)
    _apply(shard, arrival, _Change(after, group_epoch, epoch.metadata, target), regex)
    return after


def _epoch(shard: Shard, arrival: Arrival, regex: expressions.Outcome, members: list[Member]) -> _Epoch:
    """The epoch of the group from now on, with what it goes by."""
    group, before, updated = arrival.group, arrival.before, arrival.merged
    names_changed = updated.names != before.names
    counts = group.subscriptions(members, regex.dropped)
    if updated.classic is not None:
        bump = names_changed or regex.changed
    else:
        # A group that a classic one of generation 0 has become is in epoch 0 in any release.
        first = group.group_epoch == 0 and not shard.behaviour.groups_start_at_one
        bump = names_changed or regex.bumps or first
        bump = bump or (shard.behaviour.assignor_counts and _assignor_changed(shard, group, members))
    if not bump and group.refreshed and group.group_epoch >= group.refreshed_epoch:
        return _Epoch(group.group_epoch, None, group.alike)
    metadata = {name: shard.topics[name] for name in counts if name in shard.topics}
    alike = subscribed_alike(counts, group.expressions(members), len(members))
    group_epoch = group.group_epoch + (bump or metadata != group.metadata)
    group.refreshed, group.refreshed_epoch = True, group_epoch
    return _Epoch(group_epoch, metadata, alike)


def _aim(shard: Shard, arrival: Arrival, epoch: int, target: frozenset[Partition], changed: bool) -> Aim:
    group, member = arrival.group, arrival.merged
    subscribed = {topic.topic_id for topic in group.topics_of(member, shard.topics)}
    return Aim(epoch, target, subscribed, not group.names_of(member), changed, arrival.owned, group.owners)


def _downgraded(shard: Shard, arrival: Arrival, group_epoch: int, changed: bool) -> Member:
    """The group becomes a classic one, of the epoch it had. Unless that rebalances, the member makes a last step."""
    group, member = arrival.group, arrival.merged
    stale = group.assignment_epoch < group_epoch
    rebalance = stale if shard.behaviour.stale_target_rebalances_downgraded else changed
    if not rebalance:
        target = group.in_place_of(member.instance_id)
        aim = _aim(shard, arrival, group.assignment_epoch, target, changed)
        member = reconcile(member, aim, shard.behaviour)
    others = [one for one in group.members.values() if one.instance_id != member.instance_id]
    downgrade(shard, downgraded(shard, group, others, member), rebalance)
    return member


def _assignor_changed(shard: Shard, group: ConsumerGroup, members: list[Member]) -> bool:
    default = [shard.settings.group_consumer_assignors[0]]
    before = group.preferred_assignor(group.members.values()) or default
    after = group.preferred_assignor(members) or default
    if set(before).isdisjoint(after) or len(before) == len(after) == 1:
        return before != after
    return shard.choose.assignor_changed(group.group_id, before, after)


def _may_assign(shard: Shard, group: ConsumerGroup) -> bool:
    interval_ms = shard.settings_of(group.group_id).group_consumer_assignment_interval_ms
    if not shard.behaviour.waits_for_assignment_interval or not group.assigned_at_ms or not interval_ms:
        return True
    return shard.now_ms >= group.assigned_at_ms + interval_ms


def _assigned(
    shard: Shard, group: ConsumerGroup, members: list[Member], updated: Member, alike: bool
) -> dict[str, frozenset[Partition]]:
    """The new target. Raises RefusedError where the assignor gives up."""
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
    if target is None:
        raise RefusedError(ErrorCode.UNKNOWN_SERVER_ERROR)
    broken = broken_law(subscribers, alike, target)
    if broken:
        raise ValueError(f"group {group.group_id!r}: {broken}; expected what the assignor `uniform` does")
    return target


def _apply(shard: Shard, arrival: Arrival, change: _Change, regex: expressions.Outcome) -> None:
    """In the order in which Kafka writes its records: some of what it remembers depends on that."""
    group, member_id = arrival.group, change.after.member_id
    if arrival.is_new:
        take_place(shard, group)
        shard.happen(group.group_id, "created")
    if arrival.replaced is not None:
        target = group.target.get(arrival.replaced, frozenset())
        group.remove(arrival.replaced)
        group.put(arrival.before)
        group.target[member_id] = target
        shard.happen(group.group_id, "member_replaced", member_id, arrival.replaced)
    elif member_id not in group.members:
        shard.happen(group.group_id, "member_added", member_id, change.after.instance_id or "")
    if arrival.merged != arrival.before:
        _put(shard, group, arrival.merged)
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
    if change.after != arrival.merged:
        group.put(change.after)
    if regex.wanted:
        expressions.order(shard, group, regex.wanted)


def _put(shard: Shard, group: ConsumerGroup, member: Member) -> None:
    old = group.members.get(member.member_id)
    group.put(member)
    renamed = old is not None and old.instance_id is not None and old.instance_id != member.instance_id
    if shard.behaviour.changed_instance_id_is_free and old is not None and renamed:
        group.instances.pop(old.instance_id or "", None)
