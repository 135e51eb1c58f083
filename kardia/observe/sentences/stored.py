"""What a GroupMetadata record proves of a group whose requests are not read: alone, or beside the sentences.

A record is written when the leader's assignment is stored, when a group becomes Empty, when it is deleted, and when a
static member is replaced in a Stable group; its time stamp is the broker's, of that instant. So each generation that
is stored has its instant of completion, and of whatever lies between two records the bounds. When, why and by whom the
rebalance began is told by sentences only. Sources: `storeGroup`, `GroupMetadataManager.java`.
"""

from __future__ import annotations

from typing import Any

from kardia.doubts import Doubt, Doubts
from kardia.events import Event
from kardia.kafka.states import GroupState
from kardia.observe.evidence import unknown_to_coordinator
from kardia.observe.facts.groups_of_lane import Facts
from kardia.observe.ledger import costs
from kardia.observe.ledger.rebalance_row import emit
from kardia.observe.sentences import lines, naming
from kardia.observe.state.entries import Kept, Stored, Waited
from kardia.observe.state.group import NEVER, Cause, Group, Member, Rebalance
from kardia.tolerances import TWO_STAMPS_MS


def on_group_record(facts: Facts, event: Event, at: float) -> None:
    """A record. `at`: its time stamp, epoch ms."""
    detail = event.detail or {}
    group = naming.group_of(facts, event)
    if detail.get("tombstone"):
        unknown_to_coordinator.on_tombstone(facts, group, at)
    else:
        generation = int(detail.get("generation", event.generation_id))
        group.protocol, group.protocol_type = "classic", str(detail.get("protocol_type") or group.protocol_type)
        entries = detail.get("members") or []
        if entries:
            _on_members(facts, group, detail, generation, at)
        else:
            _on_empty(facts, group, generation, at)
        ids = [entry[0] for entry in entries]
        if generation == group.generation:
            group.stored = Stored(generation, str(detail.get("leader") or ""), ids)
        group.said.listed_at_ms = max(group.said.listed_at_ms, at)
    group.said.shown_at_ms = max(group.said.shown_at_ms, at)
    group.said.state_at_ms = max(group.said.state_at_ms, at)


def _on_empty(facts: Facts, group: Group, generation: int, at: float) -> None:
    """Nobody is a member any more; of generation 0 it is what the Java coordinator writes of a group that is new."""
    if group.state == GroupState.EMPTY and generation <= group.generation:
        return  # the sentence about it stands just before
    if 0 <= generation <= group.generation and group.said.shown_at_ms >= at:
        return
    step = generation > max(group.generation, 0) and (group.generation >= 0 or generation > 0)
    if step and group.generation >= 0:
        current = _under_way(facts, group, generation, at)
        lines.become_empty(facts, group, current, generation, at, Doubt.SEEN_LATER)
        return
    naming.end_others(facts, group, (), at)
    group.rebalance, group.generation, group.said.kept = None, generation, Kept(generation, True)
    group.membership_complete = True
    # Of a new group it is written for its first JoinGroup, which may wait already.
    facts.set_state(
        group, at, GroupState.EMPTY, "group record", Doubt.MAY_WAIT_UNSEEN if generation == 0 else Doubt.SEEN_LATER
    )


def _on_members(facts: Facts, group: Group, detail: dict[str, Any], generation: int, at: float) -> None:
    entries = detail["members"]
    static = any(entry[1] for entry in entries)
    if generation < group.generation:
        if group.broker:
            return  # a sentence has told of a later one
        _restart(facts, group, at)
    known_before = group.membership_complete
    current = group.rebalance
    if current is not None and current.generation_after == generation and current.listed is None:
        completed = current.assigned_at_ms < 0
    elif generation > group.generation and (group.generation >= 0 or not static):
        current, completed = _under_way(facts, group, generation, at), True
    else:
        current, completed = None, False  # a static member was replaced, or nothing was known before
    since = group.said.listed_at_ms if known_before and group.said.listed_at_ms < at else NEVER
    _take_members(facts, group, current, detail, generation, at, since)
    if current is not None:
        _complete(facts, group, current, detail, at, completed=completed)
    elif group.state != GroupState.STABLE and not _prepares_already(group, generation):
        facts.set_state(group, at, GroupState.STABLE, "group record", Doubt.SEEN_LATER)


def _prepares_already(group: Group, generation: int) -> bool:
    """Whether a sentence has told that the next rebalance began since: the record of a generation comes some ms after
    its assignment, and is read after what was said within them. While a group prepares nothing of it is stored."""
    current = group.rebalance
    return current is not None and group.state == GroupState.PREPARING and current.generation_before == generation


def _under_way(facts: Facts, group: Group, generation: int, at: float) -> Rebalance:
    """The rebalance whose end a record shows: the one that a sentence has told of, else one that nothing has."""
    current = group.rebalance
    if current is not None and group.state == GroupState.PREPARING and current.generation_before + 1 == generation:
        return current
    is_next = generation == group.generation + 1
    was_empty = group.state in (GroupState.EMPTY, GroupState.DEAD) and is_next
    current = lines.unseen(facts, group, generation, at)
    current.members_before = len(group.members) if group.membership_complete and is_next and current.cause else -1
    if was_empty and current.cause is not None:
        # Nobody but somebody who joins begins a rebalance of a group without members.
        current.cause = Cause(
            current.started_at_ms, "member_joined", doubts=Doubt.BY_RULE, by=current.cause.by, named=True
        )
    elif current.cause is not None and current.cause.by is not None:
        current.cause.doubts = Doubt.SEEN_LATER  # that there was one, and between which instants; not why
    return current


def _take_members(
    facts: Facts,
    group: Group,
    current: Rebalance | None,
    detail: dict[str, Any],
    generation: int,
    at: float,
    since: float,
) -> None:
    """Who is a member by the record, and who is none any more."""
    entries = detail["members"]
    listed = {entry[0] for entry in entries}
    instances = {entry[1] for entry in entries if entry[1]}
    longest_ms = max((member.rebalance_ms for member in group.members.values()), default=-1)
    for member_id in [one for one in group.members if one not in listed]:
        member = group.members[member_id]
        if member.instance_id and member.instance_id in instances:
            # In a new generation it may have been evicted, and another one have come under its instance id later.
            if current is None:
                naming.end_unseen(facts, group, member, at, "static_replaced", Doubt.BY_ELIMINATION)
            else:
                naming.end_unseen(facts, group, member, at)
        elif current is not None and _did_not_rejoin(group, current, member, longest_ms):
            # Up to 2.1 no sentence tells of a leave either, nor of a reason.
            has_reason = current.cause is not None and bool(current.cause.reason)
            doubts: Doubts = Doubt.BY_RULE if has_reason else Doubt.BY_ELIMINATION
            current.removed.append(
                Waited(member_id, member.client_id, int(current.joined_at_ms - current.started_at_ms))
            )
            naming.end(facts, group, member_id, current.joined_at_ms, "rebalance_timeout", doubts, told=False)
    naming.end_others(facts, group, listed, at)
    for entry in entries:
        naming.take_entry(facts, group, entry, generation, at, since)
    group.generation, group.leader = generation, str(detail.get("leader") or group.leader)
    group.protocol_name = str(detail.get("protocol_name") or group.protocol_name)
    group.membership_complete = True
    group.said.kept = Kept(generation, False)


def _did_not_rejoin(group: Group, current: Rebalance, member: Member, longest_ms: int) -> bool:
    """Whether a member of the generation before is missing because its time to join again was over: then the join phase
    took all of that time, and up to 2.5 no sentence says so (`onCompleteJoin`). All sentences since have to be read."""
    if not group.broker or current.started_at_ms < 0 or current.joined_at_ms < 0 or current.cause is None:
        return False
    whole = current.cause.by is None and group.loaded_at_ms <= current.started_at_ms
    was_in = 0 <= member.generation_first <= current.generation_before and member.unknown_since_at_ms < 0
    ran_out = 0 < longest_ms <= current.joined_at_ms - current.started_at_ms + TWO_STAMPS_MS
    return whole and was_in and ran_out and not member.instance_id


def _complete(
    facts: Facts, group: Group, current: Rebalance, detail: dict[str, Any], at: float, *, completed: bool
) -> None:
    """The row of the rebalance with what the record adds."""
    entries = detail["members"]
    current.generation_after, current.size = group.generation, len(entries)
    if completed:
        lines.become_stable(facts, group, current, at, Doubt.SEEN_LATER)
    current.leader, current.protocol_name = group.leader, group.protocol_name
    current.listed = {entry[0]: entry[1] or "" for entry in entries}
    costs.take_assignment(group, [(entry[0], entry[6]) for entry in entries])
    emit(facts, group, current)


def _restart(facts: Facts, group: Group, at: float) -> None:
    """A generation that has been is stored again: the group was deleted meanwhile, or an older record was written."""
    naming.end_others(facts, group, (), at)
    facts.set_state(group, at, GroupState.DEAD, "generation restarted", Doubt.BY_ELIMINATION)
    lines.lose(facts, group, at, "generation restarted")
    group.generation, group.stored = -1, None
    group.said.shown_at_ms = group.said.state_at_ms = group.said.listed_at_ms = NEVER
