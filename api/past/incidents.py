"""What each group of a cluster went through in a stretch of time: whom it lost and why, how often and how long it
rebalanced. Standing rows of two tables, added up by group; the stories of single groups are told elsewhere.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.dataset as ds

from api.answers import as_dicts
from api.files.data_files import Bound
from api.files.reader import TableReader
from api.past.archive import bounded, standing_rows, up_to
from kardia.instants import to_rfc3339
from kardia.tables import EVICTION_CAUSES

REFUSED = ["fenced", "static_id_asked_for"]
"""Causes in the history of a member that was refused."""

NAMED_MAX = 5
"""Members that are named of those that a group lost, the latest."""


class Stretch(NamedTuple):
    """From (inclusive) to (exclusive), either may be open, and up to which batch."""

    cluster_id: str
    from_ms: int | None
    to_ms: int | None
    batch_id: int


class _Group:
    """What is added up of one group."""

    def __init__(self) -> None:
        self.ended: list[Any] = []
        self.rebalances: list[Any] = []
        self.refused_at_ms: list[int] = []
        self.clients: dict[str, str | None] = {}
        """Member id -> client.id."""


def incidents(readers: Mapping[str, TableReader], stretch: Stretch, max_rows: int) -> list[dict[str, Any]]:
    """Groups of which something is told, the worst first: those that lost most members against their will, then those
    whose members were refused most often, then those that rebalanced longest, then most often."""
    groups: dict[str, _Group] = {}
    for row in _rows_of(readers["members"], stretch, "known_at_ms", "joined_at_ms", max_rows):
        group = groups.setdefault(row.group_id, _Group())
        group.clients[row.member_id] = row.client_id
        if row.ended_at_ms is not None and _within(row.ended_at_ms, stretch):
            group.ended.append(row)
    for row in _rows_of(readers["rebalances"], stretch, "known_at_ms", "started_at_ms", max_rows):
        if row.completed_at_ms is None or stretch.from_ms is None or row.completed_at_ms >= stretch.from_ms:
            groups.setdefault(row.group_id, _Group()).rebalances.append(row)
    for group_id, at_ms in _refusals(readers["transitions"], stretch, max_rows):
        groups.setdefault(group_id, _Group()).refused_at_ms.append(at_ms)
    found = [
        _told(stretch.cluster_id, group_id, group)
        for group_id, group in groups.items()
        if group.ended or group.rebalances or group.refused_at_ms
    ]
    found.sort(key=_worst)
    return found


def _worst(one: dict[str, Any]) -> tuple[Any, ...]:
    return -one["evictions"], -one["refusals"], -(one["rebalancing_ms"] or 0), -one["rebalances"], one["group_id"]


def _told(cluster_id: str, group_id: str, group: _Group) -> dict[str, Any]:
    group.ended.sort(key=lambda row: (row.ended_at_ms, row.member_id))
    evicted = [row for row in group.ended if row.end_cause in EVICTION_CAUSES]
    lasted = {id(row): row.completed_at_ms - row.started_at_ms for row in group.rebalances if _has_length(row)}
    longest = max(group.rebalances, key=lambda row: lasted.get(id(row), -1), default=None)
    if longest is not None and id(longest) not in lasted:
        longest = None
    instants = [row.ended_at_ms for row in group.ended] + [row.started_at_ms for row in group.rebalances]
    instants += group.refused_at_ms
    return {
        "href": as_dicts.group_href(cluster_id, group_id),
        "group_id": group_id,
        "first_at_ms": min(instants),
        "first_at": to_rfc3339(min(instants)),
        "last_at_ms": max(instants),
        "last_at": to_rfc3339(max(instants)),
        "evictions": len(evicted),
        "ends": dict(Counter(row.end_cause for row in group.ended).most_common()),
        "evicted": [
            {
                "href": as_dicts.member_href(cluster_id, group_id, row.member_id),
                "member_id": row.member_id,
                "client_id": row.client_id,
                "ended_at_ms": row.ended_at_ms,
                "ended_at": to_rfc3339(row.ended_at_ms),
                "end_cause": row.end_cause,
                "certainty": row.certainty,
            }
            for row in evicted[-NAMED_MAX:]
        ],
        "refusals": len(group.refused_at_ms),
        "rebalances": len(group.rebalances),
        "rebalancing_ms": sum(lasted.values()) if lasted else None,
        "triggers": dict(Counter(row.trigger for row in group.rebalances).most_common()),
        "longest": None if longest is None else _longest(longest, lasted[id(longest)], group.clients),
    }


def _has_length(row: Any) -> bool:
    """Whether both ends of a rebalance were read."""
    return row.completed_at_ms is not None and not row.began_unseen


def _longest(row: Any, duration_ms: int, clients: Mapping[str, str | None]) -> dict[str, Any]:
    waited = max(row.stragglers or (), key=lambda entry: entry["waited_ms"] or 0, default=None)
    return {
        "started_at_ms": row.started_at_ms,
        "started_at": to_rfc3339(row.started_at_ms),
        "duration_ms": duration_ms,
        "trigger": row.trigger,
        "certainty": row.certainty,
        "waited_for": None if waited is None else waited["member_id"],
        "waited_for_client_id": None if waited is None else clients.get(waited["member_id"]),
        "waited_ms": None if waited is None else waited["waited_ms"],
    }


def _refusals(reader: TableReader, stretch: Stretch, max_rows: int) -> list[tuple[str, int]]:
    """Group and instant of each refusal: history is append-only, so every row counts."""
    where = (
        (ds.field("cluster_id") == stretch.cluster_id)
        & (ds.field("batch_id") <= stretch.batch_id)
        & ds.field("cause").isin(REFUSED)
    )
    files = [up_to(stretch.batch_id)]
    for at_ms, sign in ((stretch.from_ms, ">="), (stretch.to_ms, "<")):
        if at_ms is not None:
            where &= ds.field("at_ms") >= at_ms if sign == ">=" else ds.field("at_ms") < at_ms
            files.append(Bound("at_ms", sign, at_ms))

    def take(chunks: Iterator[pa.Table]) -> list[tuple[str, int]]:
        found: list[tuple[str, int]] = []
        for chunk in chunks:
            bounded(len(found) + chunk.num_rows, max_rows, reader.name)
            found += [(row.group_id, row.at_ms) for row in reader.rows(chunk)]
        return found

    return reader.scan(where, files, take)


def _within(at_ms: int, stretch: Stretch) -> bool:
    return (stretch.from_ms is None or at_ms >= stretch.from_ms) and (stretch.to_ms is None or at_ms < stretch.to_ms)


def _rows_of(reader: TableReader, stretch: Stretch, lower: str, upper: str, max_rows: int) -> list[Any]:
    """Rows of the cluster that may tell of the stretch: known no earlier than its begin, of what began before its end.
    Neither bound separates a row from the one that corrects it."""
    where = (ds.field("cluster_id") == stretch.cluster_id) & (ds.field("batch_id") <= stretch.batch_id)
    files = [up_to(stretch.batch_id)]
    if stretch.from_ms is not None:
        where &= ds.field(lower) >= stretch.from_ms
        files.append(Bound(lower, ">=", stretch.from_ms))
    if stretch.to_ms is not None:
        where &= ds.field(upper) < stretch.to_ms
        files.append(Bound(upper, "<", stretch.to_ms))

    return standing_rows(reader, where, files, max_rows)
