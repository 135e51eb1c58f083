"""A parsed piece of a log on disk: events by lane, and events that name no group by client; the index stays in memory.

A piece is written by the process that parsed it and read by the processes that step its lanes, each only its own
segments. The file is scratch of one run: it has no version and is deleted after its window.
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
    """Bytes of a piece's file that are one list of events."""

    offset: int
    length: int
    events: int


class Unrouted(msgspec.Struct, array_like=True, frozen=True):
    """Events of one client that name no group."""

    client_id: str
    client_host: str
    segment: Segment


class Piece(msgspec.Struct, array_like=True):
    """Index of a parsed piece, and what it counts."""

    path: str
    source: str
    start: int
    end: int
    first_at_ms: float
    last_at_ms: float
    lines: int
    ignored: dict[str, int]
    rejected: dict[str, int]
    lanes: list[Segment]
    unrouted: list[Unrouted]
    directory: list[tuple[str, str, list[int]]]


def spill(parsed: ParsedRange, path: Path) -> Piece:
    """Write a parsed piece and give its index."""
    at = 0
    with path.open("wb") as file:

        def put(events: Sequence[Event]) -> Segment:
            nonlocal at
            data = _encoder.encode(events)
            file.write(data)
            at += len(data)
            return Segment(at - len(data), len(data), len(events))

        lanes = [put(events) for events in parsed.events]
        unrouted = [Unrouted(client_id, host, put(events)) for client_id, host, events in parsed.unrouted]
    return Piece(
        str(path),
        parsed.source,
        parsed.start,
        parsed.end,
        parsed.first_at_ms,
        parsed.last_at_ms,
        parsed.lines,
        parsed.ignored,
        parsed.rejected,
        lanes,
        unrouted,
        parsed.directory,
    )


def load(path: str, segments: Sequence[Segment]) -> list[list[Event]]:
    """Events of some segments of a piece."""
    found = []
    with Path(path).open("rb") as file:
        for segment in segments:
            file.seek(segment.offset)
            found.append(_decoder.decode(file.read(segment.length)))
    return found
