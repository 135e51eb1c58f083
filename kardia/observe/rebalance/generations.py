"""A generation begins: the first answer of a join burst says that a join phase is over, and what was missed before it.

Sources: `onCompleteJoin`, `initNextGeneration` and their Java successors.
"""

from __future__ import annotations

from kardia.doubts import Doubt
from kardia.kafka.states import GroupState
from kardia.observe.coordinator_change import loads
from kardia.observe.deadlines.phases import sync_deadline
from kardia.observe.facts.groups_of_lane import Facts
from kardia.observe.ledger.causes import choose
from kardia.observe.ledger.rebalance_row import drop, emit, pass_over, remember
from kardia.observe.members import lives
from kardia.observe.rebalance.begin_and_settle import settle
from kardia.observe.rebalance.emptied import become_empty_before, become_empty_unseen, left_alone, ran_out
from kardia.observe.state.entries import Stored
from kardia.observe.state.group import NEVER, Group, Rebalance


def on_join_phase_completed(
    facts: Facts, group: Group, generation: int, at: float, member_id: str = "", since: float = NEVER
) -> None:
    """The first answer of a join burst: the join phase ended at this instant and a generation began.

    `member_id` is who was answered, its JoinGroup was handled at `since`.
    """
    current = group.rebalance
    if current is not None and current.joined_at_ms >= 0 and not current.settled:
        settle(facts, group, current)
        current = group.rebalance  # whoever left right after the join phase has begun another one
    if left_alone(group, generation):
        become_empty_before(facts, group)
        current = group.rebalance
    elif ran_out(facts, group, generation, member_id, since):
        become_empty_unseen(facts, group, since)
        current = group.rebalance
    group.deserted_at_ms = NEVER
    if generation <= group.generation:
        _restart(facts, group, at)
    elif group.state in (GroupState.EMPTY, GroupState.DEAD):
        loads.note_empty(group)
    missed = group.generation >= 0 and generation > group.generation + 1
    if missed:
        facts.divergences += 1
        if group.state == GroupState.PREPARING:
            pass_over(facts, group, at)
    if group.state != GroupState.PREPARING or current is None or missed:
        current = _not_seen_to_begin(group, generation, missed=missed)
    if group.generation < 0:
        current.generation_before = generation - 1  # it began before any generation had been seen
    current.joined_at_ms = at
    current.generation_after = generation
    group.generation = generation
    group.asked_ms = -1
    for member in group.members.values():
        member.renewed_before_join_at_ms = member.session_renewed_at_ms
        if member.session_renewed_at_ms < at:
            member.session_renewed_at_ms = at
    facts.schedule(group, at + facts.settings.burst_ms, "burst", "")
    facts.schedule(group, at + facts.settings.settle_ms, "settle", "")
    group.state = GroupState.COMPLETING
    facts.samples.note(group.group_id)


def on_generation_stored(facts: Facts, group: Group, stored: Stored, joined_at_ms: float, at: float) -> None:
    """A record of `at` shows a generation of which no answer was read, as in a hole of a request log: with it the
    rebalance ended that was under way. `joined_at_ms`: when its join phase was over, NEVER where the record has none.
    Only the next one is that which had begun; of another one the begin was not seen either."""
    current = group.rebalance
    if group.state != GroupState.PREPARING or current is None or current.joined_at_ms >= 0:
        return
    facts.divergences += 1
    if current.generation_before + 1 == stored.generation:
        current.joined_at_ms, current.assigned_at_ms = joined_at_ms, at
        current.generation_after, current.leader, current.settled = stored.generation, stored.leader, True
        current.unrequested, current.size = True, len(stored.member_ids)
        choose(facts, group, current, [])
        if current.cause is not None and not current.cause.named:
            # Somebody whose answer was not read may have begun it.
            current.cause.doubts |= Doubt.BEGIN_UNSEEN
        emit(facts, group, current)
    else:
        pass_over(facts, group, at)
        drop(facts, group)
    group.stable_at_ms = at
    facts.set_state(group, at, GroupState.STABLE, "group record", Doubt.SEEN_LATER)


def _not_seen_to_begin(group: Group, generation: int, *, missed: bool) -> Rebalance:
    """The rebalance of which the first that is seen is its end. `missed`: nor was a generation before it."""
    known_before = group.membership_complete or group.state in (GroupState.EMPTY, GroupState.DEAD) or generation == 1
    remember(group)
    over_at = sync_deadline(group)
    for member in group.members.values():
        member.rebalance_notified_at_ms = NEVER  # of one before this
    group.rebalance = Rebalance(
        generation_before=generation - 1,
        started_at_ms=NEVER,
        members_before=len(group.members) if known_before and not missed else -1,
        sync_over_at_ms=NEVER if missed else over_at,
    )
    return group.rebalance


def _restart(facts: Facts, group: Group, at: float) -> None:
    """A generation that has been is answered again: the group was deleted meanwhile, or loaded from a record before."""
    for member in list(group.members.values()):
        lives.end(facts, group, member, at, "unknown", "", Doubt.NOT_SEEN)
    facts.set_state(group, at, GroupState.DEAD, "generation restarted", Doubt.BY_ELIMINATION)
    group.generation = 0
    group.instances.clear()
    group.stored = None
    group.membership_complete = False
