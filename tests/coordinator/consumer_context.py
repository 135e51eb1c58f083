"""Speaks of consumer groups: members join, heartbeat and leave at seconds, and what they are told is at hand."""

from __future__ import annotations

from typing import Any

from kardia.coordinator.consumer.behaviour import consumer_behaviour_of
from kardia.coordinator.consumer.coordinator import ConsumerCoordinator
from kardia.coordinator.consumer.operations import (
    Beat,
    BeatAnswer,
    ConsumerMemberView,
    ConsumerOperation,
    ConsumerView,
    Partition,
    Topic,
    Topics,
)
from kardia.coordinator.consumer.settings import ConsumerSettings
from kardia.coordinator.operations import Load, Unload

ORDERS = Topic("orders", "orders#1", 4)


class Consumers:
    """One group "g" of one coordinator in a cluster with the topic `orders` of four partitions."""

    def __init__(self, version: str, settings: ConsumerSettings | None = None) -> None:
        """With Kafka's default settings."""
        self.coordinator = ConsumerCoordinator(consumer_behaviour_of(version), settings)
        self._number = 0
        self.do(0.0, Topics(0, (ORDERS,)))

    def do(self, at_s: float, operation: ConsumerOperation) -> Any:
        """Timers that are due fire first; returns the answer, if there is one."""
        at_ms = round(at_s * 1000)
        self.coordinator.advance(at_ms)
        answers = self.coordinator.perform(operation, at_ms)
        return answers[0] if answers else None

    def beat(self, at_s: float, member_id: str, epoch: int, **given: Any) -> BeatAnswer:
        """A heartbeat with these fields."""
        answer = self.do(at_s, self.beat_of(member_id, **({"member_epoch": epoch} | given)))
        assert isinstance(answer, BeatAnswer)
        return answer

    def beat_of(self, member_id: str, **given: Any) -> Beat:
        """A heartbeat with these fields, of epoch 0 unless they say so."""
        self._number += 1
        plain = Beat(self._number, 1, "g", member_id, 0, None, None, -1, None, None, None, None, "c", "/10.0.0.1", "")
        return plain._replace(**given)

    def join(self, at_s: float, member_id: str, **given: Any) -> BeatAnswer:
        """Epoch 0, subscribed to `orders`, rebalance timeout 10 s."""
        return self.beat(
            at_s, member_id, 0, **({"names": ("orders",), "owned": (), "rebalance_timeout_ms": 10_000} | given)
        )

    def reload(self, at_s: float) -> None:
        """Another broker reads the shard at this instant."""
        self.do(at_s, Unload(0))
        self.do(at_s, Load(0))

    def wait(self, to_s: float) -> None:
        """Let time pass."""
        self.coordinator.advance(round(to_s * 1000))

    @property
    def view(self) -> ConsumerView:
        """The group, which must exist."""
        view = self.coordinator.view("g")
        assert isinstance(view, ConsumerView)
        return view

    def member(self, member_id: str) -> ConsumerMemberView:
        """A member, which must exist."""
        return next(one for one in self.view.members if one.member_id == member_id)

    def ids(self) -> list[str]:
        """Ids of the members."""
        return [one.member_id for one in self.view.members]


def orders(*numbers: int) -> tuple[Partition, ...]:
    """Partitions of `orders`."""
    return tuple(("orders#1", number) for number in numbers)
