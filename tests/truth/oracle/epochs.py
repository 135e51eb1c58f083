"""`EpochOracle`: what the oracles of consumer and share groups do alike: load, topics, time, answers."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from typing import Any

from kardia.coordinator.consumer.operations import BeatAnswer, Partition, Topics
from kardia.coordinator.operations import Load, Unload
from tests.truth.oracle.driven import Driven
from tests.truth.oracle.jvm import jclass
from tests.truth.oracle.read_before import Texts


class EpochOracle(Driven):
    """One coordinator of groups with epochs; see `Driven`."""

    def __init__(self, version: str, settings: Any) -> None:
        """As `Driven`."""
        super().__init__(version, settings)
        self._list = jclass("java.util.ArrayList")
        self._texts = Texts()

    @abstractmethod
    def _put(self, operation: Any) -> bool:
        """Do what is asked of the coordinator itself; False if it is a request, that `_begin` hands over."""

    @abstractmethod
    def _begin(self, operation: Any) -> Any:
        """Hand a request over; the future of its answer."""

    def perform(self, operation: Any, at_ms: int) -> list[Any]:
        """Put the operation at an instant, firing no timer; returns what is answered in that instant."""
        self._clock.set(at_ms)
        release = self._release
        if isinstance(operation, Load):
            release.load()
        elif isinstance(operation, Unload):
            release.unload()
        elif isinstance(operation, Topics):
            release.change_topics(operation.topics)
        elif not self._put(operation):
            self._waiting.append((operation, self._begin(operation)))
            release.settle()
        return self._answered()

    def hold_appends(self) -> None:
        """From now on nothing is stored that is appended: a replica stands still."""
        self._release.hold_appends()

    def store(self) -> list[Any]:
        """Everything is stored now; returns what is answered."""
        self._release.store(0)
        self._release.settle()
        return self._answered()

    def advance(self, to_ms: int) -> list[Any]:
        """Fire every timer due at or before an instant, and stand there."""
        while (due_at_ms := self._clock.next_at_ms()) is not None and due_at_ms <= to_ms:
            self._fire()
            self._release.settle()
        self._clock.set(to_ms)
        return self._answered()

    def _fire(self) -> None:
        self._clock.fire()

    def _java_list(self, values: Iterable[Any]) -> Any:
        made = self._list()
        for value in values:
            made.add(value)
        return made

    def _beat_answer(self, operation: Any, response: Any) -> BeatAnswer:
        """What a heartbeat was answered; partitions sorted, None where the answer carries none."""
        assignment = response.assignment()
        partitions = None
        if assignment is not None:
            partitions = self._texts.of(assignment, self._partitions)
        return BeatAnswer(
            operation.number,
            self._clock.now_ms,
            int(response.errorCode()),
            str(response.memberId() or ""),
            int(response.memberEpoch()),
            int(response.heartbeatIntervalMs()),
            partitions,
        )

    def _partitions(self, assignment: Any) -> tuple[Partition, ...]:
        found = [
            (self._release.topic_id(one.topicId()), int(number))
            for one in assignment.topicPartitions()
            for number in one.partitions()
        ]
        return tuple(sorted(found))
