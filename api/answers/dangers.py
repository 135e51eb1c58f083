"""Who is next, across all groups of a cluster: deadlines that come first, and rebalances that are under way.

Pure: reads the current view, says what is so; nothing is predicted here. A member whose status is unknown is counted
and not listed: its deadline is older than the gap that made it unknown. Poll deadlines are the client's own timer, seen
from outside, so none of them is `exact`.
"""

from __future__ import annotations

from collections.abc import Generator
from operator import itemgetter
from typing import Any, NamedTuple

from api.answers import as_dicts, roster
from api.present.current import ClusterView, GroupView
from api.present.freshness import Freshness
from api.present.health import is_known
from kardia.certainty import weaker
from kardia.instants import to_rfc3339
from kardia.statuses import NOT_KNOWN

REBALANCING = ("PreparingRebalance", "CompletingRebalance")

WITH_EPOCHS = ("Assigning", "Reconciling")
"""States in which a group that has epochs is on its way to a new one: it reads on meanwhile, and may wait."""


class Next(NamedTuple):
    """A deadline of a present member."""

    deadline_at_ms: int
    group_id: str
    member_id: str
    kind: str
    health: Any


def deadlines_of(view: GroupView) -> list[Next]:
    """Deadlines of the members of a group, the first first; one of each kind per member."""
    found = [
        Next(deadline_ms, view.group_id, row.member_id, kind, row)
        for row in view.health.values()
        if row.status != "ended" and is_known(row)
        for kind, deadline_ms in (("session", row.session_deadline_at_ms), ("poll", row.poll_deadline_at_ms))
        if deadline_ms is not None
    ]
    found += [
        Next(row.deadline_at_ms, view.group_id, member_id, kind, view.health[member_id])
        for (member_id, kind), row in view.predictions.items()
        if kind == "rebalance" and row.deadline_at_ms is not None and member_id in view.health
    ]
    found.sort()  # no two have the first four members in common
    return found


def next_evictions(cluster: ClusterView, freshness: Freshness, limit: int) -> dict[str, Any]:
    """The deadlines of a cluster that come first."""
    # As many groups as deadlines are wanted hold them all: those whose own first deadline comes first.
    nearest = [cluster.groups[group_id] for _, group_id in cluster.overview(_nearest)[:limit]]
    found = sorted(one for view in nearest for one in view.remembered("deadlines", deadlines_of)[:limit])
    return {
        "next_evictions": [_eviction(cluster, one, freshness) for one in found[:limit]],
        "unknown_members": cluster.overview(_unknown),
    }


def _nearest(cluster: ClusterView) -> Generator[None, None, list[tuple[int, str]]]:
    """(first deadline, id) of groups in their order."""
    found = []
    for number, (_, group_id, _) in enumerate(roster.by_name(cluster)):
        first_ms = cluster.groups[group_id].first_deadline_ms()
        if first_ms is not None:
            found.append((first_ms, group_id))
        if number % roster.CHUNK == 0:
            yield
    found.sort(key=itemgetter(0))  # a sort by numbers takes a third of one by tuples, and keeps the order of names
    return found


def _unknown(cluster: ClusterView) -> Generator[None, None, int]:
    """Members of whom nobody can tell how much is left."""
    found = 0
    for number, view in enumerate(cluster.groups.values()):
        shown = view.shown_by_status()
        found += sum(shown[status] for status in NOT_KNOWN)
        if number % roster.CHUNK == 0:
            yield
    return found


def _eviction(cluster: ClusterView, one: Next, freshness: Freshness) -> dict[str, Any]:
    row, view = one.health, cluster.groups[one.group_id]
    freshness = freshness.as_of(cluster.complete_of(view))
    is_least = one.kind != "rebalance" and view.is_least(row, one.kind)
    sure = row.certainty if one.kind == "session" else weaker(row.certainty, "inferred")
    return {
        "href": as_dicts.member_href(cluster.cluster_id, one.group_id, one.member_id),
        "group_id": one.group_id,
        "member_id": one.member_id,
        "group_instance_id": row.group_instance_id,
        "client_id": row.client_id,
        "kind": one.kind,
        "deadline_at_ms": one.deadline_at_ms,
        "deadline_at": to_rfc3339(one.deadline_at_ms),
        "is_least": is_least,
        "remaining_ms": as_dicts.remaining_ms(one.deadline_at_ms, freshness, is_least=is_least),
        "status": row.status,
        "shown": view.shown_of(one.member_id),
        "certainty": sure,
        "health_at_ms": row.at_ms,
        "health_at": to_rfc3339(row.at_ms),
        "predicted": (one.member_id, one.kind) in view.predictions,
    }


def open_rebalances(cluster: ClusterView, freshness: Freshness, limit: int) -> dict[str, Any]:
    """Groups that rebalance, the longest first: since when, whom they wait for, until when at the latest."""
    views = [view for view in cluster.groups.values() if view.state_name in (*REBALANCING, *WITH_EPOCHS)]
    found = sorted((_rebalance(view, freshness) for view in views), key=lambda one: (one["since_at_ms"], one["href"]))
    return {"open_rebalances": found[:limit], "left_off": max(0, len(found) - limit)}


def _rebalance(view: GroupView, freshness: Freshness) -> dict[str, Any]:
    """What is known of a rebalance while it lasts.

    Waiting JoinGroups are logged when they are answered, so whom it waits for is known of those only who heartbeat and
    were told to rejoin long ago, or of a row that the observer has written meanwhile.
    """
    state = view.state_now
    assert state is not None, "a group in a state has a state"  # noqa: S101 - a broken promise of ours
    running = _running(view)
    found = waits_for(view)
    longest_ms = [life.rebalance_timeout_ms for life in view.lives.values()]
    known = bool(longest_ms) and None not in longest_ms
    since_ms = state.since_at_ms if running is None else min(state.since_at_ms, running.started_at_ms)
    # Each phase lasts at most the longest rebalance timeout of its members; this phase began at `since` or before it.
    # With epochs each has its own time, from when it is told; who is not told yet has all of it still.
    latest_ms = state.since_at_ms + max(longest_ms) if known and state.name in REBALANCING else None
    return {
        "href": as_dicts.group_href(view.cluster_id, view.group_id),
        "group_id": view.group_id,
        "state": state.name,
        "since_at_ms": since_ms,
        "since_at": to_rfc3339(since_ms),
        "lasting_ms": None if freshness.stale else max(0, freshness.now_ms - since_ms),
        "trigger": None if running is None else running.trigger,
        "certainty": state.certainty,
        "joining": _joining(view, running),
        "waits_for": found,
        "ends_at_latest_at_ms": latest_ms,
        "ends_at_latest_at": to_rfc3339(latest_ms),
    }


def _running(view: GroupView) -> Any:
    """The row of the rebalance that is under way, if it has one by now."""
    row = view.rebalance
    return row if row is not None and row.completed_at_ms is None else None


def _joining(view: GroupView, running: Any) -> list[dict[str, Any]]:
    """Who has joined in a rebalance and waits for the answer, as sentences of server.log say, the first first."""
    if running is None or running.joined_at_ms is not None:
        return []
    return [
        {
            "member_id": entry["member_id"],
            "client_id": entry["client_id"],
            "since_at_ms": since_at_ms,
            "since_at": to_rfc3339(since_at_ms),
        }
        for entry in reversed(running.stragglers or ())
        if entry["joined"] and entry["waited_ms"] is not None and entry["member_id"] not in view.lives
        for since_at_ms in (running.started_at_ms + entry["waited_ms"],)
    ]


_SHOWN_BY = {
    "PreparingRebalance": "heartbeats without rejoining",
    "CompletingRebalance": "the leader has not sent its assignment",
}


def waits_for(view: GroupView) -> list[dict[str, Any]]:
    """Whom a rebalance of the group waits for, by member id; nobody where none is under way."""
    if view.state_name not in (*REBALANCING, *WITH_EPOCHS):
        return []
    running = _running(view)
    found: dict[str, dict[str, Any]] = {}

    def add(member_id: str, client_id: str | None, shown_by: str, until_at_ms: int | None, *, pending: bool) -> None:
        href = as_dicts.group_href(view.cluster_id, view.group_id)
        found.setdefault(
            member_id,
            {
                "href": href if pending else as_dicts.member_href(view.cluster_id, view.group_id, member_id),
                "member_id": member_id,
                "client_id": client_id,
                "shown_by": shown_by,
                "pending": pending,
                "until_at_ms": until_at_ms,
                "until_at": to_rfc3339(until_at_ms),
            },
        )

    for entry in running.stragglers or () if running is not None else ():
        if not entry["joined"]:
            add(entry["member_id"], entry["client_id"], "straggler", None, pending=bool(entry.get("pending")))
    shown_by = _SHOWN_BY.get(view.state_name, "was told to give partitions up, and has not")
    for row in view.health.values():
        if row.awaited_since_at_ms is not None and row.group_state == view.state_name:
            add(row.member_id, row.client_id, shown_by, row.awaited_until_at_ms, pending=False)
    for (member_id, kind), prediction in view.predictions.items():
        if kind == "rebalance":
            until_at_ms = prediction.deadline_at_ms
            add(member_id, prediction.client_id, shown_by, until_at_ms, pending=False)
    for entry in view.pending if view.state_name == "PreparingRebalance" else ():
        shown_by = "an id that was handed out and not used"
        add(entry["member_id"], entry["client_id"], shown_by, entry["until_at_ms"], pending=True)
    return [found[member_id] for member_id in sorted(found)]
