"""Counts over all groups of a cluster for one scrape, and the groups that get series of their own.

One pass over all groups, in the thread of the scrape, with rests for the requests (`api.background_work`).
"""

from __future__ import annotations

from collections import Counter
from heapq import nsmallest
from typing import NamedTuple

from api.background_work import resting
from api.present import shown_status
from api.present.current import STATES, UNKNOWN_STATE, ClusterView, GroupView
from api.present.deadlines import endangered
from kardia.statuses import STATUS_SEVERITY


class Totals(NamedTuple):
    """What a cluster has of each kind."""

    states: Counter[str]
    """Groups by state, as labels."""
    shown: Counter[str]
    """Present members by shown status."""
    certainties: Counter[str]
    """Present members by how sure it is what is said of their health."""
    low: Counter[tuple[str, float]]
    """(kind of timeout, threshold) -> present members with less than that part of it left."""
    endangered: Counter[str]
    """Open predictions that are worth an alert, by kind."""
    in_danger: int
    """Members in danger."""
    by_severity: dict[int, list[str]]
    """Groups by the severity of the worst status of a member."""


def state_label(view: GroupView) -> str:
    """State of a group as a label of the closed list."""
    state = view.state_name
    return state if state in STATES else UNKNOWN_STATE


def counted(cluster: ClusterView) -> Totals:
    """Count a cluster."""
    states, predicted, low = Counter[str](), Counter[str](), Counter[tuple[str, float]]()
    shown, certainties = Counter[str](), Counter[str]()
    by_severity: dict[int, list[str]] = {}
    for view in resting(cluster.groups.values()):
        states[state_label(view)] += 1
        here = view.shown_by_status()
        for words, found in ((shown, here), (certainties, view.certainties())):
            for word, count in found.items():
                words[word] += count
        severity = STATUS_SEVERITY[shown_status.worst(here) or "ended"]
        by_severity.setdefault(severity, []).append(view.group_id)
        if some := view.tally().low:
            low.update(some)
        if view.predictions:
            predicted.update(row.kind for row in endangered(view))
    in_danger = sum(shown[status] for status in shown_status.IN_DANGER)
    return Totals(states, shown, certainties, low, predicted, in_danger, by_severity)


def worst(cluster: ClusterView, totals: Totals, limit: int) -> list[GroupView]:
    """Groups that get series of their own: those in trouble first, then by name, up to a limit; in order of names."""
    names: list[str] = []
    for severity in sorted(totals.by_severity, reverse=True):
        names += nsmallest(limit - len(names), totals.by_severity[severity])
    return [cluster.groups[group_id] for group_id in sorted(names)]
