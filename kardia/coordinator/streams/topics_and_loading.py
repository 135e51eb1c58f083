"""What the cluster does to streams groups: topics come and go, their shard is loaded and unloaded, empty groups expire.

Follows `onLoaded`, `onUnloaded`, `onNewMetadataImage` and `cleanupGroupMetadata`.
"""

from __future__ import annotations

from kardia.coordinator.consumer.operations import Topics
from kardia.coordinator.operations import Load, Unload
from kardia.coordinator.streams.group import MemberState
from kardia.coordinator.streams.operations import ConfigureStreams
from kardia.coordinator.streams.shard import EXPIRE_KEY, Shard
from kardia.coordinator.timers import Timer


def change_topics(shard: Shard, request: Topics) -> None:
    """The cluster has other topics: groups that need one that changed look again at their next heartbeat."""
    old, new = shard.topics, {topic.name: topic for topic in request.topics}
    changed = {name for name in old.keys() | new.keys() if old.get(name) != new.get(name)}
    shard.topics = new
    if not shard.loaded:
        return
    for group in shard.groups.values():
        if changed & shard.concerned[group.group_id]:
            group.refreshed = False


def configure(shard: Shard, request: ConfigureStreams) -> None:
    """A group is configured. Timers that run go on as they were armed."""
    shard.own_settings[request.group_id] = shard.settings._replace(
        group_streams_session_timeout_ms=request.session_timeout_ms,
        group_streams_heartbeat_interval_ms=request.heartbeat_interval_ms,
        group_streams_num_standby_replicas=request.num_standby_replicas,
        group_streams_initial_rebalance_delay_ms=request.initial_rebalance_delay_ms,
        group_streams_assignment_interval_ms=request.assignment_interval_ms,
    )


def load(shard: Shard, operation: Load) -> None:  # noqa: ARG001
    """The shard is read back: all that was recorded is there, sessions and the time to give tasks up start anew; the
    delay before the first assignment, a shutdown and whether the topics fit are forgotten."""
    shard.loaded = True
    for group in shard.groups.values():
        group.forget_unrecorded(shard.first_endpoint_epoch())
        for member_id in shard.in_order(group.group_id, group.members):
            member = group.members[member_id]
            shard.arm_session(group.group_id, member_id)
            if member.state is MemberState.UNREVOKED:
                shard.arm_rebalance(group.group_id, member)
    shard.timers.arm(EXPIRE_KEY, shard.now_ms, shard.settings.offsets_retention_check_interval_ms)


def unload(shard: Shard, operation: Unload) -> None:  # noqa: ARG001
    """Timers are gone; the records remain."""
    shard.loaded = False
    shard.timers.clear()


def expire(shard: Shard, timer: Timer) -> None:
    """The periodic look for offsets that nobody needs: groups without offsets and members are deleted."""
    for group in list(shard.groups.values()):
        if not group.members:
            del shard.groups[group.group_id]
            shard.timers.cancel(shard.initial_key(group.group_id))
            shard.happen(group.group_id, "deleted")
    shard.timers.arm(timer.key, shard.now_ms, shard.settings.offsets_retention_check_interval_ms)
