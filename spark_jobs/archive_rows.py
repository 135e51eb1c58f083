"""Events as rows of the table `events`, each once: decoding, and which kinds are archived. Pure.

Not archived: REJECTED (they are in `rejected`), TICK (they carry no position of their own: an idle source ticks where
it stands), and a GAP in any lane but 0 (it is sent to all of them, and it is one event).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import isfinite

import msgspec

from ingest.errors import BatchError
from ingest.wire import check_format, decode_batch
from kardia.events import ALL_SHARDS, Event, Kind, event_id, lane_of
from kardia.tables import Row
from spark_jobs.archive_once import Once
from spark_jobs.lane import Record, is_foreign

GAP_LANE = 0
"""Lane whose copy of an event for all shards is archived."""

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
        None if event.detail is None else msgspec.json.encode(event.detail).decode(),
    )


def _whole(at_ms: float) -> int:
    """Whole milliseconds; 0 for what is none, which no collector of ours sends."""
    return int(at_ms) if isfinite(at_ms) else 0


def lane_of_row(shard: int, lanes: int) -> int:
    """Lane an archived event came from."""
    return GAP_LANE if shard == ALL_SHARDS else lane_of(shard, lanes)
