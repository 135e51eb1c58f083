"""Consumers of the classic protocol whose group may become a consumer group: their subscriptions and assignments are
real, because the coordinator reads them then.

Eager ones give up everything before they join, the others say what they own, and keep what they are assigned again.
"""

from __future__ import annotations

import struct
from typing import Any

from kardia.coordinator.classic.operations import Answer
from kardia.coordinator.consumer.operations import SyncAnswer
from kardia.coordinator.consumer.wire import read_assignment, read_subscription, write_assignment
from tests.truth.fleet.clients import Client
from tests.truth.fleet.epochs.cluster import EpochCluster


class Migrant(Client):
    """A classic consumer in a group that changes its protocol."""

    cluster: EpochCluster
    cooperative = False

    def __init__(self, *of: Any) -> None:
        """As every client."""
        super().__init__(*of)
        self.owned: frozenset[tuple[str, int]] = frozenset()

    @property
    def topics(self) -> tuple[str, ...]:
        """What it subscribes to."""
        return (("orders",), ("orders", "refunds"), ("refunds",))[self.subscription % 3]

    def start(self) -> None:
        """A new process."""
        if self.state == "down":
            self.owned = frozenset()
        super().start()

    def _join(self, reason: str) -> None:
        if not self.cooperative or not self.member_id:
            self.owned = frozenset()
        super()._join(reason)

    def _metadata(self) -> bytes:
        names = b"".join(struct.pack(f">h{len(one)}s", len(one), one.encode()) for one in self.topics)
        by_topic: dict[str, list[int]] = {}
        for name, number in sorted(self.owned):
            by_topic.setdefault(name, []).append(number)
        owned = struct.pack(">i", len(by_topic))
        for name, numbers in by_topic.items():
            owned += struct.pack(f">h{len(name)}si{len(numbers)}i", len(name), name.encode(), len(numbers), *numbers)
        head = struct.pack(">hi", 3, len(self.topics)) + names + b"\xff\xff\xff\xff"
        return head + owned + struct.pack(">ih", self.generation, -1)

    def _assigned(self, answer: Answer) -> tuple[tuple[str, bytes], ...]:
        wants = {one: read_subscription(data) for one, _, data in answer.members}
        given: dict[str, list[tuple[str, int]]] = {one: [] for one in wants}
        every = self.cluster.partitions_of(sorted({name for one in wants.values() for name in one.topics}))
        taken = {held for one in wants.values() for held in one.owned}
        for place, partition in enumerate(every):
            open_to = [one for one, subscription in wants.items() if partition[0] in subscription.topics]
            to = open_to[place % len(open_to)]
            # What another one still has is given in the next round, when that one has given it up.
            if self.cooperative and partition in taken and partition not in wants[to].owned:
                continue
            given[to].append(partition)
        return tuple((one, write_assignment(3, partitions)) for one, partitions in given.items())

    def _take(self, answer: Any) -> None:
        if isinstance(answer, SyncAnswer):
            assigned = frozenset(answer.assignment)
        else:
            assigned = frozenset(read_assignment(answer.assignment).partitions if answer.assignment else ())
        gave_up = self.owned - assigned
        self.owned = assigned
        if self.cooperative and gave_up:
            self._later(20.0, lambda: self._join("need to revoke partitions and re-join") if self._is_well() else None)

    def _is_well(self) -> bool:
        return self.state == "stable"
