"""No answer depends on the number of lanes: every recorded story, by each kind of evidence, in one lane, two and six.

What is true of a broker (that it was started again, stood still, was busy) is known to the groups of every lane.
"""

from __future__ import annotations

from typing import Any

import pytest

from kardia.events import DEFAULT_LANES
from tests.corpora.test_outages import OF_THREE, OUTAGES
from tests.support.scene import SAME_IN_ANY_SPLIT
from tests.support.stories import (
    MODERN_STORIES,
    OLD_STORIES,
    RECORDED_EPOCHS,
    SAMPLED_STORIES,
    STARVED_BROKERS,
    STARVED_STORIES,
    STORIES,
    Story,
    lanes_of,
    live,
    observe,
)

EVIDENCE: dict[str, dict[str, bool]] = {
    "requests": {"offsets": False},
    "requests and records": {},
    "requests and server.log": {"offsets": False, "server_log": True},
    "everything": {"server_log": True},
    "server.log": {"requests": False, "offsets": False, "server_log": True},
    "records": {"requests": False},
    "server.log and records": {"requests": False, "server_log": True},
}
"""Kind of evidence -> what of a story is read."""

FEW = ("n01_broker_kill-3.9.2", "d01_kill_long-3.9.2", "d03_coordkill_classic-3.9.2")

ALL = (
    *(*STORIES, *OUTAGES, *OF_THREE, *STARVED_BROKERS, *STARVED_STORIES),
    *(*MODERN_STORIES, *OLD_STORIES, *RECORDED_EPOCHS, *SAMPLED_STORIES),
)


def told(rows: dict[str, list[Any]]) -> dict[str, list[str]]:
    """Rows of the tables that do not depend on how the events came, in one order."""
    return {table: sorted(map(repr, rows.get(table, ()))) for table in SAME_IN_ANY_SPLIT}


def has(name: str, what: dict[str, bool]) -> bool:
    """Whether the story has the logs that a kind of evidence takes."""
    reads_records = what.get("offsets", True)
    return not reads_records or (Story(name).folder / "offsets.jsonl.gz").exists()


def equal_in_any_number(name: str, evidence: str) -> None:
    """Raise where the rows differ."""
    one = told(observe(lanes_of(name, **EVIDENCE[evidence], count=1)))
    for count in (2, DEFAULT_LANES):
        assert told(observe(lanes_of(name, **EVIDENCE[evidence], count=count))) == one, count


@pytest.mark.parametrize("evidence", ["requests", "requests and server.log", "server.log"])
@pytest.mark.parametrize("name", FEW)
def test_a_story_is_told_the_same_in_any_number_of_lanes(name: str, evidence: str) -> None:
    equal_in_any_number(name, evidence)


@pytest.mark.parametrize("name", FEW)
def test_a_story_read_live_is_told_the_same_in_any_number_of_lanes(name: str) -> None:
    one = told(live(name, count=1, offsets=False))
    for count in (2, DEFAULT_LANES):
        assert told(live(name, count=count, offsets=False)) == one, count


@pytest.mark.long
@pytest.mark.parametrize("evidence", EVIDENCE)
@pytest.mark.parametrize("name", ALL)
def test_every_story_is_told_the_same_in_any_number_of_lanes(name: str, evidence: str) -> None:
    if has(name, EVIDENCE[evidence]):
        equal_in_any_number(name, evidence)


@pytest.mark.long
@pytest.mark.parametrize("name", [*STORIES, *OUTAGES, *OF_THREE, *STARVED_BROKERS])
def test_every_story_read_live_is_told_the_same_in_any_number_of_lanes(name: str) -> None:
    one = told(live(name, count=1, offsets=False))
    for count in (2, DEFAULT_LANES):
        assert told(live(name, count=count, offsets=False)) == one, count
