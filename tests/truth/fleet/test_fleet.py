"""The goals, over a few hundred groups of each release. A failure prints the command that plays it again."""

from __future__ import annotations

import pytest

from tests.support.stories import standing
from tests.truth.fleet.report import judged, missed, table
from tests.truth.fleet.run import play
from tests.truth.fleet.scenarios import SCENARIOS, Scenario
from tests.truth.fleet.seen import observe

SEEDS = (11, 12)
GROUPS = 60


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("version", ["3.9.2", "4.1.2", "4.4.0"])
def test_what_is_said_is_true(version: str, seed: int) -> None:
    report = judged(version, seed, GROUPS)
    assert not missed(report), f"\n{table([report])}"


@pytest.mark.slow
@pytest.mark.parametrize("scenario", [one for one in SCENARIOS.values() if one.share], ids=lambda one: one.name)
def test_what_is_said_is_true_whatever_befalls_the_brokers_and_the_evidence(scenario: Scenario) -> None:
    for version in ("3.9.2", "4.4.0"):
        report = judged(version, 31, 15, scenario)
        assert not missed(report), f"\n{table([report])}"


def test_the_offsets_topic_adds_nothing_that_the_request_log_contradicts() -> None:
    """The same run, read without and with the topic: the same lives end, at the same instants."""
    run = play("4.1.2", 6, 8, SCENARIOS["records"])
    ends = []
    for records in (False, True):
        rows = standing("members", observe(run, records=records).rows["members"])
        ends.append({(row["member_id"], row["ended_at_ms"]) for row in rows if row["end_cause"] != "group_deleted"})
    assert ends[0] == ends[1]


def test_lines_that_come_twice_change_nothing_but_the_count_of_repeats() -> None:
    run = play("3.9.2", 5, 6)
    once, twice = observe(run), observe(run, repeats=True)
    assert once.rows.pop("progress") != twice.rows.pop("progress")
    assert once.rows == twice.rows


def test_a_run_is_a_function_of_its_seed() -> None:
    first, second = judged("4.1.2", 5, 3), judged("4.1.2", 5, 3)
    assert first.as_json() == second.as_json()
