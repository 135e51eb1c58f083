"""Which members of a group hold it up, and which predictions are worth an alert. Reads no clock."""

from __future__ import annotations

from typing import Any

from api.present.current import GroupView
from api.present.health import session_headroom


def zombies(view: GroupView) -> list[Any]:
    """Health rows of members whose heartbeats go on while they do no work: the group prepares a rebalance, and half of
    its rebalance timeout has passed without their JoinGroup; or it was foretold that their poll interval would run out,
    it has, and since then neither a heartbeat nor a leave has come when one was due: who polls goes on, a client that
    has given up leaves, or ends its heartbeats where it has a static id. Where nothing was foretold, the deadline in a
    row says nothing: a library that shows its polls by what it commits shows none on an idle topic. Nothing is said of
    a member whose session has run out or is unknown."""
    return view.remembered("zombies", _zombies)


def _zombies(view: GroupView) -> list[Any]:
    found = {
        member_id: health
        for (member_id, kind), row in view.predictions.items()
        if kind in ("poll", "rebalance")
        and (health := view.health.get(member_id)) is not None
        and (session_headroom(health) or 0) > 0
        and (kind == "rebalance" or row.deadline_at_ms + _heard_within_ms(health) <= health.at_ms)
    }
    return list(found.values())


def _heard_within_ms(health: Any) -> float:
    """A client that lives is heard so often at least: `heartbeat.interval.ms` is to be a third of a session at most."""
    return float(health.session_timeout_ms or 0) / 3


def endangered(view: GroupView) -> list[Any]:
    """Open predictions that are worth an alert. One of a session timeout that is provisional yet is not: a heartbeat
    may only be late. Of polls, provisional is as much as the requests of some libraries allow."""
    return [row for row in view.predictions.values() if row.kind != "session" or row.certainty != "provisional"]
