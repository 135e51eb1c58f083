"""What is fed when: pieces of all sources in order of time, in portions of bounded size. Pure.

A portion has a horizon: every line any source logged up to it is in this portion or was in an earlier one. The observer
holds events above it by itself; what the portions say in ticks is how far each stream has been read:

    a stream with lines still to come, or whose broker has a stream with lines to come: the horizon;
    a stream of a broker that is read to its end: the broker's last stamp.

The second line is what lets a quiet server.log keep pace with the request log beside it. A request log that begins long
after the server.log beside it, or ends long before, is said to (`ABSENT_MS`): then the sentences count for the rest.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from ingest.archives.planning import ARCHIVES
from ingest.broker_processes import Processes
from ingest.session_lengths import SessionLengths
from kardia.events import SILENCE_MS, broker_of, stream_of
from kardia.observe.state.group import NEVER
from spark_jobs.replay.pieces import ParsedPiece

PORTION_PIECES = 8
"""Pieces of one portion at most: of 64 MiB, as folded 60 MB each; `inputs.GROUP_BYTES` bounds what is parsed ahead."""

PORTION_EVENTS = 150_000
"""Events of one portion that are not folded at most, or one piece: some 400 MB with their rows. Of an ordinary log a
portion has half as many; one that is all rejected lines has them in 3 MiB."""

ABSENT_MS = 1_800_000.0
"""A request log without a line for so long at the begin or the end of its broker's server.log is not there for that
time. By default no session is longer (`group.max.session.timeout.ms`): in a shorter time nobody may have asked."""

Entries = list[tuple[str, str, list[int]]]
"""Part of a directory (`ingest.router`): client id, address, shards."""


class StreamProgress(msgspec.Struct, array_like=True, frozen=True):
    """What a portion says of one stream: the basis of its ticks."""

    source: str
    start: int
    end: int
    complete_to_ms: float
    lines: int
    ignored: dict[str, int]
    signs: dict[str, Any]
    """When the log was alive: see `ingest.archives.ranges.tick`."""


class Portion(msgspec.Struct, array_like=True):
    """Everything one step of all lanes needs."""

    number: int
    pieces: list[ParsedPiece]
    learned: Entries
    """Clients of FETCHs learned since the portion before; known before the first event of this portion is routed."""
    streams: list[StreamProgress]
    last: bool


@dataclass
class _Stream:
    source: str = ""
    told: int = 0
    end: int = 0
    lines: int = 0
    ignored: dict[str, int] = field(default_factory=dict)
    first_line_ms: float = 0.0
    last_line_ms: float = 0.0
    silences: list[list[float]] = field(default_factory=list)
    slow: list[list[float]] = field(default_factory=list)
    holes: list[list[float]] = field(default_factory=list)
    processes: Processes = field(default_factory=Processes)


class Portions:
    """Takes pieces as they are parsed, gives portions."""

    def __init__(self, size: int = PORTION_PIECES, after_holes: frozenset[str] = frozenset()) -> None:
        """Begin with nothing read. `after_holes`: sources before which a file of their log is missing."""
        self._size = size
        self._after_holes = after_holes
        self._waiting: list[ParsedPiece] = []
        self._learned: Entries = []
        self._streams: dict[str, _Stream] = {}
        self._lengths: dict[str, SessionLengths] = defaultdict(SessionLengths)
        """By broker."""
        self._broker_last_ms: dict[str, float] = {}
        self._broker_first_ms: dict[str, float] = {}
        self._number = 0

    def add(self, pieces: Iterable[ParsedPiece], learned: Entries) -> None:
        """Take parsed pieces. Those of one source must come in order of their positions."""
        latest: dict[str, float] = {}
        for piece in self._waiting:
            latest[piece.source] = max(piece.first_at_ms, latest.get(piece.source, 0.0))
        for piece in pieces:
            # Neighbouring lines step back by milliseconds; pieces of a source keep their order all the same.
            piece.first_at_ms = latest[piece.source] = max(piece.first_at_ms, latest.get(piece.source, 0.0))
            broker = broker_of(piece.source)
            self._broker_last_ms[broker] = max(piece.last_at_ms, self._broker_last_ms.get(broker, 0.0))
            if piece.first_at_ms:
                first_ms = self._broker_first_ms.get(broker, piece.first_at_ms)
                self._broker_first_ms[broker] = min(piece.first_at_ms, first_ms)
            self._waiting.append(piece)
        self._learned.extend(learned)
        self._waiting.sort(key=lambda piece: piece.first_at_ms)

    def span(self) -> tuple[float, float] | None:
        """Stamps of the first and the last line of all that was read, epoch ms; None if nothing has one."""
        if not self._broker_first_ms:
            return None
        return min(self._broker_first_ms.values()), max(self._broker_last_ms.values())

    def ready(self, coming: Sequence[tuple[str, float]]) -> Iterator[Portion]:
        """Portions that can be fed now; `coming` is source and first stamp of everything not parsed yet."""
        drain = not coming
        horizon_ms = min((at_ms for _, at_ms in coming), default=math.inf)
        later = {broker_of(source) for source, _ in coming}
        latest_ms: dict[str, float] = {}
        for source, at_ms in coming:
            latest_ms[broker_of(source)] = max(at_ms, latest_ms.get(broker_of(source), 0.0))
        unread = {stream_of(source) for source, _ in coming}
        while self._waiting and self._waiting[0].first_at_ms <= horizon_ms:
            chosen = self._chosen(horizon_ms)
            self._waiting = self._waiting[len(chosen) :]
            upto_ms = min(horizon_ms, self._waiting[0].first_at_ms if self._waiting else math.inf)
            busy = later | {broker_of(piece.source) for piece in self._waiting}
            open_streams = unread | {stream_of(piece.source) for piece in self._waiting}
            yield self._portion(chosen, upto_ms, busy, open_streams, latest_ms, last=drain and not self._waiting)
        if drain and self._number == 0:
            yield self._portion([], math.inf, set(), set(), {}, last=True)

    def _chosen(self, horizon_ms: float) -> list[ParsedPiece]:
        """The next pieces, as many as one portion may hold and one at least."""
        chosen: list[ParsedPiece] = []
        single = 0
        for piece in self._waiting[: self._size]:
            single += piece.unfolded
            if piece.first_at_ms > horizon_ms or (chosen and single > PORTION_EVENTS):
                break
            chosen.append(piece)
        return chosen

    def _portion(
        self,
        chosen: list[ParsedPiece],
        horizon_ms: float,
        busy: set[str],
        open_streams: set[str],
        latest_ms: dict[str, float],
        *,
        last: bool,
    ) -> Portion:
        for piece in chosen:
            self._note(piece)
        streams = []
        for name in sorted(self._streams):
            absent = self._absent(name, latest_ms, is_open=name in open_streams)
            streams.append(self._progress(name, horizon_ms, busy, absent))
        portion = Portion(self._number, chosen, self._learned, streams, last)
        self._learned = []
        self._number += 1
        return portion

    def _note(self, piece: ParsedPiece) -> None:
        stream = self._streams.setdefault(stream_of(piece.source), _Stream())
        silences: list[list[float]] = []
        is_hole = stream.source != piece.source and piece.source in self._after_holes
        if stream.source != piece.source:
            stream.source, stream.told = piece.source, piece.start
        stream.end = piece.end
        stream.lines += piece.lines
        if stream.last_line_ms and is_hole:
            stream.holes.append([stream.last_line_ms, max(piece.first_at_ms, stream.last_line_ms)])
        elif stream.last_line_ms and piece.first_at_ms - stream.last_line_ms >= SILENCE_MS:
            silences.append([stream.last_line_ms, piece.first_at_ms])
        silences.extend([begin, end] for begin, end in piece.silences)
        stream.silences.extend(silences)
        stream.processes.take(piece.summary, silences)
        self._note_sessions(piece, silences, lost_to_ms=piece.first_at_ms if is_hole else NEVER)
        stream.slow.extend(piece.slow)
        stream.first_line_ms = stream.first_line_ms or piece.first_at_ms
        stream.last_line_ms = max(stream.last_line_ms, piece.last_at_ms)
        for reason, count in piece.ignored.items():
            stream.ignored[reason] = stream.ignored.get(reason, 0) + count

    def _note_sessions(self, piece: ParsedPiece, silences: list[list[float]], lost_to_ms: float) -> None:
        lengths, is_request = self._lengths[broker_of(piece.source)], stream_of(piece.source).endswith("/request")
        if not is_request:
            lengths.take(piece.sessions)
            return
        lengths.lose(lost_to_ms)
        lengths.take(piece.sessions, silences, piece.last_at_ms)

    def _absent(self, name: str, latest_ms: dict[str, float], *, is_open: bool) -> dict[str, float]:
        """Where a request log begins and ends, as far as the other log of its broker goes on without it."""
        stream, absent = self._streams[name], dict[str, float]()
        if not name.endswith("/request") or not stream.first_line_ms:
            return absent
        broker = broker_of(stream.source)
        if stream.first_line_ms - self._broker_first_ms.get(broker, stream.first_line_ms) >= ABSENT_MS:
            absent["begins_at_ms"] = stream.first_line_ms
        goes_on_to_ms = max(self._broker_last_ms[broker], latest_ms.get(broker, 0.0))
        if not is_open and goes_on_to_ms - stream.last_line_ms >= ABSENT_MS:
            absent["ends_at_ms"] = stream.last_line_ms
        return absent

    def _progress(self, name: str, horizon_ms: float, busy: set[str], absent: dict[str, float]) -> StreamProgress:
        stream = self._streams[name]
        broker = broker_of(stream.source)
        # Damaged entries of exports are of no broker, and all there from the begin: they hold nothing back.
        last_ms = max(self._broker_last_ms.values()) if name == ARCHIVES else self._broker_last_ms[broker]
        complete_to_ms = horizon_ms if broker in busy else min(horizon_ms, last_ms)
        signs: dict[str, Any] = {
            "last_line_at_ms": stream.last_line_ms,
            "silences": stream.silences,
            "slow": stream.slow,
            **absent,
        }
        if broker not in busy:
            signs["is_over"] = True
        if stream.holes:
            signs["holes"] = stream.holes
        if name.endswith("/request"):
            signs |= stream.processes.signs()
        signs |= self._lengths[broker].signs()
        progress = StreamProgress(
            stream.source, stream.told, stream.end, complete_to_ms, stream.lines, stream.ignored, signs
        )
        stream.told, stream.lines, stream.ignored = stream.end, 0, {}
        stream.silences, stream.slow, stream.holes = [], [], []
        return progress
