"""Rows of the release table that random histories of some length do not notice, noticed by one short history each.

Goal: the model agrees with Kafka's classes in it, and a model with that row turned around does not. Method: the history
is played on both (`Lockstep`), in a process of its own for each release.
"""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pytest

from kardia.coordinator.classic.behaviour import behaviour_of
from kardia.coordinator.classic.operations import Join, Operation, Sync, TxnCommit, TxnEnd
from kardia.coordinator.operations import Load, Unload
from tests.truth.canaries import flipped
from tests.truth.draw import SETTINGS, STARTED_AT_MS, subscription
from tests.truth.lockstep import Disagreement, Lockstep, Move

JOINED_MS = STARTED_AT_MS + 6_000
"""The delay of a first rebalance, once more because somebody joined in it."""
LOADED_MS = JOINED_MS + 2_000
SESSION_MS = 10_000
RANGE = (("range", subscription("orders")),)


def join(number: int, rebalance_ms: int, again: Join | None = None) -> Join:
    """A static member's JoinGroup."""
    new_id = f"i{number}-8d3cbcf0-1c7b-4d24-a7df-a8e27f379d{number:02}"
    instance, member_id = (again.group_instance_id, again.new_id) if again else (f"i{number}", "")
    where = ("c", "/10.0.0.1")
    return Join(number, 9, "g", member_id, instance, *where, SESSION_MS, rebalance_ms, "consumer", RANGE, None, new_id)


def loaded(*members: Join, group_max_size: int | None = None) -> list[Move]:
    """A Stable group that another broker gives up and this one loads."""
    leader = members[0]
    assignments = tuple((one.new_id, b"a") for one in members)
    sync = Sync(50, 5, "g", 1, leader.new_id, leader.group_instance_id, "consumer", "range", assignments)
    return [
        *(Move(STARTED_AT_MS, True, one) for one in members),
        Move(JOINED_MS + 10, True, sync),
        Move(LOADED_MS - 100, True, Unload(51)),
        Move(LOADED_MS, True, Load(52, group_max_size=group_max_size)),
    ]


def of_an_overfull_group() -> list[Move]:
    """a is back at once; the time for that and the session of b, static, end in one instant: was b in it?"""
    first, second = join(1, SESSION_MS), join(2, SESSION_MS)
    back = Move(LOADED_MS + 1_000, True, join(3, SESSION_MS, first))
    return [*loaded(first, second, group_max_size=1), back, Move(LOADED_MS + 2 * SESSION_MS, True, None)]


def of_an_aborted_transaction() -> list[Move]:
    """All that the log has of a group are offsets that never took effect."""
    commit = TxnCommit(1, 3, "g", 7, 0, -1, "", None, "orders", 0, 1)
    acts: tuple[Operation, ...] = (commit, TxnEnd(2, 7, False), Unload(3), Load(4))
    return [Move(STARTED_AT_MS + 10 * place, True, act) for place, act in enumerate(acts)]


HISTORIES = {
    "offset_records_bring_group": of_an_aborted_transaction(),
    "absent_rebalance_timeout_is_session": loaded(join(1, 60_000), join(2, -1)),
    "overfull_rebalances_before_arming": of_an_overfull_group(),
}


def played(version: str, switch: str, turned: bool) -> str:
    """The disagreement, "" for none."""
    lockstep = Lockstep(version, SETTINGS[0], flipped(behaviour_of(version), switch) if turned else None)
    try:
        for move in HISTORIES[switch]:
            lockstep.play(move)
    except Disagreement as disagreement:
        return str(disagreement)
    return ""


@pytest.mark.slow
@pytest.mark.parametrize("version", ["3.9.2", "4.1.2"])
def test_a_rare_difference_is_noticed(version: str) -> None:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn"), max_tasks_per_child=8) as process:
        for switch in HISTORIES:
            assert process.submit(played, version, switch, False).result(timeout=300) == ""
            assert process.submit(played, version, switch, True).result(timeout=300) != "", switch
