"""Archived files: plan them into ranges, parse the ranges in any process, route what names no group.

How a replay uses it (no Kafka, no clock, nothing is written):

    files  = plan(request_logs, server_logs, zone="UTC")            # FileRange, in the order to be fed
    pieces = pool.imap(parse_range, files)                          # ParsedRange
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

from collections import Counter
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec

from ingest.archives.opened import head_of, open_log
from ingest.archives.planning import RANGE_BYTES, FileRange, dialect_for, plan
from ingest.blocks import Gathered, Splitter, read_cut, read_last
from ingest.broker_processes import NOTHING, Processes, Summary, summary_of
from ingest.dialects import Dialect
from ingest.dialects.line_patterns import Patterns
from ingest.offsets.dump import HEAD_BYTES, dump_events, is_dump
from ingest.offsets.records import record_events
from ingest.router import UNROUTED, ClientKey, Directory
from ingest.session_lengths import NOTHING as NO_SESSIONS
from ingest.session_lengths import Sessions, sessions_of
from kardia.events import ALL_SHARDS, Event, Kind, for_shard, lane_of
from kardia.stretches import Stretch

MAX_RECORD_LINE_BYTES = 64 * 1024 * 1024
"""Longest line of a captured file: hex of a record, which the size of messages bounds far below."""

__all__ = ["FileRange", "ParsedRange", "parse_pieces", "parse_range", "plan", "read_offsets_file", "route", "tick"]

_BLOCK_BYTES = 1024 * 1024

PIECE_EVENTS = 50_000
"""Events of one piece that are not folded, some 70 MB: lines of 20 bytes all rejected make so many in 1 MiB."""


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
    slow: list[list[float]] = []
    """Windows in which a request was slow, see `kardia.slowness`."""
    stretches: list[list[Stretch]] = []
    """Further events by lane, folded."""
    unrouted_stretches: list[tuple[str, str, list[Stretch]]] = []
    """Further events that name no group, folded: [client id, address, stretches]."""
    summary: Summary = NOTHING
    """What it tells of the broker's process."""
    sessions: Sessions = NO_SESSIONS
    """What it tells of sessions of the newer protocols."""

    def ticks(self, sent: dict[int, int] | None = None, complete_to_ms: float | None = None) -> list[Event]:
        """One TICK per lane for this range; the one of lane i is the i-th.

        `sent`: events that went to each lane (after routing), for the ledger. `complete_to_ms`: instant up to which
        this source has said everything; by default the highest stamp of the range, which is what the live collector
        says while it catches up. Pass the highest value of the ranges before as the lower bound if they may be older.
        """
        at_ms = self.last_at_ms if complete_to_ms is None else complete_to_ms
        counts = sent or {}
        processes = Processes()
        processes.take(self.summary, self.silences)
        signs = {
            "first_line_at_ms": self.first_at_ms,
            "last_line_at_ms": self.last_at_ms,
            "silences": [list(pair) for pair in self.silences],
            "slow": self.slow,
            **processes.signs(),
        }
        return [
            tick(self.source, self.start, self.end, at_ms, counts.get(lane, 0), self.lines, self.ignored, at_ms, signs)
            for lane in range(len(self.events))
        ]


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

    `signs` say when the log was alive: `first_line_at_ms`, `last_line_at_ms`, `silences`; `slow` says how slow
    the broker was. See `kardia.events.DETAILS`.
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


# --- parsing ---------------------------------------------------------------------------------------------------------


def _dialect(piece: FileRange, *, fold: bool, patterns: Patterns | None) -> Dialect:
    partitions, pattern = piece.offsets_partitions, piece.log_pattern
    return dialect_for(piece.stream, piece.zone, partitions, fold=fold, patterns=patterns, log_pattern=pattern)


def parse_range(piece: FileRange, *, fold: bool = False, patterns: Patterns | None = None) -> ParsedRange:
    """Everything a range says, at once. Memory: about 1.5 kB per event; with `fold` 60 bytes for most of them.

    `patterns`: of whoever reads many ranges, see `QuietLines`.
    """
    dialect = _dialect(piece, fold=fold, patterns=patterns)
    gathered = Gathered(piece.lanes, Directory())
    end = max(_feed(piece, dialect, gathered), default=piece.start)
    return _parsed(piece.source, piece.start, end, gathered, dialect)


def parse_pieces(
    piece: FileRange, piece_bytes: int = RANGE_BYTES, *, fold: bool = False, patterns: Patterns | None = None
) -> Iterator[ParsedRange]:
    """The same in pieces of about `piece_bytes`, for archives that do not fit into memory."""
    dialect = _dialect(piece, fold=fold, patterns=patterns)
    gathered = Gathered(piece.lanes, Directory())
    start = end = piece.start
    for end in _feed(piece, dialect, gathered):
        if end - start >= piece_bytes or gathered.size() >= PIECE_EVENTS:
            yield _parsed(piece.source, start, end, gathered, dialect)
            gathered = _emptied(gathered)
            start = end
    if end > start or start == piece.start:
        yield _parsed(piece.source, start, end, gathered, dialect)


def _emptied(gathered: Gathered) -> Gathered:
    """Empty what was gathered, in place: the reader holds on to it."""
    fresh = Gathered(gathered.lanes, Directory())
    for name in Gathered.__slots__:
        setattr(gathered, name, getattr(fresh, name))
    return gathered


def _feed(piece: FileRange, dialect: Dialect, gathered: Gathered) -> Iterator[int]:
    """Read a range block by block; yields the position after each block."""
    splitter = Splitter(piece.start)
    with open_log(Path(piece.path)) as opened:
        if piece.start:
            opened.seek(piece.start)
        while piece.end < 0 or splitter.read_to < piece.end:
            want = _BLOCK_BYTES if piece.end < 0 else min(_BLOCK_BYTES, piece.end - splitter.read_to)
            data = opened.read(want)
            if not data:
                break
            read_cut(dialect, splitter.feed(data), piece.source, gathered)
            yield splitter.position
    line, rest = splitter.finish()
    if line:
        read_last(dialect, line, piece.source, rest.start, gathered)
    read_cut(dialect, rest, piece.source, gathered)
    yield splitter.position


def _parsed(source: str, start: int, end: int, gathered: Gathered, dialect: Dialect) -> ParsedRange:
    stretches: list[list[Stretch]] = [[] for _ in range(gathered.lanes)]
    unrouted: dict[ClientKey, list[Stretch]] = {}
    for stretch in dialect.quiet.take().stretches() if dialect.quiet is not None else ():
        head = stretch.head
        if head.kind in UNROUTED:
            unrouted.setdefault((head.client_id, head.client_host), []).append(stretch)
        else:
            stretches[lane_of(head.shard, gathered.lanes)].append(stretch)
            gathered.directory.learn(head)
    return ParsedRange(
        source,
        start,
        end,
        gathered.events,
        [(client_id, host, events) for (client_id, host), events in gathered.unrouted.items()],
        list(gathered.directory.entries()),
        gathered.lines,
        dict(gathered.ignored),
        dict(gathered.rejected),
        gathered.first_at_ms or 0.0,
        gathered.last_at_ms or 0.0,
        gathered.silences,
        list(gathered.slow.values()),
        stretches,
        [(client_id, host, folded) for (client_id, host), folded in unrouted.items()],
        summary_of(chain.from_iterable(gathered.events), chain.from_iterable(stretches), gathered.silences),
        sessions_of(chain.from_iterable(gathered.events), chain.from_iterable(stretches)),
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
            routed[lane_of(shard, lanes)].extend([for_shard(event, shard) for event in events])
    piece.unrouted = []
    if unattributed:
        piece.ignored = dict(Counter(piece.ignored) + Counter(unattributed_fetch=unattributed))
    return routed


# --- the offsets topic -----------------------------------------------------------------------------------------------


def read_offsets_file(path: str | Path, unknown: dict[int, int] | None = None) -> Iterator[Event]:
    """Events of a file of `kardia capture` (plain or .gz), or of what Kafka's tools print of the topic, in file order,
    which is offset order per partition.

    Lane: `lane_of(event.shard)`. `unknown` counts the kinds of records that are skipped. Feed GROUP_RECORDs to
    `Directory.learn` as well: they name clients that were there before the request log begins.
    """
    is_printed = is_dump(head_of(Path(path), HEAD_BYTES))
    with open_log(Path(path)) as opened:
        if is_printed:
            yield from dump_events(iter(lambda: opened.readline(MAX_RECORD_LINE_BYTES), b""))
            return
        yield from record_events(iter(lambda: opened.readline(MAX_RECORD_LINE_BYTES), b""), unknown)
