"""A portion as the events of some lanes: routing of what names no group, order of positions, ticks. Pure.

A FETCH goes to every shard its client is known to speak for, as in the live case, but with what was learned in the
whole portion and before it: an archive may begin in the middle of a client's life.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from operator import itemgetter

from ingest.archives.ranges import tick
from ingest.router import Directory
from kardia.events import Event, Kind, lane_of
from kardia.stretches import Stretch
from spark_jobs.replay.pieces import ClientSegments, Loaded, ParsedPiece, Segment
from spark_jobs.replay.portions import StreamProgress

_UNCOUNTED = frozenset({int(Kind.TICK), int(Kind.GAP)})
"""Kinds that the ticks of a source do not count."""

_START = itemgetter(Event._fields.index("start"))


class Feed:
    """Events of one portion for the lanes of one process."""

    def __init__(self, lanes: Sequence[int], of: int) -> None:
        """Collect for these lanes out of `of`."""
        self._of = of
        self.events: dict[int, list[Event]] = {lane: [] for lane in lanes}
        self.stretches: dict[int, list[Stretch]] = {lane: [] for lane in lanes}
        self._counted: dict[int, Counter[str]] = {lane: Counter() for lane in lanes}
        self._unattributed: Counter[str] = Counter()

    @property
    def unattributed(self) -> int:
        """Events that name no group and whose client is not known."""
        return self._unattributed.total()

    def add(self, piece: ParsedPiece, directory: Directory) -> None:
        """Take one piece."""
        loaded = Loaded(piece)
        routed: dict[int, list[tuple[ClientSegments, int]]] = {lane: [] for lane in self.events}
        for client in loaded.index.clients:
            shards = directory.shards_of((client.client_id, client.client_host))
            if not shards:
                self._unattributed[piece.source] += client.events.events + client.stretches.events
            for shard in shards:
                lane = lane_of(shard, self._of)
                if lane in routed:
                    routed[lane].append((client, shard))
        for lane, clients in routed.items():
            own = loaded.events([loaded.index.lanes[lane]])
            counted = sum(event[0] not in _UNCOUNTED for event in own)
            single = [(client.events, shard) for client, shard in clients if client.events.count]
            if single:
                found = loaded.events([segment for segment, _ in single])
                counted += len(found)
                own += _with_shards(found, single)
                own.sort(key=_START)
            folded = [(client.stretches, shard) for client, shard in clients if client.stretches.count]
            stretches = loaded.stretches([loaded.index.stretches[lane], *(segment for segment, _ in folded)])
            _give_shards(stretches, loaded.index.stretches[lane].count, folded)
            self._counted[lane][piece.source] += counted + sum(map(len, stretches))
            self.events[lane] += own
            self.stretches[lane] += stretches

    def end(self, streams: Iterable[StreamProgress]) -> None:
        """Close the portion with the ticks of every stream."""
        for stream in streams:
            ignored = stream.ignored
            if self._unattributed[stream.source]:
                ignored = {**ignored, "unattributed_fetch": self._unattributed[stream.source]}
            for lane, events in self.events.items():
                events.append(
                    tick(
                        stream.source,
                        stream.start,
                        stream.end,
                        stream.complete_to_ms,
                        self._counted[lane][stream.source],
                        stream.lines,
                        ignored,
                        stream.complete_to_ms,
                        stream.signs,
                    )
                )


def _with_shards(events: list[Event], segments: list[tuple[Segment, int]]) -> list[Event]:
    """Events of concatenated segments, each with the shard it is routed to."""
    new = tuple.__new__  # a NamedTuple's own constructor names twenty arguments: three times slower
    given: list[Event] = []
    at = 0
    for segment, shard in segments:
        given.extend([new(Event, (event[0], shard, *event[2:])) for event in events[at : at + segment.count]])
        at += segment.count
    return given


def _give_shards(stretches: list[Stretch], at: int, segments: list[tuple[Segment, int]]) -> None:
    """Give the stretches from `at` on, which are those of the segments, the shards they are routed to."""
    for segment, shard in segments:
        for place in range(at, at + segment.count):
            stretches[place] = stretches[place].for_shard(shard)
        at += segment.count


def unattributed(piece: ParsedPiece, directory: Directory) -> int:
    """Events of a piece that name no group and whose client is not known."""
    return sum(
        client.events.events + client.stretches.events
        for client in Loaded(piece).index.clients
        if not directory.shards_of((client.client_id, client.client_host))
    )
