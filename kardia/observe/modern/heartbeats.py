"""What an answered ConsumerGroupHeartbeat, ShareGroupHeartbeat or StreamsGroupHeartbeat shows.

The answer is the authority: it has the epoch of the member and, where that has changed, what it may read. Where records
are read they came first, and little is news. Where they are not, epochs are counted: a join, a changed subscription and
an end are one each; an answer with a higher epoch than was counted shows something that was not seen. Sources:
`GroupMetadataManager.consumerGroupHeartbeat`, `CurrentAssignmentBuilder`, `throwIfConsumerGroupMemberEpochIsInvalid`.
"""

from __future__ import annotations

from typing import Any

from kardia.doubts import SURE, Doubt, Doubts
from kardia.events import Event
from kardia.kafka.states import (
    COORDINATOR_MOVED,
    PROTOCOLS_WITH_EPOCHS,
    ErrorCode,
    GroupState,
    MemberState,
    ModernState,
)
from kardia.observe.coordinator_change import new_coordinator
from kardia.observe.deadlines.handling import took_effect
from kardia.observe.facts.groups_of_lane import Facts
from kardia.observe.members import owners, who_broke
from kardia.observe.members.identity import identify
from kardia.observe.modern import (
    conversions,
    ends,
    epochs,
    evidence,
    groups,
    joining,
    leaves,
    removed,
    session_length,
    sessions,
    silence,
    subscriptions,
)
from kardia.observe.rebalance import emptied
from kardia.observe.state.group import NEVER, Group, Member
from kardia.observe.state.modern import ModernGroup, ModernMember
from kardia.observe.state.partitions import count, share_any, taken, together, without
from kardia.tables import REFUSALS_MAX
from kardia.tolerances import AT_ONCE_MS, CLASSES_WITHIN_MS, LATE_MS, STAMP_MS

FENCED = frozenset({ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.FENCED_INSTANCE_ID})

UPGRADE_REFUSED: dict[int, str] = {
    ErrorCode.GROUP_ID_NOT_FOUND: "upgrade_refused",
    ErrorCode.UNKNOWN_SERVER_ERROR: "upgrade_failed",
}
"""Answers to a heartbeat that joins a classic group: the coordinator does not let it move, or Kafka's own fault met it
while it prepared without a protocol."""

UNSETTLED = frozenset({ModernState.UNKNOWN, ModernState.NOT_READY})
"""States that the next heartbeat may end, whatever it says."""

PULSE_KEYS = 4
"""Keys in the detail of a heartbeat that says nothing else: protocol, both epochs, interval."""


def on_heartbeat(facts: Facts, event: Event, at: float) -> None:
    """A heartbeat of one of the newer protocols, or its refusal."""
    detail = event.detail or {}
    protocol, epoch = str(detail.get("protocol", "")), int(detail.get("member_epoch", 0))
    group = new_coordinator.group_of(facts, event)
    if event.error_code != ErrorCode.NONE:
        _refused(facts, group, event, at)
    elif not event.member_id or protocol not in PROTOCOLS_WITH_EPOCHS:
        facts.not_modelled += 1
    elif epoch == groups.LEAVES:
        _left(facts, group, event)
    elif epoch == groups.AWAY:
        _went_away(facts, group, event)
    elif not ends.was_before_its_end(group, event.member_id, event.handled_at_ms):
        _accepted(facts, group, event, protocol, epoch)


# --- refusals


def _refused(facts: Facts, group: Group, event: Event, at: float) -> None:
    error = event.error_code
    if error in COORDINATOR_MOVED:
        if new_coordinator.was_served(event):
            _not_stored(facts, group, event)
        new_coordinator.moved(facts, group, event, at)
    elif group.modern is None:
        _tell_upgrade_refused(facts, group, event)
    elif error == ErrorCode.UNKNOWN_MEMBER_ID:
        evidence.on_gone(facts, group, event.member_id, event.handled_at_ms)
        who_broke.came_back(facts, group, event, at)
    elif error in FENCED:
        _tell_fenced(facts, group, event)
    elif error == ErrorCode.UNRELEASED_INSTANCE_ID:
        _tell_refused(facts, group, event)


def _not_stored(facts: Facts, group: Group, event: Event) -> None:
    """The coordinator did what was asked, and what it wrote was not stored in time. A member that leaves does not ask
    again; who joins does, with the id that it has drawn, and is told what the first request made."""
    epoch, modern = int((event.detail or {}).get("member_epoch", 0)), group.modern
    if epoch > groups.JOINS:
        evidence.on_alive(facts, group, event.member_id, event.handled_at_ms, renewed=True)
    if modern is None or (epoch < 0 and event.member_id not in group.members):
        return
    if epoch == groups.LEAVES:
        _left(facts, group, event, Doubt.BY_RULE)
    elif epoch == groups.AWAY:
        _went_away(facts, group, event)
    elif epoch == groups.JOINS and event.member_id not in group.members:
        joining.joined_unstored(facts, group, modern, event)


def _tell_upgrade_refused(facts: Facts, group: Group, event: Event) -> None:
    """Somebody asks a classic group with members for the consumer protocol, and it does not become a consumer group.
    Said once for each who asks. Source: `GroupMetadataManager.getOrMaybeCreateConsumerGroup`."""
    cause = UPGRADE_REFUSED.get(event.error_code)
    asks = int((event.detail or {}).get("member_epoch", -1)) == groups.JOINS
    if cause is None or not asks or not group.members or group.upgrade_refused == event.member_id:
        return
    group.upgrade_refused = event.member_id
    at, by = took_effect(event, facts.coordinator)
    facts.emit_transition(group, at, event.member_id, "Absent", "Absent", cause, SURE, by)


def _tell_fenced(facts: Facts, group: Group, event: Event) -> None:
    """A member that names another epoch than the coordinator has, or an instance id that is another's, is refused; it
    stays a member. Said up to `REFUSALS_MAX` times in a life, and once behind it."""
    if event.error_code == ErrorCode.FENCED_MEMBER_EPOCH:
        evidence.on_alive(facts, group, event.member_id, event.handled_at_ms)
    member = group.members.get(event.member_id)
    over = group.ended.get(event.member_id)
    known = member if member is not None else over.member if over is not None else None
    again = member is not None and member.refusals < REFUSALS_MAX
    if known is not None and (again or not known.fenced):
        known.fenced = True
        known.refusals += 1
        word = "Member" if member is not None else "Absent"
        at, by = took_effect(event, facts.coordinator)
        facts.emit_transition(group, at, event.member_id, word, word, "fenced", SURE, by)


def _tell_refused(facts: Facts, group: Group, event: Event) -> None:
    """Somebody asks for an instance id that a member has; the member stays what it is. Said once for each who asks."""
    owner = group.members.get(group.instances.get(event.group_instance_id, ""))
    if owner is None or owner.modern is None:
        return
    at, by = took_effect(event, facts.coordinator)
    if owner.refusals < REFUSALS_MAX:
        owner.refusals += 1
        facts.emit_transition(group, at, owner.member_id, "Member", "Member", "static_id_asked_for", SURE, by)
    if owner.modern.refused != event.member_id:
        owner.modern.refused = event.member_id
        facts.emit_transition(group, at, event.member_id, "Absent", "Absent", "instance_id_in_use", SURE, by)


# --- leaves


def _left(facts: Facts, group: Group, event: Event, at_most: Doubts = SURE) -> None:
    """A member left; a record may have said so before, without the reason. `at_most`: how sure it is that it did."""
    member = group.members.get(event.member_id)
    modern = group.modern
    over = group.ended.get(event.member_id)
    if member is None and over is not None:
        why = leaves.why_left(facts, group, over.member, event)
        if over.cause == "unknown":
            ends.by_request(facts, group, over, event, *why)
        elif modern is not None and over.cause == "session_expired" and over.doubts != SURE and over.told:
            ends.was_a_leave(facts, group, over, event, *why)
        return
    if modern is None:  # its leave may have made the group a classic one
        return
    if member is None:
        member = _notice(facts, group, modern, event, groups.LEAVES)
    cause, doubts = leaves.why_left(facts, group, member, event)
    doubts |= at_most
    at, by = took_effect(event, facts.coordinator)
    stamp = groups.own_of(member).gone_at_ms
    if stamp >= 0:
        # A first operation loads classes before its record has its time stamp, and a busy broker may stand still.
        slow = by is not None and at + AT_ONCE_MS < stamp <= min(by, at + CLASSES_WITHIN_MS)
        removed.finish(facts, group, member, cause, "", doubts, at if slow else NEVER)
    else:
        ends.remove_counted(facts, group, member, at, cause, "", doubts, by, told=True)


def _went_away(facts: Facts, group: Group, event: Event) -> None:
    modern, member = group.modern, group.members.get(event.member_id)
    if modern is None:
        modern = groups.enter(facts, group, "consumer", event.handled_at_ms)
    if member is None:
        member = _notice(facts, group, modern, event, groups.AWAY)
    own = groups.own_of(member)
    epochs.went_away(facts, group, member, own, *took_effect(event, facts.coordinator))
    epochs.conclude(facts, group, event.handled_at_ms)
    epochs.update_state(facts, group, event.handled_at_ms, "static_left")


# --- accepted


def _accepted(facts: Facts, group: Group, event: Event, protocol: str, epoch: int) -> None:
    """Join or pulse: its session runs anew since the operation."""
    if is_pulse(group, event):
        _beats(facts, group, event)
        return
    joins, answered = epoch == groups.JOINS, int((event.detail or {}).get("answered_epoch", -1))
    at, by = took_effect(event, facts.coordinator)
    if joins:
        _convert_by_join(facts, group, event, protocol, answered)
    modern = groups.enter(facts, group, protocol, at)
    known = group.members.get(event.member_id)
    if joins:
        member = joining.joined(facts, group, modern, known, event, answered)
    else:
        member = known or _notice(facts, group, modern, event, answered)
    own = groups.own_of(member)
    if own.gone_at_ms >= 0 and event.handled_at_ms > own.gone_at_ms + STAMP_MS:
        facts.divergences += 1
        own.gone_at_ms = NEVER
    own.classic = False
    is_changed = subscriptions.changes(modern, own, event)
    _learn(facts, group, member, own, event)
    who_broke.heard(member, event)
    stayed = _doubts_of_join(facts, group, member, event, answered, is_new=member is not known) if joins else SURE
    if by is not None and not modern.by_records:
        member.doubtful_at_ms = NEVER
    sessions.renew_by(facts, group, member, event)
    group.steady_at_ms = max(group.steady_at_ms, event.handled_at_ms)
    if not (modern.by_records and own.epoch == answered and modern.record_at_ms <= event.handled_at_ms + LATE_MS):
        if not modern.by_records and group.generation >= 0:
            evidence.expire_due(facts, group, answered - is_changed, event.handled_at_ms)
        if is_changed:
            subscriptions.count(facts, group, modern, member, event, answered, stayed)
        _take_answer(facts, group, modern, member, own, event, answered)
    elif protocol == "streams":
        _take_tasks(facts, group, member, own, event)
    silence.watch_phases(facts, group, member)
    if group.state in UNSETTLED or not modern.by_records:
        epochs.conclude(facts, group, event.handled_at_ms)
        epochs.update_state(facts, group, event.handled_at_ms, "heartbeat")


def _convert_by_join(facts: Facts, group: Group, event: Event, protocol: str, answered: int) -> None:
    """What somebody who joins with the protocol makes of the group: a classic one, with members or without, becomes one
    of that protocol, and so does a consumer group that had become a classic one unseen."""
    at, by = took_effect(event, facts.coordinator)
    if group.modern is None and group.members:
        if conversions.is_another(group, protocol, answered):
            conversions.empty_before(facts, group, at)
        else:
            conversions.upgrade_by_request(facts, group, at, by)
    if event.member_id not in group.members:
        makes_one = not joining.by_regex(event) and event.group_instance_id not in group.instances
        conversions.upgrade_again(facts, group, event, at, by, answered - makes_one)
    if group.modern is None and group.state == GroupState.PREPARING and not group.members:
        emptied.become_empty_before_join(facts, group, at)
    conversions.upgrade_empty(facts, group, protocol, at, Doubt.SEEN_LATER, by)


def _doubts_of_join(facts: Facts, group: Group, member: Member, event: Event, answered: int, *, is_new: bool) -> Doubts:
    """What is in doubt about whoever was a member until a join: whom a new one replaces, or the member itself, which
    asks for everything again. A static one that had left for a moment is back."""
    if is_new:
        return joining.doubts_of_replaced(group, member)
    at, by = took_effect(event, facts.coordinator)
    stayed = joining.doubts_of_stay(facts, group, member, answered, at)
    groups.came_back(facts, group, member, groups.own_of(member), at, stayed, by)
    return stayed


def is_pulse(group: Group, event: Event) -> bool:
    """Whether a heartbeat says nothing but that its member lives, as nearly all do: what it costs must not grow with
    the group."""
    member = group.members.get(event.member_id)
    same = (
        member is not None and group.modern is not None and member.session_ms == session_length.of_group(group.modern)
    )
    return same and changes_nothing(group, event)


def changes_nothing(group: Group, event: Event) -> bool:
    """Whether the coordinator wrote no record for a heartbeat: its member is where its group is, and stays there. Its
    session may be another one from now on."""
    detail, member = event.detail or {}, group.members.get(event.member_id)
    own = member.modern if member is not None else None
    if member is None or own is None or len(detail) != PULSE_KEYS or group.state in UNSETTLED:
        return False
    same = event.client_id == member.client_id and event.client_host == member.client_host
    same = same and event.software == member.software and event.connection == member.heard_on
    epoch = detail.get("answered_epoch")
    settled = own.away_since_at_ms < 0 and own.gone_at_ms < 0 and not own.classic and not own.revoking
    settled = settled and own.interval_ms == detail.get("interval_ms") and own.refused == ""
    return bool(same and settled and detail.get("member_epoch") == epoch == own.epoch == group.generation)


def _beats(facts: Facts, group: Group, event: Event) -> None:
    """The heartbeat of a member that is where its group is."""
    member, modern, at = group.members[event.member_id], group.modern, event.handled_at_ms
    who_broke.heard(member, event)
    sessions.renew_by(facts, group, member, event)
    group.steady_at_ms = max(group.steady_at_ms, at)
    if modern is not None:
        modern.lower_at_ms = at
        if modern.bumps and not modern.by_records:
            evidence.on_epoch_shown(facts, group, group.generation, at)


def _learn(facts: Facts, group: Group, member: Member, own: ModernMember, event: Event) -> None:
    """What a heartbeat says of its member; what it does not say is as before."""
    detail = event.detail or {}
    before = groups.told(member)
    identify(facts, group, member, event, "")
    session_length.arm(group, member)
    if "rebalance_timeout_ms" in detail:
        member.rebalance_ms = int(detail["rebalance_timeout_ms"])
    topics = list(detail["topics"]) if "topics" in detail else own.topics
    owners.note_topics(own, topics, str(detail.get("regex", own.regex)))
    own.rack = str(detail.get("rack", own.rack))
    if int(detail.get("interval_ms", 0)) > 0:
        own.interval_ms = int(detail["interval_ms"])
    if member.row_known < 0 or before != groups.told(member):
        facts.emit_member(group, member, member.joined_at_ms, SURE if member.seen_joining else Doubt.THERE_BEFORE)


def _notice(facts: Facts, group: Group, modern: ModernGroup, event: Event, answered: int) -> Member:
    """A member that is not held but is answered as one: it was there before the log began, or was ended wrongly."""
    over = group.ended.get(event.member_id)
    if over is not None and answered >= 0:
        facts.divergences += 1
        member = ends.back(facts, group, over, event.handled_at_ms)
        if over.cause == "session_expired" and not over.told:
            session_length.note_silence(facts, group, over.began_at, event.handled_at_ms)
        return member
    at = event.handled_at_ms
    member = groups.add(
        facts, group, event.member_id, at, event.group_instance_id, event.client_id, event.client_host, is_new=False
    )
    facts.emit_transition(group, at, member.member_id, "Absent", "Member", "first seen", Doubt.THERE_BEFORE)
    if group.generation < 0 <= answered:
        group.generation = answered
    epochs.target_shown(group, answered, at)
    epochs.came_to(group, member, groups.own_of(member), answered, at)
    if modern.by_records:
        facts.divergences += 1
    return member


def _take_answer(
    facts: Facts,
    group: Group,
    modern: ModernGroup,
    member: Member,
    own: ModernMember,
    event: Event,
    answered: int,
) -> None:
    """What the answer says of the member: what it may read, and its epoch."""
    before = (own.epoch, own.assigned, own.revoking)
    _take_assignment(facts, group, modern, member, own, event, answered)
    _take_epoch(facts, group, modern, member, own, event, answered)
    if before != (own.epoch, own.assigned, own.revoking):
        facts.say_again(group, member)


def _take_assignment(
    facts: Facts,
    group: Group,
    modern: ModernGroup,
    member: Member,
    own: ModernMember,
    event: Event,
    answered: int,
) -> None:
    """What the member may read, and whether it must give something up (rules a to d of `CurrentAssignmentBuilder`)."""
    detail, at = event.detail or {}, event.handled_at_ms
    owned, assigned = taken(detail.get("owned")), taken(detail.get("assigned"))
    revoking = own.revoking
    has_given_up = owned is not None and not share_any(owned, revoking)
    if assigned is not None:
        evidence.on_taken(facts, group, member, assigned, answered, at, took_effect(event, facts.coordinator)[1])
        taken_away = without(own.assigned, assigned) if own.assigned is not None else {}
        stays = answered in (own.epoch, own.epoch + 1 if own.state == MemberState.UNREVOKED else own.epoch)
        keeps = owned is None or share_any(owned, taken_away)
        if taken_away and stays and keeps and modern.protocol != "share":
            kept = {} if has_given_up else revoking
            _must_revoke(group, member, own, assigned, together(kept, taken_away), event)
            return
        if not (revoking and not has_given_up and answered == own.epoch and own.state == MemberState.UNREVOKED):
            _settles(group, member, own, assigned, at)
    elif revoking and (has_given_up or answered > own.epoch >= 0):
        _settles(group, member, own, own.assigned, at)


def _take_tasks(facts: Facts, group: Group, member: Member, own: ModernMember, event: Event) -> None:
    """The tasks of a thread of Kafka Streams, which no record that is read has."""
    assigned = taken((event.detail or {}).get("assigned"))
    if assigned is not None and assigned != own.assigned:
        owners.assign(group, member, assigned, own.revoking, event.handled_at_ms)
        facts.say_again(group, member)


def _must_revoke(group: Group, member: Member, own: ModernMember, assigned: Any, revoking: Any, event: Event) -> None:
    own.state = MemberState.UNREVOKED
    _show_target(group, own, event.handled_at_ms)
    own.held_back = max(own.held_back, count(revoking))
    owners.assign(group, member, assigned, revoking, event.handled_at_ms)
    own.revoke_since_at_ms = event.handled_at_ms
    own.revoke_by = event.decided_at_ms
    member.rebalance_notified_at_ms = event.decided_at_ms


def _show_target(group: Group, own: ModernMember, at: float) -> None:
    """Who has to give something up does so for a target that it has not come to."""
    modern = group.modern
    if modern is None or modern.assignment_epoch > own.epoch:
        return  # it may be for that one
    bumps = modern.bumps
    first = next((bump for bump in bumps if bump.computed_at_ms < 0 and bump.epoch > own.epoch), None)
    if first is not None:
        epochs.target_shown(group, first.epoch, at)


def _settles(group: Group, member: Member, own: ModernMember, assigned: Any, at: float) -> None:
    own.state = MemberState.UNKNOWN
    own.revoke_since_at_ms, own.revoke_by = NEVER, None
    owners.assign(group, member, assigned, {}, at)


def _take_epoch(
    facts: Facts,
    group: Group,
    modern: ModernGroup,
    member: Member,
    own: ModernMember,
    event: Event,
    answered: int,
) -> None:
    """The epoch of the answer: the member has come to it, its target was computed, and the group has it."""
    at = event.handled_at_ms
    if answered < 0:
        return
    moved_on = own.state != MemberState.UNREVOKED
    if answered > group.generation:
        evidence.hidden(facts, group, answered, at, took_effect(event, facts.coordinator)[1])
    elif answered == group.generation and moved_on:
        evidence.on_epoch_shown(facts, group, answered, at)
    elif answered < group.generation and moved_on and answered == own.epoch and not modern.by_records:
        evidence.on_lower_epoch(facts, group, answered, at)
    if moved_on:
        epochs.target_shown(group, answered, at)
    epochs.came_to(group, member, own, answered, at)
    if answered >= group.generation and moved_on:
        modern.lower_at_ms = at
