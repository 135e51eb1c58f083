"""A consumer group: its members, its target and its epochs. Counts and finds; the rules are in the files beside it.

Follows `ConsumerGroup` and `ModernGroup`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from kardia.coordinator.classic.records import Offset
from kardia.coordinator.consumer.member import Held, Member
from kardia.coordinator.consumer.operations import Partition, Topic
from kardia.coordinator.errors import NotModelledError, RefusedError
from kardia.kafka.states import ErrorCode

Cluster = Mapping[str, Topic]
"""Topics by name."""


class Resolved(NamedTuple):
    """What a regular expression matches, in which version of the cluster, found when."""

    topics: frozenset[str]
    version: int
    at_ms: int


@dataclass(slots=True)
class ConsumerGroup:
    """A group. `group_epoch` grows with whatever calls for a new target; `assignment_epoch` is that of the target."""

    group_id: str
    group_epoch: int
    assignment_epoch: int = 0
    assigned_at_ms: int = 0
    members: dict[str, Member] = field(default_factory=dict)
    """Changed only by `put` and `remove`."""
    target: dict[str, frozenset[Partition]] = field(default_factory=dict)
    metadata: Mapping[str, Topic] = field(default_factory=dict)
    """The subscribed topics as of the last change of the group epoch (Kafka keeps a hash of it from 4.1)."""
    regexes: dict[str, Resolved] = field(default_factory=dict)
    owners: dict[Partition, int] = field(default_factory=dict)
    """Partitions that a member holds or has to give up, with that member's epoch."""
    instances: dict[str, str] = field(default_factory=dict)
    offsets: dict[tuple[str, int], Offset] = field(default_factory=dict)
    alike: bool = True
    """Whether Kafka takes all members for subscribed alike. It looks when a member is put or removed, not when an
    expression is resolved or dropped."""
    refreshed: bool = False
    """Whether the subscribed topics were looked at since the last change of any of them, and since the load."""
    refreshed_epoch: int = 0
    over: ConsumerGroup | None = None
    """A group of the same name that memory had lost: its records stand where this one has written none of its own."""

    def recall(self, unwritten_epoch: int) -> None:
        """What a load finds. `unwritten_epoch`: with which a new group begins, and which no record says."""
        over, self.over = self.over, None
        if over is None:
            return
        over.recall(unwritten_epoch)
        if self.group_epoch == unwritten_epoch:
            self.group_epoch, self.metadata = over.group_epoch, over.metadata
        if self.assignment_epoch == unwritten_epoch:
            self.assignment_epoch, self.assigned_at_ms = over.assignment_epoch, over.assigned_at_ms
        self.instances = over.instances | self.instances

    # -- members --------------------------------------------------------------------------------------------------

    def put(self, member: Member) -> None:
        """Add or replace a member."""
        old = self.members.get(member.member_id)
        if old is not None:
            self._release(old)
        self.members[member.member_id] = member
        self._own(member.assigned, member.epoch)
        self._own(member.pending, member.epoch)
        if member.instance_id is not None:
            self.instances[member.instance_id] = member.member_id
            self._overwrite(member.instance_id)
        self._compare()

    def remove(self, member_id: str) -> None:
        """Take a member out, with its target."""
        member = self.members.pop(member_id)
        self._release(member)
        self.target.pop(member_id, None)
        if member.instance_id is not None:
            self.instances.pop(member.instance_id, None)
        self._compare()

    def _overwrite(self, instance_id: str) -> None:
        """A record of whoever has an instance id now stands in the place of that of a group that was lost."""
        over = self.over
        while over is not None:
            over.instances.pop(instance_id, None)
            over = over.over

    def _compare(self) -> None:
        members = list(self.members.values())
        self.alike = subscribed_alike(self.subscriptions(members), self.expressions(members), len(members))

    def _release(self, member: Member) -> None:
        for one in (*member.assigned, *member.pending):
            if self.owners.get(one) == member.epoch:
                del self.owners[one]

    def _own(self, partitions: Held, epoch: int) -> None:
        for one in partitions:
            if self.owners.get(one, epoch - 1) >= epoch:
                raise NotModelledError(f"group {self.group_id!r}: {one} is held twice; Kafka fails the write here")
            self.owners[one] = epoch

    def holder(self, instance_id: str | None) -> Member | None:
        """The member that has an instance id. Raises RefusedError where that one is gone: a member that changed its
        instance id leaves the old one behind."""
        member_id = None if instance_id is None else self.instances.get(instance_id)
        if member_id is None:
            return None
        if member_id not in self.members:
            raise RefusedError(ErrorCode.UNKNOWN_MEMBER_ID)
        return self.members[member_id]

    def in_place_of(self, instance_id: str | None) -> frozenset[Partition]:
        """The target of whoever has an instance id."""
        return self.target.get(self.instances.get(instance_id or "", ""), frozenset())

    # -- subscriptions --------------------------------------------------------------------------------------------

    def with_member(self, updated: Member) -> list[Member]:
        """The members as they will be: `updated` in its place, or in that of the one that had its instance id."""
        gone = {updated.member_id, self.instances.get(updated.instance_id or "", updated.member_id)}
        return [*(one for member_id, one in self.members.items() if member_id not in gone), updated]

    def expressions(self, members: Iterable[Member]) -> Counter[str]:
        """Regular expressions with how many of these members subscribe by each."""
        return Counter(one.regex for one in members if one.regex)

    def subscriptions(self, members: Collection[Member], dropped: Collection[str] = ()) -> dict[str, list[int]]:
        """Topic names with how many members name each, and how many resolved expressions but the dropped match it."""
        counts: dict[str, list[int]] = {}
        for member in members:
            for name in member.names:
                counts.setdefault(name, [0, 0])[0] += 1
        for regex, resolved in self.regexes.items():
            if regex not in dropped:
                for name in resolved.topics:
                    counts.setdefault(name, [0, 0])[1] += 1
        return counts

    def is_subscribed(self, topic: str) -> bool:
        """Whether a member names the topic or an expression matches it."""
        return topic in self.subscriptions(self.members.values())

    def topics_of(self, member: Member, cluster: Cluster) -> list[Topic]:
        """Existing topics that a member subscribes to."""
        return [cluster[name] for name in sorted(self.names_of(member)) if name in cluster]

    def names_of(self, member: Member) -> frozenset[str]:
        """Topics that a member subscribes to, by name or by its resolved expression."""
        resolved = self.regexes.get(member.regex) if member.regex else None
        return member.names | (resolved.topics if resolved is not None else frozenset())

    # -- the group ------------------------------------------------------------------------------------------------

    def state(self) -> str:
        """Kafka's word for what the group does."""
        if not self.members:
            return "Empty"
        if self.group_epoch > self.assignment_epoch:
            return "Assigning"
        settled = all(member.reached(self.assignment_epoch) for member in self.members.values())
        return "Stable" if settled else "Reconciling"

    def preferred_assignor(self, members: Iterable[Member]) -> list[str]:
        """The assignors that most members name, all that have equally many; none where nobody names one."""
        counts = Counter(one.assignor for one in members if one.assignor is not None)
        most = max(counts.values(), default=0)
        return sorted(name for name, count in counts.items() if count == most)


def subscribed_alike(counts: Mapping[str, list[int]], expressions: Mapping[str, int], members: int) -> bool:
    """Whether Kafka takes all members for subscribed to the same topics."""
    if not expressions:
        return all(by_name == members for by_name, _ in counts.values())
    # Kafka looks at any one of the expressions: with several, none can have all members.
    if next(iter(expressions.values())) != members:
        return False
    return all(by_regex == 1 and by_name == 0 for by_name, by_regex in counts.values())
