"""Events as rows of the table `events`, each position once: decoding, and the marks that recognise a repeat. Pure.

A collector that died between sending and saving sends lines again. Positions of one source only grow, and a lane keeps
order, so one mark per (lane, source) recognises every repeat, within a batch and across batches: the highest start and
the shards that had an event there (a FETCH is one line and may be one event for each of several shards).

Not archived: REJECTED (they are in `rejected`), TICK (they carry no position of their own: an idle source ticks where
it stands), and a GAP in any lane but 0 (it is sent to all of them, and it is one event).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from ingest.errors import BatchError
from ingest.wire import check_format, decode_batch
from kardia.events import ALL_SHARDS, Event, Kind, event_id, lane_of
from kardia.tables import Row
from spark_jobs.lane import Record

GAP_LANE = 0
"""Lane whose copy of an event for all shards is archived."""

_NAMES = {int(kind): kind.name.lower() for kind in Kind}
_SKIPPED = frozenset((int(Kind.REJECTED), int(Kind.TICK)))


class Mark(msgspec.Struct, array_like=True):
    """How far one source has come in one lane."""

    start: int
    shards: list[int]


Marks = dict[str, Mark]
"""Marks of one lane by source."""


def is_new(marks: Marks, event: Event) -> bool:
    """Whether the event has not been seen in this lane; notes it."""
    mark = marks.get(event.source)
    if mark is None or event.start > mark.start:
        marks[event.source] = Mark(event.start, [event.shard])
        return True
    if event.start < mark.start or event.shard in mark.shards:
        return False
    mark.shards.append(event.shard)
    return True


def rows_of(cluster: str, lane: int, marks: Marks, records: Iterable[Record]) -> Iterator[Row]:
    """Rows of the events of one lane's records in order of their offsets. Records that are no batches give none."""
    for record in records:
        if record.value is None:
            continue
        try:
            check_format(record.format)
            events = decode_batch(record.value)
        except BatchError:
            continue  # the live query puts it into `rejected`
        for event in events:
            if event.kind in _SKIPPED or event.kind not in _NAMES:
                continue
            if event.shard == ALL_SHARDS and lane != GAP_LANE:
                continue
            if is_new(marks, event):
                yield row_of(cluster, event)


def row_of(cluster: str, event: Event) -> Row:
    """Row of `events`, in the order of its columns."""
    return (
        cluster,
        event.group_id,
        event.shard,
        int(event.handled_at_ms),
        int(event.logged_at_ms),
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


def lane_of_row(shard: int, lanes: int) -> int:
    """Lane an archived event came from."""
    return GAP_LANE if shard == ALL_SHARDS else lane_of(shard, lanes)
