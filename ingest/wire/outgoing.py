"""What a collector sends to each lane: single events, and what was folded of one range of a log. Routes what is folded.

It must not know about files, clocks or Kafka clients.
"""

from __future__ import annotations

from collections.abc import Iterator

from ingest.blocks import Gathered
from ingest.quiet_requests import NONE, Rows
from ingest.router import UNROUTED, Directory
from ingest.wire.batches import batches, folded_batches
from ingest.wire.folded_batch import Outgoing
from kardia.events import Event, lane_of

Lanes = list[list[Event | Outgoing]]
"""In order: events, and between them what was folded."""


def routed(gathered: Gathered, directory: Directory, lanes: int) -> list[Rows]:
    """What was folded, by lane. Who speaks for a group is learned of all of it before the first FETCH is routed."""
    rows = gathered.quiet
    if not rows.heads:
        return [NONE] * lanes
    for head in rows.heads:
        if head.kind not in UNROUTED:
            directory.learn(head)
    by_lane: list[list[list[int]]] = [[[] for _ in rows.heads] for _ in range(lanes)]
    for place, (head, count) in enumerate(zip(rows.heads, rows.counts().tolist(), strict=True)):
        fetches = head.kind in UNROUTED
        shards = directory.shards_of((head.client_id, head.client_host)) if fetches else (head.shard,)
        if not shards:
            gathered.ignored["unattributed_fetch"] += count
        for shard in shards:
            by_lane[lane_of(shard, lanes)][place].append(shard)
    return [rows.for_shards(shards) for shards in by_lane]


def encoded(told: list[Event | Outgoing]) -> Iterator[bytes]:
    """Records of one lane, in order."""
    single: list[Event] = []
    for one in told:
        if isinstance(one, Event):
            single.append(one)
            continue
        yield from (data for data, _ in batches(single))
        yield from (data for data, _ in folded_batches(one))
        single = []
    yield from (data for data, _ in batches(single))
