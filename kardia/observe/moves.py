"""A coordinator that moves, loads or comes back: what that does to deadlines, and what shows it.

When a coordinator loads a group every session starts anew; when that was is seen only within bounds, by answers before
and after. A move is one of the whole shard. Signs: NOT_COORDINATOR and its like, an answer from another broker, and
after a silence of the log connections whose numbers are lower than those before it: a broker counts them from its
start. Sources: `onGroupLoaded`, `SocketServer` (`nextConnectionIndex`).
"""

from __future__ import annotations

from kardia.certainty import Certainty
from kardia.events import Event, Kind
from kardia.model.states import COORDINATOR_MOVED, ErrorCode, GroupState
from kardia.observe import forgetting, loads
from kardia.observe.facts import JUDGED_WITHIN_MS, Facts
from kardia.observe.group import LOADS_WITHIN_MS, NEVER, Group


def group_of(facts: Facts, event: Event) -> Group:
    """The group an event is about, made when it is new; notes when another broker answers for it."""
    group = facts.groups.get(event.group_id)
    if group is not None and forgetting.is_over(facts, event.group_id, event.handled_at_ms):
        forgetting.forget(facts, event.group_id)
        group = None
    if group is None:
        group = facts.groups[event.group_id] = Group(event.group_id, event.shard)
        group.gap_at = facts.blind_to.get(facts.broker, NEVER)
        group.seq = forgetting.first_seq(facts, event.handled_at_ms)
        forgetting.note_without_members(facts, group, event.handled_at_ms)
    if event.error_code in COORDINATOR_MOVED:
        return group
    if facts.broker:
        loads.note_heard(facts, group, event.handled_at_ms)
    if group.broker != facts.broker and facts.broker:
        _switch(facts, group, event)
    elif group.moved_at >= 0 and event.handled_at_ms > group.moved_at:
        reload(facts, group, event.handled_at_ms, how_sure(event))
        note_answer(group, event)
    elif group.loading_since >= 0:
        note_answer(group, event)
    return group


def _switch(facts: Facts, group: Group, event: Event) -> None:
    first, left = not group.broker, group.broker
    group.broker = facts.broker
    for member in group.members.values():
        member.timer_at = NEVER
    if first:
        for member in group.members.values():
            facts.watch(group, member)
    else:
        give_up_neighbours(facts, group, event.handled_at_ms, left)
        reload(facts, group, event.handled_at_ms, how_sure(event))
        note_answer(group, event)


def reload(facts: Facts, group: Group, at: float, certainty: Certainty) -> None:
    """A coordinator loaded the group: every session timer starts again, joins and waiting requests are lost."""
    group.loaded_at = at
    group.moved_at = NEVER
    loads.restore(facts, group, at)
    if group.rebalance is not None and (not group.rebalance.settled or group.rebalance.assigned_at < 0):
        group.rebalance = None
    if group.members and group.state == GroupState.STABLE and group.told_state == GroupState.STABLE:
        facts.tell_group(group, at, GroupState.STABLE, "coordinator_loaded", certainty)
    elif group.members:
        facts.move(group, at, GroupState.STABLE, "coordinator_loaded", certainty)
    group.pending.clear()
    for member in group.members.values():
        member.armed_at = max(member.armed_at, at)
        member.overdue = False
        member.told_at = NEVER
        facts.watch(group, member)


def moved(facts: Facts, group: Group, event: Event, at: float) -> None:
    """This broker does not lead the group: nothing about the member follows; what it said last stands. A broker
    that loads it leads it, so the one before does not."""
    if group.broker == facts.broker or (group.broker and event.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS):
        give_up_neighbours(facts, group, at, group.broker)
        give_up(facts, group, at)


def give_up(facts: Facts, group: Group, at: float) -> None:
    """The coordinator is another one since some instant before `at`: no session ends earlier than if it began then."""
    group.loaded_at = group.moved_at = max(group.loaded_at, at)
    for member in group.members.values():
        if 0 <= member.armed_at < at:
            member.armed_at = at
            member.overdue = False
            facts.watch(group, member)


def give_up_neighbours(facts: Facts, group: Group, at: float, left: str) -> None:
    """The other groups of a shard move with the first of which that is seen."""
    if group.moved_at >= 0:
        return  # said before
    for other in facts.groups.values():
        if other.shard == group.shard and other is not group and other.broker == left and other.moved_at < 0:
            give_up(facts, other, at)


def note_answer(group: Group, event: Event) -> None:
    """An answer of a new coordinator: while it loads it answers heartbeats with 0 and SyncGroups with 27, unseen."""
    at = event.decided_at_ms
    if not _says_nothing(event) or 0 <= group.loading_since <= at - LOADS_WITHIN_MS:
        group.loading_since, group.loaded_by = NEVER, at
        return
    if group.loading_since < 0:
        group.loading_since = at
    group.unproven_at = max(group.unproven_at, at)


def how_sure(event: Event) -> Certainty:
    """How sure it is by an answer of a new coordinator that the group is Stable: while it loads it answers heartbeats
    the same, and others are answered so in a rebalance as well, which may have begun since the load."""
    return "inferred" if event.kind == Kind.SYNC and event.error_code == ErrorCode.NONE else "provisional"


def _says_nothing(event: Event) -> bool:
    """Whether a coordinator that still loads would answer the same."""
    if event.kind == Kind.SYNC:
        return event.error_code == ErrorCode.REBALANCE_IN_PROGRESS
    return event.kind == Kind.HEARTBEAT and event.error_code == ErrorCode.NONE


def judge(facts: Facts, event: Event, at: float) -> None:
    """See whether the first requests after a silence come by connections of a broker that was restarted in it."""
    pending = facts.unjudged[facts.broker]
    while pending and at > pending[0][1] + JUDGED_WITHIN_MS:
        del pending[0]
    if not pending or at < pending[0][1]:
        return
    group = facts.groups.get(event.group_id)
    member = group.members.get(event.member_id) if group is not None else None
    if group is None or member is None or group.broker != facts.broker or not member.connection:
        return
    before, number = _number(member.connection), _number(event.connection)
    if before is None or number is None or before[0] != number[0]:
        return
    if event.connection != member.connection:
        if number[1] >= before[1]:
            return  # a new connection to the same process, or of a counter that has come further since
        for other in list(facts.groups.values()):
            if other.broker == facts.broker:
                give_up(facts, other, pending[0][1] - 1.0)  # the line that ended the silence may be an answer
    del pending[0]


def _number(connection: str) -> tuple[str, int] | None:
    """(broker and processor, number) of `local-remote-number`; from 4.0 it is `local-remote-processor-number`."""
    parts = connection.split("-")
    if len(parts) not in (3, 4) or not parts[-1].isdigit():
        return None
    return "-".join((parts[0], *parts[2:-1])), int(parts[-1])
