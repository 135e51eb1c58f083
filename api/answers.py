"""Rows turned into answers: plain dicts that `api.models` describes. Computes remaining times, invents nothing.

Every instant of a row appears twice, `x_at_ms` in epoch milliseconds and `x_at` in RFC 3339, and every object carries
its own `href`. `remaining_ms` is the deadline minus the instant of the answer; below zero the deadline has passed and
its outcome is not known yet. It is null while the feed is stale: then silence is ours, not the member's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any

from api import deadlines
from api.current import GroupView
from api.freshness import Freshness
from api.ids import to_segment
from api.instants import to_rfc3339
from kardia.tables import STATUSES, TABLES

API = "/api/v1"

LINKS = ("members", "rebalances", "history", "evictions", "diff", "incident")
"""What is below a group, and needs no parameter."""

BADNESS = {status: rank for rank, status in enumerate(("ended", "ok", "unknown", "late", "imminent", "overdue"))}
"""Order of the statuses, the worst last."""


def cluster_href(cluster_id: str) -> str:
    """URL path of a cluster."""
    return f"{API}/clusters/{to_segment(cluster_id)}"


@lru_cache(16_384)
def group_href(cluster_id: str, group_id: str) -> str:
    """URL path of a group."""
    return f"{cluster_href(cluster_id)}/groups/{to_segment(group_id)}"


def member_href(cluster_id: str, group_id: str, member_id: str) -> str:
    """URL path of a member."""
    return f"{group_href(cluster_id, group_id)}/members/{to_segment(member_id)}"


def columns(table: str, row: Any, names: Iterable[str] | None = None) -> dict[str, Any]:
    """Columns of a row under their own names, with the readable twin behind every instant."""
    found: dict[str, Any] = {}
    for name, twin in _TWINS[table] if names is None else map(_with_twin, names):
        value = found[name] = getattr(row, name)
        if twin is not None:
            found[twin] = to_rfc3339(value)
    return found


def _with_twin(name: str) -> tuple[str, str | None]:
    """A column and the name of its readable twin, which only instants have."""
    return name, name.removesuffix("_ms") if name.endswith("at_ms") else None


_TWINS = {name: tuple(map(_with_twin, table.names)) for name, table in TABLES.items()}


def member(view: GroupView, row: Any, freshness: Freshness) -> dict[str, Any]:
    """A membership with its deadlines, status and open predictions."""
    member_id = row.member_id
    is_present = view.lives.get(member_id) is not None and view.lives[member_id].joined_at_ms == row.joined_at_ms
    health = view.health.get(member_id) if is_present else None
    status = "ended" if row.ended_at_ms is not None else "unknown" if health is None else health.status
    reasons = list(health.reasons or ()) if health is not None else [] if status == "ended" else ["no health row yet"]
    return {
        "href": member_href(row.cluster_id, row.group_id, member_id),
        **columns("members", row),
        "status": status,
        "reasons": reasons,
        "health_at_ms": health and health.at_ms,
        "health_at": health and to_rfc3339(health.at_ms),
        "health_certainty": health.certainty if health is not None else "unknown",
        "session": session(health, freshness),
        "poll": poll(health, freshness),
        "predictions": [
            prediction(found, freshness) for (found_id, _), found in view.predictions.items() if found_id == member_id
        ]
        if is_present
        else [],
    }


def session(health: Any, freshness: Freshness) -> dict[str, Any] | None:
    """Session timeout of a present member: the coordinator's own timer."""
    if health is None:
        return None
    return {
        "timeout_ms": health.session_timeout_ms,
        "last_heard_at_ms": health.last_heard_at_ms,
        "last_heard_at": to_rfc3339(health.last_heard_at_ms),
        **_deadline(health.session_deadline_at_ms, health.session_timeout_ms, health.at_ms, freshness),
    }


def poll(health: Any, freshness: Freshness) -> dict[str, Any] | None:
    """Poll timeout of a present member: a timer inside the client, inferred from what shows a poll."""
    if health is None:
        return None
    interval_ms = deadlines.poll_interval_ms(health)
    return {
        "interval_ms": health.poll_interval_ms,
        "last_poll_at_ms": health.last_poll_at_ms,
        "last_poll_at": to_rfc3339(health.last_poll_at_ms),
        "evidence": health.poll_evidence,
        "error_bound_ms": health.poll_error_bound_ms,
        **_deadline(health.poll_deadline_at_ms, interval_ms, health.at_ms, freshness),
    }


def prediction(row: Any, freshness: Freshness) -> dict[str, Any]:
    """A predicted timeout."""
    return {
        **columns("predictions", row, ("kind", "predicted_at_ms", "deadline_at_ms", "outcome", "certainty")),
        "remaining_ms": _remaining_ms(row.deadline_at_ms, freshness),
    }


def past_prediction(row: Any, freshness: Freshness) -> dict[str, Any]:
    """A predicted timeout with what became of it."""
    running = row.outcome == "open"
    return {
        "href": member_href(row.cluster_id, row.group_id, row.member_id),
        **columns("predictions", row),
        "remaining_ms": _remaining_ms(row.deadline_at_ms, freshness) if running else None,
    }


def health(row: Any) -> dict[str, Any]:
    """What a health row says, as it was written."""
    found = columns("health", row)
    found["pending"] = None if row.pending is None else [dict(entry) for entry in row.pending]
    return {"href": member_href(row.cluster_id, row.group_id, row.member_id), **found}


def rebalance_href(row: Any, began_ms: int) -> str:
    """Where the rebalance of a group that began at an instant is."""
    return f"{group_href(row.cluster_id, row.group_id)}/rebalances?from={began_ms}&to={began_ms + 1}"


def rebalance(row: Any, freshness: Freshness) -> dict[str, Any]:
    """A rebalance with its cause, phases, and whom it waited for."""
    ended_ms = row.completed_at_ms
    if ended_ms is None and not freshness.stale:
        ended_ms = freshness.now_ms
    found = columns("rebalances", row)
    found["stragglers"] = [dict(entry) for entry in row.stragglers or ()]
    began_ms = row.started_at_ms
    because_ms = row.caused_by_started_at_ms
    return {
        "href": rebalance_href(row, began_ms),
        **found,
        "caused_by_href": None if because_ms is None else rebalance_href(row, because_ms),
        "running": row.completed_at_ms is None,
        "duration_ms": None if ended_ms is None else max(0, ended_ms - row.started_at_ms),
        "join_ms": None if row.joined_at_ms is None else row.joined_at_ms - row.started_at_ms,
        "sync_ms": None
        if row.joined_at_ms is None or row.completed_at_ms is None
        else row.completed_at_ms - row.joined_at_ms,
    }


def transition(row: Any) -> dict[str, Any]:
    """A change of state of a group or of a membership."""
    found = columns("transitions", row)
    of_member = row.entity == "member" and row.member_id is not None
    found["href"] = (
        member_href(row.cluster_id, row.group_id, row.member_id)
        if of_member
        else group_href(row.cluster_id, row.group_id)
    )
    return found


def eviction(row: Any) -> dict[str, Any]:
    """A membership that was taken away."""
    return {
        "href": member_href(row.cluster_id, row.group_id, row.member_id),
        **columns("members", row),
        "lived_ms": row.ended_at_ms - row.joined_at_ms,
    }


def group(view: GroupView, freshness: Freshness) -> dict[str, Any]:
    """A group as it stands: state, members by status, least headroom, the next deadline, the latest rebalance."""
    statuses, state = view.statuses(), view.state_now
    href = group_href(view.cluster_id, view.group_id)
    present = view.health.values()
    return {
        "href": href,
        "cluster_id": view.cluster_id,
        "group_id": view.group_id,
        "shard": view.shard,
        "state": view.state_name,
        "state_since_at_ms": state and state.since_at_ms,
        "state_since_at": state and to_rfc3339(state.since_at_ms),
        "state_cause": state and state.cause,
        "state_certainty": "unknown" if state is None else state.certainty,
        "generation_id": generation(view),
        "status": worst(statuses),
        "members": {
            "total": sum(statuses.values()),
            **{status: statuses[status] for status in STATUSES if status != "ended"},
        },
        "session_headroom_min_ratio": deadlines.least(map(deadlines.session_headroom, present)),
        "poll_headroom_min_ratio": deadlines.least(map(deadlines.poll_headroom, present)),
        "next_session_deadline": _next(present, "session_deadline_at_ms", deadlines.session_timeout_ms, freshness),
        "next_poll_deadline": _next(present, "poll_deadline_at_ms", deadlines.poll_interval_ms, freshness),
        "pending": view.pending,
        "last_rebalance": view.rebalance and rebalance(view.rebalance, freshness),
        "links": {
            name: f"{href}/{name}"
            for name in ("members", "rebalances", "history", "evictions", "pulse", "diff", "incident")
        },
    }


def worst(statuses: Iterable[str]) -> str | None:
    """The worst of some statuses; None for none."""
    return max(statuses, key=lambda status: BADNESS.get(status, 0), default=None)


def generation(view: GroupView) -> int | None:
    """Generation of a group, from its latest health row or transition."""
    latest = max(view.health.values(), key=lambda row: row.at_ms, default=None)
    known = [row for row in (latest, view.state) if row is not None and row.generation_id is not None]
    return max(known, key=lambda row: row.at_ms).generation_id if known else None


def _next(
    rows: Iterable[Any], column: str, timeout: Callable[[Any], int | None], freshness: Freshness
) -> dict[str, Any] | None:
    first = min(
        (row for row in rows if getattr(row, column) is not None), key=lambda row: getattr(row, column), default=None
    )
    if first is None:
        return None
    deadline_ms = getattr(first, column)
    return {
        "href": member_href(first.cluster_id, first.group_id, first.member_id),
        "member_id": first.member_id,
        "client_id": first.client_id,
        "status": first.status,
        "timeout_ms": timeout(first),
        "deadline_at_ms": deadline_ms,
        "deadline_at": to_rfc3339(deadline_ms),
        "remaining_ms": _remaining_ms(deadline_ms, freshness),
    }


def _deadline(deadline_ms: int | None, timeout_ms: int | None, at_ms: int, freshness: Freshness) -> dict[str, Any]:
    return {
        "deadline_at_ms": deadline_ms,
        "deadline_at": to_rfc3339(deadline_ms),
        "remaining_ms": _remaining_ms(deadline_ms, freshness),
        "headroom_ratio": deadlines.headroom(deadline_ms, timeout_ms, at_ms),
    }


def _remaining_ms(deadline_ms: int | None, freshness: Freshness) -> int | None:
    return None if deadline_ms is None or freshness.stale else deadline_ms - freshness.now_ms
