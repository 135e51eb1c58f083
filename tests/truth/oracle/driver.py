"""`Oracle`: Kafka's coordinator of one release behind the three verbs of the model: perform, advance, view.

Time moves only by the caller's word. "Timer first, then request" in one ms is `advance(t)` and `perform(op, t)`;
"request first" is `advance(t - 1)` and `perform(op, t)`.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import jpype

from kardia.coordinator.operations import Answer, Join, Load, Operation, TxnEnd, Unload, View
from kardia.coordinator.settings import CoordinatorSettings
from tests.truth.oracle import jvm
from tests.truth.oracle.clock import Clock
from tests.truth.oracle.java_release import JavaRelease
from tests.truth.oracle.requests import Requests, read
from tests.truth.oracle.scala_release import ScalaRelease

_shared: list[tuple[Clock, jvm.Ids, Requests]] = []
_built: dict[CoordinatorSettings, JavaRelease | ScalaRelease] = {}


class Oracle:
    """One coordinator. Objects of equal settings share it, so only the newest may be used."""

    def __init__(self, version: str, settings: CoordinatorSettings) -> None:
        """Start Java if need be, build or take the coordinator of these settings, and begin a history."""
        jvm.start(version)
        if not _shared:
            _shared.append((Clock(), jvm.Ids(), Requests()))
        self._clock, self._ids, self._requests = _shared[0]
        if settings not in _built:
            release = ScalaRelease if version.startswith("3.") else JavaRelease
            _built[settings] = release(self._clock, settings)
        self._release = _built[settings]
        self._errors = jvm.jclass("org.apache.kafka.common.protocol.Errors")
        self._started_at_ms = settings.started_at_ms
        self._waiting: list[tuple[Operation, Any]] = []
        self.reset()

    def reset(self) -> None:
        """Begin a new history: an empty log that has just been loaded, at `started_at_ms`."""
        self._waiting.clear()
        self._clock.set(self._started_at_ms)
        self._release.wipe()

    @property
    def now_ms(self) -> int:
        """Where the clock stands."""
        return self._clock.now_ms

    def next_at_ms(self) -> int | None:
        """When the next timer of any kind is due."""
        return self._clock.next_at_ms()

    def perform(self, operation: Operation, at_ms: int) -> list[Answer]:
        """Put the operation at an instant, firing no timer; returns what is answered in that instant."""
        self._clock.set(at_ms)
        if isinstance(operation, Load | Unload):
            if isinstance(operation, Load):
                self._release.load(operation.group_max_size)
            else:
                self._release.unload()
            return self._answered()
        if isinstance(operation, Join) and operation.new_id:
            self._ids.will_be(operation.new_id)
        try:
            if isinstance(operation, TxnEnd):
                begun = self._release.end_transaction(operation.producer_id, operation.commits)
            else:
                begun = self._requests.begin(self._release.service, operation)
            self._waiting.append((operation, begun))
        except jpype.JException:
            # The broker answers what the coordinator throws with UNKNOWN_SERVER_ERROR.
            return [*self._answered(), Answer(operation.number, at_ms, -1)]
        self._release.settle()
        return self._answered()

    def load_while(self, operations: Sequence[Operation], at_ms: int) -> list[Answer]:
        """Load the shard at an instant; what is answered to requests that come while it loads."""
        self._clock.set(at_ms)
        answers: list[Answer] = []

        def ask() -> None:
            for operation in operations:
                answers.extend(self.perform(operation, at_ms))

        self._release.load(meanwhile=ask)
        return answers

    def advance(self, to_ms: int) -> list[Answer]:
        """Fire every timer due at or before an instant, and stand there."""
        answers: list[Answer] = []
        while (due_at_ms := self._clock.next_at_ms()) is not None and due_at_ms <= to_ms:
            with suppress(jpype.JException):  # The timer's thread of a broker writes it to the log.
                self._clock.fire()
            self._release.settle()
            answers += self._answered()
        self._clock.set(to_ms)
        return answers

    def view(self, group_id: str) -> View | None:
        """What is held about a group, or None if there is none or its shard is not loaded."""
        return self._release.view(group_id)

    def committed(self, group_id: str) -> dict[tuple[str, int], tuple[int, int]]:
        """Committed offsets of a group with the instants of their commits, by topic and partition."""
        return self._release.committed(group_id)

    def take_armed(self) -> list[str]:
        """GROUP-MEMBER of the session timers armed since the last call, in the order of arming."""
        armed = self._release.armed_sessions
        self._release.armed_sessions = []
        return armed

    def group_ids(self) -> list[str]:
        """Groups that exist."""
        return self._release.group_ids()

    def _answered(self) -> list[Answer]:
        done = [(operation, future) for operation, future in self._waiting if future.isDone()]
        if done:
            self._waiting = [waiting for waiting in self._waiting if not waiting[1].isDone()]
        return [self._read(operation, future) for operation, future in done]

    def _read(self, operation: Operation, future: Any) -> Answer:
        try:
            return read(operation, future.get(), self._clock.now_ms)
        except jpype.JException as error:
            # So does the broker make an answer of a future that failed.
            cause = error.getCause() or error
            return Answer(operation.number, self._clock.now_ms, int(self._errors.forException(cause).code()))
