"""Groups and members of the newer protocols: when one is met, added, away for a moment, or in another's place."""

from __future__ import annotations

from kardia.doubts import SURE, Doubts
from kardia.kafka.states import MemberState
from kardia.observe.facts.groups_of_lane import Facts
from kardia.observe.modern import session_length
from kardia.observe.state.group import NEVER, Group, Member
from kardia.observe.state.modern import ModernGroup, ModernMember

JOINS, LEAVES, AWAY = 0, -1, -2
"""Epochs that a request names to join, to leave, and to leave for a moment as a static member."""

FIRST_EPOCH_MAX = 2
"""A new group has epoch 1, from 4.3 on 2 (streams: from 4.2 on)."""


def enter(facts: Facts, group: Group, protocol: str, _at: float) -> ModernGroup:
    """The group speaks this protocol. One that was Empty or unknown begins with it; another one is converted before."""
    modern = group.modern
    if modern is None:
        modern = group.modern = ModernGroup(protocol)
        if not group.members:
            group.generation = -1
        group.rebalance = None
        group.previous = None
        group.leader = group.protocol_name = ""
        group.pending.clear()
    modern.protocol = protocol
    group.protocol = protocol
    session_length.configure(facts, group, modern)
    return modern


def leave(group: Group) -> None:
    """The group is none of these any more."""
    group.modern = None
    for member in group.members.values():
        member.modern = None


def own_of(member: Member) -> ModernMember:
    """What a member has beyond the usual; made when it is first asked for."""
    if member.modern is None:
        member.modern = ModernMember()
    return member.modern


def is_gone(member: Member) -> bool:
    """Whether a record says that it is a member no more, and nothing says yet why."""
    return member.modern is not None and member.modern.gone_at_ms >= 0


def may_be_gone(group: Group, member: Member, at: float) -> bool:
    """Whether a member may be none by an instant, unseen: one of its timers was due, or it is silent and nothing says
    how long its session is."""
    own = member.modern
    if own is None or member.unknown_since_at_ms >= 0:
        return True
    if group.is_session_known(member):
        if 0 <= member.deadline <= at:
            return True
    elif 0 <= 2 * own.interval_ms < at - member.session_renewed_at_ms:
        return True
    return member.rebalance_ms > 0 and any(0 <= since <= at - member.rebalance_ms for since in own.awaited_since())


def present(group: Group) -> list[Member]:
    """The members without those."""
    return [member for member in group.members.values() if not is_gone(member)]


def add(
    facts: Facts,
    group: Group,
    member_id: str,
    at: float,
    instance_id: str,
    client_id: str,
    client_host: str,
    *,
    is_new: bool,
) -> Member:
    """A member that was not held. `is_new`: it joins now, and has no partition yet. The row is the caller's, who knows
    how sure it is."""
    member = Member(member_id, at, instance_id=instance_id, generation_first=max(group.generation, -1))
    member.session_renewed_at_ms = at
    member.client_id, member.client_host = client_id, client_host
    member.modern = ModernMember(assigned={}, only_topic=None) if is_new else ModernMember()
    group.members[member_id] = member
    if instance_id:
        group.instances[instance_id] = member_id
    facts.index(group, member)
    return member


def inherit(old: Member, new: Member) -> None:
    """A static member takes the place of another: it has its epoch and its partitions."""
    if old.modern is not None and new.modern is not None:
        new.modern.epoch, new.modern.reached_at_ms = old.modern.epoch, old.modern.reached_at_ms
        new.modern.topics, new.modern.regex = old.modern.topics, old.modern.regex
        new.modern.only_topic = ""


def went_away(
    facts: Facts, group: Group, member: Member, own: ModernMember, at: float, by: float | None = None
) -> None:
    """A static member left for a moment (-2), at `at` or up to `by`. Its session runs on as it was; what it has stays
    its own."""
    if own.away_since_at_ms >= 0:
        return
    own.away_since_at_ms = at
    own.revoke_since_at_ms = NEVER
    facts.emit_transition(group, at, member.member_id, "Member", "Member", "static_left", SURE, by)


def came_back(
    facts: Facts,
    group: Group,
    member: Member,
    own: ModernMember,
    at: float,
    doubts: Doubts = SURE,
    by: float | None = None,
) -> None:
    """A static member that had left for a moment is back under the same id, since `at` or up to `by`."""
    if own.away_since_at_ms < 0:
        return
    own.away_since_at_ms = NEVER
    own.state = MemberState.UNKNOWN
    facts.emit_transition(group, at, member.member_id, "Member", "Member", "static_returned", doubts, by)


def told(member: Member) -> tuple[object, ...]:
    """What the rows of `members` say of it that may change."""
    own = member.modern
    rest = (own.classic, own.rack, own.topics, own.regex) if own is not None else ()
    return (member.session_ms, member.rebalance_ms, member.client_id, member.client_host, member.software, *rest)
