"""Recorded stories on each rung of evidence: samples of the admin API, the offsets topic, server.log, the last two
together, and with the request log.

Nothing is wrong on any rung, and what a lower one says to be exact no higher one says otherwise.
"""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import pytest

from tests.corpora.evidence_levels_page import BEGIN, END, part
from tests.corpora.test_outages import OF_THREE, OUTAGES
from tests.support.evidence_levels import RUNGS, Score, classic, contradictions, rows_of, score, scored
from tests.support.stories import OLD_STORIES, SAMPLED_STORIES, STARVED_STORIES, STORIES, Story, lanes_of, observe

ROOT = Path(__file__).resolve().parents[2]

ALL = (*STORIES, *OLD_STORIES, *OUTAGES, *OF_THREE, *SAMPLED_STORIES, *STARVED_STORIES)

OLDEST = tuple(name for name in OLD_STORIES if name.endswith("-2.0.1"))
"""Their server.log tells neither reasons nor leaves."""

SAMPLES = {"offsets": False, "requests": False, "samples": True}

HAS_STRANGE_NAMES = "o25_odd-2.3.1"
"""Some names of it hold line breaks, which cut the sentences about them."""


@pytest.mark.parametrize("rung", ["2", "3", "4"])
@pytest.mark.parametrize("name", ALL)
def test_nothing_is_said_that_was_not_so(name: str, rung: str) -> None:
    assert score(name, rung).problems == []


@pytest.mark.parametrize("name", STARVED_STORIES)
def test_beside_requests_nothing_is_said_that_was_not_so_on_a_starved_machine(name: str) -> None:
    found = score(name, "5")
    assert found.problems == []
    assert (found.evictions.unknown, found.rebalances.unknown, found.triggers.unknown) == (0, 0, 0)


@pytest.mark.parametrize("name", SAMPLED_STORIES)
def test_samples_tell_of_every_end_between_which_two_instants_it_was_and_never_why(name: str) -> None:
    found = score(name, "1")
    assert found.problems == []
    for count in (found.evictions, found.leaves, found.replacements):
        assert count.between > 0
        assert count == (0, count.between, 0, 0)
    assert found.rebalances.between > 0
    assert (found.rebalances.found, found.rebalances.wrong, found.triggers.found) == (0, 0, 0)
    said = rows_of(name, "1")
    assert not said["rebalances"]
    assert "exact" not in {row["certainty"] for rows in said.values() for row in rows}


@pytest.mark.parametrize("rung", ["2", "4", "5"])
@pytest.mark.parametrize("name", SAMPLED_STORIES)
def test_beside_records_and_requests_samples_change_nothing(name: str, rung: str) -> None:
    with_samples = classic(observe(lanes_of(name, **RUNGS[rung] | {"samples": True})))
    assert with_samples == rows_of(name, rung)


@pytest.mark.parametrize("name", SAMPLED_STORIES)
def test_beside_sentences_samples_take_nothing_back(name: str) -> None:
    with_samples = scored(Story(name).expect, classic(observe(lanes_of(name, server_log=True, **SAMPLES))), "3")
    assert with_samples == score(name, "3")


@pytest.mark.parametrize("name", ALL)
def test_what_is_exact_on_a_rung_is_not_said_otherwise_on_a_higher_one(name: str) -> None:
    rungs = [rung for rung in RUNGS if rung in "2345"]
    pairs = [(low, high) for low, high in combinations(rungs, 2) if (low, high) != ("2", "3")]
    assert [one for low, high in pairs for one in contradictions(name, low, high)] == []


@pytest.mark.parametrize("rung", ["3", "4"])
@pytest.mark.parametrize("name", ALL)
def test_server_log_tells_every_eviction_and_the_begin_of_every_rebalance(name: str, rung: str) -> None:
    found = score(name, rung)
    unsaid = {"o11_join_timeout-2.0.1": 1} if rung == "3" else {}  # up to 2.5 it has no sentence
    assert found.evictions.unknown == unsaid.get(name, 0)
    if name != HAS_STRANGE_NAMES:
        assert found.rebalances.unknown == 0


@pytest.mark.parametrize("rung", ["3", "4"])
@pytest.mark.parametrize("name", [name for name in ALL if name not in OLDEST and name != HAS_STRANGE_NAMES])
def test_from_2_2_on_it_tells_every_trigger_and_every_leave(name: str, rung: str) -> None:
    found = score(name, rung)
    assert (found.triggers.unknown, found.leaves.unknown) == (0, 0)


@pytest.mark.parametrize("name", [name for name in STORIES if name != "c15_assign-4.1.2"])
def test_the_offsets_topic_alone_tells_of_every_generation_that_was_stored(name: str) -> None:
    found = {(row["group_id"], row["generation_after"]) for row in rows_of(name, "2")["rebalances"]}
    stored = {
        (row["group_id"], row["generation_after"])
        for row in rows_of(name, "5")["rebalances"]
        if row["completed_at_ms"] is not None
    }
    static = {row["group_id"] for row in rows_of(name, "5")["members"] if row["group_instance_id"]}
    assert {key for key in stored - found if key[0] not in static} == set()


def test_no_rung_without_requests_claims_what_takes_them() -> None:
    for name in ("c01_kill-3.9.2", "c06_static-3.9.2", "o01_kill-2.7.2", "d01_kill_long-4.4.0"):
        for rung in ("2", "3", "4"):
            rows = rows_of(name, rung)
            assert {row["fault"] for row in rows["members"]} <= {None, "unknown"}
            assert {row["member_seconds_lost"] for row in rows["rebalances"]} <= {None, 0}


def test_the_page_says_what_is_found() -> None:
    page = (ROOT / "docs" / "reference" / "truth.md").read_text(encoding="utf-8")
    assert f"{BEGIN}\n{part()}{END}" in page, (
        "python -m tests.corpora.evidence_levels_page --markdown docs/reference/truth.md"
    )


def test_a_score_tells_wrong_from_unknown() -> None:
    """The score itself: on the lowest rung nobody's end is found, and nothing is wrong."""
    found: Score = score("c01_kill-3.9.2", "2")
    assert (found.evictions.found, found.evictions.unknown, found.evictions.wrong) == (0, 2, 0)
