"""The broker's assignors: who gets which partition.

`range` is a function of what it is given. `uniform` leaves much to the order of hash maps, which differs from one
broker to the next, so what it did is asked for (`Choose`) and held against the laws that it does follow; `Uniform` is
the answer where nobody knows better. Follows `RangeAssignor` and what `UniformAssignor` promises.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from kardia.coordinator.classic.choices import Choose as ChooseClassic
from kardia.coordinator.classic.choices import FirstById
from kardia.coordinator.consumer.operations import Partition, Topic

Target = dict[str, frozenset[Partition]]


class Subscriber(NamedTuple):
    """A member as an assignor sees it: its topics that exist, and its part of the target so far."""

    member_id: str
    instance_id: str | None
    topics: tuple[Topic, ...]
    had: frozenset[Partition]


class Choose(ChooseClassic, Protocol):
    """Answers what Kafka leaves to the order of a hash map, of classic groups as well."""

    def fault(self, group_id: str, codes: Sequence[int]) -> int:
        """The error code of a group that cannot become a consumer group for several reasons. One of the codes."""
        ...

    def sees_lost(self, group_id: str) -> bool:
        """Whether an OffsetFetch still sees a group that is gone from memory and not from the log: it does until the
        next record of any group of the shard is committed."""
        ...

    def assignor(self, group_id: str, candidates: Sequence[str], by_range: Target) -> str:
        """The assignor among those that equally many members name. One of the candidates. `by_range`: what `range`
        would make of them."""
        ...

    def assignor_changed(self, group_id: str, before: Sequence[str], after: Sequence[str]) -> bool:
        """Whether the preferred assignor is another one, where equally many members name several."""
        ...

    def uniform(self, group_id: str, subscribers: Sequence[Subscriber], alike: bool) -> Target | None:
        """What the assignor `uniform` makes of these; None when it gives up. `alike`: all subscribe to the same
        topics."""
        ...


def assign_range(subscribers: Sequence[Subscriber], alike: bool) -> Target:
    """Consecutive partitions of each topic for each of its subscribers, static members first, then by id."""
    ordered = sorted(subscribers, key=lambda one: (one.instance_id is None, one.instance_id or "", one.member_id))
    target: dict[str, set[Partition]] = {one.member_id: set() for one in ordered}
    of: dict[Topic, list[str]] = {}
    for one in ordered:
        for topic in ordered[0].topics if alike else one.topics:
            of.setdefault(topic, []).append(one.member_id)
    for topic, member_ids in of.items():
        least, more = divmod(topic.partitions, len(member_ids))
        start = 0
        for place, member_id in enumerate(member_ids):
            end = start + least + (place < more)
            target[member_id] |= {(topic.topic_id, number) for number in range(start, end)}
            start = end
    return {member_id: frozenset(partitions) for member_id, partitions in target.items()}


class Uniform(FirstById):
    """A uniform assignor with an order of its own: by id. The default answer to the questions of `Choose`."""

    def fault(self, group_id: str, codes: Sequence[int]) -> int:  # noqa: ARG002
        """The first."""
        return codes[0]

    def sees_lost(self, group_id: str) -> bool:  # noqa: ARG002
        """No."""
        return False

    def assignor(self, group_id: str, candidates: Sequence[str], by_range: Target) -> str:  # noqa: ARG002
        """First by name."""
        return candidates[0]

    def assignor_changed(self, group_id: str, before: Sequence[str], after: Sequence[str]) -> bool:  # noqa: ARG002
        """First by name, in both."""
        return before[0] != after[0]

    def uniform(self, group_id: str, subscribers: Sequence[Subscriber], alike: bool) -> Target:  # noqa: ARG002
        """Everybody keeps what fits its part; what is left goes to who has least."""
        ordered = sorted(subscribers)
        every = [
            (topic.topic_id, number)
            for topic in sorted({topic for one in ordered for topic in one.topics})
            for number in range(topic.partitions)
        ]
        part, more = divmod(len(every), len(ordered))
        target: dict[str, set[Partition]] = {}
        wants = {one.member_id: {topic.topic_id for topic in one.topics} for one in ordered}
        for one in ordered:
            kept = sorted(held for held in one.had if held[0] in wants[one.member_id])
            quota = (part + (more > 0)) if alike else len(kept)
            more -= alike and len(kept) > part
            target[one.member_id] = set(kept[:quota])
        taken = {held for partitions in target.values() for held in partitions}
        for partition in every:
            if partition not in taken:
                open_to = [one.member_id for one in ordered if partition[0] in wants[one.member_id]]
                target[min(open_to, key=lambda one: (len(target[one]), one))].add(partition)
        return {member_id: frozenset(partitions) for member_id, partitions in target.items()}


def broken_law(subscribers: Sequence[Subscriber], alike: bool, target: Mapping[str, frozenset[Partition]]) -> str:
    """What a target does that the assignor `uniform` never does; "" when it keeps all laws.

    Kafka may take members for subscribed alike that are not (it looks at the group before a heartbeat that changes no
    subscription of names); who gets what then is up to the member that comes first.
    """
    if alike and len({one.topics for one in subscribers}) > 1:
        return ""
    topics = {topic for one in subscribers for topic in one.topics}
    given = [(partition, one) for one in subscribers for partition in target.get(one.member_id, frozenset())]
    every = {(topic.topic_id, number) for topic in topics for number in range(topic.partitions)}
    if sorted(partition for partition, _ in given) != sorted(every):
        return f"{sorted(p for p, _ in given)} are given of {sorted(every)}"
    for partition, one in given:
        if partition[0] not in {topic.topic_id for topic in one.topics}:
            return f"{one.member_id} gets {partition} and does not subscribe to it"
    if not alike or not topics:
        return ""
    least = len(every) // len(subscribers)
    for one in subscribers:
        part = target.get(one.member_id, frozenset())
        if not least <= len(part) <= -(-len(every) // len(subscribers)):
            return f"{one.member_id} gets {len(part)} of {len(every)} partitions, with {len(subscribers)} members"
        kept = one.had & every
        if len(kept & part) < min(len(kept), least):
            return f"{one.member_id} loses more of {sorted(kept)} than it must"
    return ""
