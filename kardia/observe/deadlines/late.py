"""Timers that fire late: between which instants one fired, and which of two may have been the first. Arithmetic only.

A timer never fires before its deadline. A busy broker fires it late, and goes on answering meanwhile: a heartbeat that
is handled before the timer of its session renews it, and others are answered as in a Stable group. So an instant that
only a deadline tells has bounds: not before the deadline nor before the last answer that shows that it had not fired,
and not after the first sign that it had. Sources: `DelayedHeartbeat` (Scala), `EventBasedCoordinatorTimer` (Java).
"""

from __future__ import annotations

from kardia.observe.state.group import NEVER, Group, Rebalance
from kardia.tolerances import LATE_MS


def fired_from(group: Group, due: float) -> float:
    """The earliest that a timer fired whose firing begins a rebalance: its deadline, or the last answer after it that
    shows a Stable group. One that seems later than `LATE_MS` is another matter: its deadline is not what is thought."""
    return group.steady_at_ms if due < group.steady_at_ms <= due + LATE_MS else due


def near(first_due: float, second_due: float) -> bool:
    """Whether either of two timers may have fired first: up to 3.9 those of sessions and of phases have a thread each,
    of which one may be late."""
    return abs(first_due - second_due) <= LATE_MS


def begun_by(current: Rebalance, since: float) -> float:
    """First sign that a rebalance which something at `since` or later began was under way: an answer that says so, a
    JoinGroup that had to wait, its end if somebody was answered then. NEVER if there is none yet."""
    ended_by = current.joined_at_ms if current.over_by is None else current.over_by
    signs = [
        current.rebalance_notified_at_ms,
        ended_by,
        *(join.came_by for join in (*current.joins, *current.refused)),
    ]
    return min((at for at in signs if at >= since), default=NEVER)


def earlier(first: float, second: float) -> float:
    """The earlier of two latest instants, of which either may not be known."""
    return max(first, second) if min(first, second) < 0 else min(first, second)
