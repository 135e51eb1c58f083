"""The JoinGroup of a static member that took the seat of the last member of the consumer protocol: the group is a
classic one by it, and its answer says whether that began a rebalance. Decides nothing about members.

The records of the conversion may be read before the answer, and say nothing of a rebalance.
Source: `GroupMetadataManager.classicGroupJoinToConsumerGroup`.
"""

from __future__ import annotations

from kardia.events import Event, Kind
from kardia.kafka.states import GroupState
from kardia.observe.facts.groups_of_lane import Facts
from kardia.observe.rebalance import begin_and_settle
from kardia.observe.state.group import NEVER, Cause, Group
from kardia.tolerances import TWO_STAMPS_MS


def rebalances_at_once(event: Event) -> bool:
    """Whether the answer says that it began a rebalance: the member has epoch 0 still then, which is no generation of
    anybody."""
    return event.kind == Kind.JOIN and bool(event.group_instance_id) and event.generation_id == 0


def begin(facts: Facts, group: Group, event: Event) -> bool:
    """The answer is read when the group is known to be a classic one: begin the rebalance where the seat was taken.
    Returns whether it is such an answer."""
    taken = group.last_in_seat(event.group_instance_id) if rebalances_at_once(event) else None
    if taken is None or taken.cause != "static_replaced" or group.state != GroupState.STABLE:
        return False
    member_id = (event.detail or {}).get("assigned_member_id")
    if (
        group.instances.get(event.group_instance_id) != member_id
        or taken.ended_at_ms > event.decided_at_ms + TWO_STAMPS_MS
    ):
        return False
    over = taken.member
    cause = Cause(
        taken.ended_at_ms,
        taken.cause,
        over.member_id,
        over.client_id,
        over.instance_id,
        taken.reason,
        taken.doubts,
        taken.by,
    )
    begin_and_settle.begin(facts, group, cause, NEVER, len(group.members))
    return True
