"""Arithmetic of partitions: lists by topic id, as heartbeats and records have them. Decides nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from kardia.observe.state.modern import Partitions

MAX_PARTITIONS = 20_000
"""Partitions of one member that are kept; of a member that has more it is not known what it has."""


def taken(entries: Iterable[Any] | None) -> Partitions | None:
    """Partitions of a list of [topic id, [partition, ...]]; None where there is none, or too much of it."""
    if entries is None:
        return None
    found: Partitions = {}
    for topic, numbers in entries:
        found[topic] = sorted({*found.get(topic, ()), *numbers})
    return found if count(found) <= MAX_PARTITIONS else None


def count(partitions: Partitions) -> int:
    """How many there are."""
    return sum(map(len, partitions.values()))


def named(partitions: Partitions) -> Iterator[str]:
    """Each as `topic id:number`."""
    for topic, numbers in partitions.items():
        for number in numbers:
            yield f"{topic}:{number}"


def without(partitions: Partitions, others: Partitions) -> Partitions:
    """Those that are not among the others."""
    rest = {
        topic: [one for one in numbers if one not in others.get(topic, ())] for topic, numbers in partitions.items()
    }
    return {topic: numbers for topic, numbers in rest.items() if numbers}


def together(first: Partitions, second: Partitions) -> Partitions:
    """Those of both."""
    return {topic: sorted({*first.get(topic, ()), *second.get(topic, ())}) for topic in {**first, **second}}


def share_any(first: Partitions, second: Partitions) -> bool:
    """Whether some are in both."""
    return any(one in second.get(topic, ()) for topic, numbers in first.items() for one in numbers)
