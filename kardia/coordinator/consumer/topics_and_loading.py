"""What the cluster does to consumer groups: topics come and go, their shard is loaded and unloaded.

Follows `onLoaded`, `onUnloaded` and `onNewMetadataImage` (`onMetadataUpdate`).
"""

from __future__ import annotations

from kardia.coordinator.classic.group import Group as ClassicGroup
from kardia.coordinator.classic.removal_and_loading import load as load_classic
from kardia.coordinator.classic.removal_and_loading import unload as unload_classic
from kardia.coordinator.consumer.group import ConsumerGroup
from kardia.coordinator.consumer.member import MemberState
from kardia.coordinator.consumer.operations import Configure, Topics
from kardia.coordinator.consumer.shard import EXPIRE_KEY, Shard
from kardia.coordinator.operations import Load, Unload


def change_topics(shard: Shard, request: Topics) -> None:
    """The cluster has other topics: groups that subscribe to one that changed look again at their next heartbeat."""
    old, new = shard.topics, {topic.name: topic for topic in request.topics}
    changed = {name for name in old.keys() | new.keys() if old.get(name) != new.get(name)}
    if not changed:
        return
    shard.topics = new
    shard.classic.topic_ids = {topic.name: topic.topic_id for topic in request.topics}
    shard.version += 1
    if not shard.loaded:
        return
    if any(topic.topic_id not in {one.topic_id for one in old.values()} for topic in new.values()):
        shard.created_version = shard.version
    gone = {one.topic_id for one in old.values()} - {one.topic_id for one in new.values()}
    for group in shard.groups.values():
        if changed & shard.listed.get(group.group_id, set()) or any(group.is_subscribed(name) for name in changed):
            group.refreshed = False
    with_offsets: list[ConsumerGroup | ClassicGroup] = [*shard.groups.values(), *shard.lost.values()]
    for one in (*with_offsets, *shard.classic.groups.values()):
        for place, offset in list(one.offsets.items()):
            topic = old.get(place[0])
            if topic is None or (place[1] >= topic.partitions and not shard.behaviour.topics_take_all_offsets):
                continue
            if topic.topic_id in gone and offset.topic_id in ("", topic.topic_id):
                del one.offsets[place]
                shard.classic.records.drop_offsets(one.group_id, [place])


def unlist(shard: Shard) -> None:
    """After each step: what a consumer group subscribes to is listed by that, and no longer than that."""
    for group_id, names in list(shard.listed.items()):
        group = shard.groups.get(group_id)
        if group is not None:
            names.difference_update(group.subscriptions(group.members.values()))
        if not names:
            del shard.listed[group_id]


def configure(shard: Shard, request: Configure) -> None:
    """A group is configured. Timers that run go on as they were armed."""
    if request.session_timeout_ms < 0:
        shard.own_settings.pop(request.group_id, None)
        return
    shard.own_settings[request.group_id] = shard.settings._replace(
        group_consumer_session_timeout_ms=request.session_timeout_ms,
        group_consumer_heartbeat_interval_ms=request.heartbeat_interval_ms,
        group_consumer_assignment_interval_ms=request.assignment_interval_ms,
    )


def load(shard: Shard, operation: Load) -> None:
    """The shard is read back: all that was recorded is there, every session starts anew."""
    shard.loaded = True
    shard.created_version = shard.version
    for group_id, group in shard.lost.items():
        if group_id not in shard.classic.records.groups:
            shard.groups[group_id] = group
            shard.classic.records.named.discard(group_id)
    shard.lost.clear()
    load_classic(shard.classic, operation)
    for group in shard.groups.values():
        group.recall(int(shard.behaviour.groups_start_at_one))
        for member_id in shard.in_order(group.group_id, group.members):
            shard.arm_session(group.group_id, member_id)
            if group.members[member_id].state is MemberState.UNREVOKED:
                shard.arm_rebalance(group.group_id, group.members[member_id])
    shard.timers.arm(EXPIRE_KEY, shard.now_ms, shard.settings.offsets_retention_check_interval_ms)


def unload(shard: Shard, operation: Unload) -> None:
    """Timers and look-ups on their way are gone; the records remain."""
    unload_classic(shard.classic, operation)
    shard.loaded = False
    shard.timers.clear()
    shard.rebalance_epochs.clear()
    shard.tasks.clear()
    shard.listed.clear()
    for group in shard.groups.values():
        group.refreshed, group.refreshed_epoch = False, 0
