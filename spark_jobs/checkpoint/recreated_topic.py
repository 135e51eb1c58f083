"""A topic that was deleted and made again while the job was away: the new one is read from its beginning.

Its offsets begin anew, so that those of the checkpoint say nothing in it: read on from there, a longer one would be
skipped up to them without a word. The id of the topic is kept in `generation.json` and compared at each start; where
brokers give none, a topic that ends before what was read is another one.

    (1) the lanes are read from Spark's state of the last batch, as `change_lane_count` reads them
    (2) each is marked: whatever its topic's first record is, a gap lies before it (`lane.ANEW`)
    (3) they are written to files of the generation to come (`initial_lanes`)
    (4) `generation.json` of the live query is replaced
    (5) the archive, which keeps no state but marks, begins a generation of its own

Killed before (4) the next start finds the same again; after it, only what is left of (5). What the old topic still
held is lost whatever is done, so nothing is refused: it is said, and each lane tells the gap with its bounds.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import msgspec

from ingest.wire.topic_id import UNKNOWN
from kardia.tables import LIVE_TABLES
from spark_jobs import stream, topic_loss
from spark_jobs.archive import archive_query
from spark_jobs.checkpoint import change_lane_count, initial_lanes
from spark_jobs.checkpoint.checkpoint_directory import Before, Checkpoint, open_checkpoint, save, seeds_of
from spark_jobs.lane import ANEW
from spark_jobs.lane_model import ModelFactory
from spark_jobs.settings import StreamSettings
from spark_jobs.writers import Reached
from spark_jobs.writers.tables import highest_batch

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def found(settings: StreamSettings, client: Mapping[str, str], checkpoints: Mapping[str, Checkpoint]) -> str | None:
    """Id of the topic if it is not the one that the checkpoints have read; None if it is. A checkpoint that does not
    know the id of its topic yet learns it."""
    now = topic_loss.id_of(settings.bootstrap_server, settings.topic, client)
    ends: dict[int, int] | None = None
    anew = False
    for checkpoint in checkpoints.values():
        generation, read = checkpoint.generation, checkpoint.read_offsets()
        if UNKNOWN in (generation.topic_id, now) and read:
            lanes = generation.agreement.lanes
            ends = ends or topic_loss.ends_of(settings.bootstrap_server, settings.topic, lanes, client)
            other = any(ends[partition] < offset for partition, offset in read.items())
        else:
            other = UNKNOWN not in (generation.topic_id, now) and generation.topic_id != now
        if not other:
            learn(checkpoint, now)
        anew = anew or other
    return now if anew else None


def learn(checkpoint: Checkpoint, topic_id: str) -> None:
    """Keep the id of the topic that a checkpoint reads."""
    if topic_id not in (UNKNOWN, checkpoint.generation.topic_id):
        checkpoint.generation = msgspec.structs.replace(checkpoint.generation, topic_id=topic_id)
        save(checkpoint.directory, checkpoint.generation)


def begin(
    spark: SparkSession,
    now: str,
    settings: StreamSettings,
    checkpoints: Mapping[str, Checkpoint],
    factory: ModelFactory,
    reached: Reached,
    say: Callable[[str], None],
) -> dict[str, Checkpoint]:
    """Steps 1 to 5; the checkpoints then. `now`: what `found` gave."""
    opened = dict(checkpoints)
    for name, checkpoint in checkpoints.items():
        before = checkpoint.generation
        if now != UNKNOWN and before.topic_id == now:
            continue  # that of the live query was begun before a kill
        read = checkpoint.read_offsets()
        _begin_live(spark, now, settings, checkpoint, factory, reached) if name == stream.NAME else None
        tables, state = (LIVE_TABLES, before.state) if name == stream.NAME else (archive_query.TABLES, 0)
        opened[name] = open_checkpoint(
            checkpoint.directory,
            settings.tables,
            before.agreement,
            tables,
            new_generation=name != stream.NAME,
            state=state,
        )
        learn(opened[name], now)
        ends = ", ".join(f"{partition}: {offset}" for partition, offset in sorted(read.items()))
        say(
            f"{name}: {settings.topic} is another topic than the one that was read (to the offsets {ends or 'none'}): "
            "it was deleted and made again. The new one is read from its beginning; what the old one still held is "
            "lost, and the groups of its lanes are unknown across the gap. Next: nothing, if that was wanted"
        )
    return opened


def _begin_live(
    spark: SparkSession,
    now: str,
    settings: StreamSettings,
    checkpoint: Checkpoint,
    factory: ModelFactory,
    reached: Reached,
) -> None:
    generation = checkpoint.generation
    batch = generation.first_batch + (checkpoint.committed() or 0)
    name = secrets.token_hex(4)
    for lane in change_lane_count.read_lanes(spark, checkpoint, factory):
        if lane.next_offset != -1:
            lane.next_offset = ANEW
        initial_lanes.write(seeds_of(checkpoint.directory, name), lane.lane, lane.save())
    highest = highest_batch(settings.tables, LIVE_TABLES)
    agreement = generation.agreement
    made = msgspec.structs.replace(
        generation,
        name=name,
        first_batch=max(batch, -1 if highest is None else highest) + 1,
        topic_id=now,
        begins_at={},
        before=Before(generation.name, agreement.topic, agreement.lanes, checkpoint.read_offsets()),
    )
    reached("anew:before", batch)
    save(checkpoint.directory, made)
    reached("anew:written", batch)
