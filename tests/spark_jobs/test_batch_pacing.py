"""Rests between batches: none while something happens or a timeout is near, short beside session timeouts, ended at
once by a stop."""

from __future__ import annotations

import math
import threading
from typing import Any

import pyarrow as pa
import pytest

from kardia.kafka.states import GroupState, ModernState
from kardia.tables import STATUSES
from spark_jobs.batch_pacing import AWAKE_S, CALM, FORGET_S, FULL, SHARE, Pace

QUIET_S, MAX_RECORDS = 2.0, 500


class World:
    """A pace at a virtual clock."""

    def __init__(self, quiet_s: float = QUIET_S) -> None:
        self.now_s, self.records = 0.0, 0
        self.pace = Pace(quiet_s, MAX_RECORDS, lambda: self.records, lambda: self.now_s)
        self.now_s = AWAKE_S

    def rest_s(self, **tables: list[dict[str, Any]]) -> float:
        """The rest after a batch with these rows."""
        return self.pace.rest_s({name: pa.Table.from_pylist(rows) for name, rows in tables.items()})


def member(
    status: str = "ok", session_ms: int | None = 45_000, poll_ms: int | None = None, group_state: str = "Stable"
) -> dict[str, Any]:
    timeouts = {"session_timeout_ms": session_ms, "poll_interval_ms": poll_ms}
    return {"status": status, "group_state": group_state, **timeouts}


PROGRESS = [{"lane": 1}]


def test_while_all_goes_on_as_before_batches_rest() -> None:
    world = World()
    assert world.rest_s(progress=PROGRESS) == QUIET_S
    assert world.rest_s(progress=PROGRESS, health=[member(), member()], lag=[{"lag": 3}]) == QUIET_S


def test_a_start_and_what_happens_keep_it_awake_for_a_while() -> None:
    world = World()
    world.now_s = AWAKE_S / 2
    assert world.rest_s(progress=PROGRESS) == 0
    world.now_s = AWAKE_S
    for table in ("transitions", "predictions", "rebalances", "rejected"):
        assert world.rest_s(progress=PROGRESS, **{table: [{"what": "anything"}]}) == 0
        world.now_s += AWAKE_S - 0.1
        assert world.rest_s(progress=PROGRESS) == 0
        world.now_s += 0.1
        assert world.rest_s(progress=PROGRESS) == QUIET_S


@pytest.mark.parametrize("status", STATUSES)
def test_members_in_danger_keep_it_awake(status: str) -> None:
    world = World()
    assert world.rest_s(progress=PROGRESS, health=[member(), member(status)]) == (QUIET_S if status in CALM else 0)


@pytest.mark.parametrize("state", sorted({*GroupState, *ModernState}))
def test_a_rebalance_keeps_it_awake_though_its_members_look_well(state: str) -> None:
    world = World()
    passing = {"PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling"}
    assert world.rest_s(health=[member(), member(group_state=state)]) == (0 if state in passing else QUIET_S)


def test_a_poll_interval_counts_as_a_session_timeout_does() -> None:
    assert World().rest_s(health=[member(poll_ms=8_000), member(poll_ms=300_000)]) == 8 / SHARE


def test_a_rest_is_short_beside_the_shortest_session_timeout() -> None:
    world = World()
    short_ms = 6_000
    assert world.rest_s(health=[member(), member(session_ms=short_ms), member(session_ms=None)]) == (
        short_ms / SHARE / 1000
    )
    world.now_s += FORGET_S  # it is not in every batch
    assert world.rest_s(health=[member()]) == short_ms / SHARE / 1000
    world.now_s += 1
    assert world.rest_s(health=[member()]) == QUIET_S
    assert world.rest_s(health=[member(session_ms=None)]) == QUIET_S


def test_much_that_comes_and_a_wish_for_none_leave_no_rest() -> None:
    world = World()
    world.records = math.ceil(FULL * MAX_RECORDS)
    assert world.rest_s(progress=PROGRESS) == 0
    world.records -= 1
    assert world.rest_s(progress=PROGRESS) == QUIET_S
    assert World(0.0).rest_s(progress=PROGRESS) == 0


def test_a_stop_ends_a_rest_and_lets_there_be_no_other() -> None:
    world = World(quiet_s=600.0)
    resting = threading.Thread(target=lambda: world.pace.rest({}), daemon=True)
    resting.start()
    world.pace.end()
    resting.join()
    world.pace.rest({})
