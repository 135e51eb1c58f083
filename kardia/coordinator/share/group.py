"""A share group: its members, its target, its epochs, and which partitions have a state. Counts and finds only.

Follows `ShareGroup`, `ShareGroupMember` and `ModernGroup`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from kardia.coordinator.consumer.operations import Partition, Topic
from kardia.coordinator.share.operations import NONE_OF

Cluster = Mapping[str, Topic]
"""Topics by name."""


@dataclass(frozen=True, slots=True)
class Member:
    """Identity, what it asked for, and what it has."""

    member_id: str
    epoch: int = 0
    previous_epoch: int = -1
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    names: frozenset[str] = frozenset()
    assigned: frozenset[Partition] = frozenset()


@dataclass(slots=True)
class States:
    """Which partitions have a state at the share coordinator (record 15), by topic id. Replaced as a whole."""

    initializing: dict[str, frozenset[int]] = field(default_factory=dict)
    initialized: dict[str, frozenset[int]] = field(default_factory=dict)
    written_at_ms: int = 0
    """Kafka keeps no instant in the record: whenever it is written or read back, all of it counts as of now."""
    names: dict[str, str] = field(default_factory=dict)
    """Names of these topics as they were."""


@dataclass(slots=True)
class ShareGroup:
    """A group. `group_epoch` grows with whatever calls for a new target; `assignment_epoch` is that of the target."""

    group_id: str
    group_epoch: int
    assignment_epoch: int = 0
    assigned_at_ms: int = 0
    members: dict[str, Member] = field(default_factory=dict)
    target: dict[str, frozenset[Partition]] = field(default_factory=dict)
    metadata: Mapping[str, Topic] = field(default_factory=dict)
    """The subscribed topics as of the last change of the group epoch."""
    states: States | None = None
    refreshed: bool = False
    """Whether the subscribed topics were looked at since the last change of any of them, and since the load."""
    refreshed_epoch: int = 0

    def names(self, members: Iterable[Member]) -> list[str]:
        """What these subscribe to, sorted."""
        return sorted(Counter(name for one in members for name in one.names))

    def with_member(self, updated: Member) -> list[Member]:
        """The members as they will be."""
        return [*(one for one in self.members.values() if one.member_id != updated.member_id), updated]

    def given(self) -> dict[str, frozenset[int]]:
        """Partitions in anybody's target, by topic id."""
        found: dict[str, set[int]] = {}
        for part in self.target.values():
            for topic_id, number in part:
                if number != NONE_OF:
                    found.setdefault(topic_id, set()).add(number)
        return {topic_id: frozenset(numbers) for topic_id, numbers in found.items()}

    def state(self) -> str:
        """Kafka's word."""
        return "Stable" if self.members else "Empty"


def partitions(by_topic: Mapping[str, Iterable[int]]) -> tuple[Partition, ...]:
    """Partitions of a map of topics, sorted."""
    return tuple(sorted((topic_id, number) for topic_id, numbers in by_topic.items() for number in numbers))
