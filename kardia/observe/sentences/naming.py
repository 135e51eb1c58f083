"""Who is a member as far as a sentence or a record names it: lives that begin, go on and end by what somebody said.

Nobody who was not named is known, so the list of members is whole only where a record gives it. A life begins when the
member is first named; `exact` only where the sentence is about its joining.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from msgspec.structs import replace

from kardia.doubts import Doubt, Doubts
from kardia.events import Event
from kardia.kafka.libraries import recognise
from kardia.observe.coordinator_change import new_coordinator
from kardia.observe.facts.groups_of_lane import Facts
from kardia.observe.members import lives
from kardia.observe.state.entries import Stored
from kardia.observe.state.group import NEVER, Group, Member

MAX_NAMED = 10_000
"""Members held of one group that sentences alone name: far beyond `group.max.size` of any cluster in use. Whoever comes
after that is not held before it ends; no answer counts on the list being whole."""


def group_of(facts: Facts, event: Event) -> Group:
    """The group that a sentence or a record is about, made when it is new. Its broker is that which speaks first."""
    group = new_coordinator.held_or_new(facts, event)
    if not group.broker:
        group.broker = facts.broker
    return group


def name(
    facts: Facts, group: Group, member_id: str, at: float, why: str, doubts: Doubts, since: float = NEVER
) -> Member | None:
    """A member that something names, a new life if it was not known: since `at`, or at some time between `since` and
    `at`. None beyond `MAX_NAMED`."""
    member = group.members.get(member_id)
    if member is not None or len(group.members) >= MAX_NAMED:
        return member
    begin = since if since >= 0 else at
    over = group.ended.get(member_id)
    if over is not None:  # a load brought it back: another life of the same id
        begin = max(begin, over.ended_at_ms + 1.0)
    member = Member(member_id, begin)
    if over is not None:
        member = replace(over.member, joined_at_ms=begin, row_known=-1)
    member.joined_by = at if at > begin else None
    group.members[member_id] = member
    facts.index(group, member)
    facts.emit_transition(group, begin, member_id, "Absent", "Member", why, doubts, member.joined_by)
    return member


def first_named(facts: Facts, group: Group, member_id: str, at: float, generation: int) -> None:
    """A sentence is about somebody who is a member of a generation: at some time since the members were listed it has
    become one, if nothing has named it before."""
    if member_id in group.members:
        return
    member = name(facts, group, member_id, at, "listed", Doubt.THERE_BEFORE, group.said.listed_at_ms)
    if member is not None:
        member.generation_first = generation
        facts.emit_member(group, member, at, Doubt.THERE_BEFORE)


def take_entry(
    facts: Facts,
    group: Group,
    entry: list[Any],
    generation: int,
    at: float,
    since: float = NEVER,
    why: str = "listed",
    doubts: Doubts = Doubt.SEEN_LATER,
) -> Member | None:
    """A member that a record names, with its time-outs and its address. It was one at some time from `since` on.
    `doubts`: about one that was not known."""
    member_id, instance_id, client_id, host, session_ms, rebalance_ms, _assignment = entry
    is_new = member_id not in group.members
    member = name(facts, group, member_id, at, why, doubts, since)
    if member is None:
        return None
    before = (member.session_ms, member.rebalance_ms, member.client_id, member.instance_id)
    facts.take_client(group, member, client_id, host.lstrip("/"))
    member.instance_id = instance_id or ""
    if member.instance_id:
        group.instances[member.instance_id] = member_id
    member.library = recognise("", client_id, group.protocol_type)
    member.session_ms, member.rebalance_ms = int(session_ms), int(rebalance_ms)
    if member.generation_first < 0:
        member.generation_first = generation
    member.unknown_since_at_ms = NEVER
    if is_new or before != (member.session_ms, member.rebalance_ms, member.client_id, member.instance_id):
        facts.emit_member(group, member, at, doubts if is_new else Doubt.SEEN_LATER)
    return member


def end(
    facts: Facts,
    group: Group,
    member_id: str,
    at: float,
    cause: str,
    doubts: Doubts,
    reason: str = "",
    by: float | None = None,
    *,
    told: bool = True,
    line: Event | None = None,
) -> None:
    """A member is gone, at `at` or up to `by` (see `Ended.by`); one that nobody had named was there before. `told`:
    the coordinator says so itself, in `line`. Nobody ends twice unless a load, or what a gap hides, brings him back."""
    member, over = group.members.get(member_id), group.ended.get(member_id)
    if member is None and over is not None and over.ended_at_ms >= group.loaded_at_ms:
        if over.told:
            facts.divergences += 1
        else:
            over.told, over.reason = told, reason
            _take_metadata(facts, group, over.member, line)
            lives.correct(facts, group, over, at, cause, doubts, by)
        return
    if member is None:
        group.membership_complete = False  # a member that the list lacked: up to 2.4 nothing tells of a seat's new id
        member = Member(member_id, at)
        if over is not None:
            member = replace(over.member, joined_at_ms=max(group.loaded_at_ms, over.ended_at_ms + 1.0), row_known=-1)
    _take_metadata(facts, group, member, line)
    lives.end(facts, group, member, at, cause, reason, doubts, by)
    if member_id in group.ended:
        group.ended[member_id].told = told


def _take_metadata(facts: Facts, group: Group, member: Member, line: Event | None) -> None:
    """What a sentence tells of a member beside its id: client, host and time-outs."""
    detail = (line.detail or {}) if line is not None else {}
    if line is None or "session_timeout_ms" not in detail:
        return
    member.session_ms, member.rebalance_ms = int(detail["session_timeout_ms"]), int(detail["rebalance_timeout_ms"])
    member.instance_id = line.group_instance_id
    facts.take_client(group, member, line.client_id, line.client_host)


def end_unseen(
    facts: Facts, group: Group, member: Member, by: float, cause: str = "unknown", doubts: Doubts = Doubt.NOT_SEEN
) -> None:
    """A member was gone at `by`, and no sentence said so: it went at some time since it was last named, or listed."""
    since = max(member.joined_at_ms, group.said.listed_at_ms)
    end(facts, group, member.member_id, min(since, by), cause, doubts, by=by, told=False)


def end_others(facts: Facts, group: Group, staying: Collection[str], by: float) -> None:
    """Whoever is held and not among `staying` was gone at `by`."""
    for member in [one for one in group.members.values() if one.member_id not in staying]:
        end_unseen(facts, group, member, by)


def restore(facts: Facts, group: Group, stored: Stored, at: float) -> None:
    """A load: who stands in the last record is a member, whoever joined since is none."""
    end_others(facts, group, stored.member_ids, at)
    for member_id in stored.member_ids:
        member = name(facts, group, member_id, at, "coordinator_loaded", Doubt.SEEN_LATER)
        if member is not None and member.joined_at_ms == at:
            facts.emit_member(group, member, at, Doubt.SEEN_LATER)
