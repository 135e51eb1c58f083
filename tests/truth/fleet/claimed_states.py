"""The group's state at any instant, as the finished history tells it, against the coordinator's."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, Any

from kardia.kafka.states import GroupState
from tests.truth.fleet.bounds import MOST_LATE_MS
from tests.truth.fleet.damage import Damage
from tests.truth.fleet.truth import Truth
from tests.truth.fleet.world import START_MS

if TYPE_CHECKING:
    from tests.truth.fleet.score import Score

EVERY_MS = 730.0
"""Distance of the instants that are compared; shares no factor with any habit of a client."""

NEAR_MS = 15.0
"""That close to a change either state is right."""


BETWEEN = ("sampled", "rebalanced")
"""Causes of rows that say a change between two samples of the admin API."""


def doubts(health: list[dict[str, Any]]) -> dict[str, tuple[int, str]]:
    """Member -> (instant, status) where the last row about it says that it is not known how it is, and why."""
    last = {row["member_id"]: row for row in health}
    return {
        member_id: (row["at_ms"], row["status"])
        for member_id, row in last.items()
        if row["status"] in ("unknown", "overdue") and row["reasons"]
    }


def compare(result: Score, truth: Truth, rows: list[dict[str, Any]], until_ms: float, damage: Damage) -> None:
    """Compare states at instants all through the run, up to the last one that had been settled by the end."""
    moves = [
        (row["at_ms"], row["seq"], row["to_state"], row["at_bound_ms"], row["cause"])
        for row in rows
        if row["entity"] == "group"
    ]
    moves.sort(key=lambda move: move[:2])
    last = next((one.started_at_ms for one in truth.rebalances if not 0 <= one.joined_at_ms <= until_ms), until_ms)
    at_ms = max(START_MS, damage.begins_at_ms)
    while (at_ms := at_ms + EVERY_MS) < min(last, until_ms):
        if truth.changes_between(at_ms - NEAR_MS, at_ms + NEAR_MS):
            continue
        view = truth.view_at(at_ms)
        place = bisect_right(moves, at_ms, key=lambda move: move[0]) - 1
        said = moves[place][2] if place >= 0 else "Unknown"
        true = view.state if view else "Dead"
        if said != true and place >= 0 and moves[place][4] in BETWEEN and _is_late(moves[place], at_ms):
            result.count("states between two samples")
            continue  # how it came to that is not seen
        if place > 0 and true == moves[place - 1][2] and _is_late(moves[place], at_ms):
            continue  # within the bound of what is said either is right
        if said == "Unknown" and true in ("Empty", "Dead"):
            continue  # nobody has spoken for it yet
        if truth.given_up_at(at_ms) is not None:
            continue  # nobody leads it, or nobody has asked its new coordinator yet
        if damage.dark(at_ms, at_ms):
            result.count("states in the dark")
            continue
        result.count("states")
        if said == true:
            result.count("states: right")
        elif said == GroupState.UNKNOWN:
            result.count("states: unknown")
        else:
            result.count(f"states: {true} said {said}")
            result.problem("state", truth.group_id, at_ms, f"{true}, said {said}")


def _is_late(move: tuple[int, int, str, int | None, str], at_ms: float) -> bool:
    """Whether the timer that moved the group may have fired after an instant."""
    began_ms, _, _, bound_ms, _ = move
    return at_ms <= began_ms + (MOST_LATE_MS if bound_ms is None else bound_ms)
