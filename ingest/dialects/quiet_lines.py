"""Heartbeats and fetches put into stretches, a block of lines at a time: no object is kept for each of them.

They are nearly all of a request log. A stretch is found by everything that the lines of one sender have in common; what
is left of a line is seven numbers. A line that says more than "as before" (another API, an error, a follower's fetch,
anything unusual) is handed back, to be read by itself. The loop is written out because it runs once for each line.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from struct import Struct
from typing import Any, NamedTuple

import msgspec

from ingest.dialects import request_shapes as shapes
from ingest.dialects.quiet_text import HEAD_END, Quiet
from ingest.dialects.request_events import Builder, RequestEvents, fetched_bytes
from ingest.dialects.request_layout import API_AT, JSON_AT, LOGGER, LOGGER_BYTES, MARK, MARK_AT, PREFIX
from ingest.dialects.request_text import RequestText
from ingest.dialects.text_layout import HEAD
from ingest.stamps import MILLIS, Stamps
from kardia.events import SILENCE_MS, Event, Kind
from kardia.slowness import SLOW_MS
from kardia.stretches import WIDTH, Stretch

_pack = Struct(f"{WIDTH}d").pack
_heartbeat = msgspec.json.Decoder(shapes.QuietHeartbeat).decode
_fetch = msgspec.json.Decoder(shapes.QuietFetch).decode
_HEARTBEAT, _FETCH = int(Kind.HEARTBEAT), int(Kind.FETCH)
_KINDS = {MARK + PREFIX + b'1,"': _FETCH, MARK + PREFIX + b"12,": _HEARTBEAT}
"""How a line of either API goes on after its stamp and level, three bytes into the number."""

_KIND_END = API_AT + 3


class Folded(NamedTuple):
    """What is left of a block."""

    rest: list[tuple[bytes, int, int]]
    """Lines to be read by themselves: (line, start, end)."""
    highest_at_ms: float
    """Highest stamp of the lines that were folded, or the one given."""
    silence: bool
    """Whether two folded lines are `SILENCE_MS` apart."""


class QuietLines:
    """The stretches that are being filled."""

    def __init__(self, single: RequestEvents, stamps: Stamps, text: RequestText) -> None:
        """`single` builds the head of a stretch, `text` that of one of text lines."""
        self._stamps = stamps
        self._text = text
        self._single: dict[int, tuple[Callable[[bytes], Any], Builder]] = {
            kind: (msgspec.json.Decoder(single.by_api[api][0]).decode, single.by_api[api][1])
            for kind, api in ((_HEARTBEAT, 12), (_FETCH, 1))
        }
        self._heads: dict[tuple[object, ...], Event] = {}
        self._numbers: dict[tuple[object, ...], bytearray] = {}

    def take(self) -> list[Stretch]:
        """Stretches in the order of their first lines; the next line begins new ones."""
        taken = [Stretch(head, array("d", bytes(self._numbers[key]))) for key, head in self._heads.items()]
        self._heads, self._numbers = {}, {}
        return taken

    def fold(self, lines: list[bytes], source: str, start: int, highest_at_ms: float) -> Folded:
        """Fold what can be folded of complete lines, without their line ends, that begin at byte `start`."""
        rest: list[tuple[bytes, int, int]] = []
        silence = False
        seconds, at_ms_of, numbers_of = self._stamps.seconds, self._stamps.at_ms, self._numbers
        read_text = self._text.quiet.read
        end = start
        for line in lines:
            begin, end = end, end + len(line) + 1
            kind = _KINDS.get(line[MARK_AT:_KIND_END])
            if kind is None and line[JSON_AT:HEAD_END] == HEAD and line.isascii():
                at_ms = seconds.get(line[:21])
                millis = MILLIS.get(line[21:25])
                at_ms = at_ms_of(line) if at_ms is None or millis is None else at_ms + millis
                quiet = read_text(line, source)
                if at_ms is None or quiet is None or not self._fold_text(quiet, line, source, begin, end, at_ms):
                    rest.append((line, begin, end))
                elif at_ms > highest_at_ms:
                    silence = silence or at_ms - highest_at_ms >= SILENCE_MS
                    highest_at_ms = at_ms
                continue
            if kind is None or line[-LOGGER_BYTES:] != LOGGER or not line.isascii():
                rest.append((line, begin, end))
                continue
            at_ms = seconds.get(line[:21])
            millis = MILLIS.get(line[21:25])
            if at_ms is not None and millis is not None:
                at_ms += millis
            else:
                at_ms = at_ms_of(line)
            body = line[JSON_AT:-LOGGER_BYTES]
            try:
                if kind == _FETCH:
                    parsed: Any = _fetch(body)
                    request, response = parsed.request, parsed.response
                    if response.error_code != 0 or request.replica_id >= 0 or request.replica_state is not None:
                        rest.append((line, begin, end))
                        continue
                    header = parsed.request_header
                    key: tuple[object, ...] = (parsed.connection, header.client_id, header.request_api_version, source)
                    size = fetched_bytes(response) if response.responses else 0
                else:
                    parsed = _heartbeat(body)
                    request, header = parsed.request, parsed.request_header
                    if parsed.response.error_code != 0:
                        rest.append((line, begin, end))
                        continue
                    # A connection announces its software once, so that needs no place in the key.
                    key = (
                        parsed.connection,
                        request.member_id,
                        request.generation_id,
                        request.group_id,
                        request.group_instance_id,
                        header.client_id,
                        header.request_api_version,
                        source,
                    )
                    size = 0
                delay = parsed.request_queue_time_ms + parsed.local_time_ms
                if kind == _HEARTBEAT:
                    delay += parsed.remote_time_ms  # a FETCH waits for data there
                if delay >= SLOW_MS or (kind == _HEARTBEAT and parsed.throttle_time_ms):
                    rest.append((line, begin, end))  # it tells that the broker is slow
                    continue
                numbers = numbers_of.get(key)
                if numbers is None:
                    numbers = self._begin(key, kind, body, source, begin, end, at_ms)
            except (msgspec.DecodeError, RecursionError, AttributeError):
                rest.append((line, begin, end))
                continue
            if at_ms is None or numbers is None:
                rest.append((line, begin, end))
                continue
            arrived = at_ms - parsed.total_time_ms
            handled = arrived + parsed.request_queue_time_ms + parsed.local_time_ms
            numbers += _pack(begin, end, at_ms, arrived, handled, handled + parsed.remote_time_ms, size)
            if at_ms > highest_at_ms:
                silence = silence or at_ms - highest_at_ms >= SILENCE_MS
                highest_at_ms = at_ms
        return Folded(rest, highest_at_ms, silence)

    def _fold_text(self, quiet: Quiet, line: bytes, source: str, start: int, end: int, at_ms: float) -> bool:
        """Fold a text line; False if it is to be read by itself."""
        kind, key, total_ms, queue_ms, local_ms, after_ms, size = quiet
        arrived = at_ms - total_ms
        handled = arrived + queue_ms + local_ms
        waited_ms = total_ms - queue_ms - local_ms - after_ms
        decided = handled + waited_ms if waited_ms > 0.0 else handled
        if queue_ms + local_ms >= SLOW_MS or (kind == _HEARTBEAT and total_ms >= SLOW_MS):
            return False
        numbers = self._numbers.get(key)
        if numbers is None:
            head = self._text.read(line, JSON_AT, source, start, end, at_ms)
            if not isinstance(head, Event):
                return False
            self._heads[key] = head
            numbers = self._numbers[key] = bytearray()
        numbers += _pack(start, end, at_ms, arrived, handled, decided, size)
        return True

    def _begin(
        self, key: tuple[object, ...], kind: int, body: bytes, source: str, start: int, end: int, at_ms: float | None
    ) -> bytearray | None:
        decode, build = self._single[kind]
        head = None if at_ms is None else build(decode(body), source, start, end, at_ms)
        if not isinstance(head, Event):
            return None
        self._heads[key] = head
        numbers = self._numbers[key] = bytearray()
        return numbers
