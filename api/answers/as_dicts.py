"""Rows turned into answers: plain dicts that `api.shapes.models` describes. Computes remaining times, invents nothing.

Every instant of a row appears twice, `x_at_ms` in epoch milliseconds and `x_at` in RFC 3339, and every object carries
its own `href`. `remaining_ms` is the deadline minus the instant of the answer; below zero the deadline has passed and
its outcome is not known yet. It is null while the feed is stale: then silence is ours, not the member's. A deadline
that may have been renewed since the health row says so (`is_least`).
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable
from functools import lru_cache
from typing import Any

from api.access.ids import to_segment
from api.present import shown_status
from api.present.current import GroupView
from api.present.freshness import Freshness
from api.present.health import least, poll_headroom, poll_interval_ms, session_headroom, session_timeout_ms, shown_as
from kardia.doubts import meanings_of
from kardia.instants import to_rfc3339
from kardia.statuses import NOT_KNOWN, SHOWN, UNSEEN
from kardia.story import words
from kardia.tables import TABLES

API = "/api/v1"

LINKS = (
    "members",
    "rebalances",
    "history",
    "evictions",
    "disagreements",
    "surprises",
    "diff",
    "incident",
    "why",
    "lag",
)
"""What is below a group, and needs no parameter."""

STATUS_SEVERITY = {
    status: rank for rank, status in enumerate(("ended", "ok", "unknown", "late", "imminent", "overdue"))
}
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
    """Columns of a row under their own names, with the readable twin behind every instant and behind doubts."""
    found: dict[str, Any] = {}
    for name, twin in _TWINS[table] if names is None else map(_with_twin, names):
        value = found[name] = getattr(row, name)
        if twin is not None:
            found[twin] = to_rfc3339(value) if name != "doubts" else in_words(value)
    return found


def in_words(doubts: Iterable[str] | None) -> list[str]:
    """Sentences of doubts, without their full stop."""
    return [meaning.sentence for meaning in meanings_of(doubts)]


def _with_twin(name: str) -> tuple[str, str | None]:
    """A column and the name of its readable twin, which only instants and doubts have."""
    if name == "doubts":
        return name, "doubts_in_words"
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
        "shown": view.shown_of(member_id) if is_present else status,
        "or_later": "" if row.ended_at_ms is None else or_later(row.at_bound_ms),
        "reasons": reasons,
        "health_at_ms": health and health.at_ms,
        "health_at": health and to_rfc3339(health.at_ms),
        "health_certainty": health.certainty if health is not None else "unknown",
        "health_doubts": in_words(health.doubts if health is not None else None),
        "session": None if health is None else session(view, health, freshness),
        "poll": None if health is None else poll(view, health, freshness),
        "assignment": None if health is None else assignment(health),
        "predictions": [
            prediction(found, freshness) for (found_id, _), found in view.predictions.items() if found_id == member_id
        ]
        if is_present
        else [],
    }


def session(view: GroupView, health: Any, freshness: Freshness) -> dict[str, Any]:
    """Session timeout of a present member: the coordinator's own timer."""
    return {
        "timeout_ms": health.session_timeout_ms,
        "last_heard_at_ms": health.last_heard_at_ms,
        "last_heard_at": to_rfc3339(health.last_heard_at_ms),
        **_deadline(
            health.session_deadline_at_ms,
            session_headroom(health),
            health,
            freshness,
            is_least=view.is_least(health, "session"),
        ),
    }


def poll(view: GroupView, health: Any, freshness: Freshness) -> dict[str, Any]:
    """Poll timeout of a present member: a timer inside the client, inferred from what shows a poll."""
    return {
        "interval_ms": health.poll_interval_ms,
        "last_poll_at_ms": health.last_poll_at_ms,
        "last_poll_at": to_rfc3339(health.last_poll_at_ms),
        "evidence": health.poll_evidence,
        "error_bound_ms": health.poll_error_bound_ms,
        **_deadline(
            health.poll_deadline_at_ms,
            poll_headroom(health),
            health,
            freshness,
            is_least=view.is_least(health, "poll"),
        ),
    }


def assignment(health: Any) -> dict[str, Any] | None:
    """Target and current assignment of a present member of a group that has epochs; None of one of a classic group."""
    if health.member_state is None:
        return None
    found = {name: getattr(health, name) for name in ASSIGNMENT}
    found["moving"] = [dict(entry) for entry in health.moving or ()]
    for name in ("awaited_since_at", "awaited_until_at"):
        found[f"{name}_ms"] = getattr(health, f"{name}_ms")
        found[name] = to_rfc3339(found[f"{name}_ms"])
    return {"group_epoch": health.generation_id, **found}


ASSIGNMENT = (
    *("member_epoch", "member_state", "partitions", "partitions_revoking", "partitions_target"),
    *("assigned", "assigned_target"),
)
"""Columns of `health` that `assignment` repeats."""


def prediction(row: Any, freshness: Freshness) -> dict[str, Any]:
    """A predicted timeout."""
    return {
        **columns("predictions", row, ("kind", "predicted_at_ms", "deadline_at_ms", "outcome", "certainty")),
        "remaining_ms": remaining_ms(row.deadline_at_ms, freshness, is_least=False),
    }


def past_prediction(row: Any, freshness: Freshness) -> dict[str, Any]:
    """A predicted timeout with what became of it."""
    running = row.outcome == "open"
    return {
        "href": member_href(row.cluster_id, row.group_id, row.member_id),
        **columns("predictions", row),
        "remaining_ms": remaining_ms(row.deadline_at_ms, freshness, is_least=False) if running else None,
    }


def health(row: Any, exact: Container[tuple[str, str]]) -> dict[str, Any]:
    """What a health row says; `exact` are the (member id, session or poll) whose deadline can be no later."""
    found = columns("health", row)
    for kind in ("session", "poll"):
        known = getattr(row, f"{kind}_deadline_at_ms") is not None
        found[f"{kind}_is_least"] = known and (row.member_id, kind) not in exact
    for name in ("pending", "moving"):
        entries = getattr(row, name)
        found[name] = None if entries is None else [dict(entry) for entry in entries]
    return {"href": member_href(row.cluster_id, row.group_id, row.member_id), **found}


def rebalance_href(row: Any, began_ms: int) -> str:
    """Where the rebalance of a group that began at an instant is."""
    return f"{group_href(row.cluster_id, row.group_id)}/rebalances?from={began_ms}&to={began_ms + 1}"


def rebalance(row: Any, freshness: Freshness) -> dict[str, Any]:
    """A rebalance with its cause, phases, and whom it waited for."""
    ended_ms = row.completed_at_ms
    # Of a classic one: its end was not read, and a later generation shows that it is over.
    ended_unread = ended_ms is None and row.joined_at_ms is not None and bool(row.completed_bound_ms)
    running = ended_ms is None and not ended_unread
    if running and not freshness.stale:
        ended_ms = freshness.now_ms
    # How long it lasted is not known where it had begun before anything that was read.
    since_ms = None if row.began_unseen else row.started_at_ms
    joined_ms = None if ended_unread else row.joined_at_ms
    found = columns("rebalances", row)
    found["stragglers"] = [dict(entry) for entry in row.stragglers or ()]
    began_ms = row.started_at_ms
    because_ms = row.caused_by_started_at_ms
    return {
        "href": rebalance_href(row, began_ms),
        **found,
        "caused_by_href": None if because_ms is None else rebalance_href(row, because_ms),
        "running": running,
        "or_later": or_later(row.at_bound_ms),
        "completed_or_later": "" if row.completed_at_ms is None else or_later(row.completed_bound_ms),
        "duration_ms": None if ended_ms is None or since_ms is None else max(0, ended_ms - since_ms),
        "join_ms": None if joined_ms is None or since_ms is None else joined_ms - since_ms,
        "sync_ms": None
        if row.joined_at_ms is None or row.completed_at_ms is None
        else row.completed_at_ms - row.joined_at_ms,
    }


def transition(row: Any) -> dict[str, Any]:
    """A change of state of a group or of a membership."""
    found = {**columns("transitions", row), "or_later": or_later(row.at_bound_ms)}
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
        "or_later": or_later(row.at_bound_ms),
    }


def protocols(view: GroupView) -> list[str]:
    """What its members speak; of a group without members, what its last rebalance was of."""
    spoken = {life.protocol for life in view.lives.values()}
    last = view.rebalance.protocol if view.rebalance is not None and not spoken else None
    return sorted(spoken or ({last} if last else set()))


def group(view: GroupView, freshness: Freshness) -> dict[str, Any]:
    """A group as it stands: state, members by status, least headroom, the next deadline, the latest rebalance."""
    statuses, state = view.statuses(), view.state_now
    href = group_href(view.cluster_id, view.group_id)
    here = view.health.values()
    shown = view.shown_by_status()
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
        "shown": shown_status.worst(shown),
        "protocols": protocols(view),
        "members": {
            "total": sum(shown.values()),
            **{status: shown[status] for status in SHOWN if status != "ended"},
        },
        "session_headroom_min_ratio": least(map(session_headroom, here)),
        "poll_headroom_min_ratio": least(map(poll_headroom, here)),
        "next_session_deadline": _next(view, "session", session_timeout_ms, freshness),
        "next_poll_deadline": _next(view, "poll", poll_interval_ms, freshness),
        "pending": view.pending,
        "last_rebalance": view.rebalance and rebalance(view.rebalance, freshness),
        "links": {name: f"{href}/{name}" for name in (*LINKS, "pulse")},
    }


def or_later(bound_ms: int | None) -> str:
    """What a bound of an instant says in words; empty where it is that of a stamp."""
    if bound_ms is None:
        return "or later"
    return f"or up to {words.span(bound_ms)} later" if bound_ms > words.BOUND_SHOWN_MS else ""


def worst(statuses: Iterable[str]) -> str | None:
    """The worst of some statuses; None for none."""
    return max(statuses, key=lambda status: STATUS_SEVERITY.get(status, 0), default=None)


def generation(view: GroupView) -> int | None:
    """Generation of a group, from its latest health row or transition."""
    latest = max(view.health.values(), key=lambda row: row.at_ms, default=None)
    known = [row for row in (latest, view.state) if row is not None and row.generation_id is not None]
    return max(known, key=lambda row: row.at_ms).generation_id if known else None


def _next(
    view: GroupView, kind: str, timeout: Callable[[Any], int | None], freshness: Freshness
) -> dict[str, Any] | None:
    """The deadline of a kind that comes first, as far as it is known: those of the others may be later, too. Who is
    unseen has none: it may wait in a JoinGroup."""
    column = f"{kind}_deadline_at_ms"
    first = min(
        (row for row in view.health.values() if getattr(row, column) is not None and shown_as(row) not in NOT_KNOWN),
        key=lambda row: getattr(row, column),
        default=None,
    )
    if first is None:
        return None
    deadline_ms, is_least = getattr(first, column), view.is_least(first, kind)
    return {
        "href": member_href(first.cluster_id, first.group_id, first.member_id),
        "member_id": first.member_id,
        "client_id": first.client_id,
        "status": first.status,
        "timeout_ms": timeout(first),
        "deadline_at_ms": deadline_ms,
        "deadline_at": to_rfc3339(deadline_ms),
        "is_least": is_least,
        "remaining_ms": remaining_ms(deadline_ms, freshness, is_least=is_least),
    }


def _deadline(
    deadline_ms: int | None, headroom_ratio: float | None, health: Any, freshness: Freshness, *, is_least: bool
) -> dict[str, Any]:
    """Who is unseen may wait in a JoinGroup, where no timeout runs: nothing is left, and nothing is over."""
    is_unseen = shown_as(health) == UNSEEN
    return {
        "deadline_at_ms": deadline_ms,
        "deadline_at": to_rfc3339(deadline_ms),
        "is_least": is_least and deadline_ms is not None,
        "remaining_ms": None if is_unseen else remaining_ms(deadline_ms, freshness, is_least=is_least),
        "headroom_ratio": headroom_ratio,
    }


def remaining_ms(deadline_ms: int | None, freshness: Freshness, *, is_least: bool) -> int | None:
    """What is left of a deadline at the instant of the answer (`Freshness.left_ms`)."""
    return freshness.left_ms(deadline_ms, is_least=is_least)
