"""A parsed piece of a log on disk: events and stretches by lane, and those that name no group by client.

A piece is written by the process that parsed it and read by the processes that step its lanes. The file is scratch of
one run: it has no version and is deleted after its portion. Layout: the segments one after the other, then the index.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from ingest.archives.ranges import ParsedRange
from ingest.broker_processes import NOTHING, Summary
from ingest.session_lengths import NOTHING as NO_SESSIONS
from ingest.session_lengths import Sessions
from kardia.events import Event
from kardia.stretches import Stretch

_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(list[Event])
_stretch_decoder = msgspec.msgpack.Decoder(list[tuple[Event, bytes]])


class Segment(msgspec.Struct, array_like=True, frozen=True):
    """Where a list lies. Only its elements are stored, so that segments can be decoded together."""

    offset: int
    length: int
    count: int
    """Elements."""
    events: int
    """Events in them: as many, or more if they are stretches."""


class ClientSegments(msgspec.Struct, array_like=True, frozen=True):
    """Events of one client that name no group."""

    client_id: str
    client_host: str
    events: Segment
    stretches: Segment


class Index(msgspec.Struct, array_like=True, frozen=True):
    """What lies where in the file of a piece."""

    lanes: list[Segment]
    stretches: list[Segment]
    clients: list[ClientSegments]


class ParsedPiece(msgspec.Struct, array_like=True):
    """A parsed piece: where it is, what it covers and what it counts."""

    path: str
    index: Segment
    source: str
    start: int
    end: int
    first_at_ms: float
    last_at_ms: float
    lines: int
    events: int
    ignored: dict[str, int]
    rejected: dict[str, int]
    silences: list[tuple[float, float]] = []
    """Between two lines nothing was logged for `SILENCE_MS` or longer: from, to."""
    slow: list[list[float]] = []
    """Windows in which a request was slow, see `kardia.slowness`."""
    unfolded: int = 0
    """Events that are not folded: what a piece takes in memory goes by them."""
    summary: Summary = NOTHING
    """What it tells of its broker's process."""
    sessions: Sessions = NO_SESSIONS
    """What it tells of sessions of the newer protocols."""


_index_decoder = msgspec.msgpack.Decoder(Index)


def spill(parsed: ParsedRange, path: Path) -> ParsedPiece:
    """Write a parsed piece and say what it is."""
    at = total = unfolded = 0
    with path.open("wb") as file:

        def put(elements: Sequence[Any], events: int) -> Segment:
            nonlocal at, total, unfolded
            data = memoryview(_encoder.encode(elements))[_header_bytes(len(elements)) :]
            file.write(data)
            at += len(data)
            total += events
            unfolded += len(elements)
            return Segment(at - len(data), len(data), len(elements), events)

        def put_stretches(stretches: Sequence[Stretch]) -> Segment:
            elements = [(stretch.head, stretch.numbers.tobytes()) for stretch in stretches]
            return put(elements, sum(map(len, stretches)))

        single = {(client_id, host): events for client_id, host, events in parsed.unrouted}
        folded = {(client_id, host): stretches for client_id, host, stretches in parsed.unrouted_stretches}
        index = Index(
            [put(events, len(events)) for events in parsed.events],
            [put_stretches(stretches) for stretches in parsed.stretches or [[]] * len(parsed.events)],
            [
                ClientSegments(
                    *client,
                    put(single.get(client, ()), len(single.get(client, ()))),
                    put_stretches(folded.get(client, ())),
                )
                for client in {**single, **folded}
            ],
        )
        data = _encoder.encode(index)
        file.write(data)
    return ParsedPiece(
        str(path),
        Segment(at, len(data), 1, 0),
        parsed.source,
        parsed.start,
        parsed.end,
        parsed.first_at_ms,
        parsed.last_at_ms,
        parsed.lines,
        total,
        parsed.ignored,
        parsed.rejected,
        parsed.silences,
        parsed.slow,
        unfolded,
        parsed.summary,
        parsed.sessions,
    )


class Loaded:
    """A piece in memory, still encoded."""

    def __init__(self, piece: ParsedPiece) -> None:
        """Read the file."""
        self._data = memoryview(Path(piece.path).read_bytes())
        self.index = _index_decoder.decode(self._data[piece.index.offset : piece.index.offset + piece.index.length])

    def events(self, segments: Sequence[Segment]) -> list[Event]:
        """Events of several segments, one segment after the other."""
        return _decoder.decode(self._joined(segments))

    def stretches(self, segments: Sequence[Segment]) -> list[Stretch]:
        """Stretches of several segments, one segment after the other."""
        return [Stretch(head, array("d", data)) for head, data in _stretch_decoder.decode(self._joined(segments))]

    def _joined(self, segments: Sequence[Segment]) -> bytes:
        count = sum(segment.count for segment in segments)
        parts = [self._data[segment.offset : segment.offset + segment.length] for segment in segments]
        return b"".join([b"\xdd", count.to_bytes(4, "big"), *parts])


def _header_bytes(count: int) -> int:
    """Bytes of the head of a msgpack array."""
    if count < 16:
        return 1
    return 3 if count < 65_536 else 5
