"""JoinGroups that waited and were refused in the end: 25 to who was removed meanwhile, 81 in a full group, 82 to who
was replaced.

Whoever waits in a JoinGroup was taken into a rebalance when it asked, so that its refusal shows, late, that one was
under way, and it may have begun it. Sources: `doJoinGroup`, `expireHeartbeat` of a new member, `acceptJoiningMember`,
`updateStaticMemberAndRebalance`, and their Java successors.
"""

from __future__ import annotations

from kardia.doubts import SURE, Doubt, Doubts
from kardia.events import Event
from kardia.kafka.sessions import NEW_MEMBER_JOIN_TIMEOUT_MS, Coordinator
from kardia.kafka.states import ErrorCode, GroupState
from kardia.observe.deadlines import pending
from kardia.observe.facts.groups_of_lane import Facts
from kardia.observe.members import lives
from kardia.observe.members.identity import identify
from kardia.observe.rebalance import seen_under_way
from kardia.observe.state.group import NEVER, Cause, Group, Join, Member, Rebalance
from kardia.tables import LEAVE_CAUSES
from kardia.tolerances import AT_ONCE_MS, LATE_MS, TWO_STAMPS_MS, WAITED_MS

_BY_JOIN = frozenset({"member_joined", "metadata_changed", "leader_rejoined", "static_replaced"})
"""Triggers that are a JoinGroup."""


def on_join(facts: Facts, group: Group, event: Event, at: float) -> None:
    """What a refused JoinGroup shows beside the refusal itself."""
    error = event.error_code
    if error == ErrorCode.GROUP_MAX_SIZE_REACHED:
        if event.member_id:
            pending.used(group, event.member_id, event)
            group.rejected_at_ms = max(group.rejected_at_ms, at)
        member = group.members.get(event.member_id)
        if member is not None:
            lives.end(facts, group, member, at, "rejected", "", SURE)
        return
    left = group.left_pending.get(event.member_id)
    waited_ms = at - event.handled_at_ms
    if left is not None and abs(left.left_at_ms - at) <= facts.settings.burst_ms and waited_ms > 4 * TWO_STAMPS_MS:
        del group.left_pending[event.member_id]
        note_waiting(facts, group, event, at)
        _note_life(facts, group, event, at, left.cause, left.reason, left.doubts)
        return
    # A first JoinGroup is told 82 only if it was let in, and another process took the place that it waited in.
    let_in = error == ErrorCode.FENCED_INSTANCE_ID and not event.member_id
    let_in = let_in and bool((event.detail or {}).get("assigned_member_id"))
    at_least_ms = AT_ONCE_MS if facts.coordinator is Coordinator.SCALA else WAITED_MS
    told_late = error in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID) and waited_ms >= at_least_ms
    if let_in or told_late:
        note_waiting(facts, group, event, at)
        if error == ErrorCode.UNKNOWN_MEMBER_ID:
            _note_new(facts, group, event, at)
            _note_removed_seat(facts, group, event)


def note_waiting(facts: Facts, group: Group, event: Event, at: float) -> None:
    """A rebalance was under way since this JoinGroup was handled, at the latest; it is one that may have begun it."""
    member = group.members.get(event.member_id)
    if group.state != GroupState.PREPARING:
        seen_under_way.on_told(facts, group, member, at)
    current = group.rebalance
    if current is None or current.settled:
        return
    holder = "" if event.member_id else held_before(group, event)
    current.refused.append(
        Join(
            event.member_id or str((event.detail or {}).get("assigned_member_id", "")),
            event.member_id,
            event.group_instance_id,
            event.client_id,
            event.arrived_at_ms,
            event.handled_at_ms,
            str((event.detail or {}).get("reason", "")),
            member is None and event.member_id not in group.ended,
            holder,
            heard_before_ms=NEVER if member is None else heard_before(member, event),
        )
    )


def heard_before(member: Member, event: Event) -> float:
    """`Join.heard_before_ms`. A client whose connection breaks asks again by another one."""
    if event.connection in (member.heard_on, member.connection) or not (member.heard_on or member.connection):
        return NEVER
    since = max(member.renewed_before_join_at_ms, member.asked_at_ms, member.joined_at_ms)
    return since if 0 <= since < event.handled_at_ms - TWO_STAMPS_MS else NEVER


def heir_of(group: Group, event: Event) -> Join | None:
    """Whoever took the seat of a static process that is told 82, if it was let in and its own answer was read first:
    the end of the join phase and the refusal are of one instant then."""
    current = group.rebalance
    if current is None or current.joined_at_ms < event.handled_at_ms:
        return None
    same = (join for join in current.joins if join.instance_id == event.group_instance_id and not join.asked_id)
    return next((join for join in same if join.handled_at_ms >= event.handled_at_ms - TWO_STAMPS_MS), None)


def held_before(group: Group, event: Event) -> str:
    """Who held the seat when a static process came that waited in its JoinGroup and was replaced; empty if nobody."""
    heir = heir_of(group, event)
    if heir is None:
        return group.instances.get(event.group_instance_id, "") or _said_to_end_later(group, event)
    seat = (one for one in group.members.values() if one.instance_id == event.group_instance_id)
    return next((one.member_id for one in seat if one.member_id != heir.member_id), heir.replaces)


def _said_to_end_later(group: Group, event: Event) -> str:
    """Who had the seat, and was said to have ended by silence later than it was taken."""
    over = group.last_in_seat(event.group_instance_id)
    if over is None or over.cause != "session_expired" or over.told or over.doubts == SURE:
        return ""
    return over.member.member_id if over.ended_at_ms > event.handled_at_ms + TWO_STAMPS_MS else ""


def _note_new(facts: Facts, group: Group, event: Event, at: float) -> None:
    """Somebody new waited for as long as a new member may: it was one from its JoinGroup to its refusal."""
    member_id, waited_ms = event.member_id, at - event.handled_at_ms
    if not member_id or member_id in group.members or member_id in group.ended:
        return
    if not -facts.settings.tolerance_ms <= waited_ms - NEW_MEMBER_JOIN_TIMEOUT_MS <= LATE_MS:
        return
    _note_life(facts, group, event, at, "join_timeout", "", SURE)


def _note_removed_seat(facts: Facts, group: Group, event: Event) -> None:
    """A static process was let in without an id, and its seat was given up by somebody else while it waited: who had
    the seat before had been replaced by it. The id that it was given stands in no answer."""
    if event.member_id or not event.group_instance_id:
        return
    holder = group.members.get(group.instances.get(event.group_instance_id, ""))
    if holder is not None:  # the line of the LeaveGroup that gave the seat up is still to come
        end_the_seated(facts, group, holder, event.handled_at_ms)
        return
    over = group.last_in_seat(event.group_instance_id)
    if over is not None and over.cause in LEAVE_CAUSES and over.ended_at_ms >= event.handled_at_ms:
        lives.correct(facts, group, over, event.handled_at_ms, "static_replaced", Doubt.BY_RULE)


def _note_life(facts: Facts, group: Group, event: Event, at: float, cause: str, reason: str, doubts: Doubts) -> None:
    """Somebody new was a member from its JoinGroup to its refusal."""
    member_id, detail = event.member_id, event.detail or {}
    pending.used(group, member_id, event)
    member = Member(member_id, event.handled_at_ms, instance_id=event.group_instance_id, seen_joining=True)
    member.session_ms = int(detail.get("session_timeout_ms", -1))
    member.rebalance_ms = int(detail.get("rebalance_timeout_ms", -1))
    identify(facts, group, member, event, str(detail.get("protocol_type", "")))
    facts.emit_transition(group, event.handled_at_ms, member_id, "Absent", "Member", "member_joined", SURE)
    lives.end(facts, group, member, at, cause, reason, doubts)


def end_the_seated(facts: Facts, group: Group, old: Member, taken_at: float) -> str:
    """Whose seat was taken at an instant had ended by its session before, or ends by that. Returns by what the process
    that took it became a member."""
    current = group.rebalance
    is_over = current is not None and current.joined_at_ms >= taken_at
    armed = old.renewed_before_join_at_ms if is_over else old.session_renewed_at_ms  # the end renews who is in it
    known = old.deadline >= 0 and armed >= 0 and not old.is_unsure(armed) and armed > group.unsure_to
    doubts: Doubts = SURE if known else Doubt.RENEWAL_UNSURE
    ran_out_at = old.over_from(armed + old.session_ms) if old.deadline >= 0 and armed >= 0 else NEVER
    if 0 <= ran_out_at <= taken_at:
        doubts |= SURE if ran_out_at < taken_at - LATE_MS else Doubt.TIMER_MAY_BE_LATE
        lives.end(facts, group, old, ran_out_at, "session_expired", "", doubts, taken_at)
        return "member_joined"
    lives.end(facts, group, old, taken_at, "static_replaced", "", doubts)
    return "static_replaced"


def began_before(group: Group, current: Rebalance | None, event: Event) -> None:
    """A JoinGroup that waited in a rebalance is answered with 27 as the group becomes a consumer group: it may have
    come before what was taken for the begin. Source: `GroupMetadataManager.convertToConsumerGroup`."""
    if event.error_code != ErrorCode.REBALANCE_IN_PROGRESS or current is None or current.cause is None:
        return
    if event.handled_at_ms < current.started_at_ms and current.row_known < 0:
        trigger = "unknown" if event.member_id in group.members else "member_joined"
        current.started_at_ms = event.handled_at_ms
        current.cause = Cause(event.handled_at_ms, trigger, event.member_id, event.client_id, doubts=Doubt.BEGIN_UNSEEN)
    elif (
        abs(event.handled_at_ms - current.started_at_ms) <= TWO_STAMPS_MS and event.member_id != current.cause.member_id
    ):
        current.cause.doubts |= Doubt.STAMPS_TIED


def shows_begin(current: Rebalance, began: Cause) -> bool:
    """Whether a rebalance that a conversion cuts off had begun: what silence alone had begun need not have been, and
    JoinGroups that are sent back had waited in it, as those had that were answered. Of two that came within the width
    of a stamp neither is sure to have been the first."""
    if current.joined_at_ms >= 0:
        return True
    if began.trigger not in _BY_JOIN:
        return began.doubts == SURE
    others = (join for join in current.refused if join.member_id != began.member_id)
    if any(abs(join.handled_at_ms - began.at) <= TWO_STAMPS_MS for join in others):
        began.doubts |= Doubt.STAMPS_TIED
    return began.doubts == SURE or bool(current.refused)
