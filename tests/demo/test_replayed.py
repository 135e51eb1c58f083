"""Comparing live with replayed tables: cut at one instant, by what stands, and every difference is named."""

from __future__ import annotations

from typing import Any

import pytest

from demo.replayed import compare_rows, lines_until
from demo.tables import Record, standing

LINES = [
    b"[2026-01-02 03:04:05,006] first\n",
    b"  a line that continues it\n",
    b"[2026-01-02 03:04:05,007] second\n",
    b"[2026-01-02 03:04:06,000] third\n",
]
FIRST_AT_MS = 1767323045006


@pytest.mark.parametrize(("until_ms", "kept"), [(-1, 0), (0, 2), (1, 3), (993, 3), (994, 4), (10_000, 4)])
def test_a_log_is_cut_at_an_instant(until_ms: int, kept: int) -> None:
    assert list(lines_until(LINES, FIRST_AT_MS + until_ms)) == LINES[:kept]


def _row(**changes: Any) -> Record:
    row = {
        "cluster_id": "demo",
        "group_id": "g",
        "generation_before": 1,
        "started_at_ms": 5,
        "trigger": "member_left",
        "known_at_ms": 9,
        "batch_id": 3,
    }
    return row | changes


def test_equal_rows_are_equal_whenever_they_became_known() -> None:
    comparison = compare_rows("rebalances", [_row()], [_row(known_at_ms=11, batch_id=0)])
    assert comparison.equal
    assert comparison.sentence.endswith("rebalances equal, 1 rows.")


@pytest.mark.parametrize(
    ("live", "replayed", "expected"),
    [
        ([_row()], [_row(trigger="unknown")], "trigger 'member_left' live, 'unknown' replayed"),
        ([_row()], [], "is only in the live table"),
        ([], [_row()], "is only in the replayed table"),
        ([_row()], [_row(), _row(group_id="h")], "is only in the replayed table"),
    ],
)
def test_a_difference_is_named(live: list[Record], replayed: list[Record], expected: str) -> None:
    comparison = compare_rows("rebalances", live, replayed)
    assert not comparison.equal
    assert expected in comparison.sentence
    assert comparison.fault == comparison.sentence


def test_a_difference_is_no_fault_of_a_live_job_that_got_events_too_late_but_is_told() -> None:
    comparison = compare_rows("rebalances", [_row()], [_row(trigger="unknown")], late=2)
    assert comparison.fault == ""
    assert "differ after 2 lines came late to the live job" in comparison.sentence


def test_what_stands_is_known_last_then_written_last() -> None:
    rows = [
        _row(known_at_ms=9, batch_id=3, trigger="first"),
        _row(known_at_ms=12, batch_id=4, trigger="second"),
        _row(known_at_ms=11, batch_id=5, trigger="late but older"),
        _row(known_at_ms=12, batch_id=4, trigger="same batch, later"),
        _row(known_at_ms=12, batch_id=3, trigger="earlier batch"),
    ]
    [row] = standing(rows, ("group_id", "generation_before"))
    assert row["trigger"] == "same batch, later"
