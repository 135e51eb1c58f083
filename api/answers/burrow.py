"""Answers in the shape of Burrow's HTTP API, version 3, for scripts that ask Burrow today. Pure.

A group whose commits and ends are read is judged by Burrow's own rules (`kardia.lag.commits`), with its lag. Of any
other group only the liveness of its members is known: then OK, WARN and ERR mean another thing, the message of the
answer says it, and lag is null, not 0, which would be believed. `complete` is the share of partitions whose window of
commits is full, or of members about whom enough is known. Nothing is OK, and `complete` is 0, while the feed is stale.

Shapes: github.com/linkedin/Burrow, core/internal/httpserver/structs.go and core/protocol/evaluator.go at ced55ba90f.
"""

from __future__ import annotations

from typing import Any

from api.answers import lag
from api.answers.dangers import REBALANCING
from api.answers.lag import Known
from api.present.current import ClusterView, GroupView
from api.present.freshness import Freshness
from api.present.lagging import LagView
from kardia.instants import to_rfc3339
from kardia.lag.commits import WINDOW

MEANING = "consumer status returned: liveness of its members by Kardia; offsets and lag are not known here"

BY_OFFSETS = "consumer status returned"

NOT_HERE = (
    "not known to Kardia; expected /v3/kafka, /v3/kafka/CLUSTER/consumer, /v3/kafka/CLUSTER/consumer/GROUP/status or "
    "/v3/kafka/CLUSTER/consumer/GROUP/lag; ask Burrow for the rest"
)


def answer(path: str, message: str, *, error: bool = False, **members: Any) -> dict[str, Any]:
    """Every answer of Burrow: whether it is an error, a message, its own members, and what was asked."""
    return {"error": error, "message": message, **members, "request": {"url": path, "host": "kardia"}}


def meaning(freshness: Freshness, known: Known | None = None) -> str:
    """The message of an answer about groups; a stale feed is told in it. `known`: of a group whose commits are read."""
    if known is not None and not freshness.stale:
        if not known.stale:
            return BY_OFFSETS
        since = "ever" if known.as_of_ms is None else f"since {to_rfc3339(known.as_of_ms)}"
        return f"{BY_OFFSETS}; lag is not known: nobody has looked at the ends of partitions {since}"
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


def status_by_offsets(
    cluster: ClusterView, view: LagView, known: Known, *, stale: bool, every_partition: bool
) -> dict[str, Any]:
    """Burrow's status object of a group whose commits are read; `every_partition`: also those that are OK."""
    if stale:
        known = known._replace(stale=True)
    rows = [_partition(row, known) for row in lag.ranked(view.rows.values(), known)]
    lags = [row["current_lag"] for row in rows if row["current_lag"] is not None]
    word = lag.of_group(lag.status(row, known) for row in view.rows.values())
    full = sum(row["complete"] == 1.0 for row in rows)
    return {
        "cluster": cluster.cluster_id,
        "group": view.group_id,
        "status": "WARN" if word == lag.NOT_KNOWN else word,
        "complete": round(full / len(rows), 4) if rows else 0.0,
        "partitions": [row for row in rows if every_partition or row["status"] not in ("OK", "UNKNOWN")],
        "partition_count": len(rows),
        "maxlag": max((row for row in rows if row["current_lag"] is not None), key=_current_lag, default=None),
        "totallag": sum(lags) if lags else None,
    }


def _current_lag(row: dict[str, Any]) -> int:
    return int(row["current_lag"])


def _partition(row: Any, known: Known) -> dict[str, Any]:
    """Burrow's object of a partition."""
    records = lag.lag_of(row, known)
    first = {"offset": row.committed_offset - row.window_read, "timestamp": row.window_from_ms}
    last = {"offset": row.committed_offset, "timestamp": row.committed_at_ms}
    return {
        "topic": row.topic,
        "partition": row.partition,
        "owner": row.member_id or "",
        "client_id": row.client_id or "",
        "status": lag.status(row, known),
        "start": {**first, "observedAt": row.window_from_ms, "lag": None},
        "end": {**last, "observedAt": row.committed_at_ms, "lag": records},
        "current_lag": records,
        "complete": 0.0 if records is None else round(row.window_commits / WINDOW, 4),
    }


def _word(view: GroupView, *, stale: bool) -> str:
    """ERR: a deadline passed; WARN: one comes near, a rebalance is under way, or not everything is known; else OK."""
    if stale:
        return "WARN"
    statuses = view.shown_by_status()
    if statuses["overdue"]:
        return "ERR"
    unsure = statuses["imminent"] or statuses["unknown"] or view.state_name in (*REBALANCING, "Unknown")
    return "WARN" if unsure else "OK"
