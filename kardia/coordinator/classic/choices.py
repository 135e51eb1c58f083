"""What Kafka leaves to the order of a hash map, as questions to be answered from outside.

A replay answers them from what the broker did; the default takes the first by id, so that every run is the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class Choose(Protocol):
    """Answers one question at a time; `candidates` and `member_ids` come sorted and have two entries at least."""

    def leader(self, group_id: str, candidates: Sequence[str]) -> str:
        """The new leader, when the old one is gone or did not rejoin. One of the candidates."""
        ...

    def protocol(self, group_id: str, candidates: Sequence[str]) -> str:
        """The protocol among those with equally many votes. One of the candidates."""
        ...

    def order(self, group_id: str, member_ids: Sequence[str]) -> Sequence[str]:
        """The order in which sessions are armed at one instant, hence in which equal deadlines expire. All ids."""
        ...


class FirstById:
    """The default: always the first, always in order."""

    def leader(self, group_id: str, candidates: Sequence[str]) -> str:  # noqa: ARG002
        """First by id."""
        return candidates[0]

    def protocol(self, group_id: str, candidates: Sequence[str]) -> str:  # noqa: ARG002
        """First by name."""
        return candidates[0]

    def order(self, group_id: str, member_ids: Sequence[str]) -> Sequence[str]:  # noqa: ARG002
        """By id."""
        return member_ids
