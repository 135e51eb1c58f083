"""The tables against the coordinator that runs on them: every cell is entered, every move and timer is met."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kardia.coordinator.classic.behaviour import behaviour_of
from kardia.coordinator.classic.choices import FirstById
from kardia.coordinator.classic.coordinator import HANDLERS, Coordinator
from kardia.coordinator.classic.operations import Heartbeat, Operation
from kardia.coordinator.classic.reactions import DOES, REACTIONS
from kardia.coordinator.classic.shard import Shard
from kardia.coordinator.happenings import HAPPENINGS
from kardia.coordinator.timers import TIMERS, TimerKind
from kardia.kafka.states import LEGAL_MOVES, MOVES, GroupState
from tests.coordinator.context import BOTH, GROUP, OTHER, Context, D, Request, S

STATES = (GroupState.EMPTY, GroupState.PREPARING, GroupState.COMPLETING, GroupState.STABLE)


def in_state(version: str, state: GroupState) -> tuple[Context, int]:
    """A group in a state, and its generation. But for Empty it has the members A (leads) and B, both free to act."""
    group = Context(version)
    if state is GroupState.EMPTY:
        group.commit()
        return group, 0
    group.join("A", version=3)
    group.join("B", version=3)
    group.at(2 * D)
    if state is not GroupState.COMPLETING:
        group.sync_all(1)
    if state is GroupState.PREPARING:
        group.join("C", version=3)
    group.sleep(1_000)
    assert group.state == str(state)
    return group, 1


ASKED: dict[str, Callable[[Context, int], int | Request]] = {
    "first JoinGroup": lambda group, _: group.join("N", version=3),
    "JoinGroup of a member": lambda group, _: group.rejoin("B"),
    "SyncGroup": lambda group, generation: group.sync("B", generation),
    "Heartbeat": lambda group, generation: group.heartbeat("B", generation),
    "OffsetCommit": lambda group, generation: group.commit("B", generation) if generation else group.commit(),
    "TxnOffsetCommit": lambda group, generation: (
        group.txn_commit("B", generation) if generation else group.txn_commit()
    ),
    "OffsetDelete": lambda group, _: group.delete_offsets("bills")[0],
    "DeleteGroups": lambda group, _: group.delete(),
}


def test_every_request_of_the_table_is_asked() -> None:
    assert set(ASKED) == set(REACTIONS)


@pytest.mark.parametrize("version", BOTH)
@pytest.mark.parametrize(("request_name", "state"), [(name, state) for name in REACTIONS for state in REACTIONS[name]])
def test_every_cell(version: str, request_name: str, state: GroupState) -> None:
    group, generation = in_state(version, state)
    before = group.view
    reaction = REACTIONS[request_name][state]
    assert reaction.does in DOES
    asked = ASKED[request_name](group, generation)
    if reaction.does in {"wait", "rebalance"}:
        assert isinstance(asked, Request)
        assert asked.waits
    else:
        error = asked.error if isinstance(asked, Request) else asked
        assert error == reaction.error
    if reaction.does == "delete":
        assert group.gone
        return
    rebalances = reaction.does == "rebalance"
    assert group.state == ("PreparingRebalance" if rebalances else before.state)
    if state is not GroupState.EMPTY and "B" in group.members and not group.member("B").waits_for_join:
        armed = group.deadline("B") == group.now_ms + S
        scala_sync = reaction.does == "serve" and behaviour_of(version).sync_when_stable_arms
        waits = group.member("B").waits_for_sync
        assert armed == (reaction.arms or scala_sync) or waits


@pytest.mark.parametrize("version", BOTH)
@pytest.mark.parametrize("state", [GroupState.COMPLETING, GroupState.STABLE])
@pytest.mark.parametrize("changed", [False, True])
@pytest.mark.parametrize("member_id", ["A", "B"])
def test_a_rejoin_compares(version: str, state: GroupState, changed: bool, member_id: str) -> None:
    group, _ = in_state(version, state)
    asked = group.rejoin(member_id, protocols=OTHER) if changed else group.rejoin(member_id)
    lead = REACTIONS["JoinGroup of a member"][state].does == "lead" and member_id == "A"
    assert asked.waits == (changed or lead)
    assert (group.state == "PreparingRebalance") == asked.waits
    if not asked.waits:
        assert (asked.answer.members != ()) == (member_id == "A")


def test_moves_have_a_cause_each() -> None:
    legal = {(before, after) for before, afters in LEGAL_MOVES.items() for after in afters}
    assert set(MOVES) == {(before, after) for before, after in legal if before is not GroupState.UNKNOWN}


def test_an_illegal_move_is_refused_by_name() -> None:
    shard = Shard(behaviour_of("3.9.2"), Context("3.9.2").settings, FirstById())
    group = shard.create("orders")
    with pytest.raises(RuntimeError, match="'orders': Empty may not become Stable"):
        shard.move(group, GroupState.STABLE, "by mistake")


def test_every_operation_has_a_handler() -> None:
    assert set(HANDLERS) == set(Operation.__args__)


def test_every_timer_is_described() -> None:
    assert {row.kind for row in TIMERS} == set(TimerKind)


def test_every_happening_of_the_list_can_happen() -> None:
    """One long story in both implementations; what is told is in the list, what is listed is told."""
    told: set[str] = set()
    for version in ("3.9.2", "4.1.2"):
        group = Context(version, group_max_size=3, offsets_retention_ms=600_000).stable("A", "B", rebalance=20_000)
        start = group.now_ms
        group.commit("A", 1)
        group.join("ghost", session=1_000)
        group.join("gone")
        group.leave("gone")
        group.at(start + 1_000).rejoin("A", rebalance=20_000)
        group.join("C", version=3, rebalance=20_000)
        group.heartbeat("B", 1)
        group.sleep(40_000)  # B does not rejoin.
        static = group.join("X", instance="x", rebalance=1_000)
        group.sleep(D)
        group.sync_all(static.answer.generation_id)
        group.join("X2", instance="x", rebalance=1_000)
        group.join("Y", version=3, rebalance=900_000)
        group.sleep(S)
        group.move()
        group.leave(("", "x"))
        group.sleep(3_000_000)
        full = Context(version, group_max_size=1).stable("A")
        full.join("B", version=3)
        full.leave("A")
        full.delete()
        nobody = Context(version).stable("L", "F", instances=True, rebalance=500)
        nobody.join("X", version=3, rebalance=500)
        nobody.sleep(500)
        nobody.leave("F")
        nobody.sleep(500)
        late = Context(version, initial_rebalance_delay_ms=400_000)
        late.join("A", version=3, session=500_000)
        late.sleep(300_000)
        never_syncs = Context(version)
        never_syncs.join("A", version=3, session=60_000, rebalance=20_000)
        never_syncs.at(D + 20_000)
        transactional = Context(version)
        transactional.txn_commit()
        transactional.end_transaction(commits=True)
        transactional.txn_commit()
        transactional.end_transaction(commits=False)
        transactional.delete_offsets("orders")
        slow = Context(version).stable("A", instances=True)
        slow.reconfigure(appends_take_time=True)
        slow.store(slow.join("B", instance="a"), error=15)
        for one in (group, full, nobody, late, never_syncs, transactional, slow):
            one.happened("")
            told |= {happening.kind for happening in one.happenings}
    assert told == set(HAPPENINGS)


class TestTheDoorsOfTheModelItself:
    def test_instants_only_grow(self) -> None:
        group = Context("3.9.2").at(1_000)
        with pytest.raises(ValueError, match="at_ms 999: expected 1000 or later"):
            group.coordinator.perform(_heartbeat(), 999)
        with pytest.raises(ValueError, match="to_ms 999: expected 1000 or later"):
            group.coordinator.advance(999)

    def test_no_timer_is_passed_over(self) -> None:
        coordinator = Coordinator(behaviour_of("3.9.2"))
        assert coordinator.next_deadline_at_ms() == 600_000
        with pytest.raises(ValueError, match="timer is due at 600000; advance to 600000 before"):
            coordinator.perform(_heartbeat(), 600_001)
        coordinator.perform(_heartbeat(), 600_000)
        assert coordinator.now_ms == 600_000

    def test_groups_are_listed(self) -> None:
        group = Context("3.9.2")
        group.commit(group="b")
        group.commit(group="a")
        assert group.coordinator.group_ids() == ("a", "b")
        assert group.coordinator.view(GROUP) is None


def _heartbeat() -> Operation:
    return Heartbeat(1, 4, GROUP, 1, "A", None)
