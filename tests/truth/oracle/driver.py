"""`Oracle`: Kafka's coordinator of one release behind the three verbs of the model: perform, advance, view."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import jpype

from kardia.coordinator.classic.operations import Answer, Join, Operation, Stored, TxnEnd, View
from kardia.coordinator.classic.settings import CoordinatorSettings
from kardia.coordinator.operations import Load, Unload
from tests.truth.oracle.clock import Clock
from tests.truth.oracle.driven import Driven
from tests.truth.oracle.java_release import JavaRelease
from tests.truth.oracle.old_requests import OldRequests
from tests.truth.oracle.old_scala_release import OldScalaRelease
from tests.truth.oracle.requests import Requests
from tests.truth.oracle.scala_release import ScalaRelease


class Oracle(Driven):
    """One coordinator of classic groups; see `Driven`."""

    _release: JavaRelease | ScalaRelease

    def _build(self, version: str, settings: CoordinatorSettings) -> JavaRelease | ScalaRelease:
        kinds = {"2": OldScalaRelease, "3": ScalaRelease}
        return kinds.get(version[0], JavaRelease)(self._clock, settings)

    def _speaks(self, version: str, clock: Clock) -> Requests | OldRequests:
        return OldRequests(clock) if version[0] == "2" else Requests()

    def perform(self, operation: Operation, at_ms: int) -> list[Answer]:
        """Put the operation at an instant, firing no timer; returns what is answered in that instant."""
        self._clock.set(at_ms)
        if isinstance(operation, Load | Unload):
            if isinstance(operation, Load):
                self._release.load(operation.group_max_size)
            else:
                self._release.unload()
            return self._answered()
        if isinstance(operation, Stored):
            self._release.store(operation.error_code)
            self._release.settle()
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

    def group_ids(self) -> list[str]:
        """Groups that exist."""
        return self._release.group_ids()

    def _read(self, operation: Operation, future: Any) -> Answer:
        try:
            answer: Answer = self._requests.read(operation, future.get(), self._clock.now_ms)
            return answer
        except jpype.JException as error:
            return Answer(operation.number, self._clock.now_ms, self._code_of(error))
