"""What became of the members that an alert named, for the notice that resolves it. Pure: reads the current view."""

from __future__ import annotations

from api.notify.conditions import Finding, name_of
from api.present.current import GroupView
from api.store import Store
from kardia.instants import to_rfc3339
from kardia.tables import EVICTION_CAUSES


def outcome_of(store: Store, finding: Finding) -> str:
    """Sentences about a finding that is there no more; empty where it was about no member and no rebalance."""
    cluster = store.current.clusters.get(finding.cluster)
    view = None if cluster is None else cluster.groups.get(finding.group)
    if view is None:
        return ""
    told = [_rebalance(view)] if finding.alert == "KafkaGroupRebalanceStuck" else []
    told += [_member(view, member_id) for member_id in finding.member_ids]
    return " ".join(text for text in told if text)


def _member(view: GroupView, member_id: str) -> str:
    name, over, health = name_of(view, member_id), view.ended.get(member_id), view.health.get(member_id)
    if member_id in view.lives:
        if health is None or health.last_heard_at_ms is None:
            return f"{name} is a member still."
        return f"{name} was heard again at {to_rfc3339(health.last_heard_at_ms)}."
    if over is None:
        return f"It is not known what became of {name}."
    at = to_rfc3339(over.ended_at_ms)
    if over.end_cause in EVICTION_CAUSES:
        return f"{name} was evicted at {at}: {over.end_cause}."
    return f"{name} left at {at}." if over.end_cause == "left" else f"{name} is gone since {at}: {over.end_cause}."


def _rebalance(view: GroupView) -> str:
    row = view.rebalance
    if row is None or row.completed_at_ms is None:
        return ""
    lasted_s = (row.completed_at_ms - row.started_at_ms) / 1_000
    return f"The rebalance was done at {to_rfc3339(row.completed_at_ms)}, after {lasted_s:.1f} s."
