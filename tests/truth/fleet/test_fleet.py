"""The goals, over a few hundred groups of each release. A failure prints the command that plays it again."""

from __future__ import annotations

import pytest

from tests.truth.fleet.report import judged, missed, table
from tests.truth.fleet.run import play
from tests.truth.fleet.seen import observe

SEEDS = (11, 12)
GROUPS = 60


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("version", ["3.9.2", "4.1.2", "4.4.0"])
def test_what_is_said_is_true(version: str, seed: int) -> None:
    report = judged(version, seed, GROUPS)
    assert not missed(report), f"\n{table([report])}"


def test_lines_that_come_twice_change_nothing_but_the_count_of_repeats() -> None:
    run = play("3.9.2", 5, 6)
    once, twice = observe(run), observe(run, repeats=True)
    assert once.rows.pop("progress") != twice.rows.pop("progress")
    assert once.rows == twice.rows


def test_a_run_is_a_function_of_its_seed() -> None:
    first, second = judged("4.1.2", 5, 3), judged("4.1.2", 5, 3)
    assert first.as_json() == second.as_json()
