"""Lanes whose saved state is damaged: built again from what the topic still has, while the others stay as they are.

A lane is a function of its records, ticks among them, and the topic keeps those for some days: what is read once more,
up to where the last batch ended, gives the state of then. Nothing of it is written, because the tables have it already.

    (1) a query that ends because a lane cannot be read back says so in `generation.json` (`note`)
    (2) the next start reads all lanes from Spark's state; of a part whose files Spark itself cannot read, none
    (3) those that cannot be read begin as their generation began, and read their partition again
    (4) all are written to files of a generation to come (`initial_lanes`), which goes on where the last batch ended
    (5) `generation.json` of the live query is replaced

Killed before (5) the next start does the same again. Where the topic no longer reaches back to the begin, groups are in
the lane from when they were heard first in what is left; a member who has been there for longer has a second life.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, cast

import msgspec
from confluent_kafka import Consumer, KafkaException, Message, TopicPartition

from ingest.clients.log import CLIENT_LOG
from ingest.wire.batches import CLUSTER_HEADER, FORMAT_HEADER
from kardia.tables import LIVE_TABLES
from spark_jobs import stream
from spark_jobs.checkpoint import change_lane_count, initial_lanes
from spark_jobs.checkpoint.checkpoint_directory import Before, Checkpoint, save, seeds_of
from spark_jobs.checkpoint.journal import InMemory
from spark_jobs.errors import DamagedError, TopicError
from spark_jobs.lane import Lane, Record
from spark_jobs.lane_model import ModelFactory
from spark_jobs.settings import StreamSettings
from spark_jobs.writers import Reached
from spark_jobs.writers.tables import highest_batch

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RECORDS = 500
"""Of one step, as in a batch of the job."""

WAIT_S = 60.0
"""For the next record. Up to where the last batch ended each is there, or was."""


def note(checkpoint: Checkpoint) -> None:
    """A lane could not be read back: the next start sees to it."""
    checkpoint.generation = msgspec.structs.replace(checkpoint.generation, damaged=True)
    save(checkpoint.directory, checkpoint.generation)


def begin(
    spark: SparkSession,
    settings: StreamSettings,
    client: Mapping[str, str],
    checkpoint: Checkpoint,
    factory: ModelFactory,
    reached: Reached,
    say: Callable[[str], None],
) -> Checkpoint:
    """Steps 2 to 5; the checkpoint then."""
    generation, ends = checkpoint.generation, checkpoint.read_offsets()
    batch = generation.first_batch + (checkpoint.committed() or 0)
    name = secrets.token_hex(4)
    kept, lost = _read(spark, checkpoint, factory)
    for number in lost:
        say(f"lane {number}: its saved state cannot be read; it is built again from {settings.topic}")
        lane = change_lane_count.new_lane(checkpoint, factory, number)
        first = -1
        for records in _records(settings, client, number, ends.get(number, 0)):
            first = records[0].offset if first < 0 else first
            lane.step(records, lambda saved=lane.save(): saved)  # type: ignore[misc]
        kept[number] = lane
        is_whole = first <= generation.begins_at.get(number, 0)
        since = "all that it ever read" if is_whole else f"what is left, from offset {first} on"
        say(f"lane {number}: built again from {since}, up to offset {lane.next_offset}")
    for number, lane in kept.items():
        initial_lanes.write(seeds_of(checkpoint.directory, name), number, lane.save())
    highest = highest_batch(settings.tables, LIVE_TABLES)
    agreement = generation.agreement
    made = msgspec.structs.replace(
        generation,
        name=name,
        first_batch=max(batch, -1 if highest is None else highest) + 1,
        damaged=False,
        begins_at=ends or generation.begins_at,
        before=Before(generation.name, agreement.topic, agreement.lanes, ends),
    )
    reached("rebuilt:before", batch)
    save(checkpoint.directory, made)
    reached("rebuilt:written", batch)
    return Checkpoint(checkpoint.directory, made)


def _read(spark: SparkSession, checkpoint: Checkpoint, factory: ModelFactory) -> tuple[dict[int, Lane], list[int]]:
    """(Lanes that can be read back, those that cannot)."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    lanes, parts = checkpoint.generation.agreement.lanes, change_lane_count.parts_of(checkpoint)
    kept: dict[int, Lane] = {}
    for part in range(parts):
        try:
            stores = change_lane_count.stores_of(spark, checkpoint, part)
        except (Py4JError, PySparkException) as error:
            found = stream.explain(None, error, f"part {part} of {checkpoint.directory}")
            if not isinstance(found, DamagedError):
                raise found from error  # it may be readable in a moment
            continue
        for number in range(part, lanes, parts):
            try:
                kept[number] = change_lane_count.read_lane(checkpoint, factory, number, stores.get(number, InMemory()))
            except DamagedError:
                continue
    return kept, [number for number in range(lanes) if number not in kept]


def _records(settings: StreamSettings, client: Mapping[str, str], lane: int, end: int) -> Iterator[list[Record]]:
    """What the topic still has of a lane before an offset."""
    own = {**client, "bootstrap.servers": settings.bootstrap_server, "group.id": "kardia-rebuild"}
    consumer = Consumer({**own, "enable.auto.commit": False}, logger=CLIENT_LOG)
    try:
        first, _ = consumer.get_watermark_offsets(TopicPartition(settings.topic, lane), timeout=WAIT_S)
        consumer.assign([TopicPartition(settings.topic, lane, first)])
        next_offset = first
        while next_offset < end:
            found = consumer.consume(min(RECORDS, end - next_offset), WAIT_S)
            if not found or any(one.error() for one in found):
                raise _unreadable(settings, lane, next_offset, str(found[0].error()) if found else "nothing comes")
            records = [_record(one) for one in found]
            next_offset = records[-1].offset + 1
            yield [one for one in records if one.offset < end]
    except KafkaException as error:
        raise _unreadable(settings, lane, end, error.args[0].str()) from error
    finally:
        consumer.close()


def _record(found: Message) -> Record:
    # The first of a name, as the job reads it (`topic`).
    headers = dict(reversed(cast("list[tuple[str, bytes | None]]", found.headers() or [])))
    return Record(
        int(found.offset() or 0),
        found.timestamp()[1],
        headers.get(FORMAT_HEADER),
        found.value(),
        headers.get(CLUSTER_HEADER),
    )


def _unreadable(settings: StreamSettings, lane: int, offset: int, why: str) -> TopicError:
    return TopicError(
        f"lane {lane} cannot be built again: the topic is not read at offset {offset}: {why}",
        f"{settings.topic} at {settings.bootstrap_server}",
        "the records that were read before, as far as the topic has kept them",
        "see whether its brokers are up, and start again; or restore the checkpoint from a copy that belongs to these "
        "tables; or begin a new one with --new-generation",
    )
