"""The faults of a night are the same for the same seed, and every kind of them is drawn."""

from __future__ import annotations

import pytest

from supervise.supervisor import RESTARTS_MAX, RESTARTS_WINDOW_S
from tests.night.faults import (
    BROKER,
    EVENTS_TOPIC,
    LOGS,
    MEMBERS,
    QUIET_BEGIN_S,
    QUIET_END_S,
    ROLES,
    ROLES_OF,
    SPARK,
    TWIN,
    draw,
    plan_of,
)

HOUR_S = 3_600.0

BESIDE = {("kill", ""), ("kill", BROKER)}
"""Kills of consumers and of brokers."""


def test_the_same_seed_is_the_same_night_and_another_is_another() -> None:
    assert draw(7, HOUR_S) == draw(7, HOUR_S)
    assert draw(7, HOUR_S) != draw(8, HOUR_S)


@pytest.mark.parametrize("engine", ROLES_OF)
@pytest.mark.parametrize("seed", range(20))
def test_an_hour_has_every_kind_of_fault_and_begins_and_ends_quietly(seed: int, engine: str) -> None:
    steps = draw(seed, HOUR_S, engine)
    assert steps == sorted(steps)
    assert steps[0].at_s >= QUIET_BEGIN_S
    assert steps[-1].at_s <= HOUR_S - QUIET_END_S / 2
    done = {(step.what, step.whom if step.whom in (*ROLES, *LOGS, BROKER, EVENTS_TOPIC) else "") for step in steps}
    assert {("kill", role) for role in ROLES_OF[engine]} == {one for one in done if one[0] == "kill"} - BESIDE
    assert {(what, "broker") for what in ("kill", "freeze", "thaw", "start")} <= done
    assert {(what, "") for what in ("kill", "leave", "stall", "freeze", "thaw", "start", "again")} <= done
    assert {("copytruncate", log) for log in LOGS} <= done
    assert (("make again", EVENTS_TOPIC) in done) == (engine == SPARK)  # the other one has no topic
    assert any(step.whom.endswith(TWIN) for step in steps)


@pytest.mark.parametrize("seed", range(20))
def test_no_role_is_killed_more_often_than_its_supervisor_bears(seed: int) -> None:
    for engine, role in ((engine, role) for engine, roles in ROLES_OF.items() for role in roles):
        # A topic that is made again ends the job, and it may end the collector.
        ends = {("kill", role)} | ({("make again", EVENTS_TOPIC)} if role in ("stream", "collect") else set())
        kills = [step.at_s for step in draw(seed, HOUR_S, engine) if (step.what, step.whom) in ends]
        for place, at_s in enumerate(kills):
            assert sum(1 for other in kills[place:] if other - at_s < RESTARTS_WINDOW_S) <= RESTARTS_MAX


def test_a_twin_has_the_static_id_of_the_first_and_a_name_of_its_own() -> None:
    seat = next(plan for plan in MEMBERS if plan.instance_id)
    twin = plan_of(seat.client_id + TWIN)
    assert (twin.client_id, twin.instance_id, twin.group_id) == ("seat-1-twin", seat.instance_id, seat.group_id)
