"""How rows of `rebalances` are matched with what the coordinator did."""

from __future__ import annotations

from typing import Any

from tests.truth.fleet import ledgers
from tests.truth.fleet.truth import TrueRebalance


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
