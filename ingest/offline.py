"""Archived files: plan them into ranges, parse the ranges in any process, route what names no group.

How a replay uses it (no Kafka, no clock, nothing is written):

    files  = plan(request_logs, server_logs, zone="UTC")            # FileRange, in the order to be fed
    pieces = pool.imap(parse_range, files)                          # ParsedRange: picklable, or .packed() bytes
    directory = Directory(); directory.merge(piece.directory)       # of ALL pieces, so that early FETCHs find a home
    for piece in pieces:
        lanes = route(piece, directory)                             # dict lane -> events, un-routed ones included
        ticks = piece.ticks(...)                                    # one TICK per lane: "read completely up to …"
    offsets = read_offsets_file(path)                               # events of `kardia capture`'s file, in file order

Ranges of one broker come in the order of time, ranges of several brokers interleaved by the stamp of their first
line (`FileRange.first_at_ms`). A plain file is cut at line ends, so that workers share it; a .gz file is one range and
its positions are those of the decompressed bytes (`parse_pieces` reads either in pieces of bounded memory). A file
whose stamps cross the end of summer time is one range, because the reading of that hour depends on what came before.

`source` is `BROKER/STREAM/INCARNATION` as in the live case, and equal to it for the same file: the incarnation is a
digest of the file's first line, so the event ids of a replay are those of the live run. The broker of a request
log is its end of the first connection in it; a `server.log` belongs to the request log it lies beside.
"""

from __future__ import annotations

import gzip
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from ingest.blocks import Sink, Splitter, read_last, read_piece
from ingest.dialects import MAX_LINE_BYTES, Dialect
from ingest.dialects.request_json import RequestJson
from ingest.dialects.server_log import ServerLog
from ingest.errors import SettingsError
from ingest.incarnation import name_of
from ingest.offsets_records import record_events
from ingest.router import Directory
from ingest.stamps import crosses_fold, zone_named
from kardia.events import ALL_SHARDS, DEFAULT_LANES, DEFAULT_OFFSETS_PARTITIONS, Event, Kind, lane_of

RANGE_BYTES = 8 * 1024 * 1024
"""Size of a range of a plain file: some 8,000 lines, 50 ms of work, so that a pool stays evenly busy."""

HEAD_BYTES = 4 * 1024 * 1024
"""The first line that names its broker is looked for in this much of a file."""

MAX_RECORD_LINE_BYTES = 64 * 1024 * 1024
"""Longest line of a captured file: hex of a record, which the size of messages bounds far below."""

_BLOCK_BYTES = 1024 * 1024
_UNKNOWN_BROKER = "broker"


class FileRange(msgspec.Struct, frozen=True):
    """Bytes of one file. `end` -1: to the end (of a .gz, whose length is not known before)."""

    path: str
    stream: str
    source: str
    start: int
    end: int
    zone: str
    first_at_ms: float
    """Stamp of the range's first stamped line; ranges are sorted by it."""
    last: bool
    """Whether this is the last range of its file."""
    lanes: int = DEFAULT_LANES
    offsets_partitions: int = DEFAULT_OFFSETS_PARTITIONS


class ParsedRange(msgspec.Struct):
    """What a range says. `events` has one list per lane; `unrouted` is [client id, address, events]."""

    source: str
    start: int
    end: int
    events: list[list[Event]]
    unrouted: list[tuple[str, str, list[Event]]]
    directory: list[tuple[str, str, list[int]]]
    lines: int
    ignored: dict[str, int]
    rejected: dict[str, int]
    first_at_ms: float
    last_at_ms: float
    """Highest stamp of the range, 0 when no line has one."""
    silences: list[tuple[float, float]] = []

    def packed(self) -> bytes:
        """The range as bytes: several times faster between processes than pickle."""
        return _encoder.encode(self)

    @staticmethod
    def unpacked(data: bytes) -> ParsedRange:
        """The opposite of `packed`."""
        return _decoder.decode(data)

    def ticks(self, sent: dict[int, int] | None = None, complete_to_ms: float | None = None) -> list[Event]:
        """One TICK per lane for this range; the one of lane i is the i-th.

        `sent`: events that went to each lane (after routing), for the ledger. `complete_to_ms`: instant up to which
        this source has said everything; by default the highest stamp of the range, which is what the live collector
        says while it catches up. Pass the highest value of the ranges before as the lower bound if they may be older.
        """
        at_ms = self.last_at_ms if complete_to_ms is None else complete_to_ms
        counts = sent or {}
        signs = {
            "first_line_at_ms": self.first_at_ms,
            "last_line_at_ms": self.last_at_ms,
            "silences": [list(pair) for pair in self.silences],
        }
        return [
            tick(self.source, self.start, self.end, at_ms, counts.get(lane, 0), self.lines, self.ignored, at_ms, signs)
            for lane in range(len(self.events))
        ]


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(ParsedRange)


def tick(
    source: str,
    start: int,
    end: int,
    complete_to_ms: float,
    events: int,
    lines: int,
    ignored: dict[str, int],
    wall_at_ms: float,
    signs: dict[str, Any] | None = None,
) -> Event:
    """TICK: everything this source logged up to `complete_to_ms` has been sent. `start` is where the last one ended.

    `signs` say when the log was alive: `first_line_at_ms`, `last_line_at_ms`, `silences`; see `kardia.events.DETAILS`.
    """
    at = float(complete_to_ms)
    detail = {
        "previous_end": start,
        "events": events,
        "lines": lines,
        "ignored": dict(ignored),
        "wall_at_ms": wall_at_ms,
        **(signs or {}),
    }
    return Event(int(Kind.TICK), ALL_SHARDS, source, start, end, at, at, at, at, detail=detail)


def dialect_for(stream: str, zone: str, offsets_partitions: int = DEFAULT_OFFSETS_PARTITIONS) -> Dialect:
    """The dialect of a stream, `request` or `server`."""
    if stream == "request":
        return RequestJson(zone_named(zone), offsets_partitions)
    return ServerLog(zone_named(zone), offsets_partitions)


# --- planning --------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _File:
    path: Path
    stream: str
    head: bytes
    incarnation: str
    broker: str
    first_at_ms: float
    last_at_ms: float
    size: int
    packed: bool
    cuts: list[int] = field(default_factory=list)


def plan(
    request_logs: Sequence[str | Path],
    server_logs: Sequence[str | Path] = (),
    *,
    zone: str = "UTC",
    broker: str = "",
    lanes: int = DEFAULT_LANES,
    offsets_partitions: int = DEFAULT_OFFSETS_PARTITIONS,
    range_bytes: int = RANGE_BYTES,
) -> list[FileRange]:
    """Ranges of these files in the order in which they are to be fed. `broker` overrides the name in the lines."""
    files = _without_copies(
        [file for path in request_logs if (file := _look(Path(path), "request", zone, broker)) is not None]
    )
    servers = _without_copies(
        [file for path in server_logs if (file := _look(Path(path), "server", zone, broker)) is not None]
    )
    _name_brokers(files)
    for server in servers:
        server.broker = broker or _neighbour(server, files)
    ranges = [
        piece for file in files + servers for piece in _ranges(file, zone, lanes, offsets_partitions, range_bytes)
    ]
    return sorted(ranges, key=lambda piece: piece.first_at_ms)


def _open(path: Path) -> BinaryIO:
    with path.open("rb") as plain:
        packed = plain.read(2) == b"\x1f\x8b"
    return gzip.open(path, "rb") if packed else path.open("rb")  # type: ignore[return-value]


def _look(path: Path, stream: str, zone: str, broker: str) -> _File | None:
    """Read the head of a file: who wrote it and when; None for an empty one."""
    with _open(path) as opened:
        head = opened.read(HEAD_BYTES)
        packed = isinstance(opened, gzip.GzipFile)
    if not head.strip():
        return None
    dialect = dialect_for(stream, zone)
    lines = head.split(b"\n")
    first_at_ms = next((at for line in lines if (at := dialect.stamp_ms(line)) is not None), 0.0)
    if not broker and stream == "request":
        broker = next((name for line in lines if (name := dialect.broker_of(line))), "")
    last_at_ms = first_at_ms
    size = path.stat().st_size
    if not packed:
        with path.open("rb") as tail:
            tail.seek(max(0, size - 64 * 1024))
            for line in reversed(tail.read().split(b"\n")):
                at_ms = dialect.stamp_ms(line)
                if at_ms is not None:
                    last_at_ms = at_ms
                    break
    return _File(path, stream, head, name_of(head), broker, first_at_ms, last_at_ms, size, packed)


def _without_copies(files: list[_File]) -> list[_File]:
    """Leave out a file that another one contains (a copy that copytruncate made, the same file given twice).

    Files that begin with the same line and then differ (a banner) are both kept and told apart by a number.
    """
    kept: dict[str, list[_File]] = {}
    for file in sorted(files, key=lambda one: (one.packed, -one.size)):
        same = kept.setdefault(file.incarnation, [])
        shared = [other for other in same if other.head.startswith(file.head) or file.head.startswith(other.head)]
        if shared:
            continue
        if same:
            file.incarnation = f"{file.incarnation}-{len(same) + 1}"
        same.append(file)
    chosen = {id(file) for same in kept.values() for file in same}
    return [file for file in files if id(file) in chosen]


def _name_brokers(files: list[_File]) -> None:
    """A request log without a line that names its broker belongs to the only broker, or to the one beside it."""
    names = {file.broker for file in files if file.broker}
    for file in files:
        if not file.broker:
            beside = {other.broker for other in files if other.broker and other.path.parent == file.path.parent}
            candidates = beside if len(beside) == 1 else names
            file.broker = next(iter(candidates)) if len(candidates) == 1 else _UNKNOWN_BROKER


def _neighbour(server: _File, files: list[_File]) -> str:
    """Broker of a `server.log`: of the request log with the same numbers in its name, or of the only broker."""
    names = sorted({file.broker for file in files})
    if len(names) <= 1:
        return names[0] if names else _UNKNOWN_BROKER
    beside = [file for file in files if file.path.parent == server.path.parent]
    if len({file.broker for file in beside}) == 1:
        return beside[0].broker
    wanted = re.findall(r"\d+", server.path.name)
    for pool in (beside, files):
        numbered = {file.broker for file in pool if re.findall(r"\d+", file.path.name)[: max(len(wanted), 1)] == wanted}
        if wanted and len(numbered) == 1:
            return next(iter(numbered))
    raise SettingsError(
        f"it is not known which of {len(names)} brokers wrote this server.log",
        str(server.path),
        "the same number in its name as in the broker's request log, or its own folder beside it",
        "rename the files as kafka-request-1.log and server-1.log, or replay one broker at a time",
    )


def _ranges(file: _File, zone: str, lanes: int, offsets_partitions: int, range_bytes: int) -> Iterator[FileRange]:
    source = f"{file.broker}/{file.stream}/{file.incarnation}"
    whole = FileRange(
        str(file.path), file.stream, source, 0, -1, zone, file.first_at_ms, True, lanes, offsets_partitions
    )
    if file.packed or file.size <= range_bytes or crosses_fold(zone_named(zone), file.first_at_ms, file.last_at_ms):
        yield whole
        return
    dialect = dialect_for(file.stream, zone)
    starts: list[tuple[int, float]] = [(0, file.first_at_ms)]
    with file.path.open("rb") as opened:
        for aim in range(range_bytes, file.size, range_bytes):
            opened.seek(aim)
            rest = opened.readline(2 * MAX_LINE_BYTES)
            if not rest.endswith(b"\n"):
                continue  # a line without end: the range before takes it
            at = aim + len(rest)
            stamp = dialect.stamp_ms(opened.readline(MAX_LINE_BYTES))
            if starts[-1][0] < at < file.size:
                starts.append((at, stamp if stamp is not None else starts[-1][1]))
    # Neighbouring lines may step back by milliseconds; the ranges of a file keep their order all the same.
    at_ms = 0.0
    for number, (start, stamp) in enumerate(starts):
        last = number + 1 == len(starts)
        at_ms = max(at_ms, stamp)
        end = -1 if last else starts[number + 1][0]
        yield replace_range(whole, start=start, end=end, first_at_ms=at_ms, last=last)


def replace_range(piece: FileRange, **changes: int | float | bool | str) -> FileRange:
    """A range with other values."""
    return msgspec.structs.replace(piece, **changes)


# --- parsing ---------------------------------------------------------------------------------------------------------


def parse_range(piece: FileRange) -> ParsedRange:
    """Everything a range says, at once. Memory: about 1.5 kB per event."""
    dialect = dialect_for(piece.stream, piece.zone, piece.offsets_partitions)
    sink = Sink(piece.lanes, Directory())
    end = max(_feed(piece, dialect, sink), default=piece.start)
    return _parsed(piece.source, piece.start, end, sink)


def parse_pieces(piece: FileRange, piece_bytes: int = RANGE_BYTES) -> Iterator[ParsedRange]:
    """The same in pieces of about `piece_bytes`, for archives that do not fit into memory."""
    dialect = dialect_for(piece.stream, piece.zone, piece.offsets_partitions)
    sink = Sink(piece.lanes, Directory())
    start = end = piece.start
    for end in _feed(piece, dialect, sink):
        if end - start >= piece_bytes:
            yield _parsed(piece.source, start, end, sink)
            sink = _emptied(sink)
            start = end
    if end > start or start == piece.start:
        yield _parsed(piece.source, start, end, sink)


def _emptied(sink: Sink) -> Sink:
    """Empty a sink in place: the reader holds on to it."""
    fresh = Sink(sink.lanes, Directory())
    for name in Sink.__slots__:
        setattr(sink, name, getattr(fresh, name))
    return sink


def _feed(piece: FileRange, dialect: Dialect, sink: Sink) -> Iterator[int]:
    """Read a range block by block into a sink; yields the position after each block."""
    splitter = Splitter(piece.start)
    with _open(Path(piece.path)) as opened:
        if piece.start:
            opened.seek(piece.start)
        while piece.end < 0 or splitter.read_to < piece.end:
            want = _BLOCK_BYTES if piece.end < 0 else min(_BLOCK_BYTES, piece.end - splitter.read_to)
            data = opened.read(want)
            if not data:
                break
            read_piece(dialect, splitter.feed(data), piece.source, sink)
            yield splitter.position
    line, rest = splitter.finish()
    if line:
        read_last(dialect, line, piece.source, rest.start, sink)
    read_piece(dialect, rest, piece.source, sink)
    yield splitter.position


def _parsed(source: str, start: int, end: int, sink: Sink) -> ParsedRange:
    return ParsedRange(
        source,
        start,
        end,
        sink.events,
        [(client_id, host, events) for (client_id, host), events in sink.unrouted.items()],
        list(sink.directory.entries()),
        sink.lines,
        dict(sink.ignored),
        dict(sink.rejected),
        sink.first_at_ms or 0.0,
        sink.last_at_ms or 0.0,
        sink.silences,
    )


def route(piece: ParsedRange, directory: Directory) -> dict[int, list[Event]]:
    """Events of a range by lane, those that name no group included where their client is known.

    What cannot be routed is added to `piece.ignored` as `unattributed_fetch`.
    """
    lanes = len(piece.events)
    routed = dict(enumerate(piece.events))
    unattributed = 0
    for client_id, host, events in piece.unrouted:
        shards = directory.shards_of((client_id, host))
        if not shards:
            unattributed += len(events)
        for shard in shards:
            routed[lane_of(shard, lanes)].extend([event._replace(shard=shard) for event in events])
    piece.unrouted = []
    if unattributed:
        piece.ignored = dict(Counter(piece.ignored) + Counter(unattributed_fetch=unattributed))
    return routed


# --- the offsets topic -----------------------------------------------------------------------------------------------


def read_offsets_file(path: str | Path, unknown: dict[int, int] | None = None) -> Iterator[Event]:
    """Events of a file of `kardia capture` (plain or .gz), in file order, which is offset order per partition.

    Lane: `lane_of(event.shard)`. `unknown` counts the kinds of records that are skipped. Feed GROUP_RECORDs to
    `Directory.learn` as well: they name clients that were there before the request log begins.
    """
    with _open(Path(path)) as opened:
        yield from record_events(iter(lambda: opened.readline(MAX_RECORD_LINE_BYTES), b""), unknown)
