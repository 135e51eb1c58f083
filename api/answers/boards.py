"""What dashboards show of the present: flat rows, each value as it may be said now.

In: the current view and how fresh it is. Out: rows in which nothing is left for a dashboard to decide: a status is
`unknown` and a number null while the feed is stale, so that a panel cannot go on showing what was so when it ended.
Histories are asked elsewhere; nothing here reads a file.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from api.answers import as_dicts, dangers, roster
from api.present import shown_status
from api.present.current import ClusterView, GroupView
from api.present.freshness import Freshness
from kardia.instants import to_rfc3339
from kardia.statuses import AWAITED, STATUS_SEVERITY


def cluster(view: ClusterView, freshness: Freshness, limit: int) -> dict[str, Any]:
    """Who is next, which rebalances are under way, and the worst groups, at most `limit` of each."""
    following = dangers.next_evictions(view, freshness, limit)["next_evictions"]
    running = dangers.open_rebalances(view, freshness, limit)["open_rebalances"]
    page, _ = roster.page(view, "worst", None, limit, None, None)
    return {
        "next": [_next(view, one, freshness) for one in following],
        "rebalances": [] if freshness.stale else [_rebalance(one) for one in running],
        "groups": [_group(group, freshness.as_of(view.complete_of(group))) for _, group in page],
    }


def group(view: GroupView, freshness: Freshness, limit: int) -> dict[str, Any]:
    """The group itself, whom a rebalance of it waits for, and its members, the worst first."""
    waits_for = [] if freshness.stale else dangers.waits_for(view)
    members = [member(view, row, freshness) for row in view.lives.values()]
    members.sort(key=lambda one: (-STATUS_SEVERITY[one["status"]], one["client_id"] or "", one["member_id"]))
    return {
        "group": _group(view, freshness),
        "waits_for": [_waited_for(one, freshness) for one in waits_for[:limit]],
        "members": members[:limit],
    }


def member(view: GroupView, row: Any, freshness: Freshness) -> dict[str, Any]:
    """A membership, present or over: what may be said of it now, and what is left of its deadlines in words as well."""
    ended = row.ended_at_ms is not None
    health = None if ended or row.member_id not in view.lives else view.health.get(row.member_id)
    status = "ended" if ended else shown_status.shown_now(view, row.member_id, freshness)
    left: dict[str, int | None] = {"session": None, "poll": None}
    least = dict.fromkeys(left, False)
    certainty, reasons = row.certainty if ended else "unknown", []
    if health is not None:
        for kind in left:
            least[kind] = view.is_least(health, kind)
            deadline_ms = getattr(health, f"{kind}_deadline_at_ms")
            left[kind] = shown_status.left_ms(deadline_ms, health, freshness, is_least=least[kind])
        certainty = "unknown" if status == "unknown" else health.certainty
        reasons = list(health.reasons or ())
    return {
        "href": as_dicts.member_href(row.cluster_id, row.group_id, row.member_id),
        "group_id": row.group_id,
        "member_id": row.member_id,
        "client_id": row.client_id,
        "group_instance_id": row.group_instance_id,
        "status": status,
        "session_left_ms": left["session"],
        "poll_left_ms": left["poll"],
        "session_left": _in_words(left["session"], status, is_least=least["session"]),
        "poll_left": _in_words(left["poll"], status, is_least=least["poll"]),
        "poll_evidence": None if health is None else health.poll_evidence,
        "certainty": certainty,
        "reason": _reason(status, reasons, freshness),
        "end_cause": row.end_cause if ended else "unknown" if freshness.stale else "still a member",
        "ended_at_ms": row.ended_at_ms,
        "ended_at": to_rfc3339(row.ended_at_ms),
    }


def _reason(status: str, reasons: list[str], freshness: Freshness) -> str | None:
    if freshness.stale and status != "ended":
        return "nothing is known of the present: the feed is stale"
    if status == AWAITED and not reasons:
        return "a rebalance waits for it"
    return reasons[0] if reasons else None


def _in_words(left_ms: int | None, status: str, *, is_least: bool) -> str:
    """A countdown as a text: a number alone cannot say why there is none, or that it is the least."""
    if status == "ended":
        return "ended"
    if left_ms is None:
        return "not known"
    return f"due {-left_ms / 1000:.1f} s ago" if left_ms < 0 else f"{'≥ ' * is_least}{left_ms / 1000:.1f} s"


def _next(view: ClusterView, one: dict[str, Any], freshness: Freshness) -> dict[str, Any]:
    group_view = view.groups[one["group_id"]]
    row = group_view.health[one["member_id"]]
    status = shown_status.shown_now(group_view, one["member_id"], freshness)
    left_ms = shown_status.left_ms(one["deadline_at_ms"], row, freshness, is_least=one["is_least"])
    return {
        "href": one["href"],
        "group_id": one["group_id"],
        "member_id": one["member_id"],
        "client_id": one["client_id"],
        "kind": one["kind"],
        "left_ms": left_ms,
        "left": _in_words(left_ms, status, is_least=one["is_least"]),
        "status": status,
        "predicted": "unknown" if freshness.stale else "yes" if one["predicted"] else "no",
        "certainty": "unknown" if freshness.stale else one["certainty"],
    }


def _rebalance(one: dict[str, Any]) -> dict[str, Any]:
    waited = one["waits_for"][0] if one["waits_for"] else None
    return {
        "href": one["href"],
        "group_id": one["group_id"],
        "state": one["state"],
        "lasting_ms": one["lasting_ms"],
        "waits_for": "cannot be seen yet" if waited is None else waited["client_id"] or waited["member_id"],
        "waits_for_others": max(0, len(one["waits_for"]) - 1),
        "shown_by": None if waited is None else waited["shown_by"],
        "ends_at_latest_at_ms": one["ends_at_latest_at_ms"],
        "trigger": one["trigger"] or "not known yet",
    }


def _waited_for(one: dict[str, Any], freshness: Freshness) -> dict[str, Any]:
    until_ms = one["until_at_ms"]
    return {
        "href": one["href"],
        "member_id": one["member_id"],
        "client_id": one["client_id"],
        "shown_by": one["shown_by"],
        "pending": "yes" if one["pending"] else "no",
        "until_at_ms": until_ms,
        "until_at": to_rfc3339(until_ms),
        "left_ms": None if until_ms is None else until_ms - freshness.now_ms,
    }


def _group(view: GroupView, freshness: Freshness) -> dict[str, Any]:
    state = None if freshness.stale else view.state_now
    since_ms = None if freshness.stale else view.rebalancing_since_ms
    shown = Counter(shown_status.shown_now(view, member_id, freshness) for member_id in view.lives)
    worst = shown_status.worst(shown)
    latest = view.rebalance
    return {
        "href": as_dicts.group_href(view.cluster_id, view.group_id),
        "group_id": view.group_id,
        "state": shown_status.state_now(view, freshness),
        "state_since_at_ms": None if state is None else state.since_at_ms,
        "state_certainty": "unknown" if state is None else state.certainty,
        "status": ("unknown" if freshness.stale else "no members") if worst is None else worst,
        "members": len(view.lives),
        "in_danger": None if freshness.stale else sum(shown[status] for status in shown_status.IN_DANGER),
        **{status: None if freshness.stale else shown[status] for status in _COUNTED},
        "generation_id": as_dicts.generation(view),
        "rebalancing_for_ms": None if since_ms is None else max(0, freshness.now_ms - since_ms),
        "last_rebalance_at_ms": None if latest is None else latest.started_at_ms,
        "last_trigger": None if latest is None else latest.trigger,
    }


_COUNTED = ("overdue", "imminent", AWAITED, "late", "unknown")
