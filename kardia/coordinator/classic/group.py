"""A classic group and its members as the coordinator holds them in memory, with the questions that only look.

Changes nothing but its own fields: no timers, no answers, no records (those are `shard.py`'s). What is asked at every
request (do all wait, which protocols do all support, who comes first) is counted as members come and go and never
looked for among them, so a rebalance costs no more than its members. Follows `GroupMetadata.scala` and
`ClassicGroup.java`.
"""

from __future__ import annotations

import struct
from bisect import bisect_left, insort
from collections import Counter
from dataclasses import dataclass, field

from kardia.coordinator.classic.records import Offset, Open, Partition
from kardia.kafka.states import ErrorCode, GroupState

CONSUMER = "consumer"
"""Protocol type whose subscriptions the coordinator reads, to keep offsets of subscribed topics."""


class StuckError(Exception):
    """Kafka throws where the join phase would complete: the generation is counted, and the group prepares on without a
    timer. What members sent did it: protocols none of which all support by Kafka's count, or a subscription that claims
    more than it has. Or it throws where the group's protocol is one that a member does not support."""


@dataclass(slots=True)
class Member:
    """A member. `waiting_join` and `waiting_sync` are the numbers of its JoinGroup and SyncGroup that have no answer
    yet. `protocols` and `waiting_join` are counted by the group, and changed only by its methods."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocols: tuple[tuple[str, bytes], ...]
    assignment: bytes = b""
    waiting_join: int | None = None
    waiting_sync: int | None = None
    is_new: bool = False
    """In its first JoinGroup: five minutes instead of its session timeout, and waiting does not protect it."""
    heard_at_ms: int = -1
    """When its session was armed last, or would have been."""
    loaded_as_static: bool = False
    """Not dropped at the rebalance timeout although it has no instance id; see the row of the release table."""

    def protected(self) -> bool:
        """Whether its session timer means nothing now: it waits, and not for the first time."""
        return not self.is_new and (self.waiting_join is not None or self.waiting_sync is not None)

    def metadata(self, protocol_name: str | None) -> bytes:
        """What it sent for a protocol; empty where the group has none. Raises StuckError when it does not support it:
        before 2.5 a static member may come back so while its group is completing."""
        if protocol_name is None:
            return b""
        for name, metadata in self.protocols:
            if name == protocol_name:
                return metadata
        raise StuckError


@dataclass(slots=True)
class Group:
    """A group. Generation 0 has no members yet; it grows by one whenever a join phase completes, also to Empty."""

    group_id: str
    state_since_at_ms: int
    """Last change of state; -1 when it was lost at load."""
    state: GroupState = GroupState.EMPTY
    generation_id: int = 0
    protocol_type: str | None = None
    """Set by the first member, survives Empty."""
    protocol_name: str | None = None
    leader: str | None = None
    members: dict[str, Member] = field(default_factory=dict)
    """Changed only by `add` and `remove`."""
    ids: list[str] = field(default_factory=list)
    """Ids of the members, sorted."""
    joined: int = 0
    """How many members wait in JoinGroup."""
    supported: Counter[str] = field(default_factory=Counter)
    """Protocol name to how often members list it, as Kafka counts: a member that lists one twice counts twice."""
    instances: dict[str, str] = field(default_factory=dict)
    """Instance id to the member id that holds it."""
    pending: set[str] = field(default_factory=set)
    """Ids handed out with answer 79 and not used yet: no members, but nothing completes early while there are any."""
    pending_sync: set[str] = field(default_factory=set)
    """Members of this generation that have not sent SyncGroup. A replaced static member stays under its old id."""
    new_member_added: bool = False
    """Extends the initial delay. Survives the completion of a join phase."""
    from_empty: bool = False
    """The rebalance in progress began from Empty: the initial delay decides."""
    offsets: dict[Partition, Offset] = field(default_factory=dict)
    """Committed offsets."""
    open_offsets: Open = field(default_factory=dict)
    """Transactions that have not ended keep an Empty group alive. In the Scala coordinator also one whose offsets were
    all deleted since."""
    subscribed: frozenset[str] | None = None
    """Topics of the generation's subscriptions; None when they cannot be known."""

    def add(self, member: Member) -> None:
        """Take a member in, under its instance id too."""
        self.members[member.member_id] = member
        insort(self.ids, member.member_id)
        self.joined += member.waiting_join is not None
        self.supported.update(name for name, _ in member.protocols)
        if member.group_instance_id is not None:
            self.instances[member.group_instance_id] = member.member_id

    def remove(self, member_id: str) -> Member | None:
        """Take a member out, under its instance id too; None when there is none."""
        member = self.members.pop(member_id, None)
        if member is not None:
            del self.ids[bisect_left(self.ids, member_id)]
            self.joined -= member.waiting_join is not None
            self.supported.subtract(name for name, _ in member.protocols)
            if member.group_instance_id is not None:
                self.instances.pop(member.group_instance_id, None)
        return member

    def wait(self, member: Member, number: int) -> None:
        """The member waits in this JoinGroup; an older one of it is never answered."""
        self.joined += member.waiting_join is None
        member.waiting_join = number

    def end_wait(self, member: Member) -> int | None:
        """The member waits in JoinGroup no longer; the number of the one it waited in, if any."""
        number, member.waiting_join = member.waiting_join, None
        self.joined -= number is not None
        return number

    def change_protocols(self, member: Member, protocols: tuple[tuple[str, bytes], ...]) -> None:
        """The member supports these from now on."""
        self.supported.subtract(name for name, _ in member.protocols)
        member.protocols = protocols
        self.supported.update(name for name, _ in protocols)

    def all_joined(self) -> bool:
        """Every member waits in JoinGroup and no pending id is out; so too with no members at all."""
        return not self.pending and self.joined == len(self.members)

    def rebalance_timeout_ms(self) -> int:
        """Highest rebalance timeout of the members; 0 without any, and when they ask for less."""
        return max((0, *(member.rebalance_timeout_ms for member in self.members.values())))

    def accepts_protocols(self, protocol_type: str, protocols: tuple[tuple[str, bytes], ...]) -> bool:
        """Whether a JoinGroup with these can be taken in: same type, and one name that every member supports now."""
        if self.state is GroupState.EMPTY:
            return bool(protocol_type) and bool(protocols)
        if protocol_type != self.protocol_type:
            return False
        return any(self.supported[name] == len(self.members) for name, _ in protocols)

    def votes(self) -> list[str]:
        """Names with the most votes, sorted: each member votes for its first that all support. Needs members.

        Raises StuckError when there is none, as where the only member lists a name twice.
        """
        counts: dict[str, int] = {}
        for member in self.members.values():
            vote = next((name for name, _ in member.protocols if self.supported[name] == len(self.members)), None)
            if vote is None:
                raise StuckError
            counts[vote] = counts.get(vote, 0) + 1
        most = max(counts.values())
        return sorted(name for name, count in counts.items() if count == most)

    def member_error(self, member_id: str, instance_id: str | None, unmapped_is_25: bool = True) -> ErrorCode:
        """What is wrong with who asks: 82 when another member holds the instance id, 25 when it is no member."""
        if instance_id is not None:
            holder = self.instances.get(instance_id)
            if holder is None:
                if unmapped_is_25:
                    return ErrorCode.UNKNOWN_MEMBER_ID
            elif holder != member_id:
                return ErrorCode.FENCED_INSTANCE_ID
        return ErrorCode.NONE if member_id in self.members else ErrorCode.UNKNOWN_MEMBER_ID

    def listing(self) -> tuple[tuple[str, str | None, bytes], ...]:
        """Member list of a leader's JoinGroup answer, by id."""
        name = self.protocol_name
        return tuple(
            (member_id, self.members[member_id].group_instance_id, self.members[member_id].metadata(name))
            for member_id in self.ids
        )

    def read_subscriptions(self) -> None:
        """Remember which topics the members subscribe to, as far as the coordinator can read it. Raises StuckError."""
        if self.protocol_type != CONSUMER or (self.members and self.protocol_name is None):
            self.subscribed = None
            return
        topics: set[str] = set()
        for member in self.members.values():
            names = subscribed_topics(member.metadata(self.protocol_name))
            if names is None:
                self.subscribed = None
                return
            topics |= names
        self.subscribed = frozenset(topics)


def subscribed_topics(subscription: bytes) -> set[str] | None:
    """Topics of a consumer protocol subscription: version, an array of names, user data, what later versions add.

    None when it ends too early. Like Kafka, which reads what follows the version as version 0, whatever the version is,
    and makes of bytes that are no UTF-8 what Java makes of them. Raises StuckError when it claims more than it has.
    """
    try:
        _, count = struct.unpack_from(">hi", subscription)
        at, topics = 6, set()
        if not 0 <= count <= len(subscription) - at:
            raise StuckError
        for _ in range(count):
            (length,) = struct.unpack_from(">h", subscription, at)
            name = subscription[at + 2 : at + 2 + length]
            if length < 0 or len(name) < length:
                raise StuckError
            topics.add(name.decode(errors="replace"))
            at += 2 + length
        (length,) = struct.unpack_from(">i", subscription, at)
    except struct.error:
        return None
    if length > len(subscription) - at - 4:
        raise StuckError
    return topics
