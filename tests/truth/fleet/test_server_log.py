"""`server.log` beside the request log: it sharpens what is said, and contradicts nothing that was said to be exact.

Goal: with the coordinator's own lines the observer is exact at least as often, and an end or the begin of a rebalance
that it says exactly without them is said so with them. Method: the same run of the fleet, observed twice.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.stories import named, standing
from tests.truth.fleet.run import play
from tests.truth.fleet.scenarios import SCENARIOS
from tests.truth.fleet.score import score
from tests.truth.fleet.seen import Seen, observe

GROUPS = 12

STAMP_MS = 2
"""The stamps of two lines of one instant are cut to 1 ms each."""


def ends(seen: Seen) -> dict[str, dict[str, Any]]:
    """Members whose end stands, by id."""
    return {row["member_id"]: row for row in standing("members", seen.rows["members"]) if row["ended_at_ms"]}


def rebalances(seen: Seen) -> dict[tuple[str, int], dict[str, Any]]:
    """Rebalances that stand, by group and generation before."""
    return {(row["group_id"], row["generation_before"]): row for row in standing("rebalances", seen.rows["rebalances"])}


def is_within(without: dict[str, Any], read: dict[str, Any], instant: str) -> bool:
    """Whether an instant is where it was said to be without the lines: there, or later within the bound."""
    latest = without[instant] + (without["at_bound_ms"] or 0)
    return bool(without[instant] - STAMP_MS <= read[instant] <= latest + STAMP_MS)


def exactly(seen: Seen, table: str) -> int:
    """How many rows that stand are said to be exact."""
    return sum(row["certainty"] == "exact" for row in standing(table, seen.rows[table]))


@pytest.mark.slow
@pytest.mark.parametrize("seed", [51, 52])
@pytest.mark.parametrize("version", ["3.9.2", "4.1.2", "4.4.0"])
def test_the_coordinators_own_lines_sharpen_and_contradict_nothing(version: str, seed: int) -> None:
    run = play(version, seed, GROUPS, SCENARIOS["server log"])
    without, read = observe(run, server=False), observe(run)
    for table in ("members", "rebalances"):
        assert exactly(read, table) >= exactly(without, table)
    before, after = ends(without), ends(read)
    for member_id, row in before.items():
        if row["certainty"] == "exact":
            found = after[member_id]
            assert found["end_cause"] == row["end_cause"], (row, found)
            assert is_within(row, found, "ended_at_ms"), (row, found)
    begun = rebalances(read)
    for place, row in rebalances(without).items():
        if row["certainty"] == "exact":
            found = begun[place]
            assert (found["trigger"], found["trigger_member_id"]) == (row["trigger"], row["trigger_member_id"])
            assert found["generation_after"] == row["generation_after"]
            assert is_within(row, found, "started_at_ms"), (row, found)


def test_who_fails_in_the_ms_in_which_the_join_phase_ends_begins_no_rebalance() -> None:
    """Its line comes after the answers that its end let go, by their stamps: it was the last to be waited for."""
    run = play("3.9.2", 42, 25, SCENARIOS["server log"])
    seen = observe(run)
    assert not [text for text in score(run, seen).problems if text.startswith(("exact and untrue", "rebalance"))]
    truth = run.truths["g2"]
    (one,) = [one for one in truth.rebalances if one.generation_before == 2]
    failed = [life for life in truth.lives if life.ended_at_ms == one.joined_at_ms]
    assert [life.cause for life in failed] == ["session_expired"]
    rows = [row for row in named("rebalances", seen.rows["rebalances"]) if row["group_id"] == "g2"]
    assert one.joined_at_ms not in {row["started_at_ms"] for row in rows}
