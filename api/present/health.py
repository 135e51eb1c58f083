"""Of one row of `health`: the status that is shown, whether its deadlines are known, and what was left of them.

Headroom is the part of a timeout that was left at the instant of the row, not at present: a member in good health is
written every few seconds only, and the silence between two rows is ours, not the member's. Reads no clock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from kardia.statuses import NOT_KNOWN, shown


def shown_as(health: Any) -> str:
    """The status of a row as it is shown."""
    return shown(health.status, health.group_state, health.awaited_since_at_ms)


def is_known(health: Any) -> bool:
    """Whether what is left of the timeouts of a member can be told. Not since a gap, and not of one that is silent in a
    rebalance: it may wait in a JoinGroup, where no timeout runs."""
    return shown_as(health) not in NOT_KNOWN


def headroom(deadline_at_ms: int | None, timeout_ms: int | None, at_ms: int) -> float | None:
    """Ratio 0 to 1 of the timeout that was left at `at_ms`."""
    if deadline_at_ms is None or not timeout_ms:
        return None
    return round(max(0.0, min(1.0, (deadline_at_ms - at_ms) / timeout_ms)), 4)


def session_headroom(health: Any) -> float | None:
    """Headroom of the session timeout; None of a member of whom nobody can tell it: see `is_known`."""
    if not is_known(health):
        return None
    return headroom(health.session_deadline_at_ms, health.session_timeout_ms, health.at_ms)


def poll_headroom(health: Any) -> float | None:
    """Headroom of the poll timeout; None of a member of whom nobody can tell it: see `is_known`."""
    if not is_known(health):
        return None
    return headroom(health.poll_deadline_at_ms, poll_interval_ms(health), health.at_ms)


def session_timeout_ms(health: Any) -> int | None:
    """Session timeout in force."""
    return None if health.session_timeout_ms is None else int(health.session_timeout_ms)


def poll_interval_ms(health: Any) -> int | None:
    """What the client promised: as announced, or else the distance from its last poll to its deadline."""
    if health.poll_interval_ms is not None:
        return int(health.poll_interval_ms)
    if health.poll_deadline_at_ms is None or health.last_poll_at_ms is None:
        return None
    return int(health.poll_deadline_at_ms - health.last_poll_at_ms)


def least(found: Iterable[float | None]) -> float | None:
    """The least of those that are known."""
    return min((ratio for ratio in found if ratio is not None), default=None)


HEADROOM_OF: dict[str, Callable[[Any], float | None]] = {"session": session_headroom, "poll": poll_headroom}
"""Kind of a timeout that every row tells of -> its headroom."""
