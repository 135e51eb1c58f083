"""Runs one history of share groups on Kafka's classes and on the model at once and compares after each step.

As for consumer groups: answers, and the whole view of every group with each deadline. What the assignor does is taken
from Kafka's target, and held against the laws that it keeps.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from kardia.coordinator.consumer.operations import BeatAnswer
from kardia.coordinator.happenings import Happening
from kardia.coordinator.share.assignor import Subscriber, Target
from kardia.coordinator.share.behaviour import share_behaviour_of
from kardia.coordinator.share.coordinator import ShareCoordinator
from kardia.coordinator.share.operations import ShareOperation, ShareView, groups_named
from kardia.kafka.states import ErrorCode
from tests.truth.lockstep import Lockstep, codes_of
from tests.truth.oracle.share import ShareOracle


class ShareStep(NamedTuple):
    """What one step did, for the coverage."""

    operation: ShareOperation | None
    answers: Sequence[BeatAnswer]
    before: dict[str, ShareView | None]
    after: dict[str, ShareView | None]
    happenings: Sequence[Happening]
    was_loaded: bool


class FollowedShare:
    """Answers the model's questions with what Kafka's classes did in the same step."""

    def __init__(self) -> None:
        """Nothing seen yet."""
        self.views: dict[str, ShareView | None] = {}
        self.answers: Sequence[BeatAnswer] = ()
        self.armed: list[str] = []
        self.asked: dict[int, str] = {}

    def share(self, group_id: str, subscribers: Sequence[Subscriber]) -> Target | None:  # noqa: ARG002
        """Their target, None if they answered that there is none."""
        if ErrorCode.UNKNOWN_SERVER_ERROR in codes_of(self.answers, self.asked, group_id):
            return None
        view = self.views.get(group_id)
        return {one.member_id: frozenset(one.target) for one in view.members} if view is not None else {}

    def order(self, group_id: str, member_ids: Sequence[str]) -> Sequence[str]:
        """The order in which they armed these sessions last."""
        place = {name: number for number, name in enumerate(self.armed)}
        return sorted(member_ids, key=lambda one: place.get(f"{group_id}-{one}", -1))


class ShareLockstep(Lockstep):
    """One history at a time; `begin` starts the next."""

    def _set_up(self) -> None:
        self._oracle = ShareOracle(self._version, self._settings)
        self._behaviour = self._behaviour or share_behaviour_of(self._version)
        self._followed = FollowedShare()

    def _new_model(self) -> Any:
        return ShareCoordinator(self._behaviour, self._settings, self._followed)

    def _named(self, operation: Any) -> tuple[str, ...]:
        return groups_named(operation)

    def _new_step(self, operation: Any, answers: Sequence[Any], before: Any, after: Any) -> Any:
        return ShareStep(operation, answers, before, after, self._model.take_happenings(), self.loaded)
