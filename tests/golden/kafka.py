"""Kafka's own coordinator classes of one release as an engine for traces.

    python -m tests.golden.kafka 4.1.2      JSON: the name of each trace and where Kafka differs from it

One process holds one release, because a JVM has one class path.
"""

from __future__ import annotations

import json
import sys

from kardia.coordinator.classic.operations import Answer, Operation, View
from kardia.coordinator.classic.settings import CoordinatorSettings
from kardia.trace import play
from tests.golden import traces
from tests.truth.oracle import VERSIONS, Oracle

__all__ = ["VERSIONS", "KafkaEngine"]


class KafkaEngine:
    """Kafka's classes, with the clock of traces: it begins at 0, theirs at `started_at_ms`, which is 0 too."""

    def __init__(self, version: str, settings: CoordinatorSettings) -> None:
        """A coordinator with an empty log that has just been loaded."""
        self._oracle = Oracle(version, settings)

    def perform(self, operation: Operation, at_ms: int) -> list[Answer]:
        """Apply a request; fires no timer."""
        return self._oracle.perform(operation, at_ms)

    def advance(self, to_ms: int) -> list[Answer]:
        """Let time pass and fire what is due."""
        return self._oracle.advance(to_ms)

    def next_at_ms(self) -> int | None:
        """When the next timer of any kind is due."""
        return self._oracle.next_at_ms()

    def view(self, group_id: str) -> View | None:
        """The group as it is."""
        return self._oracle.view(group_id)

    def causes(self) -> dict[str, str] | None:
        """Kafka's classes show that a member is gone, not why."""
        return None


def differences(version: str) -> dict[str, list[str]]:
    """Every trace that is written for this release, and where Kafka differs from it."""
    return {
        trace.name: list(play(trace, version, KafkaEngine(version, trace.settings)).differences)
        for trace in traces()
        if version in trace.versions
    }


if __name__ == "__main__":
    sys.stdout.write(json.dumps(differences(sys.argv[1])))
