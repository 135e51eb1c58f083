"""Deadlines of an instant in the past: from every request that is known to have renewed them, or with their bound.

A member in good health is written down every few seconds, and a heartbeat in between moves its deadline. So the latest
health row before an instant gives a deadline that is right or too early: a bound. It is exact where nothing can have
renewed it unseen up to the instant: the row is of that instant; a prediction was open, which the next request would
have closed; the next row remembers the same last request; or the archive holds all requests of the group up to there.

Reads rows through `api.past.archive`; knows no rule of the coordinator but which requests renew a session (Kafka's
`handleHeartbeat` and `validateOffsetCommit`). What waits for an answer (JoinGroup, SyncGroup) and what renews a group
as a whole (the end of a join phase, a load) is left to health rows: where it happened in between, the bound stays.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.dataset as ds

from api.errors import RangeTooWide, TablesMissing, TableUnreadable
from api.files.data_files import Bound
from api.files.reader import TableReader
from api.past import archive

NEXT_WITHIN_MS = 6_000
"""A member that is well is sampled every 5 s: the next row comes within that, if the member is still there and need not
wait for its turn because there are so many (`ObserverSettings.samples_per_s`)."""

RENEWING = {"heartbeat": (0, 27), "commit": (0,)}
"""Kind of a request -> answers with which it renewed the session."""

LONGEST_ANSWER_MS = 1_000
"""A heartbeat handled that long before a row may renew after it: longer ones of a slow broker only make the bound."""

WAITING = ("join", "sync")
"""Requests that renew a session by rules of their own."""

STATUSES_OF_SILENCE = ("late", "imminent", "overdue")

Settled = frozenset[tuple[str, str]]
"""(member id, session or poll) whose deadline is exact for the instant."""


class Past(NamedTuple):
    """Health rows as of an instant, and which of their deadlines are exact for it."""

    rows: list[Any]
    settled: Settled


class Known(NamedTuple):
    """What was so at the instant beside health: predictions that were open, and when the group last changed."""

    open_predictions: Mapping[tuple[str, str], Any]
    changed_at_ms: int


class _Beats(NamedTuple):
    """Archived requests of a group around an instant."""

    heard_ms: dict[str, int]
    """Member id -> the latest renewal up to the instant."""
    waiting_ms: dict[str, int]
    """Member id -> its latest request that renews by other rules."""
    covers: bool
    """Whether everything up to the instant is archived: something that was logged after it is."""


def as_of(
    health: TableReader,
    events: TableReader,
    about: tuple[str, str],
    knowledge: archive.Knowledge,
    at_ms: int,
    rows: list[Any],
    known: Known,
    rows_max: int,
) -> Past:
    """Health rows of members, the latest up to an instant, brought up to it; `about` is cluster and group."""
    if not rows:
        return Past(rows, frozenset())
    after = _next_rows(health, about, knowledge, at_ms, rows_max)
    beats = _beats(events, about, knowledge, min(row.at_ms for row in rows), at_ms, rows_max)
    settled: set[tuple[str, str]] = set()
    told = []
    for before in rows:
        if before.at_ms == at_ms:
            settled |= {(before.member_id, "session"), (before.member_id, "poll")}
            told.append(before)
            continue
        row = _poll(before, after.get(before.member_id), at_ms, known, settled)
        told.append(_session(row, after.get(before.member_id), at_ms, known, beats, settled))
    return Past(told, frozenset(settled))


def _session(row: Any, after: Any, at_ms: int, known: Known, beats: _Beats, settled: set[tuple[str, str]]) -> Any:
    deadline_ms, heard_ms = row.session_deadline_at_ms, row.last_heard_at_ms
    if deadline_ms is None or heard_ms is None or row.session_timeout_ms is None:
        return row  # nothing is known since a gap
    place = row.member_id, "session"
    is_quiet = row.group_state == "Stable" and known.changed_at_ms <= row.at_ms
    predicted = known.open_predictions.get(place)
    if predicted is not None and predicted.deadline_at_ms is not None:
        settled.add(place)
        latest_ms = max(heard_ms, predicted.deadline_at_ms - row.session_timeout_ms)
    elif _remembers(after, row, at_ms):
        settled.add(place)
        latest_ms = after.last_heard_at_ms
    else:
        latest_ms = max(heard_ms, beats.heard_ms.get(row.member_id, heard_ms))
        if beats.covers and is_quiet and beats.waiting_ms.get(row.member_id, 0) <= row.at_ms:
            settled.add(place)
    if latest_ms == heard_ms:
        if row.status == "overdue":
            settled.add(place)  # such a member is written down in every batch, until it is heard or ended
        return row
    moved = {"last_heard_at_ms": latest_ms, "session_deadline_at_ms": latest_ms + row.session_timeout_ms}
    if row.status in STATUSES_OF_SILENCE and not any(who == row.member_id for who, _ in known.open_predictions):
        moved |= {"status": "ok", "reasons": []}  # it was heard after that was said
    return row._replace(**moved)


def _remembers(after: Any, row: Any, at_ms: int) -> bool:
    """Whether the next row knows of no renewal between the instant and itself: then its last one was in force then."""
    return (
        after is not None
        and after.last_heard_at_ms is not None
        and after.last_heard_at_ms <= at_ms
        and after.session_deadline_at_ms is not None
        and after.session_timeout_ms == row.session_timeout_ms
    )


def _poll(row: Any, after: Any, at_ms: int, known: Known, settled: set[tuple[str, str]]) -> Any:
    place = row.member_id, "poll"
    if row.poll_deadline_at_ms is None:
        return row
    if after is not None and after.last_poll_at_ms is not None and after.last_poll_at_ms <= at_ms:
        if after.poll_deadline_at_ms is None:
            return row
        settled.add(place)
        names = ("last_poll_at_ms", "poll_evidence", "poll_error_bound_ms", "poll_deadline_at_ms", "poll_interval_ms")
        return row._replace(**{name: getattr(after, name) for name in names})
    if place in known.open_predictions:
        settled.add(place)
    return row


def _next_rows(
    health: TableReader, about: tuple[str, str], knowledge: archive.Knowledge, at_ms: int, rows_max: int
) -> dict[str, Any]:
    """Member id -> its first health row after the instant."""
    times = at_ms + 1, at_ms + 1 + NEXT_WITHIN_MS
    found: dict[str, Any] = {}
    for row in archive.health_between(health, *about, knowledge, times, rows_max):
        first = found.get(row.member_id)
        if first is None or row.at_ms < first.at_ms:
            found[row.member_id] = row
    return found


def _beats(
    events: TableReader,
    about: tuple[str, str],
    knowledge: archive.Knowledge,
    from_ms: int,
    at_ms: int,
    rows_max: int,
) -> _Beats:
    """What the archive holds; nothing where it is not kept, is over already, or holds too much."""
    try:
        rows = _archived(events, about, (from_ms - LONGEST_ANSWER_MS, at_ms + NEXT_WITHIN_MS), rows_max)
    except (TablesMissing, TableUnreadable, RangeTooWide):
        return _Beats({}, {}, covers=False)
    heard_ms: dict[str, int] = {}
    waiting_ms: dict[str, int] = {}
    covers = False
    for row in _known(rows, knowledge.known_at_ms):
        covers |= row.logged_at_ms > at_ms
        # A commit renews when it is handled, before its record is written; all others when they are answered.
        renewed_ms = row.at_ms if row.kind == "commit" else int(row.decided_at_ms + 0.5)
        if renewed_ms > at_ms or not row.member_id:
            continue
        if row.kind in WAITING:
            waiting_ms[row.member_id] = max(renewed_ms, waiting_ms.get(row.member_id, 0))
        elif row.error_code in RENEWING[row.kind]:
            heard_ms[row.member_id] = max(renewed_ms, heard_ms.get(row.member_id, 0))
    return _Beats(heard_ms, waiting_ms, covers)


def _known(rows: Iterable[Any], known_at_ms: int | None) -> Iterator[Any]:
    return (row for row in rows if known_at_ms is None or row.logged_at_ms <= known_at_ms)


def _archived(events: TableReader, about: tuple[str, str], times: tuple[int, int], rows_max: int) -> list[Any]:
    """Requests of a group that renew sessions, from an instant to another, both included."""
    where = (
        (ds.field("cluster_id") == about[0])
        & (ds.field("group_id") == about[1])
        & (ds.field("at_ms") >= times[0])
        & (ds.field("at_ms") <= times[1])
        & ds.field("kind").isin([*RENEWING, *WAITING])
    )
    files = [Bound("group_id", "=", about[1]), Bound("at_ms", ">=", times[0]), Bound("at_ms", "<=", times[1])]

    def take(chunks: Iterator[pa.Table]) -> list[Any]:
        found: list[Any] = []
        for chunk in chunks:
            archive.bounded(len(found) + chunk.num_rows, rows_max, events.name)
            found += events.rows(chunk)
        return found

    return events.scan(where, files, take)
