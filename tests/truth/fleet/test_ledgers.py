"""How rows of `rebalances` are matched with what the coordinator did."""

from __future__ import annotations

from typing import Any

from tests.truth.fleet import ledgers
from tests.truth.fleet.damage import Damage
from tests.truth.fleet.score import Evidence, Score
from tests.truth.fleet.truth import TrueRebalance, Truth


def row(started_at_ms: int, bound_ms: int | None) -> dict[str, Any]:
    return {
        "started_at_ms": started_at_ms,
        "at_bound_ms": bound_ms,
        "completed_at_ms": started_at_ms,
        "completed_bound_ms": bound_ms,
    }


def test_a_bound_without_an_end_takes_no_row_from_the_rebalance_that_is_a_stamp_before_it() -> None:
    """A group of the same generation begins later: by itself the later one would lie within what is said."""
    first, later = TrueRebalance(22_091, "session_expired", "a", 1), TrueRebalance(69_354, "member_left", "b", 1)
    first.assigned_at_ms = -1
    later.assigned_at_ms = 69_354
    assert ledgers.distance(first, row(22_092, None)) < ledgers.distance(later, row(22_092, None))
    assert ledgers.distance(later, row(69_353, 0)) < ledgers.distance(first, row(69_353, 0))


def test_a_row_that_names_nobody_names_nobody_wrongly() -> None:
    """Records alone do not show who of the first members of a classic group joined first."""
    truth = Truth("g")
    one = TrueRebalance(1_000, "member_joined", "a", 0, joined_at_ms=2_000, generation_after=1, assigned_at_ms=2_010)
    truth.rebalances.append(one)
    said = row(1_000, 0) | {"generation_before": 0, "generation_after": 1, "trigger": "member_joined"}
    said |= {"trigger_member_id": None, "certainty": "inferred", "known_at_ms": 3_000, "joined_at_ms": 2_000}
    said |= {"completed_at_ms": 2_010, "stragglers": [], "protocol": "classic"}
    said |= {"members_before": None, "members_after": 1}
    result = Score()
    ledgers.compare(result, truth, [said], 10_000, Evidence(Damage(), set(), {}))
    assert not result.problems
    assert result.counts["trigger members not named"] == 1
    one.members_before, one.members_after = 0, 2
    ledgers.compare(result, truth, [said], 10_000, Evidence(Damage(), set(), {}))
    assert [text.partition(":")[0] for text in result.problems] == ["members after"]
