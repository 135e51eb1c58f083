"""Answers in the shape of Burrow's HTTP API, version 3, for scripts that ask Burrow today. Pure.

Burrow judges a group by its committed offsets, Kardia by the liveness of its members; so OK, WARN and ERR mean another
thing here, and the message of each answer says it. Lag is null, not 0: Kardia does not read offsets, and a 0 would be
believed. `complete` is the share of members about whom enough is known, where Burrow counts partitions: 0 while the
feed is stale, and no group is OK then.

Shapes: github.com/linkedin/Burrow, core/internal/httpserver/structs.go and core/protocol/evaluator.go at ced55ba90f.
"""

from __future__ import annotations

from typing import Any

from api.answers.dangers import REBALANCING
from api.present import present
from api.present.current import GroupView
from api.present.freshness import Freshness
from kardia.instants import to_rfc3339

MEANING = "consumer status returned: liveness of its members by Kardia; offsets and lag are not known here"

NOT_HERE = (
    "not known to Kardia, which tells liveness and not offsets or lag; expected /v3/kafka, "
    "/v3/kafka/CLUSTER/consumer or /v3/kafka/CLUSTER/consumer/GROUP/status; ask Burrow for the rest"
)


def answer(path: str, message: str, *, error: bool = False, **members: Any) -> dict[str, Any]:
    """Every answer of Burrow: whether it is an error, a message, its own members, and what was asked."""
    return {"error": error, "message": message, **members, "request": {"url": path, "host": "kardia"}}


def meaning(freshness: Freshness) -> str:
    """The message of an answer about groups; a stale feed is told in it."""
    if not freshness.stale:
        return MEANING
    if freshness.complete_as_of_ms is None:
        return f"{MEANING}; nothing is known yet: no log of this cluster has been read"
    known_to = to_rfc3339(freshness.complete_as_of_ms)
    return f"{MEANING}; nothing is known since {known_to}: the feed is stale, so every group is WARN"


def status(cluster_id: str, group_id: str, view: GroupView | None, *, stale: bool) -> dict[str, Any]:
    """Burrow's status object of a group; NOTFOUND for one that was never seen."""
    total = 0 if view is None else len(view.lives)
    known = 0 if view is None or stale else total - view.statuses()["unknown"]
    return {
        "cluster": cluster_id,
        "group": group_id,
        "status": "NOTFOUND" if view is None else _word(view, stale=stale),
        "complete": round(known / total, 4) if total else 0.0,
        "partitions": [],
        "partition_count": 0,
        "maxlag": None,
        "totallag": None,
    }


def _word(view: GroupView, *, stale: bool) -> str:
    """ERR: a deadline passed; WARN: one comes near, a rebalance is under way, or not everything is known; else OK."""
    if stale:
        return "WARN"
    statuses = present.shown_by_status(view)
    if statuses["overdue"]:
        return "ERR"
    unsure = statuses["imminent"] or statuses["unknown"] or view.state_name in (*REBALANCING, "Unknown")
    return "WARN" if unsure else "OK"
