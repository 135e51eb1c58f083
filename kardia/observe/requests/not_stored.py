"""Requests whose answer says that nothing could be stored in time: what they did all the same, and what was undone.

A replica in sync stands still, and for seconds nothing that a coordinator writes is stored. It has done what was asked
when it was handled; who waits longer than `offsets.commit.timeout.ms` is told so, with COORDINATOR_NOT_AVAILABLE or, by
Scala's coordinator of what a group waits for, REBALANCE_IN_PROGRESS. A heartbeat, a commit and a LeaveGroup have taken
effect. A static member that took a seat has not: the member before has it again. Of a leader's assignments everybody
who waits for them is told in one instant, and a rebalance begins. Sources: `kardia/coordinator/classic/stores.py`,
which is held against Kafka's own classes.
"""

from __future__ import annotations

from kardia.doubts import Doubt, stands
from kardia.events import Event, Kind
from kardia.kafka.sessions import Coordinator
from kardia.kafka.states import ErrorCode, GroupState
from kardia.observe.coordinator_change.new_coordinator import was_served
from kardia.observe.facts.groups_of_lane import Facts
from kardia.observe.members import lives
from kardia.observe.rebalance.begin_and_settle import begin, settle
from kardia.observe.requests import refusals, sent_back
from kardia.observe.state.group import NEVER, Cause, Group
from kardia.tolerances import AT_ONCE_MS, LATE_MS, STORED_WITHIN_MS, TWO_STAMPS_MS


def is_told(facts: Facts, event: Event) -> bool:
    """Whether the answer to a JoinGroup or SyncGroup says so."""
    if facts.coordinator is Coordinator.JAVA:
        return was_served(event)
    waited_ms = event.decided_at_ms - event.handled_at_ms
    in_time = STORED_WITHIN_MS - TWO_STAMPS_MS <= waited_ms <= STORED_WITHIN_MS + LATE_MS
    return in_time and event.error_code == ErrorCode.REBALANCE_IN_PROGRESS


def is_told_with_leader(event: Event) -> bool:
    """Whether a SyncGroup waited for the leader's, and was told with it. A coordinator that is given up says 16."""
    waited_ms = event.decided_at_ms - event.handled_at_ms
    told = event.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    return told and AT_ONCE_MS < waited_ms < STORED_WITHIN_MS - TWO_STAMPS_MS


def on_join(facts: Facts, group: Group, event: Event, at: float) -> None:
    """A JoinGroup: who has an id waits still, in a rebalance that is under way since it was handled, and is answered to
    nobody. Of who has none but a seat, whoever had that has it again, with a session that begins anew. It is not sure
    that the seat was taken by it: in a rebalance under way nothing of it has to be stored."""
    if event.member_id:
        sent_back.on_join(facts, group, event, at)
        return
    seated = group.members.get(group.instances.get(event.group_instance_id, ""))
    if seated is not None:
        if seated.joined_at_ms < event.handled_at_ms:
            lives.begin_in_doubt(facts, group, seated, at)
        return
    over = group.last_in_seat(event.group_instance_id)
    meanwhile = over is not None and event.handled_at_ms <= over.ended_at_ms <= at
    if over is not None and meanwhile and over.cause == "static_replaced":
        lives.reinstate(facts, group, over, at, doubts=Doubt.BY_RULE)
    elif over is not None and meanwhile and over.cause == "session_expired" and not stands(over.doubts):
        lives.reinstate(facts, group, over, at, doubts=Doubt.STORED_LATE)  # by then its seat was not its own
    else:
        refusals.note_waiting(facts, group, event, at)  # somebody new, by an id that nobody knows


def gives_back(facts: Facts, group: Group, event: Event, at: float) -> bool:
    """A SyncGroup that waited is told 82, when the record of who sent it, a static member that took a seat, has had its
    time to be stored: whoever had the seat before has it again, with a session that begins anew. Its JoinGroup may have
    been answered long before, by the end of a join phase. Another process that took the seat in that very instant would
    show the same, so that nothing of it is sure. No SyncGroup is waited for of who has a seat again."""
    taker = group.members.get(event.member_id)
    if event.kind != Kind.SYNC or taker is None or at - event.handled_at_ms <= AT_ONCE_MS:
        return False
    if not STORED_WITHIN_MS - TWO_STAMPS_MS <= at - taker.joined_at_ms <= STORED_WITHIN_MS + LATE_MS:
        return False
    over = group.last_in_seat(taker.instance_id) if taker.instance_id else None
    if over is None or over.cause != "static_replaced" or abs(over.ended_at_ms - taker.joined_at_ms) > TWO_STAMPS_MS:
        return False
    lives.end(facts, group, taker, at, "static_replaced", "", Doubt.STORED_LATE)
    lives.reinstate(facts, group, over, at, doubts=Doubt.STORED_LATE).synced_generation = event.generation_id
    if group.leader == taker.member_id:
        group.leader = over.member.member_id
    return True


def on_leaders_sync(facts: Facts, group: Group, event: Event, at: float) -> None:
    """A leader's SyncGroup: the assignments that it brought are nobody's, and a rebalance begins. Whoever waited for
    them may have been read before, and have shown that it has begun."""
    if event.generation_id != group.generation:
        return
    leader = group.members.get(event.member_id)
    client_id, instance_id = (leader.client_id, leader.instance_id) if leader is not None else ("", "")
    why = Cause(at, "assignment_not_stored", event.member_id, client_id, instance_id)
    current = group.rebalance
    if group.state == GroupState.COMPLETING:
        if current is not None and not current.settled:
            settle(facts, group, current)
        if group.rebalance is current:  # else somebody left right after the join phase, and began this one
            begin(facts, group, why, NEVER, len(group.members))
    elif current is not None and current.cause is None and abs(at - current.rebalance_notified_at_ms) <= TWO_STAMPS_MS:
        current.cause, current.started_at_ms = why, at
