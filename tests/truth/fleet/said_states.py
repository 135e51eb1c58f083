"""The group's state at any instant, as the finished history tells it, against the coordinator's."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, Any

from kardia.model.states import GroupState
from tests.truth.fleet.truth import Truth
from tests.truth.fleet.world import START_MS

if TYPE_CHECKING:
    from tests.truth.fleet.score import Score

EVERY_MS = 730.0
"""Distance of the instants that are compared; shares no factor with any habit of a client."""

NEAR_MS = 15.0
"""That close to a change either state is right."""


def compare(result: Score, truth: Truth, rows: list[dict[str, Any]], until_ms: float) -> None:
    """Compare states at instants all through the run, up to the last one that had been settled by the end."""
    moves = [(row["at_ms"], row["seq"], row["to_state"]) for row in rows if row["entity"] == "group"]
    moves.sort()
    last = next((one.started_at_ms for one in truth.rebalances if not 0 <= one.joined_at_ms <= until_ms), until_ms)
    at_ms = START_MS
    while (at_ms := at_ms + EVERY_MS) < min(last, until_ms):
        if truth.changes_between(at_ms - NEAR_MS, at_ms + NEAR_MS):
            continue
        view = truth.view_at(at_ms)
        place = bisect_right(moves, at_ms, key=lambda move: move[0]) - 1
        said = moves[place][2] if place >= 0 else "Unknown"
        true = view.state if view else "Dead"
        if said == "Unknown" and true in ("Empty", "Dead"):
            continue  # nobody has spoken for it yet
        result.count("states")
        if said == true:
            result.count("states: right")
        elif said == GroupState.UNKNOWN:
            result.count("states: unknown")
        else:
            result.count(f"states: {true} said {said}")
            result.problem("state", truth.group_id, at_ms, f"{true}, said {said}")
