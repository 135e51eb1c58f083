"""What the coordinators of groups with epochs share: a shard that operations and time are put to, step by step.

One clock for each, which only `perform` and `advance` move. A kind of group says which operation goes to whom
(`handlers`) and what a timer does (`_fire`); no rule is here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Protocol

from kardia.coordinator.errors import NotModelledError
from kardia.coordinator.happenings import Happening
from kardia.coordinator.timers import Key, Timer, Timers, refuse_going_back, refuse_overtaking


class HasSteps(Protocol):
    """A shard: what is answered and what happens is collected in it until it is taken."""

    now_ms: int
    timers: Timers
    answers: list[Any]
    happenings: list[Happening]

    def at(self, now_ms: int) -> None:
        """It is this late."""


class Stepped:
    """A shard that is loaded when it is made, with nothing in it."""

    handlers: ClassVar[Mapping[type, Callable[[Any, Any], None]]]
    kind: ClassVar[str]
    """Of its groups, for people."""

    def __init__(self, shard: HasSteps, expire_key: Key, expire_every_ms: int) -> None:
        """`expire_key`: of the timer that looks for expired offsets, every `expire_every_ms`."""
        self._steps = shard
        shard.timers.arm(expire_key, shard.now_ms, expire_every_ms)

    def _fire(self, timer: Timer) -> None:
        """A timer is due; each kind of group has its own."""
        raise NotImplementedError

    @property
    def now_ms(self) -> int:
        """The instant of the last step."""
        return self._steps.now_ms

    def perform(self, operation: Any, at_ms: int, *, overtakes: bool = False) -> list[Any]:
        """Apply an operation at `at_ms` and return its answer. Fires no timer, not even one due at `at_ms`.

        Raises ValueError when `at_ms` lies before the last step or beyond a timer that has not fired, NotModelledError
        for what the model does not know. With `overtakes` it may lie there: the timer is late, as those of a busy
        broker are.
        """
        refuse_going_back("at_ms", at_ms, self._steps.now_ms)
        if not overtakes:
            refuse_overtaking(self._steps.timers, at_ms)
        handler = self.handlers.get(type(operation))
        if handler is None:
            raise NotModelledError(f"{type(operation).__name__} to a {self.kind} group is not modelled")
        self._steps.at(at_ms)
        self._handle(handler, operation)
        return self._take_answers()

    def advance(self, to_ms: int) -> list[Any]:
        """Let time pass to `to_ms`: fires what is due at or before it, by deadline, then in the order of arming."""
        refuse_going_back("to_ms", to_ms, self._steps.now_ms)
        while (timer := self._steps.timers.pop_due(to_ms)) is not None:
            self._steps.at(max(self._steps.now_ms, timer.deadline_at_ms))
            self._fire(timer)
        self._steps.at(to_ms)
        return self._take_answers()

    def fire_late(self, due_to_ms: int, at_ms: int) -> list[Any]:
        """Fire at `at_ms` the timers that were due at or before `due_to_ms`, as the timer thread of a busy broker does.

        What a timer finds is the group as it is at `at_ms`: a session that was renewed since its deadline has no timer
        at that deadline any more. Raises ValueError when `at_ms` lies before the last step or before `due_to_ms`.
        """
        refuse_going_back("at_ms", at_ms, max(self._steps.now_ms, due_to_ms))
        self._steps.at(at_ms)
        while (timer := self._steps.timers.pop_due(due_to_ms)) is not None:
            self._fire(timer)
        return self._take_answers()

    def next_deadline_at_ms(self) -> int:
        """When the next timer is due; -1 when none is armed."""
        timer = self._steps.timers.next()
        return -1 if timer is None else timer.deadline_at_ms

    def take_happenings(self) -> list[Happening]:
        """What happened since this was last called, oldest first. Kept until taken."""
        taken = list(self._steps.happenings)
        self._steps.happenings.clear()
        return taken

    def _handle(self, handler: Callable[[Any, Any], None], operation: Any) -> None:
        handler(self._steps, operation)

    def _take_answers(self) -> list[Any]:
        taken = list(self._steps.answers)
        self._steps.answers.clear()
        return taken
