"""The model of streams groups agrees with Kafka's own coordinator in random histories, and would be caught if not.

Goal: not one difference in a few thousand operations of the newest release here, in two million of each with `-m long`;
mistakes that are planted, and rows of the release table that are turned around, are noticed (`-m long` as well).
"""

from __future__ import annotations

import pytest

from kardia.coordinator.streams.behaviour import SWITCHES
from tests.truth import agreeing
from tests.truth.coverage import Cell
from tests.truth.oracle.settings import STREAMS_VERSIONS
from tests.truth.streams import canaries
from tests.truth.streams.coverage import judge, listed

OPERATIONS = 4_000
MANY = 2_000_000

MOOT = {
    "first_epoch_is_two": "in this release no group is in epoch 0",
    "nothing_is_validated_at_first": "the first heartbeat of a group makes an epoch anyhow, and records what it found",
}
"""Rows that a run of this release cannot tell."""


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_newest_release_agrees_with_the_model() -> None:
    agreeing.holds("streams", STREAMS_VERSIONS[-1:], OPERATIONS, 7, every_cell=False)


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.timeout(40_000)
def test_every_release_agrees_with_the_model_and_every_situation_is_met() -> None:
    agreeing.holds("streams", STREAMS_VERSIONS, MANY, 2, every_cell=True)


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.timeout(1_800)
def test_mistakes_in_the_model_are_noticed() -> None:
    agreeing.notices("streams", (name for name in (*canaries.EVERY, *SWITCHES) if name not in MOOT))


def test_cells_are_listed_once_and_a_missing_one_is_told() -> None:
    agreeing.lists_cells_once(listed(), judge, Cell("Stable", "StreamsBeat", "member leaves", "0, new epoch"))
