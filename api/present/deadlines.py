"""Which members of a group hold it up, and which predictions are worth an alert. Reads no clock."""

from __future__ import annotations

from typing import Any

from api.present.current import GroupView
from api.present.health import poll_headroom, session_headroom


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
