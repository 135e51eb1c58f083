"""A group as it was at an instant, as far as it was known at another: rows of the files, folded by the current view.

Every row has two instants: `at_ms` is when it was so on the broker; `known_at_ms` when the evidence was there. A
question has both as well, the second as a limit. Without it everything that is known today counts, so the past is told
as it was. With it only rows that had been settled by then count, so it is told as Kardia would have told it then. What
ended after the instant is shown as it was: not yet ended.

Reads files through `api.past.archive`; knows no HTTP. The rules about what a row does to a view stay in
`api.present.folding`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from api.files.reader import TableReader
from api.past import archive, renewals
from api.past.cursor import Place
from api.present.current import Current, GroupView
from api.present.folding import after
from api.present.freshness import Freshness
from api.settings import ApiSettings
from kardia.instants import to_rfc3339

NEVER_MS = 1 << 62

SAMPLED_WITHIN_MS = (6_000, 60_000)
"""A member that is well is sampled every 5 s; where there are many, less often (`ObserverSettings.samples_per_s`):
every 42 s if they are 100,000 in six lanes."""

_OF_AN_END = ("ended_at_ms", "end_cause", "end_reason", "fault", "fault_certainty", "fault_signs", "at_bound_ms")
_OF_A_COMPLETION = (
    "completed_at_ms",
    "member_seconds_lost",
    "partition_seconds_lost",
    "broker_slow_ms",
    "completed_bound_ms",
)
"""Columns that an end, or the end of a rebalance, has filled."""


class Then(NamedTuple):
    """The instant asked about; `known_at_ms` None lets all evidence count; `batch_id` bounds what is seen."""

    at_ms: int
    known_at_ms: int | None
    batch_id: int

    @property
    def knowledge(self) -> archive.Knowledge:
        """The bounds on rows that hold for this question."""
        return archive.Knowledge(self.batch_id, self.known_at_ms)


def group_at(
    readers: Mapping[str, TableReader], settings: ApiSettings, cluster_id: str, group_id: str, shard: int, then: Then
) -> GroupView:
    """The group as it stood at the instant; a group without rows by then is Unknown and has no members."""
    about, rows_max, at_ms = (cluster_id, group_id), settings.rows_read_max, then.at_ms
    latest = archive.HistoryPart(None, at_ms + 1, 1, True, Place(then.batch_id, ()), then.known_at_ms)
    began = archive.rebalances(readers["rebalances"], *about, latest, rows_max).rows
    open_then = open_predictions(readers["predictions"], about, then, rows_max)
    found: dict[str, list[Any]] = {
        "transitions": archive.transitions(readers["transitions"], *about, latest, "group").rows,
        "members": [
            as_of(row, at_ms)
            for row in archive.lives_until(readers["members"], *about, then.knowledge, at_ms, rows_max)
            if row.ended_at_ms is None or row.ended_at_ms > at_ms
        ],
        "rebalances": [as_of(row, at_ms) for row in began],
        "predictions": open_then,
    }
    joined_at_ms = {row.member_id: row.joined_at_ms for row in found["members"]}
    sampled: list[Any] = []
    for lookback_ms in (*SAMPLED_WITHIN_MS, settings.health_lookback_ms):
        # Nearly always the first is enough, and reads a hundredth of the rows.
        sampled = archive.health_at(readers["health"], *about, then.knowledge, at_ms, lookback_ms, rows_max)
        if joined_at_ms.keys() <= {row.member_id for row in sampled}:
            break
    # One member id may have had several lives; a row from before this one began is about another.
    sampled = [row for row in sampled if row.at_ms >= joined_at_ms.get(row.member_id, NEVER_MS)]
    past = _brought_up(readers, about, then, sampled, open_then, found["transitions"], rows_max)
    found["health"] = past.rows
    cluster = after(Current(settings), found, then.batch_id).clusters.get(cluster_id)
    group = cluster.groups.get(group_id) if cluster is not None else None
    if group is None:
        return GroupView(cluster_id, group_id, shard)
    group.settled = past.settled
    return group


def brought_up(
    readers: Mapping[str, TableReader], about: tuple[str, str], then: Then, rows: list[Any], rows_max: int
) -> renewals.Past:
    """Health rows of a group, the latest up to the instant, with what is known of their deadlines at the instant."""
    latest = archive.HistoryPart(None, then.at_ms + 1, 1, True, Place(then.batch_id, ()), then.known_at_ms)
    changes = archive.transitions(readers["transitions"], *about, latest, "group").rows
    said = open_predictions(readers["predictions"], about, then, rows_max)
    return _brought_up(readers, about, then, rows, said, changes, rows_max)


def _brought_up(
    readers: Mapping[str, TableReader],
    about: tuple[str, str],
    then: Then,
    rows: list[Any],
    said: list[Any],
    changes: list[Any],
    rows_max: int,
) -> renewals.Past:
    known = renewals.Known(
        {(row.member_id, row.kind): row for row in said}, max((row.at_ms for row in changes), default=0)
    )
    tables = readers["health"], readers["events"]
    return renewals.as_of(*tables, about, then.knowledge, then.at_ms, rows, known, rows_max)


def open_predictions(reader: TableReader, about: tuple[str, str], then: Then, rows_max: int) -> list[Any]:
    """Predictions that were open at the instant, as they were told then."""
    said = archive.HistoryPart(None, then.at_ms + 1, rows_max, True, Place(then.batch_id, ()), then.known_at_ms)
    rows = archive.predictions(reader, *about, said, rows_max).rows
    return [as_of(row, then.at_ms) for row in rows if row.outcome == "open" or (row.outcome_at_ms or 0) > then.at_ms]


def as_of(row: Any, at_ms: int) -> Any:
    """A row of `members`, `rebalances` or `predictions` without what came after the instant."""
    later: dict[str, Any] = {}
    if hasattr(row, "ended_at_ms"):
        if row.ended_at_ms is not None and row.ended_at_ms > at_ms:
            later = dict.fromkeys(_OF_AN_END)
    elif hasattr(row, "stragglers"):
        later = _rebalance_as_of(row, at_ms)
    elif row.outcome != "open" and (row.outcome_at_ms or 0) > at_ms:
        later = {"outcome": "open", "outcome_at_ms": None, "lead_ms": None, "error_ms": None}
    return row._replace(**later) if later else row


def _rebalance_as_of(row: Any, at_ms: int) -> dict[str, Any]:
    later: dict[str, Any] = {}
    if row.completed_at_ms is not None and row.completed_at_ms > at_ms:
        lasted_ms = at_ms - row.started_at_ms
        later |= dict.fromkeys(_OF_A_COMPLETION)
        later["stragglers"] = [_straggler_as_of(entry, lasted_ms) for entry in row.stragglers or ()]
    if row.joined_at_ms is not None and row.joined_at_ms > at_ms:
        later |= {"joined_at_ms": None, "generation_after": None, "members_after": None}
        later |= {"leader_member_id": None, "protocol_name": None}
    return later


def _straggler_as_of(entry: dict[str, Any], lasted_ms: int) -> dict[str, Any]:
    waited_ms = entry["waited_ms"]
    if waited_ms is None or waited_ms <= lasted_ms:
        return entry
    return {**entry, "waited_ms": lasted_ms, "joined": False}


def freshness_at(now: Freshness, then: Then) -> Freshness:
    """Freshness by which countdowns of an answer about the past are told: its present is the instant asked about.

    An instant that the tables cover is never stale, however long ago it is. What Kardia knew at `known_at_ms` covered
    no more than that instant.
    """
    reached_ms = now.complete_as_of_ms
    if reached_ms is not None and then.known_at_ms is not None:
        reached_ms = min(reached_ms, then.known_at_ms)
    return Freshness(reached_ms, then.at_ms, now.stale_after_ms, then.batch_id)


def asked(then: Then | None) -> dict[str, Any]:
    """The instants of a question as its answer repeats them; null where the present was asked about."""
    at_ms, known_at_ms = (None, None) if then is None else (then.at_ms, then.known_at_ms)
    return {
        "at_ms": at_ms,
        "at": to_rfc3339(at_ms),
        "known_at_ms": known_at_ms,
        "known_at": to_rfc3339(known_at_ms),
    }
