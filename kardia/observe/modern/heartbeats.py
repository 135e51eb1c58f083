"""What an answered ConsumerGroupHeartbeat, ShareGroupHeartbeat or StreamsGroupHeartbeat shows.

The answer is the authority: it has the epoch of the member and, where that has changed, what it may read. Where records
are read they came first, and little is news. Where they are not, epochs are counted: a join, a changed subscription and
an end are one each; an answer with a higher epoch than was counted shows something that was not seen. Sources:
`GroupMetadataManager.consumerGroupHeartbeat`, `CurrentAssignmentBuilder`, `throwIfConsumerGroupMemberEpochIsInvalid`.
"""

from __future__ import annotations

from typing import Any

from kardia.events import Event
from kardia.kafka.libraries import LIBRARIES
from kardia.kafka.states import COORDINATOR_MOVED, ErrorCode, MemberState, ModernState
from kardia.lateness import LATE_MS
from kardia.observe.clients.leaves import LEAVE_DELAY_MS
from kardia.observe.facts.facts import Facts
from kardia.observe.members import owners, who_broke
from kardia.observe.members.identity import identify
from kardia.observe.members.partitions import count, share_any, taken, together, without
from kardia.observe.modern import conversions, ends, epochs, evidence, groups, operations, silence
from kardia.observe.moves import moves
from kardia.observe.requests.handling import took_effect
from kardia.observe.requests.requests import renew
from kardia.observe.state.group import NEVER, Cause, Group, Member
from kardia.observe.state.modern import ModernGroup, ModernMember

FENCED = frozenset({ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.FENCED_INSTANCE_ID})

PULSE_KEYS = 4
"""Keys in the detail of a heartbeat that says nothing else: protocol, both epochs, interval."""

DELAYED = 5
"""Status of a streams group whose first assignment waits for more members (`streams.initial.rebalance.delay.ms`)."""


def on_heartbeat(facts: Facts, event: Event, at: float) -> None:
    """A heartbeat of one of the newer protocols, or its refusal."""
    detail = event.detail or {}
    protocol, epoch = str(detail.get("protocol", "")), int(detail.get("member_epoch", 0))
    group = moves.group_of(facts, event)
    if event.error_code != ErrorCode.NONE:
        _refused(facts, group, event, at)
    elif not event.member_id or protocol not in groups.PROTOCOLS:
        facts.not_modelled += 1
    elif epoch == groups.LEAVES:
        _left(facts, group, event)
    elif epoch == groups.AWAY:
        _went_away(facts, group, event)
    else:
        _accepted(facts, group, event, protocol, epoch)


# --- refusals


def _refused(facts: Facts, group: Group, event: Event, at: float) -> None:
    error = event.error_code
    if error in COORDINATOR_MOVED:
        moves.moved(facts, group, event, at)
    elif group.modern is None:
        return
    elif error == ErrorCode.UNKNOWN_MEMBER_ID:
        evidence.on_gone(facts, group, event.member_id, event.handled_at_ms)
        who_broke.came_back(facts, group, event, at)
    elif error in FENCED:
        _tell_fenced(facts, group, event)
    elif error == ErrorCode.UNRELEASED_INSTANCE_ID:
        _tell_refused(facts, group, event)


def _tell_fenced(facts: Facts, group: Group, event: Event) -> None:
    """A member that names another epoch than the coordinator has, or an instance id that is another's, is refused; it
    stays a member. Said once in a life."""
    member = group.members.get(event.member_id)
    over = group.ended.get(event.member_id)
    known = member if member is not None else over.member if over is not None else None
    if known is not None and not known.fenced:
        known.fenced = True
        word = "Member" if member is not None else "Absent"
        facts.emit_transition(group, event.handled_at_ms, event.member_id, word, word, "fenced", "exact")


def _tell_refused(facts: Facts, group: Group, event: Event) -> None:
    """Somebody asks for an instance id that a member has; the member stays what it is. Said once for each who asks."""
    owner = group.members.get(group.instances.get(event.group_instance_id, ""))
    if owner is None or owner.modern is None or owner.modern.refused == event.member_id:
        return
    owner.modern.refused = event.member_id
    facts.emit_transition(
        group, event.handled_at_ms, event.member_id, "Absent", "Absent", "instance_id_in_use", "exact"
    )


# --- leaves


def _left(facts: Facts, group: Group, event: Event) -> None:
    """A member left; a record may have said so before, without the reason."""
    member = group.members.get(event.member_id)
    modern = group.modern
    if modern is None and member is None:
        over = group.ended.get(event.member_id)  # its leave made the group a classic one
        if over is not None and over.cause == "unknown":
            ends.correct(facts, group, over, over.ended_at_ms, "left", "exact")
        return
    over = group.ended.get(event.member_id)
    if member is None and over is not None:
        if over.cause == "unknown":
            ends.correct(facts, group, over, over.ended_at_ms, "left", "exact")
        return
    if modern is None:
        return
    if member is None:
        member = _notice(facts, group, modern, event, groups.LEAVES)
    cause, sure = why_left(facts, group, member, event)
    at, by = took_effect(event, facts.coordinator)
    if groups.own_of(member).gone_at_ms >= 0:
        operations.finish(facts, group, member, cause, "", sure)
    else:
        ends.remove_counted(facts, group, member, at, cause, "", sure, by, told=True)


def why_left(facts: Facts, group: Group, member: Member, event: Event) -> tuple[str, Any]:
    """(end cause, how sure) of a leave. Java gives up its subscription when it closes and keeps it when its application
    did not poll in time; it does not say so. A sign of a poll within the interval says that it closed."""
    detail = event.detail or {}
    library = LIBRARIES[member.library]
    by_java = member.library in ("java", "streams") and detail.get("protocol") == "consumer"
    if not by_java or "topics" in detail or "regex" in detail or "owned" not in detail:
        return "left", "exact"
    interval_ms = member.rebalance_ms
    if not library.poll_interval or interval_ms <= 0:
        return "left", "exact"
    silent_ms = event.arrived_at_ms - member.last_poll_at_ms
    if member.last_poll_at_ms >= 0 and silent_ms < interval_ms - LEAVE_DELAY_MS:
        return "left", "exact"
    blind = facts.was_silent(group.broker, member.last_poll_at_ms, event.arrived_at_ms)
    blind = blind or group.gap_at_ms >= member.last_poll_at_ms or not facts.is_alone(group, member)
    return "poll_timeout", "provisional" if blind or member.last_poll_at_ms < 0 else "inferred"


def _went_away(facts: Facts, group: Group, event: Event) -> None:
    modern, member = group.modern, group.members.get(event.member_id)
    if modern is None:
        modern = groups.enter(facts, group, "consumer", event.handled_at_ms)
    if member is None:
        member = _notice(facts, group, modern, event, groups.AWAY)
    own = groups.own_of(member)
    groups.went_away(facts, group, member, own, event.handled_at_ms)
    epochs.conclude(facts, group, event.handled_at_ms)
    epochs.update_state(facts, group, event.handled_at_ms, "static_left")


# --- accepted


def _accepted(facts: Facts, group: Group, event: Event, protocol: str, epoch: int) -> None:
    """Join or pulse: its session runs anew since the operation."""
    if _is_pulse(group, event):
        _beats(facts, group, event)
        return
    detail = event.detail or {}
    at, by = took_effect(event, facts.coordinator)
    if group.modern is None and group.members and epoch == groups.JOINS:
        conversions.upgrade(facts, group, at, "inferred", by)
    modern = groups.enter(facts, group, protocol, at)
    answered = int(detail.get("answered_epoch", -1))
    member = group.members.get(event.member_id)
    if epoch == groups.JOINS:
        member = _joined(facts, group, modern, member, event, answered)
    elif member is None:
        member = _notice(facts, group, modern, event, answered)
    own = groups.own_of(member)
    if own.gone_at_ms >= 0 and event.handled_at_ms > own.gone_at_ms + epochs.STAMP_MS:
        facts.divergences += 1
        own.gone_at_ms = NEVER
    own.classic = False
    _learn(facts, group, member, own, event)
    who_broke.heard(member, event)
    if own.away_since_at_ms >= 0 and epoch == groups.JOINS:
        groups.came_back(facts, group, member, own, at)
    renew(facts, group, member, max(at, member.session_renewed_at_ms))
    if by is not None and not modern.by_records:
        member.doubtful_at_ms = NEVER
    group.steady_at_ms = max(group.steady_at_ms, event.handled_at_ms)
    if not (modern.by_records and own.epoch == answered and modern.record_at_ms <= event.handled_at_ms + LATE_MS):
        if not modern.by_records and group.generation >= 0:
            evidence.expire_due(facts, group, answered, event.handled_at_ms)
        _take_assignment(facts, group, modern, member, own, event, answered)
        _take_epoch(facts, group, modern, member, own, event, answered)
    silence.watch_phases(facts, group, member)
    if group.state == ModernState.UNKNOWN or not modern.by_records:
        epochs.conclude(facts, group, event.handled_at_ms)
        epochs.update_state(facts, group, event.handled_at_ms, "heartbeat")


def _is_pulse(group: Group, event: Event) -> bool:
    """Whether a heartbeat says nothing but that its member lives, as nearly all do: what it costs must not grow with
    the group."""
    detail, member = event.detail or {}, group.members.get(event.member_id)
    own = member.modern if member is not None else None
    if member is None or own is None or len(detail) != PULSE_KEYS or group.state == ModernState.UNKNOWN:
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
    renew(facts, group, member, max(at, member.session_renewed_at_ms))
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
    ends.arm_session(group, member)
    if "rebalance_timeout_ms" in detail:
        member.rebalance_ms = int(detail["rebalance_timeout_ms"])
    if "topics" in detail:
        own.topics = list(detail["topics"])
    own.regex = str(detail.get("regex", own.regex))
    own.rack = str(detail.get("rack", own.rack))
    if int(detail.get("interval_ms", 0)) > 0:
        own.interval_ms = int(detail["interval_ms"])
    if member.row_known < 0 or before != groups.told(member):
        facts.emit_member(group, member, member.joined_at_ms, "exact" if member.seen_joining else "inferred")


def _notice(facts: Facts, group: Group, modern: ModernGroup, event: Event, answered: int) -> Member:
    """A member that is not held but is answered as one: it was there before the log began, or was ended wrongly."""
    over = group.ended.get(event.member_id)
    if over is not None and answered >= 0:
        facts.divergences += 1
        return ends.back(facts, group, over, event.handled_at_ms)
    at = event.handled_at_ms
    member = groups.add(
        facts, group, event.member_id, at, event.group_instance_id, event.client_id, event.client_host, is_new=False
    )
    facts.emit_transition(group, at, member.member_id, "Absent", "Member", "first seen", "inferred")
    if group.generation < 0 <= answered:
        group.generation = answered
    epochs.computed(group, answered, at)
    epochs.came_to(group, member, groups.own_of(member), answered, at)
    if modern.by_records:
        facts.divergences += 1
    return member


def _joined(
    facts: Facts, group: Group, modern: ModernGroup, member: Member | None, event: Event, answered: int
) -> Member:
    """A member joined, or asked for everything again: one that was refused begins anew under the same id."""
    at, by = took_effect(event, facts.coordinator)
    if member is not None:
        told_now = modern.by_records and member.joined_at_ms >= event.arrived_at_ms - LATE_MS
        if not told_now and not modern.by_records and _ran_out(group, member, at):
            evidence.on_gone(facts, group, event.member_id, at)
            member = group.members.get(event.member_id)
        if member is not None:
            return member
    if group.generation < 0 and answered <= groups.FIRST_EPOCH_MAX and not group.members:
        group.membership_complete = True
    members_before = len(group.members)
    old = group.members.get(group.instances.get(event.group_instance_id, "")) if event.group_instance_id else None
    replaces = old is not None and (groups.own_of(old).away_since_at_ms >= 0 or groups.own_of(old).classic)
    cause = "static_replaced" if replaces else "member_joined"
    if old is not None:
        sure: Any = "exact" if replaces else "provisional"
        if not replaces and _ran_out(group, old, at):
            evidence.on_gone(facts, group, old.member_id, at)
        else:
            ends.remove(facts, group, old, at, "static_replaced", "", sure, by, told=replaces)
    member = groups.add(
        facts, group, event.member_id, at, event.group_instance_id, event.client_id, event.client_host, is_new=True
    )
    member.seen_joining, member.joined_by = True, by
    if old is not None and replaces:
        groups.inherit(old, member)
    facts.emit_transition(group, at, member.member_id, "Absent", "Member", cause, "exact", by)
    if not replaces:
        _count_join(facts, group, event, member, answered, members_before, by)
    return member


def _ran_out(group: Group, member: Member, at: float) -> bool:
    """Whether a timer of a member was due by an instant."""
    due = ends.timers(group, member)
    return bool(due) and due[0].at_ms <= at


def _count_join(
    facts: Facts, group: Group, event: Event, member: Member, answered: int, members_before: int, by: float | None
) -> None:
    """A member that is new is one epoch more. What the answer has beyond that came before it, unseen; an answer with
    less has the epoch of a target that is older: one is computed once in a while (`assignment.interval.ms`)."""
    at, before = member.joined_at_ms, group.generation
    why = Cause(at, "member_joined", member.member_id, member.client_id, member.instance_id, "", "exact", by)
    delayed = DELAYED in ((event.detail or {}).get("status") or ())
    if before < 0:
        why.certainty = "inferred"
        first = groups.FIRST_EPOCH_MAX if delayed and group.membership_complete else answered
        epochs.raised(facts, group, first, why, members_before)
        return
    if answered > before + 1:
        evidence.hidden(facts, group, answered - 1, at)
    epochs.raised(facts, group, max(before + 1, answered), why, members_before)


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
        evidence.on_taken(facts, group, member, assigned, at)
        removed = without(own.assigned, assigned) if own.assigned is not None else {}
        stays = answered in (own.epoch, own.epoch + 1 if own.state == MemberState.UNREVOKED else own.epoch)
        keeps = owned is None or share_any(owned, removed)
        if removed and stays and keeps and modern.protocol != "share":
            kept = {} if has_given_up else revoking
            _must_revoke(group, member, own, assigned, together(kept, removed), event)
            return
        if not (revoking and not has_given_up and answered == own.epoch and own.state == MemberState.UNREVOKED):
            _settles(group, member, own, assigned, at)
    elif revoking and (has_given_up or answered > own.epoch >= 0):
        _settles(group, member, own, own.assigned, at)


def _must_revoke(group: Group, member: Member, own: ModernMember, assigned: Any, revoking: Any, event: Event) -> None:
    own.state = MemberState.UNREVOKED
    own.held_back = max(own.held_back, count(revoking))
    owners.assign(group, member, assigned, revoking, event.handled_at_ms)
    own.revoke_since_at_ms = event.handled_at_ms
    own.revoke_by = event.decided_at_ms
    member.rebalance_notified_at_ms = event.decided_at_ms


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
        evidence.hidden(facts, group, answered, at)
    elif answered == group.generation and moved_on:
        evidence.on_epoch_shown(facts, group, answered, at)
    elif answered < group.generation and moved_on and answered == own.epoch and not modern.by_records:
        evidence.on_lower_epoch(facts, group, answered, at)
    if moved_on:
        epochs.computed(group, answered, at)
    epochs.came_to(group, member, own, answered, at)
    if answered >= group.generation and moved_on:
        modern.lower_at_ms = at
