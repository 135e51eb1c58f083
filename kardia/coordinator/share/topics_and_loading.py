"""What the cluster does to share groups: topics come and go, their shard is loaded and unloaded, empty groups expire.

Follows `onLoaded`, `onUnloaded`, `onMetadataUpdate` and, for 4.0, `cleanupGroupMetadata`.
"""

from __future__ import annotations

from kardia.coordinator.consumer.operations import Topics
from kardia.coordinator.operations import Load, Unload
from kardia.coordinator.share.initialization import forget_topics
from kardia.coordinator.share.operations import ConfigureShare
from kardia.coordinator.share.shard import EXPIRE_KEY, SESSION, Shard
from kardia.coordinator.timers import Timer


def change_topics(shard: Shard, request: Topics) -> None:
    """The cluster has other topics: groups that subscribe to one that changed look again at their next heartbeat."""
    old, new = shard.topics, {topic.name: topic for topic in request.topics}
    changed = {name for name in old.keys() | new.keys() if old.get(name) != new.get(name)}
    gone = {one.topic_id for one in old.values()} - {one.topic_id for one in new.values()}
    if shard.loaded:
        forget_topics(shard, gone)
    shard.topics = new
    if not shard.loaded:
        return
    for group in shard.groups.values():
        if changed.intersection(group.names(group.members.values())):
            group.refreshed = False


def configure(shard: Shard, request: ConfigureShare) -> None:
    """A group is configured. Timers that run go on as they were armed."""
    shard.own_settings[request.group_id] = shard.settings._replace(
        group_share_session_timeout_ms=request.session_timeout_ms,
        group_share_heartbeat_interval_ms=request.heartbeat_interval_ms,
    )


def load(shard: Shard, operation: Load) -> None:  # noqa: ARG001
    """The shard is read back: all that was recorded is there, and sessions start anew, but not in 4.0."""
    shard.loaded = True
    for group in shard.groups.values():
        group.refreshed, group.refreshed_epoch = False, 0
        if group.states is not None:
            group.states.written_at_ms = shard.now_ms
        if shard.behaviour.sessions_start_at_load:
            shard.arm_sessions(group.group_id, group.members)
    shard.timers.arm(EXPIRE_KEY, shard.now_ms, shard.settings.offsets_retention_check_interval_ms)


def unload(shard: Shard, operation: Unload) -> None:  # noqa: ARG001
    """Timers are gone; the records remain, and what was asked of the share coordinator is on its way."""
    shard.loaded = False
    shard.timers.cancel(EXPIRE_KEY)
    for group in shard.groups.values():
        for member_id in group.members:
            shard.timers.cancel((SESSION, group.group_id, member_id))


def expire(shard: Shard, timer: Timer) -> None:
    """The periodic look for offsets that nobody needs, of which share groups have none."""
    for group in list(shard.groups.values()):
        if shard.behaviour.empty_groups_expire and not group.members:
            del shard.groups[group.group_id]
            shard.happen(group.group_id, "deleted")
    shard.timers.arm(timer.key, shard.now_ms, shard.settings.offsets_retention_check_interval_ms)
