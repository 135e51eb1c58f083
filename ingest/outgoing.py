"""What a collector sends to each lane: single events, and what was folded of one range of a log. Routes what is folded.

It must not know about files, clocks or Kafka clients.
"""

from __future__ import annotations

from collections.abc import Iterator

from ingest.blocks import Gathered
from ingest.folded_wire import Batch
from ingest.router import UNROUTED, Directory
from ingest.wire import batches, folded_batches
from kardia.events import Event, lane_of
from kardia.stretches import Stretch

Lanes = list[list[Event | Batch]]
"""In order: events, and between them what was folded."""


def routed(gathered: Gathered, directory: Directory, lanes: int) -> list[list[Stretch]]:
    """Stretches by lane. Who speaks for a group is learned of all of them before the first FETCH is routed."""
    folded: list[list[Stretch]] = [[] for _ in range(lanes)]
    fetches: list[Stretch] = []
    for stretch in gathered.stretches:
        if stretch.head.kind in UNROUTED:
            fetches.append(stretch)
        else:
            directory.learn(stretch.head)
            folded[lane_of(stretch.head.shard, lanes)].append(stretch)
    for stretch in fetches:
        shards = directory.shards_of((stretch.head.client_id, stretch.head.client_host))
        if not shards:
            gathered.ignored["unattributed_fetch"] += len(stretch)
        for shard in shards:
            folded[lane_of(shard, lanes)].append(stretch.for_shard(shard))
    return folded


def encoded(told: list[Event | Batch]) -> Iterator[bytes]:
    """Records of one lane, in order."""
    single: list[Event] = []
    for one in told:
        if isinstance(one, Event):
            single.append(one)
            continue
        yield from (data for data, _ in batches(single))
        yield from (data for data, _ in folded_batches(*one))
        single = []
    yield from (data for data, _ in batches(single))
