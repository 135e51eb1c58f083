"""Who has which partition, and since when nobody has: the cost of a rebalance. Keeps; decides nothing.

A member has a partition until it says that it has given it up, or ends. Share groups have no owners: several members
read one partition.
"""

from __future__ import annotations

from kardia.kafka.states import MemberState
from kardia.observe.state.group import NEVER, Group, Member
from kardia.observe.state.modern import ModernGroup, ModernMember, Partitions
from kardia.observe.state.partitions import MAX_PARTITIONS, named, together

MAX_TOPICS = 1_000
"""Names of topics that are kept of a group; of others the id is shown."""


def assign(group: Group, member: Member, assigned: Partitions | None, revoking: Partitions, at: float) -> None:
    """From now on the member has these, those that it must give up among them."""
    modern, own = group.modern, member.modern
    if modern is None or own is None:
        return
    before = _held(own)
    own.assigned, own.revoking = assigned, revoking
    note_names(modern, own, assigned)
    if modern.protocol == "share":
        return
    after = _held(own)
    for name in sorted(before - after):
        if modern.owners.get(name) == member.member_id:
            modern.unowned[name] = at
    for name in sorted(after - before):
        _take(modern, name, member.member_id, at)


def release(group: Group, member: Member, at: float) -> None:
    """The member has ended: nobody has what it had."""
    modern, own = group.modern, member.modern
    if modern is None or own is None or modern.protocol == "share":
        return
    for name in _held(own):
        if modern.owners.get(name) == member.member_id:
            modern.unowned[name] = at


def restore(group: Group, member: Member) -> None:
    """The member has not ended after all: it has what it had, as far as nobody else has it now."""
    modern, own = group.modern, member.modern
    if modern is None or own is None or modern.protocol == "share":
        return
    for name in _held(own):
        if modern.owners.get(name) == member.member_id:
            modern.unowned.pop(name, None)


def forget(group: Group) -> None:
    """What anybody has, and has still to give up, is not known any more: a part of the log is lost."""
    if group.modern is None:
        return
    group.modern.owners.clear()
    group.modern.unowned.clear()
    for bump in group.modern.bumps:
        bump.moved = -1
        bump.stopped_ms = -1.0
    for member in group.members.values():
        if member.modern is not None:
            member.modern.assigned = member.modern.target = None
            member.modern.revoking = {}
            member.modern.revoke_since_at_ms, member.modern.revoke_by = NEVER, None
            if member.modern.state == MemberState.UNREVOKED:
                member.modern.state = MemberState.UNKNOWN


def are_known(group: Group) -> bool:
    """Whether it is known of every member what it has."""
    return all(one.modern is not None and one.modern.assigned is not None for one in group.members.values())


def note_topics(own: ModernMember, topics: list[str] | None, regex: str) -> None:
    """Take to what a member is subscribed. Whatever is given to one that has never had but one topic is of that."""
    one = topics[0] if topics is not None and len(topics) == 1 and not regex else ""
    own.only_topic = one if own.only_topic in (None, one) else ""
    own.topics, own.regex = topics, regex


def note_names(modern: ModernGroup, own: ModernMember, partitions: Partitions | None) -> None:
    """Names of topics that are known by their ids only: requests and records of these groups have no more."""
    if own.only_topic and partitions and modern.protocol != "streams" and len(modern.topic_names) < MAX_TOPICS:
        for topic in partitions:
            modern.topic_names.setdefault(topic, own.only_topic)


def _held(own: ModernMember) -> set[str]:
    return set(named(together(own.assigned or {}, own.revoking)))


def _take(modern: ModernGroup, name: str, member_id: str, at: float) -> None:
    last = modern.owners.get(name)
    if last is None and len(modern.owners) >= MAX_PARTITIONS:
        return
    modern.owners[name] = member_id
    since = modern.unowned.pop(name, at)
    for bump in modern.bumps:
        if bump.stopped_ms >= 0:
            bump.stopped_ms += max(0.0, at - max(since, bump.started_at_ms))
    if last is not None and last != member_id and modern.bumps and modern.bumps[-1].moved >= 0:
        modern.bumps[-1].moved += 1
