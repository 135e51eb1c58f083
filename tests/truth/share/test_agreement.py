"""The model of share groups agrees with Kafka's own coordinator in random histories, and would be caught if not.

Goal: not one difference in a few thousand operations of the newest release here, in a million of each with `-m long`;
mistakes that are planted, and rows of the release table that are turned around, are noticed (`-m long` as well).
"""

from __future__ import annotations

import pytest

from kardia.coordinator.share.behaviour import SWITCHES
from tests.truth import agreeing
from tests.truth.coverage import Cell
from tests.truth.oracle.settings import CONSUMER_VERSIONS
from tests.truth.share import canaries
from tests.truth.share.coverage import judge, listed

OPERATIONS = 4_000
MANY = 1_000_000

MOOT = {
    "every_partition_is_given": "in this release it is a law more, which the assignor keeps",
}
"""Rows that a short run of this release cannot tell."""


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_newest_release_agrees_with_the_model() -> None:
    agreeing.holds("share", CONSUMER_VERSIONS[-1:], OPERATIONS, 7, every_cell=False)


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.timeout(20_000)
def test_every_release_agrees_with_the_model_and_every_situation_is_met() -> None:
    agreeing.holds("share", CONSUMER_VERSIONS, MANY, 2, every_cell=True)


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.timeout(900)
def test_mistakes_in_the_model_are_noticed() -> None:
    agreeing.notices("share", (name for name in (*canaries.EVERY, *SWITCHES) if name not in MOOT))


def test_cells_are_listed_once_and_a_missing_one_is_told() -> None:
    agreeing.lists_cells_once(listed(), judge, Cell("Stable", "ShareBeat", "member leaves", "0, new epoch"))
