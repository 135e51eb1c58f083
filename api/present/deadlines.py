"""Arithmetic of the two deadlines of a member. Reads no clock.

Headroom is the part of a timeout that was left at the instant of the health row, not at present: a member in good
health is written every few seconds only, and the silence between two rows is ours, not the member's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from api.present.current import GroupView
from api.present.health import is_known


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
"""Kind of a timeout that every health row tells of -> its headroom."""


def least_headroom(view: GroupView) -> float | None:
    """The least headroom of any timeout of any member."""
    return least(of(health) for health in view.health.values() for of in HEADROOM_OF.values())


def zombies(view: GroupView) -> list[Any]:
    """Health rows of members whose heartbeats go on while they do no work: the group prepares a rebalance, and half of
    its rebalance timeout has passed without their JoinGroup; or their poll deadline is behind them and they are still
    there, which a Java client would not be. Nothing is said of a member whose session has run out or is unknown."""
    return view.remembered("zombies", _zombies)


_SHORT_MS = 200_000
"""More than 1/20,000 of any poll interval, which are 31-bit numbers: what is longer is no headroom of 0."""


def _zombies(view: GroupView) -> list[Any]:
    predictions = view.predictions
    return [
        health
        for member_id, health in view.health.items()
        if (
            (health.poll_deadline_at_ms is not None and health.poll_deadline_at_ms - health.at_ms < _SHORT_MS)
            or (predictions and (member_id, "rebalance") in predictions)
        )
        and (session_headroom(health) or 0) > 0
        and ((member_id, "rebalance") in predictions or poll_headroom(health) == 0)
    ]


def endangered(view: GroupView) -> list[Any]:
    """Open predictions that are worth an alert. One of a session timeout that is provisional yet is not: a heartbeat
    may only be late. Of polls, provisional is as much as the requests of some libraries allow."""
    return [row for row in view.predictions.values() if row.kind != "session" or row.certainty != "provisional"]
