"""One shard of the coordinator of share groups: its groups, timers and cluster, and the small steps of every rule.

Decides nothing; the rules are in `heartbeats`, `initialization` and `topics_and_loading`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from kardia.coordinator.consumer.operations import BeatAnswer, Topic
from kardia.coordinator.happenings import Happening
from kardia.coordinator.share.assignor import Choose
from kardia.coordinator.share.behaviour import ShareBehaviour
from kardia.coordinator.share.group import ShareGroup
from kardia.coordinator.share.settings import ShareSettings
from kardia.coordinator.timers import Key, Timers

SESSION, EXPIRE, INITIALIZE = "session-timeout", "expire", "initialize"
"""Kinds of timers: one key for each member, one for the shard, one for each request to the share coordinator."""
EXPIRE_KEY: Key = (EXPIRE, "", "")


class Wanted(NamedTuple):
    """A request to the share coordinator for states, which is answered at once."""

    group_id: str
    by_topic: dict[str, frozenset[int]]


class Shard:
    """State of a shard at `now_ms`. `answers` and `happenings` collect what the rules say until they are taken."""

    def __init__(self, behaviour: ShareBehaviour, settings: ShareSettings, choose: Choose) -> None:
        self.behaviour = behaviour
        self.settings = settings
        self.choose = choose
        self.now_ms = settings.started_at_ms
        self.loaded = True
        self.groups: dict[str, ShareGroup] = {}
        self.own_settings: dict[str, ShareSettings] = {}
        self.timers = Timers()
        self.topics: dict[str, Topic] = {}
        self.wanted: dict[Key, Wanted] = {}
        """Requests on their way, by the key of their timer. A load or unload does not stop them."""
        self.answers: list[BeatAnswer] = []
        self.happenings: list[Happening] = []
        self._requests = 0

    def at(self, now_ms: int) -> None:
        """It is this late."""
        self.now_ms = now_ms

    def settings_of(self, group_id: str) -> ShareSettings:
        """What counts for a group."""
        return self.own_settings.get(group_id, self.settings)

    def happen(self, group_id: str, kind: str, member_id: str = "", detail: str = "") -> None:
        """Note what happened."""
        self.happenings.append(Happening(self.now_ms, group_id, kind, member_id, detail))

    def arm_session(self, group_id: str, member_id: str) -> None:
        """A full session from now."""
        session_ms = self.settings_of(group_id).group_share_session_timeout_ms
        self.timers.arm((SESSION, group_id, member_id), self.now_ms, session_ms)

    def arm_sessions(self, group_id: str, member_ids: Iterable[str]) -> None:
        """Arm several at one instant, in the order Kafka would."""
        ordered = sorted(member_ids)
        for member_id in ordered if len(ordered) < 2 else self.choose.order(group_id, ordered):
            self.arm_session(group_id, member_id)

    def ask(self, wanted: Wanted) -> None:
        """Ask the share coordinator: a timer without delay does."""
        self._requests += 1
        key = (INITIALIZE, wanted.group_id, str(self._requests))
        self.wanted[key] = wanted
        self.timers.arm(key, self.now_ms, 0)
