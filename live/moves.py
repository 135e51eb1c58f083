"""Tables from one engine to the other, with the state of every lane and the positions in the logs. Both are stopped.

    1 read      what the engine before has left; its rows are in the tables, its topic is read to its end. Where no move
                was before, it is written down whose the tables are
    2 positions saved where the collector of the engine to come looks for them
    3 lanes     written for the generation to come: files of what its lanes begin with
                (`spark_jobs.checkpoint.initial_lanes`), or the first batch of `kardia live`, which is a base of each
                lane and no row
    4 generation.json of the engine to come is replaced; its batches go on behind those in the tables
    5 owner     the file beside the tables that says whose they are (`spark_jobs.leases.table_owner`)

Until 5 the tables belong to the engine before: killed, it can go on as if nothing had been, and a move begins again at
1. From 5 on they belong to the other one. Lanes go on at the offsets that their topic has, so that the first record is
the next of their chain, and what is sent twice is recognised by its position in the log. Reads no clock, asks nobody.
"""

from __future__ import annotations

import secrets
import shutil
from pathlib import Path
from typing import NamedTuple

from ingest.tail.positions import SavedDirectory, Store
from ingest.wire.topic_id import UNKNOWN
from kardia.tables import LIVE_TABLES
from live.files import Batch, BatchFiles, Puts
from live.left import Kept, Left, check_cluster
from live.state import QUERY
from spark_jobs import stream
from spark_jobs.checkpoint import checkpoint_directory, initial_lanes, state_codec
from spark_jobs.checkpoint.checkpoint_directory import Agreement, Before, Generation, seeds_of
from spark_jobs.checkpoint.journal import Mark
from spark_jobs.lane import Lane
from spark_jobs.leases import table_owner
from spark_jobs.leases.table_owner import Engine
from spark_jobs.writers import Reached
from spark_jobs.writers.tables import highest_batch
from stores.locations import Folder

TOKEN_BYTES = 16


class Topic(NamedTuple):
    """The topic that the job will read."""

    name: str
    topic_id: str
    begins_at: dict[int, int]
    """Where it begins in each partition: at the end; of a topic that the lanes have read, where they are."""


def to_spark(
    left: Left, topic: Topic, place: Folder, collector: Store | None, tables: Path, reached: Reached
) -> Generation:
    """Steps 2 to 5. `place`: the folder of the job's checkpoint; `collector`: where a collector keeps its positions;
    None: the lanes have read the topic, and its collectors have positions of their own."""
    kept, lanes, batch, cluster = left.kept, left.lanes, left.batch, left.generation.agreement.cluster
    directory = place / stream.NAME
    found = checkpoint_directory.load(directory)
    if found is not None:
        check_cluster(found.agreement.cluster, cluster, directory)
    _name(tables, table_owner.LOCAL, batch)
    reached("positions:before", batch)
    if collector is not None:
        _save(collector, kept, topic.topic_id)
        collector.save(kept.positions)
    reached("positions:written", batch)
    made = Generation(
        checkpoint_directory.VERSION,
        secrets.token_hex(4),
        _next(tables, batch),
        Agreement(stream.NAME, cluster, topic.name, len(lanes)),
        state_codec.VERSION,
        before=Before(left.generation.name, topic.name, len(lanes), topic.begins_at),
        topic_id=topic.topic_id,
        begins_at=topic.begins_at,
    )
    for lane in lanes:
        if collector is not None:
            lane.next_offset = topic.begins_at[lane.lane]
        initial_lanes.write(seeds_of(directory, made.name), lane.lane, lane.save())
    reached("lanes:written", batch)
    checkpoint_directory.save(directory, made)
    _own(tables, table_owner.SPARK, made, reached, batch)
    return made


def to_local(
    left: Left, folder: Path, beside: Store, tables: Path, reached: Reached, *, reads_topic: bool = False
) -> Generation:
    """The same the other way. `folder`: where `kardia live` keeps its state; `beside`: its folder of positions.
    `reads_topic`: it goes on in the topic itself."""
    topic, topic_id = (left.generation.agreement.topic, left.generation.topic_id) if reads_topic else ("", UNKNOWN)
    kept, lanes, batch, cluster = left.kept, left.lanes, left.batch, left.generation.agreement.cluster
    found = checkpoint_directory.load(folder)
    if found is not None:
        check_cluster(found.agreement.cluster, cluster, folder)
    _name(tables, table_owner.SPARK, batch)
    for old in {path.parent for path in folder.glob("*/batch-*")}:
        shutil.rmtree(old)  # of a time before, or of a move that was cut off
    reached("positions:before", batch)
    _save(beside, kept, topic_id)  # the positions themselves are in the batch
    reached("positions:written", batch)
    made = Generation(
        checkpoint_directory.VERSION,
        secrets.token_hex(4),
        _next(tables, batch),
        Agreement(QUERY, cluster, topic, len(lanes)),
        state_codec.VERSION,
        before=Before(left.generation.name, topic, len(lanes), {lane.lane: lane.next_offset for lane in lanes}),
    )
    bases = {lane.lane: _base(lane) for lane in lanes}
    BatchFiles(folder / made.name).write(Batch(made.first_batch, -1, kept.positions, bases, {}, []))
    reached("lanes:written", batch)
    checkpoint_directory.save(folder, made)
    _own(tables, table_owner.LOCAL, made, reached, batch)
    return made


def collected(store: Store) -> Kept:
    """What a collector that was stopped has left."""
    return Kept(store.load(), store.load_directory().entries, store.load_committed())


def _base(lane: Lane) -> Puts:
    pieces = state_codec.pieces_of(lane.save())
    return Puts(Mark(state_codec.VERSION, secrets.token_bytes(TOKEN_BYTES), len(pieces), 0), pieces, [])


def _next(tables: Path, batch: int) -> int:
    highest = highest_batch(tables, LIVE_TABLES)
    return max(batch, -1 if highest is None else highest) + 1


def _save(store: Store, kept: Kept, topic_id: str) -> None:
    """What is kept beside the positions. A store may have some of a time before: those of now get higher numbers."""
    positions, committed, directory = kept.positions, store.load_committed(), store.load_directory()
    numbers = (store.load().number, positions.number, directory.number, 0 if committed is None else committed.number)
    positions.number, positions.topic_id = max(numbers), topic_id
    if kept.committed is None:
        store.forget_committed()
    else:
        store.save_committed(kept.committed, positions.number + 1)
    store.save_directory(SavedDirectory(positions.number, kept.clients))


def _name(tables: Path, engine: Engine, batch: int) -> None:
    """Write down whose the tables are, before there is state of both engines."""
    if table_owner.load(tables) is None:
        table_owner.save(tables, table_owner.Owner(table_owner.VERSION, engine, batch))


def _own(tables: Path, engine: Engine, made: Generation, reached: Reached, batch: int) -> None:
    reached("owner:before", batch)
    table_owner.save(tables, table_owner.Owner(table_owner.VERSION, engine, made.first_batch))
    reached("owner:written", batch)
