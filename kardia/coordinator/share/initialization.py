"""Which partitions have a state at the share coordinator: asked for by heartbeats, told some time later.

Only partitions with a state are given out, so a group that has just got one bumps its epoch at the next heartbeat.
Follows `maybeCreateInitializeShareGroupStateRequest`, `initializedAssignmentPending`, `initializeShareGroupState` and
`maybeCleanupShareGroupState`. That the share coordinator refuses is not modelled: here it always agrees.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from kardia.coordinator.share.group import ShareGroup, States
from kardia.coordinator.share.shard import Shard, Wanted
from kardia.coordinator.timers import Timer

_ByTopic = Mapping[str, frozenset[int]]
_UNKNOWN = "<UNKNOWN>"
"""Kafka's name for a topic that is gone when its state comes."""


def _together(one: _ByTopic, other: _ByTopic) -> dict[str, frozenset[int]]:
    nothing = frozenset[int]()
    return {topic_id: one.get(topic_id, nothing) | other.get(topic_id, nothing) for topic_id in {*one, *other}}


def _without(one: _ByTopic, other: _ByTopic) -> dict[str, frozenset[int]]:
    left = {topic_id: numbers - other.get(topic_id, frozenset()) for topic_id, numbers in one.items()}
    return {topic_id: numbers for topic_id, numbers in left.items() if numbers}


def is_pending(shard: Shard, group: ShareGroup) -> bool:
    """Whether partitions that have a state are in no target yet."""
    if group.states is None or not group.members:
        return False
    given, initialized = group.given(), group.states.initialized
    if not shard.behaviour.only_subscribed_are_awaited:
        return initialized != given
    subscribed = group.names(group.members.values())
    return any(
        group.states.names.get(topic_id) in subscribed and given.get(topic_id) != numbers
        for topic_id, numbers in initialized.items()
    )


def ask_for_states(shard: Shard, group: ShareGroup, names: Iterable[str]) -> None:
    """Ask for the states of partitions of these topics that have none, and for which nobody asked of late."""
    if not shard.behaviour.partitions_are_initialized:
        return
    known: _ByTopic = {}
    if group.states is not None:
        retry_ms = 2 * shard.settings.offsets_commit_timeout_ms
        if shard.behaviour.retries_by_setting:
            retry_ms = shard.settings.group_share_initialize_retry_interval_ms
        recent = shard.now_ms - group.states.written_at_ms < retry_ms
        known = _together(group.states.initialized, group.states.initializing if recent else {})
    missing: dict[str, frozenset[int]] = {}
    for name in names:
        topic = shard.topics.get(name)
        if topic is not None and len(known.get(topic.topic_id, ())) < topic.partitions:
            missing[topic.topic_id] = frozenset(range(topic.partitions)) - known.get(topic.topic_id, frozenset())
    if missing:
        states = group.states or States()
        _write(shard, group, _together(states.initializing, missing), states.initialized)
        shard.ask(Wanted(group.group_id, missing))


def told(shard: Shard, timer: Timer) -> None:
    """The share coordinator has states of these partitions now."""
    wanted = shard.wanted.pop(timer.key)
    group = shard.groups.get(wanted.group_id)
    if group is None or not shard.loaded:
        return
    states = group.states or States()
    initializing = _without(states.initializing, wanted.by_topic)
    _write(shard, group, initializing, _together(states.initialized, wanted.by_topic))
    shard.happen(group.group_id, "initialized")


def forget_topics(shard: Shard, gone: Collection[str]) -> None:
    """Topics with these ids are deleted, and their states."""
    for group in shard.groups.values():
        states = group.states
        if states is not None and any(one in states.initializing or one in states.initialized for one in gone):
            kept = [{one: on for one, on in part.items() if one not in gone} for part in _parts(states)]
            _write(shard, group, *kept)


def _parts(states: States) -> tuple[_ByTopic, _ByTopic]:
    return states.initializing, states.initialized


def _write(shard: Shard, group: ShareGroup, initializing: _ByTopic, initialized: _ByTopic) -> None:
    names = {topic.topic_id: topic.name for topic in shard.topics.values()}
    before = group.states.names if group.states is not None else {}
    known = {one: names.get(one, before.get(one, _UNKNOWN)) for one in {*initializing, *initialized}}
    group.states = States(dict(initializing), dict(initialized), shard.now_ms, known)
