"""One shard of the coordinator of streams groups: its groups, timers and cluster, and the small steps of every rule.

Decides nothing; the rules are in `heartbeats`, `membership`, `leaves` and `topics_and_loading`.
"""

from __future__ import annotations

from collections.abc import Iterable

from kardia.coordinator.consumer.operations import Topic
from kardia.coordinator.happenings import Happening
from kardia.coordinator.streams.assignor import Choose
from kardia.coordinator.streams.behaviour import StreamsBehaviour
from kardia.coordinator.streams.group import Member, StreamsGroup
from kardia.coordinator.streams.operations import StreamsAnswer
from kardia.coordinator.streams.settings import StreamsSettings
from kardia.coordinator.timers import Key, Timers

SESSION, REBALANCE, INITIAL, EXPIRE = "session-timeout", "rebalance-timeout", "initial-rebalance-timeout", "expire"
"""Kinds of timers: two with a key for each member, one for each group, one for the shard."""
EXPIRE_KEY: Key = (EXPIRE, "", "")


class Shard:
    """State of a shard at `now_ms`. `answers` and `happenings` collect what the rules say until they are taken."""

    def __init__(self, behaviour: StreamsBehaviour, settings: StreamsSettings, choose: Choose) -> None:
        self.behaviour = behaviour
        self.settings = settings
        self.choose = choose
        self.now_ms = settings.started_at_ms
        self.loaded = True
        self.groups: dict[str, StreamsGroup] = {}
        self.own_settings: dict[str, StreamsSettings] = {}
        self.timers = Timers()
        self.rebalance_epochs: dict[Key, int] = {}
        """By the key of a rebalance timer: the epoch that the member must have left by then."""
        self.topics: dict[str, Topic] = {}
        self.concerned: dict[str, set[str]] = {}
        """By group id, the topics whose changes concern a group: those of a deleted group stay with its name, as Kafka
        deletes the group before it looks which topics its topology had."""
        self.answers: list[StreamsAnswer] = []
        self.happenings: list[Happening] = []

    def at(self, now_ms: int) -> None:
        """It is this late."""
        self.now_ms = now_ms

    def settings_of(self, group_id: str) -> StreamsSettings:
        """What counts for a group."""
        return self.own_settings.get(group_id, self.settings)

    def new_group(self, group_id: str) -> StreamsGroup:
        """A group as it is before anything happened to it; not one of the shard's yet."""
        behaviour = self.behaviour
        first = int(behaviour.groups_start_at_one)
        validated = -1 if behaviour.nothing_is_validated_at_first else 0
        return StreamsGroup(
            group_id, first, first, validated, self.first_endpoint_epoch(), behaviour.validation_is_recorded
        )

    def first_endpoint_epoch(self) -> int:
        """Where endpoints are counted from."""
        return -1 if self.behaviour.endpoints_start_at_none else 0

    def happen(self, group_id: str, kind: str, member_id: str = "", detail: str = "") -> None:
        """Note what happened."""
        self.happenings.append(Happening(self.now_ms, group_id, kind, member_id, detail))

    def initial_key(self, group_id: str) -> Key:
        """Of the delay before a group's first assignment."""
        return INITIAL, group_id, ""

    def arm_session(self, group_id: str, member_id: str) -> None:
        """A full session from now."""
        session_ms = self.settings_of(group_id).group_streams_session_timeout_ms
        self.timers.arm((SESSION, group_id, member_id), self.now_ms, session_ms)

    def arm_rebalance(self, group_id: str, member: Member) -> None:
        """The member must have left its epoch when its rebalance timeout is over."""
        key = (REBALANCE, group_id, member.member_id)
        self.rebalance_epochs[key] = member.epoch
        self.timers.arm(key, self.now_ms, member.rebalance_timeout_ms)

    def cancel(self, group_id: str, member_id: str, *kinds: str) -> None:
        """Forget timers of a member."""
        for kind in kinds:
            self.timers.cancel((kind, group_id, member_id))

    def in_order(self, group_id: str, member_ids: Iterable[str]) -> Iterable[str]:
        """The order of a hash map, asked for when it can matter."""
        ordered = sorted(member_ids)
        return ordered if len(ordered) < 2 else self.choose.order(group_id, ordered)
