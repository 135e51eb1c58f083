"""The pulse of a group: of each member its beats, its polls and its deadlines over a stretch of time, from the files.

A beat is a request that renewed a session. The archive (`events`) holds each of them; before it is written, and where
none is kept, health rows remember the latest one at every sample: `seen`. Nothing is drawn in between: a beat that no
row shows is not in the answer. Reads rows, decides nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.dataset as ds

from api.answers import as_dicts
from api.errors import TablesMissing
from api.files.data_files import Bound
from api.files.reader import TableReader
from api.past.archive import bounded, up_to
from api.present.health import poll_interval_ms
from kardia.statuses import shown

BEATS = ("heartbeat", "commit", "join", "sync")
"""Kinds of events that renew a session. A refused one (`error_code`) is shown as refused."""

SAME_BEAT_MS = 5
"""A health row and an event closer than that tell of one request."""

SAMPLE = (
    "at_ms",
    "status",
    "certainty",
    "reasons",
    "group_state",
    "generation_id",
    "session_timeout_ms",
    "session_deadline_at_ms",
    "poll_interval_ms",
    "poll_deadline_at_ms",
    "awaited_since_at_ms",
    "awaited_until_at_ms",
    "member_epoch",
    "member_state",
    "partitions",
    "partitions_revoking",
    "partitions_target",
    "assigned",
    "assigned_target",
)
"""Columns of `health` that a sample repeats."""


class Asked(NamedTuple):
    """Which group, and from (inclusive) to (exclusive) when; rows above `batch_id` are not seen."""

    cluster_id: str
    group_id: str
    from_ms: int
    to_ms: int
    batch_id: int
    rows_max: int


def read(health: TableReader, events: TableReader, asked: Asked) -> tuple[list[dict[str, Any]], int | None]:
    """Pulses by member id, and the instant of the latest archived event among them."""
    members: dict[str, dict[str, Any]] = {}
    where = _of(asked) & (ds.field("batch_id") <= asked.batch_id)
    for row in _rows(health, where, asked, up_to(asked.batch_id)):
        _take_health(_member(members, asked, row), row, asked)
    archived_to_ms = None
    try:
        for row in _rows(events, _of(asked) & ds.field("kind").isin(BEATS), asked):
            if row.member_id:
                member = _member(members, asked, row)
                beat = {"at_ms": row.at_ms, "by": row.kind, "error_code": row.error_code or 0}
                member["beats"].append({**beat, "renewed_at_ms": _renewed_at_ms(row)})
                archived_to_ms = max(row.at_ms, archived_to_ms or 0)
    except TablesMissing:
        pass  # its retention is short, or it is not kept
    for member in members.values():
        _put_in_order(member)
    return [members[member_id] for member_id in sorted(members)], archived_to_ms


def _member(members: dict[str, dict[str, Any]], asked: Asked, row: Any) -> dict[str, Any]:
    found = members.get(row.member_id)
    if found is None:
        found = members[row.member_id] = {
            "href": as_dicts.member_href(asked.cluster_id, asked.group_id, row.member_id),
            "group_id": asked.group_id,
            "member_id": row.member_id,
            "client_id": row.client_id,
            "group_instance_id": row.group_instance_id,
            "beats": [],
            "polls": [],
            "samples": [],
        }
    return found


def _renewed_at_ms(row: Any) -> int:
    """Where the session timeout begins again: with the answer of a JoinGroup or SyncGroup, which may wait for long."""
    return int(max(row.at_ms, row.decided_at_ms or 0)) if row.kind in ("join", "sync") else int(row.at_ms)


def _take_health(member: dict[str, Any], row: Any, asked: Asked) -> None:
    heard_ms, polled_ms = row.last_heard_at_ms, row.last_poll_at_ms
    if heard_ms is not None and asked.from_ms <= heard_ms < asked.to_ms:
        member["beats"].append({"at_ms": heard_ms, "by": "seen", "error_code": 0, "renewed_at_ms": heard_ms})
    if polled_ms is not None and asked.from_ms <= polled_ms < asked.to_ms:
        poll = {"at_ms": polled_ms, "evidence": row.poll_evidence, "error_bound_ms": row.poll_error_bound_ms}
        if poll not in member["polls"][-1:]:
            member["polls"].append(poll)
    sample = {name: getattr(row, name) for name in SAMPLE}
    sample["shown"] = shown(row.status, row.group_state, row.awaited_since_at_ms)
    sample["reasons"] = list(row.reasons or ())
    sample["moving"] = None if row.moving is None else [dict(entry) for entry in row.moving]
    sample["poll_timeout_ms"] = poll_interval_ms(row)
    member["samples"].append(sample)


def _put_in_order(member: dict[str, Any]) -> None:
    """By time; what health saw of a request that is archived as well is left out."""
    beats: list[dict[str, Any]] = []
    for beat in sorted(member["beats"], key=lambda one: (one["at_ms"], one["by"] == "seen")):
        last = beats[-1] if beats else None
        if last is not None and beat["at_ms"] - last["at_ms"] <= SAME_BEAT_MS and "seen" in (beat["by"], last["by"]):
            if last["by"] == "seen":
                beats[-1] = beat
            continue
        beats.append(beat)
    member["beats"] = beats
    polls = {poll["at_ms"]: poll for poll in member["polls"]}
    member["polls"] = [polls[at_ms] for at_ms in sorted(polls)]
    member["samples"].sort(key=lambda one: one["at_ms"])


def _of(asked: Asked) -> ds.Expression:
    return (
        (ds.field("cluster_id") == asked.cluster_id)
        & (ds.field("group_id") == asked.group_id)
        & (ds.field("at_ms") >= asked.from_ms)
        & (ds.field("at_ms") < asked.to_ms)
    )


def _rows(reader: TableReader, where: ds.Expression, asked: Asked, *more: Bound) -> list[Any]:
    def take(chunks: Iterator[pa.Table]) -> list[Any]:
        rows: list[Any] = []
        for chunk in chunks:
            bounded(len(rows) + chunk.num_rows, asked.rows_max, reader.name)
            rows.extend(reader.rows(chunk))
        return rows

    files = [
        Bound("group_id", "=", asked.group_id),
        Bound("at_ms", ">=", asked.from_ms),
        Bound("at_ms", "<", asked.to_ms),
        *more,
    ]
    return reader.scan(where, files, take)
