"""JoinGroups that waited in a rebalance of a classic group and are sent back with 27: somebody asked the group for the
consumer protocol.

The coordinator sends back whoever waits before it knows whether it can convert the group. Where it cannot, the group
stays a classic one that prepares, and whoever was sent back is a member of it. So such an answer shows a rebalance that
was under way since the JoinGroup was handled, and that this may have begun it. Decides nothing about groups that have
been converted (`modern.classics`). Source: `GroupMetadataManager.convertToConsumerGroup`; 4.0 to 4.4 fail there while a
group prepares out of Empty.
"""

from __future__ import annotations

from kardia.doubts import SURE
from kardia.events import Event
from kardia.kafka.states import GroupState
from kardia.observe.deadlines import pending
from kardia.observe.facts.groups_of_lane import Facts
from kardia.observe.members import lives
from kardia.observe.members.identity import identify
from kardia.observe.rebalance import emptied
from kardia.observe.requests import refusals
from kardia.observe.state.group import Group, Member
from kardia.tables import LEAVE_CAUSES


def on_join(facts: Facts, group: Group, event: Event, at: float) -> None:
    """A JoinGroup that waited was answered 27 at `at`."""
    detail = event.detail or {}
    member_id = event.member_id or str(detail.get("assigned_member_id", ""))
    if not member_id:
        return
    if not group.members and group.state == GroupState.PREPARING:
        emptied.become_empty_before_join(facts, group, event.handled_at_ms)
    current = group.rebalance
    waiting = [] if current is None or current.joined_at_ms >= 0 else [*current.joins, *current.refused]
    if all(one.member_id != member_id for one in waiting):
        refusals.note_waiting(facts, group, event, at)  # who is sent back asks again and again: the first one counts
    over, member = group.ended.get(member_id), group.members.get(member_id)
    if over is not None and over.cause in LEAVE_CAUSES and event.handled_at_ms <= over.ended_at_ms:
        return  # it left as it was sent back: of one that leaves while it waits the answer is another
    if over is not None:
        facts.divergences += 1
        member = lives.reinstate(facts, group, over, at)
    elif member is None:
        member = _let_in(facts, group, event, member_id, at)
    member.asked_at_ms = max(member.asked_at_ms, at)


def _let_in(facts: Facts, group: Group, event: Event, member_id: str, at: float) -> Member:
    """Somebody new, who is a member since its JoinGroup was handled."""
    detail, instance_id = event.detail or {}, event.group_instance_id
    pending.used(group, member_id, event)
    seat = group.members.get(group.instances.get(instance_id, "")) if instance_id else None
    came_by = "member_joined"
    if seat is not None:
        came_by = refusals.end_the_seated(facts, group, seat, event.handled_at_ms)
    # Which timer runs while it is sent back is not known: that of a new member, or one that began with this answer.
    member = Member(member_id, event.handled_at_ms, seen_joining=True, session_renewed_at_ms=at, doubtful_at_ms=at)
    member.session_ms = int(detail.get("session_timeout_ms", -1))
    member.rebalance_ms = int(detail.get("rebalance_timeout_ms", -1))
    group.members[member_id] = member
    identify(facts, group, member, event, str(detail.get("protocol_type", "")))
    if instance_id:
        group.instances[instance_id] = member_id
    facts.index(group, member)
    facts.emit_transition(group, member.joined_at_ms, member_id, "Absent", "Member", came_by, SURE)
    facts.emit_member(group, member, member.joined_at_ms, SURE)
    facts.watch(group, member)
    return member
