"""A parsed piece of a log on disk: events by lane, and events that name no group by client.

A piece is written by the process that parsed it and read by the processes that step its lanes. The file is scratch of
one run: it has no version and is deleted after its window. Layout: the segments one after the other, then the index.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from ingest.offline import ParsedRange
from kardia.events import Event

_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(list[Event])


class Segment(msgspec.Struct, array_like=True, frozen=True):
    """Where one list of events lies. Only its elements are stored, so that segments can be decoded together."""

    offset: int
    length: int
    events: int


class Client(msgspec.Struct, array_like=True, frozen=True):
    """Events of one client that name no group."""

    client_id: str
    client_host: str
    segment: Segment


class Index(msgspec.Struct, array_like=True, frozen=True):
    """What lies where in the file of a piece."""

    lanes: list[Segment]
    clients: list[Client]


class Piece(msgspec.Struct, array_like=True):
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


_index_decoder = msgspec.msgpack.Decoder(Index)


def spill(parsed: ParsedRange, path: Path) -> Piece:
    """Write a parsed piece and say what it is."""
    at = total = 0
    with path.open("wb") as file:

        def put(events: Sequence[Event]) -> Segment:
            nonlocal at, total
            data = memoryview(_encoder.encode(events))[_header_bytes(len(events)) :]
            file.write(data)
            at += len(data)
            total += len(events)
            return Segment(at - len(data), len(data), len(events))

        index = Index(
            [put(events) for events in parsed.events],
            [Client(client_id, host, put(events)) for client_id, host, events in parsed.unrouted],
        )
        data = _encoder.encode(index)
        file.write(data)
    return Piece(
        str(path),
        Segment(at, len(data), 0),
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
    )


class Loaded:
    """A piece in memory, still encoded."""

    def __init__(self, piece: Piece) -> None:
        """Read the file."""
        self._data = memoryview(Path(piece.path).read_bytes())
        self.index = _index_decoder.decode(self._data[piece.index.offset : piece.index.offset + piece.index.length])

    def decode(self, segments: Sequence[Segment]) -> list[Event]:
        """Events of several segments, one segment after the other."""
        count = sum(segment.events for segment in segments)
        parts = [self._data[segment.offset : segment.offset + segment.length] for segment in segments]
        return _decoder.decode(b"".join([b"\xdd", count.to_bytes(4, "big"), *parts]))


def _header_bytes(count: int) -> int:
    """Bytes of the head of a msgpack array."""
    if count < 16:
        return 1
    return 3 if count < 65_536 else 5
