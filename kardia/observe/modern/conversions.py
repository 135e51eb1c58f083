"""A group changes its protocol while it lives: from classic to consumer when the first member of the consumer protocol
joins, and back when only members of the classic protocol are left.

Records show it in one operation. Where only requests are seen an upgrade shows in the answer to the join, and a
downgrade in the first JoinGroup that is answered with a leader: it was when the last member of the consumer protocol
went. Sources: `GroupMetadataManager.convertToConsumerGroup`, `convertToClassicGroup`, `ClassicGroup.fromConsumerGroup`.
"""

from __future__ import annotations

from typing import Any

from kardia.certainty import Certainty
from kardia.events import Event
from kardia.kafka.states import GroupState, MemberState
from kardia.observe.facts.facts import Facts
from kardia.observe.modern import ends, epochs, groups
from kardia.observe.rebalance import rebalance
from kardia.observe.state.entries import Stored
from kardia.observe.state.group import NEVER, Cause, Ended, Group, Member
from kardia.observe.state.modern import ModernMember


def upgrade(facts: Facts, group: Group, at: float, certainty: Certainty, by: float | None = None) -> None:
    """A classic group becomes a consumer group: its generation is the epoch, its members stay what they are, and their
    sessions begin anew."""
    told, generation = group.told_state, group.generation
    modern = groups.enter(facts, group, "consumer", at)
    group.generation = modern.assignment_epoch = generation
    modern.epoch_sure = generation >= 0
    for member in group.members.values():
        member.modern = ModernMember(epoch=generation, classic=True, state=MemberState.STABLE, reached_at_ms=at)
        member.rebalance_notified_at_ms = NEVER
        member.overdue = False
        if 0 <= member.session_renewed_at_ms < at:
            member.begin_anew(at)
        facts.watch(group, member)
    group.state = group.told_state = GroupState.STABLE
    facts.tell_group(group, at, told, "upgraded", certainty, by)


def downgrade(facts: Facts, group: Group, record: Event, at: float, gone: list[Member], leaves: dict[str, str]) -> None:
    """The record of a classic group stands where a consumer group was: whoever is not in it has gone."""
    detail: dict[str, Any] = record.detail or {}
    listed = {str(entry[0]) for entry in detail.get("members") or ()}
    members_before = len(group.members)
    why: Cause | None = None
    for member in gone:
        if member.member_id in listed or member.member_id not in group.members:
            continue
        cause, sure = ends.why_at(facts, group, member, at)
        if member.member_id in leaves:
            cause, sure = leaves[member.member_id], "exact"
        why = ends.remove(facts, group, member, at, cause, "", "unknown" if cause == "unknown" else sure, told=True)
    group.generation = int(detail.get("generation", group.generation))
    group.protocol_type = str(detail.get("protocol_type") or "consumer")
    group.leader = str(detail.get("leader") or "")
    group.protocol_name = str(detail.get("protocol_name") or "")
    group.membership_complete = True
    group.stored = Stored(group.generation, group.leader, list(listed))
    _become_classic(facts, group, at, "exact")
    if why is not None and group.members:
        rebalance.begin(facts, group, why, NEVER, members_before)


def downgrade_by_join(facts: Facts, group: Group, event: Event) -> None:
    """A JoinGroup was answered with a leader: the group is a classic one since the last member of the consumer protocol
    went."""
    epochs.withdraw_above(facts, group, event.generation_id - 1)
    last: Ended | None = max(group.ended.values(), key=lambda one: one.ended_at_ms, default=None)
    left = [member for member in group.members.values() if member.modern is None or not member.modern.classic]
    at = event.handled_at_ms if last is None else min(last.ended_at_ms, event.handled_at_ms)
    for member in left:
        if member.member_id != event.member_id:
            ends.remove(facts, group, member, event.handled_at_ms, "unknown", "", "unknown")
    members_before = len(group.members) + 1
    why = Cause(at, "unknown", certainty="inferred")
    if last is not None and not left:
        over = last.member
        why = ends.cause_of(over, at, last.cause, last.reason, last.certainty, last.by)
    group.generation = event.generation_id - 1
    _become_classic(facts, group, at, "inferred")
    if group.members:
        rebalance.begin(facts, group, why, NEVER, members_before)


def _become_classic(facts: Facts, group: Group, at: float, certainty: Certainty) -> None:
    told = group.told_state
    epochs.close(facts, group)
    groups.leave(group)
    group.protocol = "classic"
    group.rebalance = None
    group.stable_at_ms = at
    group.state = group.told_state = GroupState.STABLE if group.members else GroupState.EMPTY
    facts.tell_group(group, at, told, "downgraded", certainty)
    for member in group.members.values():
        if 0 <= member.session_renewed_at_ms < at:
            member.begin_anew(at)
        member.overdue = False
        member.generation_first = group.generation if member.generation_first < 0 else member.generation_first
        facts.watch(group, member)
