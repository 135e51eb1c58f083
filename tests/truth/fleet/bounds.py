"""How far an instant that is said lies from the true one, when a bound is said with it."""

from __future__ import annotations

MOST_LATE_MS = 1_000
"""A timer that nothing is said of beyond its deadline fires by then. The same as `kardia.tolerances.LATE_MS`, and
written down here once more: what is judged does not choose the measure."""


def off_ms(said_ms: int, bound_ms: int | None, true_ms: int) -> int:
    """0 between what is said and its bound, else the distance to the nearer of the two: positive where what is said is
    too late. `bound_ms` None: it is said to have been so then or at any time later."""
    if true_ms < said_ms:
        return said_ms - true_ms
    latest_ms = true_ms if bound_ms is None else said_ms + bound_ms
    return min(0, latest_ms - true_ms)
