"""One shard of the coordinator: its groups, timers and cluster, and the small steps every rule is made of.

Decides nothing; the rules are in `heartbeats`, `progress`, `reconcile`, `leaves`, `classics`, `expressions`, `offsets`
and `topics_and_loading`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from kardia.coordinator.classic.behaviour import behaviour_of
from kardia.coordinator.classic.operations import Answer
from kardia.coordinator.classic.shard import Shard as ClassicShard
from kardia.coordinator.consumer.assignors import Choose
from kardia.coordinator.consumer.behaviour import ConsumerBehaviour
from kardia.coordinator.consumer.group import ConsumerGroup
from kardia.coordinator.consumer.member import Member
from kardia.coordinator.consumer.operations import Topic
from kardia.coordinator.consumer.settings import ConsumerSettings
from kardia.coordinator.happenings import Happening
from kardia.coordinator.timers import Key, Timers
from kardia.kafka.states import ErrorCode

SESSION, REBALANCE, EXPIRE = "session-timeout", "rebalance-timeout", "expire"
JOIN, SYNC = "join", "sync"
"""Kinds of timers: one key for each member, of `EXPIRE` one for the shard. The last two are for members of the classic
protocol, which must join again when they were told to, and sync when they have joined."""
EXPIRE_KEY: Key = (EXPIRE, "", "")


class Task(NamedTuple):
    """A look-up of regular expressions that waits for a thread of the broker."""

    group_id: str
    expressions: tuple[str, ...]


class Shard:
    """State of a shard at `now_ms`. `answers` and `happenings` collect what the rules say until they are taken."""

    def __init__(self, behaviour: ConsumerBehaviour, settings: ConsumerSettings, choose: Choose) -> None:
        self.behaviour = behaviour
        self.settings = settings
        self.choose = choose
        self.now_ms = settings.started_at_ms
        self.loaded = True
        self.groups: dict[str, ConsumerGroup] = {}
        self.own_settings: dict[str, ConsumerSettings] = {}
        """Of groups that have a configuration of their own."""
        self.lost: dict[str, ConsumerGroup] = {}
        """Groups that are gone from memory and not from the log: the next load brings them back."""
        self.classic = ClassicShard(behaviour_of(behaviour.kafka_version), settings.of_classic_groups(), choose)
        """The classic groups of the same shard, which has one clock, and what it says is collected in one place."""
        self.timers: Timers = self.classic.timers
        self.rebalance_epochs: dict[Key, int] = {}
        """By the key of a rebalance timer: the epoch that the member must have left by then."""
        self.topics: dict[str, Topic] = {}
        self.version = 0
        """Of the cluster's topics; grows with every change."""
        self.created_version = 0
        """Version in which a topic was created last, or in which the shard was loaded."""
        self.listed: dict[str, set[str]] = {}
        """By group: topics that it is still told changes of, as it subscribed to them when it became a classic group:
        Kafka takes it out of that list only where a consumer group of its name unsubscribes."""
        self.tasks: list[Task] = []
        self.answers: list[Any] = self.classic.answers
        self.happenings: list[Happening] = self.classic.happenings

    def at(self, now_ms: int) -> None:
        """It is this late."""
        self.now_ms = self.classic.now_ms = now_ms

    def settings_of(self, group_id: str) -> ConsumerSettings:
        """What counts for a group."""
        return self.own_settings.get(group_id, self.settings)

    def answer(self, number: int, code: ErrorCode) -> None:
        """Answer with nothing but an error code."""
        self.answers.append(Answer(number, self.now_ms, int(code)))

    def happen(self, group_id: str, kind: str, member_id: str = "", detail: str = "") -> None:
        """Note what happened."""
        self.happenings.append(Happening(self.now_ms, group_id, kind, member_id, detail))

    def arm_session(self, group_id: str, member_id: str, timeout_ms: int | None = None) -> None:
        """A full session from now; without `timeout_ms` that of the consumer protocol."""
        own_ms = self.settings_of(group_id).group_consumer_session_timeout_ms
        session_ms = own_ms if timeout_ms is None else timeout_ms
        self.timers.arm((SESSION, group_id, member_id), self.now_ms, session_ms)

    def arm_rebalance(self, group_id: str, member: Member) -> None:
        """The member must have left its epoch when its rebalance timeout is over."""
        key = (REBALANCE, group_id, member.member_id)
        self.rebalance_epochs[key] = member.epoch
        self.timers.arm(key, self.now_ms, member.rebalance_timeout_ms)

    def in_order(self, group_id: str, member_ids: Iterable[str]) -> Iterable[str]:
        """The order of a hash map, asked for when it can matter."""
        ordered = sorted(member_ids)
        return ordered if len(ordered) < 2 else self.choose.order(group_id, ordered)

    def cancel(self, group_id: str, member_id: str, *kinds: str) -> None:
        """Forget timers of a member."""
        for kind in kinds:
            self.timers.cancel((kind, group_id, member_id))
