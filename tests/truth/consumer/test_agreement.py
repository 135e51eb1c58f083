"""The model of consumer groups agrees with Kafka's own coordinator in random histories, and would be caught if not.

Goal: not one difference in a few thousand operations of every release here, in a million with `-m long`; mistakes that
are planted, and rows of the release table that are turned around, are noticed (`-m long` as well).
"""

from __future__ import annotations

import pytest

from kardia.coordinator.consumer.behaviour import SWITCHES
from tests.truth import agreeing, run
from tests.truth.consumer import canaries
from tests.truth.consumer.coverage import judge, listed
from tests.truth.coverage import Cell
from tests.truth.oracle.settings import CONSUMER_VERSIONS, VERSIONS

OPERATIONS = 4_000
MANY = 1_000_000

RARE = {
    "a rebalance timer fences in any epoch": "it takes a static member that leaves just before it is fenced",
    "the previous epoch is taken without a report": "few heartbeats carry the epoch before",
    "policy_refuses_classic": "few histories run with that policy",
    "downgrade_needs_every_target": "it takes a member that no target was computed for yet",
    "topics_take_all_offsets": "it takes an offset of a partition that its topic does not have",
}
"""Mistakes that a short run may miss."""


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_releases_agree_with_the_model() -> None:
    agreeing.holds(
        "consumer",
        tuple(version for version in VERSIONS if version in CONSUMER_VERSIONS),
        OPERATIONS,
        7,
        every_cell=False,
    )


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.timeout(20_000)
def test_every_release_agrees_with_the_model_and_every_situation_is_met() -> None:
    agreeing.holds("consumer", CONSUMER_VERSIONS, MANY, 2, every_cell=True)


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.timeout(900)
def test_mistakes_in_the_model_are_noticed() -> None:
    agreeing.notices("consumer", (name for name in (*canaries.EVERY, *SWITCHES) if name not in RARE))


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_disagreement_is_told_with_a_short_history_and_the_command_that_shows_it_again() -> None:
    options = ("--protocol", "consumer", "--operations", "3000", "--shrink", "sessions last 1 ms longer")

    told = run.finish(run.start("4.1.2", *options))["told"]

    assert "session_deadline_at_ms: Kafka " in told
    assert "Again: python -m tests.truth.run --version 4.1.2 --protocol consumer --seed 1 --history " in told
    assert told.count(" ms  ") <= 4


def test_cells_are_listed_once_and_a_missing_one_is_told() -> None:
    agreeing.lists_cells_once(listed(), judge, Cell("Stable", "Beat", "joins", "0"))
