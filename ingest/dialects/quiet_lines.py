"""Heartbeats and fetches put into stretches while they are read: no object is made for each of them.

They are nearly all of a request log. A stretch is found by everything that the lines of one sender have in common; what
is left of a line is seven numbers. A line that says more than "as before" (an error, a follower's fetch, a shape that
is not understood) is refused here and read by itself.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from struct import Struct
from typing import Any

import msgspec

from ingest.dialects import request_shapes as shapes
from ingest.dialects.request_events import Builder, RequestEvents, fetched_bytes, from_follower
from kardia.events import Event, Kind
from kardia.stretches import WIDTH, Stretch

_pack = Struct(f"{WIDTH}d").pack
_heartbeat = msgspec.json.Decoder(shapes.QuietHeartbeat).decode
_fetch = msgspec.json.Decoder(shapes.QuietFetch).decode
_HEARTBEAT, _FETCH = int(Kind.HEARTBEAT), int(Kind.FETCH)

Fold = Callable[[bytes, str, int, int, float], bool]
"""Takes the object of a line, its source, start, end and stamp; says whether the line is in a stretch now. Raises what
msgspec raises, and AttributeError for a request or response that is not an object."""


class QuietLines:
    """The stretches that are being filled."""

    def __init__(self, single: RequestEvents) -> None:
        """`single` builds the head of a stretch."""
        self._single: dict[int, tuple[Callable[[bytes], Any], Builder]] = {
            kind: (msgspec.json.Decoder(single.by_api[api][0]).decode, single.by_api[api][1])
            for kind, api in ((_HEARTBEAT, 12), (_FETCH, 1))
        }
        self._heads: dict[tuple[object, ...], Event] = {}
        self._numbers: dict[tuple[object, ...], bytearray] = {}
        self.by_api: dict[int, Fold] = {1: self._fold_fetch, 12: self._fold_heartbeat}
        """By number of the API."""

    def take(self) -> list[Stretch]:
        """Stretches in the order of their first lines; the next line begins new ones."""
        taken = [Stretch(head, array("d", bytes(self._numbers[key]))) for key, head in self._heads.items()]
        self._heads, self._numbers = {}, {}
        return taken

    def _fold_heartbeat(self, body: bytes, source: str, start: int, end: int, at_ms: float) -> bool:
        line = _heartbeat(body)
        request: Any = line.request
        if line.response.error_code != 0:  # type: ignore[union-attr]
            return False
        header = line.request_header
        # A connection announces its software once, so that needs no place in the key.
        key = (
            line.connection,
            request.member_id,
            request.generation_id,
            request.group_id,
            request.group_instance_id,
            header.client_id,
            header.request_api_version,
            source,
        )
        numbers = self._numbers.get(key)
        if numbers is None:
            numbers = self._begin(key, _HEARTBEAT, body, source, start, end, at_ms)
        arrived = at_ms - line.total_time_ms
        handled = arrived + line.request_queue_time_ms + line.local_time_ms
        numbers += _pack(start, end, at_ms, arrived, handled, handled + line.remote_time_ms, 0.0)
        return True

    def _fold_fetch(self, body: bytes, source: str, start: int, end: int, at_ms: float) -> bool:
        line = _fetch(body)
        response: Any = line.response
        if response.error_code != 0 or from_follower(line.request):
            return False
        header = line.request_header
        key = (line.connection, header.client_id, header.request_api_version, source)
        numbers = self._numbers.get(key)
        if numbers is None:
            numbers = self._begin(key, _FETCH, body, source, start, end, at_ms)
        arrived = at_ms - line.total_time_ms
        handled = arrived + line.request_queue_time_ms + line.local_time_ms
        numbers += _pack(start, end, at_ms, arrived, handled, handled + line.remote_time_ms, fetched_bytes(response))
        return True

    def _begin(
        self, key: tuple[object, ...], kind: int, body: bytes, source: str, start: int, end: int, at_ms: float
    ) -> bytearray:
        decode, build = self._single[kind]
        head = build(decode(body), source, start, end, at_ms)
        if not isinstance(head, Event):
            raise AttributeError("not a request by itself")
        self._heads[key] = head
        numbers = self._numbers[key] = bytearray()
        return numbers
