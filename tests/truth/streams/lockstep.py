"""Runs one history of streams groups on Kafka's classes and on the model at once and compares after each step.

As for consumer groups: answers, and the whole view of every group with each deadline. What the assignor does is taken
from Kafka's target, and held against the laws that it keeps.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from kardia.coordinator.happenings import Happening
from kardia.coordinator.streams.assignor import Target, Work, Worker
from kardia.coordinator.streams.behaviour import streams_behaviour_of
from kardia.coordinator.streams.coordinator import StreamsCoordinator
from kardia.coordinator.streams.group import Tasks
from kardia.coordinator.streams.operations import StreamsAnswer, StreamsOperation, StreamsView, groups_named
from tests.truth.lockstep import Lockstep
from tests.truth.oracle.streams import StreamsOracle


class StreamsStep(NamedTuple):
    """What one step did, for the coverage."""

    operation: StreamsOperation | None
    answers: Sequence[StreamsAnswer]
    before: dict[str, StreamsView | None]
    after: dict[str, StreamsView | None]
    happenings: Sequence[Happening]
    was_loaded: bool


class FollowedStreams:
    """Answers the model's questions with what Kafka's classes did in the same step."""

    def __init__(self) -> None:
        """Nothing seen yet."""
        self.views: dict[str, StreamsView | None] = {}
        self.answers: Sequence[StreamsAnswer] = ()
        self.armed: list[str] = []
        self.asked: dict[int, str] = {}

    def assign(self, group_id: str, workers: Sequence[Worker], work: Work) -> Target:  # noqa: ARG002
        """Their target."""
        view = self.views.get(group_id)
        return {
            one.member_id: Tasks(
                frozenset(one.target_active), frozenset(one.target_standby), frozenset(one.target_warmup)
            )
            for one in (view.members if view is not None else ())
        }

    def order(self, group_id: str, member_ids: Sequence[str]) -> Sequence[str]:
        """The order in which they armed these sessions last."""
        place = {name: number for number, name in enumerate(self.armed)}
        return sorted(member_ids, key=lambda one: place.get(f"{group_id}-{one}", -1))


class StreamsLockstep(Lockstep):
    """One history at a time; `begin` starts the next."""

    def _set_up(self) -> None:
        self._oracle = StreamsOracle(self._version, self._settings)
        self._behaviour = self._behaviour or streams_behaviour_of(self._version)
        self._followed = FollowedStreams()

    def _new_model(self) -> Any:
        return StreamsCoordinator(self._behaviour, self._settings, self._followed)

    def _named(self, operation: Any) -> tuple[str, ...]:
        return groups_named(operation)

    def _new_step(self, operation: Any, answers: Sequence[Any], before: Any, after: Any) -> Any:
        return StreamsStep(operation, answers, before, after, self._model.take_happenings(), self.loaded)
