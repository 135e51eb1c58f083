"""Events as rows of the table `events`, each once: decoding, and which kinds are archived. Pure.

Not archived: REJECTED (they are in `rejected`), TICK (they carry no position of their own: an idle source ticks where
it stands), and a GAP in any lane but 0 (it is sent to all of them, and it is one event).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import isfinite

import msgspec

from ingest.errors import BatchError
from ingest.wire.batches import check_format, decode_batch
from kardia.events import ALL_SHARDS, Event, Kind, event_id, lane_of
from kardia.tables import EVENTS, Row
from spark_jobs.archive.deduplication import Once
from spark_jobs.lane import Record, is_foreign

GAP_LANE = 0
"""Lane whose copy of an event for all shards is archived."""

IDENTITY = 1 + EVENTS.names.index("decided_at_ms")
"""Columns at the head of a row that say which event it is and when it was; all behind them may be null."""

_NAMES = {int(kind): kind.name.lower() for kind in Kind}
_SKIPPED = frozenset((int(Kind.REJECTED), int(Kind.TICK)))


def rows_of(cluster: str, lane: int, once: Once, records: Iterable[Record]) -> Iterator[Row]:
    """Rows of the new events of one lane's records in order of their offsets. Records that are no batches give none."""
    for record in records:
        if record.value is None or is_foreign(record, cluster):
            continue
        try:
            check_format(record.format)
            events = decode_batch(record.value)
        except BatchError:
            continue  # the live query puts it into `rejected`
        for event in once.new([event for event in events if is_archived(event, lane)]):
            yield row_of(cluster, event)


def is_archived(event: Event, lane: int) -> bool:
    """Whether an event of a lane has a row in `events`."""
    if event.kind in _SKIPPED or event.kind not in _NAMES:
        return False
    return event.shard != ALL_SHARDS or lane == GAP_LANE


def row_of(cluster: str, event: Event) -> Row:
    """Row of `events`, in the order of its columns."""
    return (
        cluster,
        event.group_id,
        event.shard,
        _whole(event.handled_at_ms),
        _whole(event.logged_at_ms),
        "exact",
        event_id(event),
        _NAMES[event.kind],
        event.source,
        event.start,
        event.end,
        event.logged_at_ms,
        event.arrived_at_ms,
        event.handled_at_ms,
        event.decided_at_ms,
        event.member_id or None,
        event.group_instance_id or None,
        event.client_id or None,
        event.client_host or None,
        event.connection or None,
        event.software or None,
        event.api_version,
        event.error_code,
        event.generation_id,
        _detail(event),
    )


def _detail(event: Event) -> str | None:
    """JSON of the detail; of one that JSON has no words for (keys that are no text), what Python says of it."""
    if event.detail is None:
        return None
    try:
        return msgspec.json.encode(event.detail).decode()
    except (TypeError, ValueError, RecursionError) as error:
        return _note(str(error), event.detail)


def without_what_does_not_fit(row: Row, why: str) -> Row:
    """A row that its table refuses, with its identity and its instants alone; `detail` shows the whole of it.

    Left out, its id would be missing, and who looks for it would take it for lost.
    """
    return (*row[:IDENTITY], *[None] * (len(EVENTS.columns) - IDENTITY - 1), _note(why, row))


def _note(why: str, what: object) -> str:
    return msgspec.json.encode({"does_not_fit": why[:400], "shown": ascii(what)[:1_000]}).decode()


def _whole(at_ms: float) -> int:
    """Whole milliseconds; 0 for what is none, which no collector of ours sends."""
    return int(at_ms) if isfinite(at_ms) else 0


def lane_of_row(shard: int, lanes: int) -> int:
    """Lane an archived event came from."""
    return GAP_LANE if shard == ALL_SHARDS else lane_of(shard, lanes)
