"""What histories of groups with epochs draw alike: topics that come and go, ids of members, instants near deadlines."""

from __future__ import annotations

import random
import uuid
from abc import ABC, abstractmethod
from typing import Any

from kardia.coordinator.consumer.operations import Topic, Topics

NAMES = ("orders", "refunds", "parcels")
SUBSCRIPTIONS: tuple[tuple[str, ...], ...] = (
    ("orders",),
    ("orders",),
    ("orders", "refunds"),
    ("refunds", "parcels"),
    ("orders", "orders"),
    ("nowhere",),
)
_FAR_MS = 700_000


class ClusterArtist(ABC):
    """Draws the moves of one history. Equal seeds and equal views give equal moves."""

    soon_share: float
    """Of instants: those that are the last one, or some ms later."""

    def __init__(self, rng: random.Random, settings: Any) -> None:
        """`rng` decides everything."""
        self._rng = rng
        self._settings = settings
        self._number = 0
        self._made = 0
        self._topics: tuple[Topic, ...] = ()
        self._seen = ["nobody"]

    @abstractmethod
    def _deadlines(self, view: Any) -> list[int]:
        """Of a group; what is there several times is drawn more often."""

    def _instant(self, now_ms: int, view: Any | None) -> tuple[int, bool]:
        """When the next move is, and whether timers of that instant fire before it."""
        rng = self._rng
        chance = rng.random()
        if chance < self.soon_share:
            return now_ms + rng.choice((0, 0, 1, 2)), rng.random() < 0.5
        if chance < 0.8 or view is None:
            return now_ms + rng.randrange(1, 1_200), True
        ahead = sorted(one for one in self._deadlines(view) if now_ms < one <= now_ms + _FAR_MS)
        if not ahead or chance > 0.985:
            return now_ms + rng.choice((3_000, 12_000, 35_000, 65_000)), True
        deadline_at_ms = ahead[0] if rng.random() < 0.7 else rng.choice(ahead)
        return max(now_ms, deadline_at_ms + rng.choice((-1, 0, 0, 1))), rng.random() < 0.5

    # -- the cluster ----------------------------------------------------------------------------------------------

    def _first_topics(self) -> Topics:
        self._topics = (self._topic("orders", 4), self._topic("refunds", self._rng.choice((1, 2, 3))))
        return Topics(self._next(), self._topics)

    def _change_topics(self) -> Topics:
        rng = self._rng
        topics = {topic.name: topic for topic in self._topics}
        name = rng.choice(NAMES)
        topic = topics.get(name)
        if topic is None:
            topics[name] = self._topic(name, rng.choice((1, 2, 5)))
        elif rng.random() < 0.5 and topic.partitions < 12:
            topics[name] = topic._replace(partitions=topic.partitions + rng.choice((1, 2)))
        elif len(topics) > 1:
            del topics[name]
        self._topics = tuple(topics.values())
        return Topics(self._next(), self._topics)

    def _topic(self, name: str, partitions: int) -> Topic:
        self._made += 1
        return Topic(name, f"{name}#{self._made}", partitions)

    # -- numbers and ids ------------------------------------------------------------------------------------------

    def _next(self) -> int:
        """The number of the next operation."""
        self._number += 1
        return self._number

    def _new_id(self) -> str:
        """Of a member; whoever comes later may use it."""
        made = str(uuid.UUID(int=self._rng.getrandbits(128), version=4))
        self._seen.append(made)
        return made
