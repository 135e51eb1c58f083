"""How a group becomes Empty: with its last member the join phase completes at once, with one more generation.

Nobody is left to be answered, so nothing of it is logged: it is concluded from silence, from the record that is stored,
or from the generation that is missing when somebody joins again. Sources: `onCompleteJoin`, `completeClassicGroupJoin`.
"""

from __future__ import annotations

from functools import reduce
from operator import or_

from kardia.doubts import SURE, Doubt, Doubts
from kardia.kafka.states import GroupState
from kardia.observe.coordinator_change import loads
from kardia.observe.deadlines import pending
from kardia.observe.deadlines.phases import all_ends, delayed_to
from kardia.observe.facts.groups_of_lane import Facts
from kardia.observe.ledger import causes
from kardia.observe.ledger.costs import forget_assignment
from kardia.observe.ledger.rebalance_row import emit, follows_from
from kardia.observe.members import lives, who_broke
from kardia.observe.rebalance.begin_and_settle import begin, end_member
from kardia.observe.state.group import NEVER, Cause, Group, Rebalance
from kardia.tolerances import LATE_MS, TWO_STAMPS_MS


def becomes_empty(facts: Facts, group: Group, at: float, by: float | None = None, at_most: Doubts = SURE) -> None:
    """No member is left: the join phase completes at once, with one more generation. `by`: the latest that this can
    have been, NEVER where nothing says so; None: as the ends of the last members say. `at_most`: in doubt
    in any case."""
    current = group.rebalance
    if current is None:
        begin(facts, group, Cause(at, "unknown", doubts=Doubt.NOT_SEEN), NEVER, -1)
        current = group.rebalance
    if current is None:
        raise AssertionError(f"group {group.group_id!r}: a rebalance that was begun is not there")
    if current.started_at_ms < 0:
        causes.choose(facts, group, current, [])
        current.started_at_ms = current.started_at_ms if current.started_at_ms >= 0 else at  # nothing shows it earlier
    _name_the_first(facts, group, current)
    causes.take_line(facts, group, current)
    current.caused_by = follows_from(group, current)
    if group.told_state != GroupState.PREPARING and current.cause is not None:
        cause = current.cause
        facts.set_state(group, current.started_at_ms, GroupState.PREPARING, cause.trigger, cause.doubts, cause.by)
    current.joined_at_ms = current.assigned_at_ms = max(at, current.started_at_ms)
    current.over_by = _emptied_by(group, current) if by is None else by
    current.generation_after = group.generation + 1 if group.generation >= 0 else -1
    current.settled = True
    current.leader = ""
    current.blocked = pending.blocked(group, current)
    forget_assignment(group)
    group.generation = current.generation_after
    group.leader = ""
    group.instances.clear()
    doubts = current.cause.doubts if current.cause is not None else Doubt.NOT_SEEN
    last = [over for over in group.ended.values() if over.ended_at_ms >= current.joined_at_ms - TWO_STAMPS_MS]
    if any(over.doubts == SURE for over in last):
        doubts = SURE
    elif last:
        doubts = reduce(or_, (over.doubts for over in last))
    doubts |= at_most
    facts.set_state(group, current.joined_at_ms, GroupState.EMPTY, "no members left", doubts, current.over_by)
    emit(facts, group, current)
    if doubts == SURE:
        loads.note_empty(group)


def on_line(facts: Facts, group: Group) -> None:
    """A line about the begin of a rebalance: it may be of the one with which the group became Empty, which is written
    already. Then a further row says who began it."""
    current = group.rebalance
    if group.state != GroupState.EMPTY or current is None or not current.settled or current.row_known < 0:
        return
    if causes.take_line(facts, group, current):
        current.caused_by = follows_from(group, current)
        emit(facts, group, current)


def _emptied_by(group: Group, current: Rebalance) -> float | None:
    """The latest that the last of its members can have ended, as `Ended.by`."""
    within = [over for over in group.ended.values() if over.ended_at_ms >= current.started_at_ms]
    latest = [over.ended_at_ms if over.by is None else over.by for over in within]
    return None if not latest else NEVER if NEVER in latest else max(latest)


def _name_the_first(facts: Facts, group: Group, current: Rebalance) -> None:
    """Of several whose silence was noticed in another order the first to go began it."""
    if current.told_from != GroupState.STABLE or current.row_known >= 0:
        return
    since = max(group.steady_at_ms, group.stable_at_ms)
    before = current.started_at_ms - TWO_STAMPS_MS
    begin_one = (over for over in group.ended.values() if over.cause in causes.CAUSE_TO_TRIGGER)
    first = min(
        (over for over in begin_one if since <= over.ended_at_ms < before),
        key=lambda over: (over.ended_at_ms, over.member.member_id),
        default=None,
    )
    if first is None:
        return
    member = first.member
    doubts = first.doubts | Doubt.SILENCE
    said = current.cause.trigger if current.cause is not None else "session_expired"
    if said != "session_expired" and current.started_at_ms <= first.ended_at_ms + LATE_MS:
        doubts |= Doubt.TIMER_MAY_BE_LATE  # its timer may have been late
    current.cause = Cause(
        first.ended_at_ms,
        causes.CAUSE_TO_TRIGGER[first.cause],
        member.member_id,
        member.client_id,
        member.instance_id,
        first.reason,
        doubts,
        first.by,
    )
    current.started_at_ms = first.ended_at_ms
    facts.correct(group, current, current.cause.doubts)


def left_alone(group: Group, generation: int) -> bool:
    """Whether the group had become Empty a moment before this join phase: a generation lies between."""
    return not group.members and generation == group.generation + 2 and _was_left_at(group) >= 0


def become_empty_before(facts: Facts, group: Group) -> None:
    """It became Empty when the last member left, a moment before somebody else joined."""
    becomes_empty(facts, group, _was_left_at(group))


def become_empty_before_join(facts: Facts, group: Group, since: float) -> None:
    """Somebody waits in a JoinGroup that was handled at `since`, and would have been answered when the last member went
    if that had been later: the group was Empty by then."""
    at = _was_left_at(group)
    if 0 <= at < since and delayed_to(group) < since:
        becomes_empty(facts, group, at)


def _was_left_at(group: Group) -> float:
    """When the last member of a group that prepares a rebalance ended; NEVER where that is not known."""
    current = group.rebalance
    if group.deserted_at_ms >= 0 or group.state != GroupState.PREPARING or current is None or current.started_at_ms < 0:
        return group.deserted_at_ms
    return max((over.ended_at_ms for over in group.ended.values()), default=NEVER)


def ran_out(facts: Facts, group: Group, generation: int, member_id: str, since: float) -> bool:
    """Whether the group became Empty unseen: one generation is missing, and every timer ran out before this join."""
    if generation != group.generation + 2 or not group.membership_complete:
        return False
    if group.state not in (GroupState.PREPARING, GroupState.COMPLETING, GroupState.STABLE):
        return False
    known = all(member.deadline >= 0 for member in group.members.values())
    last = max((end.at_ms for end in all_ends(group)), default=NEVER)
    return known and member_id not in group.members and 0 <= last <= since + facts.settings.tolerance_ms


def become_empty_unseen(facts: Facts, group: Group, since: float) -> None:
    """Nobody was left to be seen: the members ended one after the other, and with the last one the rebalance, by the
    time at which somebody joined."""
    group.pending.clear()
    last_at = group.deserted_at_ms
    with who_broke.end_together(facts, group):
        for end in all_ends(group):
            member, at, why = group.members[end.member_id], min(end.at_ms, since), end.cause
            if why == "session_expired":
                ran_out_at, _ = facts.ran_out(group, member, member.session_renewed_at_ms, max(end.at_ms, since))
                at = max(at, ran_out_at)
            last_at = max(last_at, at)
            doubts: Doubts = SURE if why == "session_expired" else Doubt.SILENCE
            if member.session_renewed_at_ms <= group.unsure_to:
                doubts |= Doubt.LOAD_UNSEEN
            if member.renewed_unseen:
                doubts |= Doubt.RENEWAL_UNSURE
            if end.tied:
                doubts |= Doubt.TIMERS_TIED
            if facts.is_broken(group.broker, member.session_renewed_at_ms, at):
                doubts |= Doubt.BROKER_SILENT
            end_member(facts, group, member, at, why, "", doubts, since, with_others=True)
            if end.tied:
                lives.rival(group, end.member_id)
    becomes_empty(facts, group, last_at, since)
    for over in group.ended.values():
        lives.confirm(facts, group, over, since)
