"""Runs one history of consumer groups on Kafka's classes and on the model at once and compares after each step.

As for classic groups: answers, the whole view of every group with each deadline, committed offsets. What the assignor
`uniform` does is taken from Kafka's target, and held against the laws that it keeps.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from kardia.coordinator.consumer.assignors import Subscriber, Target
from kardia.coordinator.consumer.behaviour import consumer_behaviour_of
from kardia.coordinator.consumer.coordinator import ConsumerCoordinator
from kardia.coordinator.consumer.operations import ConsumerAnswer, ConsumerOperation, ConsumerView, groups_named
from kardia.coordinator.happenings import Happening
from tests.truth.lockstep import Lockstep
from tests.truth.oracle.consumer import ConsumerOracle


class ConsumerStep(NamedTuple):
    """What one step did, for the coverage."""

    operation: ConsumerOperation | None
    answers: Sequence[ConsumerAnswer]
    before: dict[str, ConsumerView | None]
    after: dict[str, ConsumerView | None]
    happenings: Sequence[Happening]
    was_loaded: bool


class FollowedConsumer:
    """Answers the model's questions about hash orders with what Kafka's classes did in the same step."""

    def __init__(self) -> None:
        """Nothing seen yet."""
        self.views: dict[str, ConsumerView | None] = {}
        self.before: dict[str, ConsumerView | None] = {}
        self.answers: Sequence[ConsumerAnswer] = ()
        self.armed: list[str] = []
        self.asked: dict[int, str] = {}

    def _targets(self, group_id: str) -> Target:
        view = self.views.get(group_id)
        return {one.member_id: frozenset(one.target) for one in view.members} if view is not None else {}

    def assignor(self, group_id: str, candidates: Sequence[str], by_range: Target) -> str:  # noqa: ARG002
        """`range` if they did as it does."""
        return "range" if self._targets(group_id) == by_range else "uniform"

    def assignor_changed(self, group_id: str, before: Sequence[str], after: Sequence[str]) -> bool:  # noqa: ARG002
        """Whether the epoch of the group grew."""
        old, new = self.before.get(group_id), self.views.get(group_id)
        return old is not None and new is not None and new.group_epoch > old.group_epoch

    def uniform(self, group_id: str, subscribers: Sequence[Subscriber], alike: bool) -> Target:  # noqa: ARG002
        """Their target."""
        return self._targets(group_id)


class ConsumerLockstep(Lockstep):
    """One history at a time; `begin` starts the next."""

    def _set_up(self) -> None:
        self._oracle = ConsumerOracle(self._version, self._settings)
        self._behaviour = self._behaviour or consumer_behaviour_of(self._version)
        self._followed = FollowedConsumer()

    def _new_model(self) -> Any:
        self._followed.before = {}
        return ConsumerCoordinator(self._behaviour, self._settings, self._followed)

    def _named(self, operation: Any) -> tuple[str, ...]:
        return groups_named(operation)

    def _new_step(self, operation: Any, answers: Sequence[Any], before: Any, after: Any) -> Any:
        self._followed.before = after
        return ConsumerStep(operation, answers, before, after, self._model.take_happenings(), self.loaded)
