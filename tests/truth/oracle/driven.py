"""`Driven`: what the oracles of all protocols share: Kafka's coordinator of one release, and a clock that they move.

Time moves only by the caller's word. "Timer first, then request" in one ms is `advance(t)` and `perform(op, t)`;
"request first" is `advance(t - 1)` and `perform(op, t)`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

from tests.truth.oracle import jvm
from tests.truth.oracle.clock import Clock
from tests.truth.oracle.requests import Requests


class Driven(ABC):
    """One coordinator. Objects of one class and of equal settings share it, so only the newest may be used."""

    _shared: ClassVar[dict[type[Driven], tuple[Clock, jvm.Ids, Any]]] = {}
    _built: ClassVar[dict[tuple[type[Driven], Any], Any]] = {}

    def __init__(self, version: str, settings: Any) -> None:
        """Start Java if need be, build or take the coordinator of these settings, and begin a history."""
        jvm.start(version)
        kind = type(self)
        if kind not in self._shared:
            clock = Clock()
            self._shared[kind] = (clock, jvm.Ids(), self._speaks(version, clock))
        self._clock, self._ids, self._requests = self._shared[kind]
        if (kind, settings) not in self._built:
            self._built[kind, settings] = self._build(version, settings)
        self._release = self._built[kind, settings]
        self._errors = jvm.jclass("org.apache.kafka.common.protocol.Errors")
        self._started_at_ms = settings.started_at_ms
        self._waiting: list[tuple[Any, Any]] = []
        self.reset()

    def _speaks(self, version: str, clock: Clock) -> Any:  # noqa: ARG002
        """Who hands requests to coordinators of a release."""
        return Requests()

    @abstractmethod
    def _build(self, version: str, settings: Any) -> Any:
        """The coordinator of a release."""

    @abstractmethod
    def _read(self, operation: Any, future: Any) -> Any:
        """The answer in a future that is done."""

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

    def committed(self, group_id: str) -> dict[tuple[str, int], tuple[int, int]]:
        """Committed offsets of a group with the instants of their commits, by topic and partition."""
        found: dict[tuple[str, int], tuple[int, int]] = self._release.committed(group_id)
        return found

    def take_armed(self) -> list[str]:
        """GROUP-MEMBER of the session timers armed since the last call, in the order of arming."""
        armed, self._release.armed_sessions = self._release.armed_sessions, []
        return list(armed)

    def _answered(self) -> list[Any]:
        done: list[tuple[Any, Any]] = []
        waiting: list[tuple[Any, Any]] = []
        for operation, future in self._waiting:
            (done if future.isDone() else waiting).append((operation, future))
        self._waiting = waiting
        return [self._read(operation, future) for operation, future in done]

    def _code_of(self, error: Any) -> int:
        """The code with which the broker answers a future that failed."""
        return int(self._errors.forException(error.getCause() or error).code())
