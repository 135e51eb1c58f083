"""Runs one history of consumer groups on Kafka's classes and on the model at once and compares after each step.

As for classic groups: answers, the whole view of every group with each deadline, committed offsets. What the assignor
`uniform` does is taken from Kafka's target, and held against the laws that it keeps.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from kardia.coordinator.classic.operations import Answer, Join, View
from kardia.coordinator.consumer.assignors import Subscriber, Target
from kardia.coordinator.consumer.behaviour import consumer_behaviour_of
from kardia.coordinator.consumer.coordinator import ConsumerCoordinator
from kardia.coordinator.consumer.operations import ConsumerAnswer, ConsumerOperation, ConsumerView, groups_named
from kardia.coordinator.happenings import Happening
from kardia.kafka.states import ErrorCode
from tests.truth.consumer.draw_classic import made_up
from tests.truth.lockstep import Followed, Lockstep, codes_of
from tests.truth.oracle.consumer import ConsumerOracle, uuid_of

AnyView = ConsumerView | View


class ConsumerStep(NamedTuple):
    """What one step did, for the coverage."""

    operation: ConsumerOperation | None
    answers: Sequence[ConsumerAnswer]
    before: dict[str, AnyView | None]
    after: dict[str, AnyView | None]
    happenings: Sequence[Happening]
    was_loaded: bool


class FollowedConsumer(Followed):
    """Answers the model's questions about hash orders with what Kafka's classes did in the same step."""

    def __init__(self) -> None:
        """Nothing seen yet."""
        super().__init__()
        self.views: dict[str, Any] = {}
        self.before: dict[str, AnyView | None] = {}
        self.answers: Sequence[Any] = ()

    def _targets(self, group_id: str) -> Target:
        view = self.views.get(group_id)
        if not isinstance(view, ConsumerView):
            return {}
        return {one.member_id: frozenset(one.target) for one in view.members}

    def leader(self, group_id: str, candidates: Sequence[str]) -> str:
        """As for classic groups; an answer of another kind names none. Of a group that stayed a consumer group, as
        Kafka threw, nobody will see the leader."""
        if not isinstance(self.views.get(group_id), View):
            return candidates[0]
        answers, self.answers = self.answers, [one for one in self.answers if isinstance(one, Answer)]
        leader = super().leader(group_id, candidates)
        self.answers = answers
        return leader

    def protocol(self, group_id: str, candidates: Sequence[str]) -> str:
        """As for classic groups; one that was a consumer group until now has what it was made with."""
        view = self.views.get(group_id)
        if not isinstance(view, View):
            return candidates[0]
        if isinstance(self.before.get(group_id), ConsumerView):
            return next((one for one in candidates if one == view.protocol_name), candidates[0])
        answers, self.answers = self.answers, [one for one in self.answers if isinstance(one, Answer)]
        protocol = super().protocol(group_id, candidates)
        self.answers = answers
        return protocol

    def sees_lost(self, group_id: str) -> bool:
        """Whether they looked for the member in it, in vain."""
        return any(codes_of(self.answers, self.asked, group_id))

    def fault(self, group_id: str, codes: Sequence[int]) -> int:
        """The error code they answered."""
        answered = codes_of(self.answers, self.asked, group_id)
        return next((one for one in answered if one in codes), codes[0])

    def assignor(self, group_id: str, candidates: Sequence[str], by_range: Target) -> str:  # noqa: ARG002
        """`range` if they did as it does."""
        return "range" if self._targets(group_id) == by_range else "uniform"

    def assignor_changed(self, group_id: str, before: Sequence[str], after: Sequence[str]) -> bool:  # noqa: ARG002
        """Whether the epoch of the group grew."""
        old, new = self.before.get(group_id), self.views.get(group_id)
        return isinstance(old, ConsumerView) and isinstance(new, ConsumerView) and new.group_epoch > old.group_epoch

    def uniform(self, group_id: str, subscribers: Sequence[Subscriber], alike: bool) -> Target | None:  # noqa: ARG002
        """Their target, None if they answered that there is none."""
        if ErrorCode.UNKNOWN_SERVER_ERROR in codes_of(self.answers, self.asked, group_id):
            return None
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

    def perform(self, operation: Any, at_ms: int) -> None:
        """As of any group. The id that a JoinGroup will be given has a form that depends on the group it meets."""
        if isinstance(operation, Join) and operation.new_id:
            view = self._oracle.view(operation.group_id)
            to_members = isinstance(view, ConsumerView) and bool(view.members)
            operation = with_id(operation, to_members)
        super().perform(operation, at_ms)

    def _new_step(self, operation: Any, answers: Sequence[Any], before: Any, after: Any) -> Any:
        self._followed.before = after
        return ConsumerStep(operation, answers, before, after, self._model.take_happenings(), self.loaded)


def with_id(join: Join, to_members: bool) -> Join:
    """The JoinGroup with the id that Kafka makes of its UUID, in a consumer group with members or for a classic group;
    with another id, that nobody has, where it would make up another UUID."""
    made = uuid_of(join.new_id)
    if not to_members:
        return join._replace(new_id=f"{join.group_instance_id or join.client_id}-{made}")
    given = made_up(made)
    return join._replace(new_id=given) if given else join._replace(member_id="nobody", new_id="")
