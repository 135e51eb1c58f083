"""What the assignor of share groups gives to whom is asked for (`Choose`), as it goes by hashes, and held against the
laws that it keeps. Follows what `SimpleAssignor` promises; several members may have one partition."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from kardia.coordinator.consumer.operations import Partition
from kardia.coordinator.share.operations import NONE_OF

Target = dict[str, frozenset[Partition]]


class Subscriber(NamedTuple):
    """A member as the assignor sees it, with the partitions of its topics that may be given out."""

    member_id: str
    open_to: frozenset[Partition]
    had: frozenset[Partition]


class Choose(Protocol):
    """Answers what Kafka leaves to hashes."""

    def share(self, group_id: str, subscribers: Sequence[Subscriber]) -> Target | None:
        """What the assignor makes of these; None when it gives up, as that of 4.1.2 was seen to: it counts by the order
        of a hash map how many partitions each of them gets, and may have nobody left for the last one."""
        ...

    def order(self, group_id: str, member_ids: Sequence[str]) -> Sequence[str]:
        """The order in which sessions are armed at one instant. All ids."""
        ...


class EveryPartition:
    """The default answer: everybody has all that it subscribes to."""

    def share(self, group_id: str, subscribers: Sequence[Subscriber]) -> Target:  # noqa: ARG002
        """All to all."""
        return {one.member_id: one.open_to for one in subscribers}

    def order(self, group_id: str, member_ids: Sequence[str]) -> Sequence[str]:  # noqa: ARG002
        """By id."""
        return member_ids


def broken_law(subscribers: Sequence[Subscriber], target: Mapping[str, frozenset[Partition]], gives_every: bool) -> str:
    """What a target does that the assignor never does; "" when it keeps all laws. `gives_every`: one of them is that
    no partition is left over."""
    target = {one: frozenset(each for each in part if each[1] != NONE_OF) for one, part in target.items()}
    every: set[Partition] = set().union(*(one.open_to for one in subscribers))
    given: set[Partition] = set().union(*(target.get(one.member_id, frozenset()) for one in subscribers))
    if gives_every and not every <= given:
        return f"{sorted(given)} are given of {sorted(every)}"
    for one in subscribers:
        part = target.get(one.member_id, frozenset())
        # What it has had may stay with it when it is open to nobody any more.
        if not part <= one.open_to | one.had:
            return f"{one.member_id} gets {sorted(part - one.open_to)}, which is not open to it"
        if one.open_to and not part:
            return f"{one.member_id} gets nothing of {sorted(one.open_to)}"
    return ""
