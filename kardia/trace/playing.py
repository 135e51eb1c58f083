"""Puts a trace to a coordinator, instant by instant, and says where it differs from what the trace expects.

Works through the three verbs `perform`, `advance` and `view`, so the model and Kafka's own classes are played
alike. Between two lines every timer fires at its own instant: what happens there belongs to no line and is a
difference. Decides nothing about groups; that is what the coordinator is asked about.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

from kardia.coordinator.classic import operations as ops
from kardia.coordinator.classic.behaviour import behaviour_of
from kardia.coordinator.classic.coordinator import Coordinator
from kardia.coordinator.classic.operations import Answer, Operation, View
from kardia.coordinator.classic.settings import CoordinatorSettings
from kardia.coordinator.operations import Load, Unload
from kardia.kafka.states import ErrorCode
from kardia.trace.clients import GROUP, Clients
from kardia.trace.expecting import Seen, check, unexpected
from kardia.trace.language import ADMIN, EVICTIONS, MARKS, PARTINGS, Act, Step, Trace
from kardia.trace.reading import duration_ms


class Engine(Protocol):
    """A coordinator of one shard: the model, or Kafka's own classes."""

    def perform(self, operation: Operation, at_ms: int) -> list[Answer]:
        """Apply a request; fires no timer."""

    def advance(self, to_ms: int) -> list[Answer]:
        """Let time pass and fire what is due."""

    def next_at_ms(self) -> int | None:
        """When the next timer fires."""

    def view(self, group_id: str) -> View | None:
        """The group as it is."""

    def causes(self) -> dict[str, str] | None:
        """Why members went since the last call, by member id; None from who does not say."""


class ModelEngine:
    """Kardia's model of one release."""

    def __init__(self, version: str, settings: CoordinatorSettings) -> None:
        """A broker that has just started."""
        self._coordinator = Coordinator(behaviour_of(version), settings)
        self.perform = self._coordinator.perform
        self.advance = self._coordinator.advance
        self.view = self._coordinator.view

    def next_at_ms(self) -> int | None:
        """When the next timer fires."""
        at_ms = self._coordinator.next_deadline_at_ms()
        return at_ms if at_ms >= 0 else None

    def causes(self) -> dict[str, str] | None:
        """Why members went."""
        found = {}
        for one in self._coordinator.take_happenings():
            if one.kind in EVICTIONS or one.kind in PARTINGS:
                found[one.member_id] = one.kind
            elif one.kind == "member_replaced":
                found[one.detail] = "static_replaced"
        return found


class Exchange(NamedTuple):
    """A request, who sent it, and its answer once there is one: what a broker's request log is made of."""

    who: str
    operation: Operation
    at_ms: int
    answer: Answer | None
    taking_ms: int
    """How long after the request was handled its answer leaves, for the log; the coordinator does not see it."""
    unanswered: bool


class Moment(NamedTuple):
    """What was done and seen at one instant, for people."""

    at_ms: int
    text: str
    """The act of the step, empty where only time passed."""
    told: tuple[str, ...]


class Played(NamedTuple):
    """What came of a trace."""

    told: tuple[Moment, ...]
    differences: tuple[str, ...]
    """Empty when everything is as expected."""
    exchanges: tuple[Exchange, ...]


class _Player:
    def __init__(self, trace: Trace, version: str, engine: Engine) -> None:
        self.trace, self.version, self.engine = trace, version, engine
        self.clients = Clients(trace)
        self.exchanges: dict[int, Exchange] = {}
        self.seen = Seen(self.engine.view(GROUP), self.clients.name_of)
        self.now_ms = 0
        self.is_led = True
        """Whether somebody leads the shard; if not, nobody can be asked how the group is, and it is as it was."""
        self.told: list[Moment] = []
        self.differences: list[str] = []

    def play(self) -> Played:
        for step in self.trace.steps:
            self.pass_time(step.at_ms - 1)
            self.close_before(step)
            if not step.before_timers:
                self.pass_time(step.at_ms)
            for act in step.acts:
                self.act(act, step)
            self.close(step)
        return Played(tuple(self.told), tuple(self.differences), tuple(self.exchanges.values()))

    def pass_time(self, to_ms: int) -> None:
        """Fire timers one instant after the other, looking at the group after each."""
        while (due_at_ms := self.engine.next_at_ms()) is not None and due_at_ms <= to_ms:
            self.now_ms = max(due_at_ms, self.now_ms)
            self.take(self.engine.advance(self.now_ms))
            self.look(self.now_ms)
        if to_ms > self.now_ms:
            self.now_ms = to_ms
            self.take(self.engine.advance(to_ms))

    def act(self, act: Act, step: Step) -> None:
        client = self.clients.by_name.get(act.who)
        if act.as_leader and client is not None and not client.leads:
            self.differ(step, f"{act.who} is not the leader")
        taking_ms = duration_ms(act.options["taking"]) if "taking" in act.options else 0
        for operation in self.clients.requests(act):
            number = operation.number
            self.exchanges[number] = Exchange(act.who, operation, step.at_ms, None, taking_ms, act.unanswered)
            self.take(self.engine.perform(operation, step.at_ms))
            if isinstance(operation, Load | Unload):
                self.is_led = isinstance(operation, Load)
        self.look(step.at_ms)

    def take(self, answers: list[Answer]) -> None:
        for answer in answers:
            exchange = self.exchanges[answer.number]
            self.exchanges[answer.number] = exchange._replace(answer=answer)
            operation = exchange.operation
            if isinstance(operation, Load | Unload):
                continue
            client = self.clients.by_name.get(exchange.who)
            if client is not None and not exchange.unanswered:
                client.told(operation, _entry_error(operation, answer))
            if isinstance(operation, ops.Leave) and exchange.who == ADMIN:
                for (_, instance_id, error), name in zip(answer.left, self.removed(operation), strict=True):
                    self.seen.answered(name, operation, answer._replace(error_code=error, member_id=instance_id or ""))
            else:
                self.seen.answered(exchange.who, operation, _entry_error(operation, answer))

    def removed(self, operation: ops.Leave) -> list[str]:
        by_instance = {client.instance_id: name for name, client in reversed(self.clients.by_name.items())}
        return [by_instance[entry.group_instance_id] for entry in operation.members]

    def look(self, at_ms: int) -> None:
        if self.is_led:
            self.seen.look(at_ms, self.engine.view(GROUP), self.engine.causes())

    def close_before(self, step: Step) -> None:
        """Nothing may have happened between the line before and the instant of this one."""
        for at_ms, told in self.seen.told_by_instant():
            self.told.append(Moment(at_ms, "", told))
            self.differ(step, f"before this line, at {at_ms} ms: {', '.join(told)}; no line expects it")
        self.seen.forget()

    def close(self, step: Step) -> None:
        """Hold what was seen against a line."""
        seen = self.seen
        newest = {one.who: one for one in self.exchanges.values() if isinstance(one.operation, ops.Join | ops.Sync)}
        waiting = {who for who, one in newest.items() if one.answer is None}
        expected = [one for one in step.expectations if self.version in one.versions and one.mark != MARKS[1]]
        for one in expected:
            if (found := check(one, seen, waiting)) is not None:
                self.differ(step, f"`{one.text}`, but {found}")
        for told in unexpected(expected, seen):
            self.differ(step, f"{told}, which it does not expect")
        self.told.append(
            Moment(step.at_ms, step.text, tuple(one for _, some in seen.told_by_instant() for one in some))
        )
        seen.forget()

    def differ(self, step: Step, what: str) -> None:
        self.differences.append(f"{self.trace.name}:{step.line}: on {self.version} at {step.at_ms} ms: {what}")


def _entry_error(operation: Operation, answer: Answer) -> Answer:
    """An answer to a LeaveGroup of one: the error of its one entry where the request as a whole has none."""
    if isinstance(operation, ops.Leave) and len(answer.left) == 1 and answer.error_code == ErrorCode.NONE:
        return answer._replace(error_code=answer.left[0][2])
    return answer


def play(trace: Trace, version: str, engine: Engine | None = None) -> Played:
    """Play a trace on a release, by default by the model. Raises ValueError for a release it was not written for."""
    if version not in trace.versions:
        raise ValueError(
            f"{trace.name} is not written for Kafka {version}; expected one of {', '.join(trace.versions)}"
        )
    return _Player(trace, version, engine or ModelEngine(version, trace.settings)).play()
