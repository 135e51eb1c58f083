"""Of a request that took long, how much of the time was the broker's own work. Called for such lines only."""

from __future__ import annotations

from typing import Any

from ingest.dialects import Reading
from kardia import slowness
from kardia.events import Event, Kind

_ANSWERED_AT_ONCE = frozenset(
    int(kind) for kind in (Kind.HEARTBEAT, Kind.LEAVE, Kind.COMMIT, Kind.TXN_COMMIT, Kind.DELETE_GROUPS)
)
"""Requests that nothing but the broker keeps waiting. A JoinGroup waits for members, a FETCH for data."""


def note_slow(windows: slowness.Windows, parsed: Any, reading: Reading, at_ms: float) -> None:
    """Note a line if the broker was slow; `at_ms` is its stamp."""
    queue_ms, local_ms, remote_ms = parsed.request_queue_time_ms, parsed.local_time_ms, 0.0
    if isinstance(reading, Event) and reading.kind in _ANSWERED_AT_ONCE:
        remote_ms = parsed.remote_time_ms
    taken_ms = queue_ms + local_ms + remote_ms
    if taken_ms >= slowness.SLOW_MS:
        begin = at_ms // slowness.WINDOW_MS * slowness.WINDOW_MS
        slowness.note(windows, (begin, taken_ms, queue_ms, local_ms, remote_ms))
