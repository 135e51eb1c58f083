"""Runs one history on Kafka's classes and on the model at once and compares everything after every step.

A step is one operation or one instant at which a timer fires. Compared are the answers, and of every group the whole
view: state, generation, leader, members, waiting requests, pending ids, and every deadline; and, where a step may have
touched them, the committed offsets with their instants. Kafka's classes go first;
where they follow the order of a hash map, the model is told what they did (`Followed`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from kardia.coordinator.classic.behaviour import Behaviour, behaviour_of
from kardia.coordinator.classic.coordinator import Coordinator
from kardia.coordinator.classic.operations import (
    Answer,
    Commit,
    DeleteGroups,
    OffsetDelete,
    Operation,
    TxnCommit,
    TxnEnd,
    View,
    groups_of,
)
from kardia.coordinator.classic.settings import CoordinatorSettings
from kardia.coordinator.consumer.operations import ConsumerOperation
from kardia.coordinator.errors import NotModelledError
from kardia.coordinator.happenings import Happening
from kardia.coordinator.operations import Load, Unload
from kardia.coordinator.share.operations import ShareOperation
from kardia.coordinator.streams.operations import StreamsOperation
from tests.truth.oracle import Oracle

TOUCHES_OFFSETS = (Commit, TxnCommit, TxnEnd, OffsetDelete, DeleteGroups, Load, Unload)


class Move(NamedTuple):
    """One entry of a history. `timers_first` decides between the request and a timer of the same ms."""

    at_ms: int
    timers_first: bool
    operation: Operation | ConsumerOperation | ShareOperation | StreamsOperation | None
    """None: time passes."""


class Step(NamedTuple):
    """What one step did, for the coverage. `before` and `after`: views by group."""

    operation: Operation | None
    answers: Sequence[Answer]
    before: dict[str, View | None]
    after: dict[str, View | None]
    happenings: Sequence[Happening]
    was_loaded: bool


class Disagreement(Exception):  # noqa: N818 - a finding, not a failure of this program
    """Kafka's classes and the model differ. `what` says in what, with both sides."""

    def __init__(self, at_ms: int, doing: str, what: str, refused: bool = False) -> None:
        """Keep the place and the difference. `refused`: the model says that it does not know."""
        super().__init__(f"at {at_ms}, {doing}: {what}")
        self.at_ms, self.doing, self.what, self.refused = at_ms, doing, what, refused


def codes_of(answers: Sequence[Any], asked: Mapping[int, str], group_id: str) -> list[int]:
    """Error codes of the answers to requests of a group. `asked`: group of each request by number."""
    return [one.error_code for one in answers if asked.get(one.number) == group_id]


class Followed:
    """Answers the model's questions about hash orders with what Kafka's classes did in the same step."""

    def __init__(self) -> None:
        """Nothing seen yet."""
        self.views: dict[str, View | None] = {}
        self.answers: Sequence[Answer] = ()
        self.armed: list[str] = []
        self.asked: dict[int, str] = {}
        """Group of each request by number: timers of several groups may fire in one instant."""

    def leader(self, group_id: str, candidates: Sequence[str]) -> str:
        """The leader they named in an answer of this step, or ended with; the first of two may be gone by the end."""
        view = self.views.get(group_id)
        named = [answer.leader for answer in self.answers]
        named += [view.leader] if view is not None and view.leader is not None else []
        return next((one for one in named if one in candidates), candidates[0])

    def protocol(self, group_id: str, candidates: Sequence[str]) -> str:
        """The protocol they chose; without a word, a group that went on to rebalance chose another than it had."""
        view = self.views.get(group_id)
        held = view.protocol_name if view is not None else None
        named = [answer.protocol_name for answer in self.answers if self.asked.get(answer.number) == group_id]
        if view is not None and view.state == "PreparingRebalance":
            named += [one for one in candidates if one != held]
        return next((one for one in (*named, held) if one is not None and one in candidates), candidates[0])

    def order(self, group_id: str, member_ids: Sequence[str]) -> Sequence[str]:
        """The order in which they armed these sessions last."""
        place = {name: number for number, name in enumerate(self.armed)}
        return sorted(member_ids, key=lambda one: place.get(f"{group_id}-{one}", -1))


class Lockstep:
    """One history at a time; `begin` starts the next. `on_step` hears of every step that agreed."""

    def __init__(
        self,
        version: str,
        settings: CoordinatorSettings,
        behaviour: Behaviour | None = None,
        on_step: Callable[[Step], None] | None = None,
    ) -> None:
        """`behaviour`: another one than the release's, to see whether the difference is noticed."""
        self._version = version
        self._settings: Any = settings
        self._behaviour: Any = behaviour
        self._on_step: Callable[[Any], None] | None = on_step
        self._followed: Any
        # Oracle and model of one kind of groups or another: alike in what is used here.
        self._oracle: Any
        self._model: Any
        self._set_up()
        self._doing = ""
        self.loaded = True
        self.views: dict[str, View | None] = {}
        """Views of the groups named so far, after the last step."""
        self._fresh()

    def _set_up(self) -> None:
        """Build what lasts for all histories."""
        self._oracle = Oracle(self._version, self._settings)
        self._behaviour = self._behaviour or behaviour_of(self._version)
        self._followed = Followed()

    def _new_model(self) -> Any:
        """A model at the begin of a history."""
        return Coordinator(self._behaviour, self._settings, self._followed)

    def _named(self, operation: Any) -> tuple[str, ...]:
        """Groups that an operation names; none where any may be concerned."""
        return groups_of(operation)

    def _new_step(self, operation: Any, answers: Sequence[Any], before: Any, after: Any) -> Any:
        """What the coverage is told."""
        return Step(operation, answers, before, after, self._model.take_happenings(), self.loaded)

    def begin(self) -> None:
        """Start a new history."""
        self._oracle.reset()
        self._fresh()

    def _fresh(self) -> None:
        self._oracle.take_armed()
        self._model = self._new_model()
        self._followed.asked.clear()
        self.loaded = True
        self.views = {}

    @property
    def now_ms(self) -> int:
        """Where both stand."""
        return int(self._oracle.now_ms)

    def play(self, move: Move) -> None:
        """Let time pass to the move and apply it. Raises Disagreement."""
        self.pass_time(move.at_ms if move.timers_first or move.operation is None else move.at_ms - 1)
        if move.operation is not None:
            self.perform(move.operation, move.at_ms)

    def pass_time(self, to_ms: int) -> None:
        """Fire what is due at or before an instant, one instant after the other."""
        oracle, model = self._oracle, self._model
        while (due_at_ms := oracle.next_at_ms()) is not None and due_at_ms <= to_ms:
            self._doing = "a timer"
            self._early(model, due_at_ms - 1)
            due_at_ms = max(due_at_ms, oracle.now_ms)
            self._compare(None, oracle.advance(due_at_ms), partial(model.advance, due_at_ms), due_at_ms)
        if to_ms > oracle.now_ms:
            self._doing = "waiting"
            oracle.advance(to_ms)
            self._early(model, to_ms)

    def _early(self, model: Any, to_ms: int) -> None:
        """Kafka's classes do nothing until this instant; neither may the model."""
        deadline_at_ms = model.next_deadline_at_ms()
        if to_ms > model.now_ms:
            said = model.advance(to_ms)
            # A timer without effect, such as that of a member that waits, may be kept by one side only.
            if said or (
                0 <= deadline_at_ms <= to_ms and any(model.view(one) != view for one, view in self.views.items())
            ):
                self._fail(
                    to_ms, f"the model's timer at {deadline_at_ms} had an effect, Kafka's classes have none there"
                )

    def perform(self, operation: Operation | ConsumerOperation | ShareOperation | StreamsOperation, at_ms: int) -> None:
        """Apply an operation, firing no timer."""
        model = self._model
        self._doing = f"{type(operation).__name__} {operation.number}"
        for group_id in self._named(operation):
            self.views.setdefault(group_id, None)
            self._followed.asked[operation.number] = group_id
        answers = self._oracle.perform(operation, at_ms)
        self._compare(operation, answers, partial(model.perform, operation, at_ms), at_ms)
        if isinstance(operation, Load | Unload):
            self.loaded = isinstance(operation, Load)

    def _compare(self, operation: Any, answers: list[Answer], ask: Callable[[], list[Answer]], at_ms: int) -> None:
        oracle, model, followed = self._oracle, self._model, self._followed
        # A request changes no other group than it names; a timer, a load or the end of a transaction may change any.
        looked_at = (() if operation is None else self._named(operation)) or tuple(self.views)
        views = self.views | {group_id: oracle.view(group_id) for group_id in looked_at}
        followed.views, followed.answers, followed.armed = views, answers, oracle.take_armed()
        try:
            said = ask()
        except Exception as error:
            refused = isinstance(error, NotModelledError)
            raise Disagreement(at_ms, self._doing, f"the model raised {error!r}", refused) from error
        answers.sort()
        said.sort()
        if answers != said:
            self._fail(at_ms, _difference("answers", answers, said))
        for group_id in looked_at:
            view, held = views[group_id], model.view(group_id)
            if view != held:
                self._fail(at_ms, f"group {group_id!r}: {_difference('view', view, held)}")
            if operation is None or isinstance(operation, TOUCHES_OFFSETS):
                self._compare_offsets(group_id, at_ms)
        before, self.views = self.views, views
        step = self._new_step(operation, answers, before, views)
        if self._on_step is not None:
            self._on_step(step)

    def _compare_offsets(self, group_id: str, at_ms: int) -> None:
        committed = self._oracle.committed(group_id)
        held = {one: (kept.offset, kept.committed_at_ms) for one, kept in self._model.committed(group_id).items()}
        if committed != held:
            self._fail(at_ms, f"group {group_id!r}: committed offsets: Kafka {committed}, model {held}")

    def _fail(self, at_ms: int, what: str) -> None:
        raise Disagreement(at_ms, self._doing, what)


def _difference(name: str, kafka: object, model: object) -> str:
    """Where two values differ, going down into tuples of one type."""
    if isinstance(kafka, tuple) and type(kafka) is type(model) and hasattr(kafka, "_fields"):
        parts = [
            _difference(f"{name}.{field}", one, other)
            for field, one, other in zip(kafka._fields, kafka, model, strict=True)
            if one != other
        ]
        return "; ".join(parts)
    if isinstance(kafka, list | tuple) and isinstance(model, list | tuple) and len(kafka) == len(model):
        parts = [
            _difference(f"{name}[{place}]", one, other)
            for place, (one, other) in enumerate(zip(kafka, model, strict=True))
            if one != other
        ]
        return "; ".join(parts)
    return f"{name}: Kafka {kafka!r}, model {model!r}"
