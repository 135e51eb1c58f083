"""Another number of lanes: a job goes on in a new topic, with the state of every group that it had in the old one.

The number of lanes is that of the topic's partitions, and a group's lane follows from its shard, so that another number
is another topic. With `--lanes-from OLD` the job takes over what the checkpoint holds of the old one:

    (1) the old topic has been read to its end by all queries, and no batch is unfinished
    (2) the lanes are read from Spark's state of the last batch, as `journal` keeps them
    (3) their groups are put into the new lanes (`kardia.observe.lanes`)
    (4) each new lane is written to a file of the generation to come (`initial_lanes`)
    (5) `generation.json` of the live query is replaced: from here on the old generation is refused

Killed before (5) the checkpoint is the old one, and what was written is of a generation that never was; after it, it is
the new one, and `--lanes-from` finds nothing more to do. The archive keeps no state but marks, which only save it
questions: it begins a generation of its own when it sees that the live query has (`is_left_behind`).
In a store, where no lock keeps another job away, the fence of the tables is taken before (1): a job that is still
running cannot commit any more. It knows no rule of the coordinator.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from kardia.observe.lanes import UnevenError
from kardia.tables import LIVE_TABLES
from spark_jobs import stream, topic_loss
from spark_jobs.archive import archive_query
from spark_jobs.checkpoint import initial_lanes, journal, kardia_files, state_codec
from spark_jobs.checkpoint.checkpoint_directory import (
    Agreement,
    Before,
    Checkpoint,
    Generation,
    load,
    open_checkpoint,
    save,
    seeds_of,
)
from spark_jobs.checkpoint.journal import InMemory, Mark
from spark_jobs.errors import CheckpointError, TopicError
from spark_jobs.lane import Lane
from spark_jobs.lane_model import ModelFactory, ObserverFactory
from spark_jobs.settings import StreamSettings
from spark_jobs.writers import Reached
from spark_jobs.writers.delta_rs import DeltaRsWriter
from spark_jobs.writers.tables import highest_batch, last_version
from stores.locations import Folder, Store

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Left(NamedTuple):
    """What is left for a new topic: the live checkpoint, and where the old topic ended."""

    checkpoint: Checkpoint
    ends: dict[int, int]


def left(settings: StreamSettings, client: Mapping[str, str]) -> Left | None:
    """What is to be taken over, checked as far as it can be without Spark; None if it has been taken over before."""
    where = str(settings.checkpoint)
    if settings.new_generation or settings.topic == settings.lanes_from:
        raise CheckpointError(
            "--lanes-from does not go with --new-generation"
            if settings.new_generation
            else "--lanes-from names the topic that is to be read",
            where,
            "--topic with the new topic, --lanes-from with the one that was read until now, and nothing begun anew",
            "another number of lanes takes another topic: name it for `kardia collect` and here",
        )
    found = load(settings.checkpoint / stream.NAME)
    if found is None:
        raise _cannot("there is no checkpoint whose lanes could be taken over", where)
    if found.before is not None and found.agreement.topic == settings.topic:
        if found.before.topic not in (settings.lanes_from, settings.topic):
            raise _cannot(f"the lanes were taken over from {found.before.topic}", where)
        return None
    if found.agreement.topic != settings.lanes_from:
        raise _cannot(f"the checkpoint has read {found.agreement.topic}, not {settings.lanes_from}", where)
    if isinstance(settings.tables, Store):
        # From here on a job that still runs on the old topic commits no batch.
        writer = DeltaRsWriter(settings.tables, found.app_id)
        writer.prepare()
        writer.close()
    lanes = found.agreement.lanes
    ends = topic_loss.ends_of(settings.bootstrap_server, settings.lanes_from, lanes, client)
    opened: dict[str, Checkpoint] = {}
    for name, names in {stream.NAME: LIVE_TABLES, archive_query.NAME: archive_query.TABLES}.items():
        directory = settings.checkpoint / name
        generation = load(directory)
        if generation is not None and generation.agreement.topic == settings.lanes_from:
            agreement = Agreement(name, settings.cluster, settings.lanes_from, lanes)
            state = state_codec.VERSION if name == stream.NAME else 0
            opened[name] = open_checkpoint(directory, settings.tables, agreement, names, state=state)
            _check_read(opened[name], ends, settings)
    return Left(opened[stream.NAME], ends)


def _cannot(what: str, where: str) -> CheckpointError:
    return CheckpointError(
        what,
        where,
        "the checkpoint of the job that read the topic of --lanes-from until now",
        "name its folder and its topic; or leave --lanes-from out",
    )


def unread(checkpoint: Checkpoint, ends: Mapping[int, int], tables: Folder) -> str:
    """What a query has not done yet of a topic that ends there, in words; empty: it has read all, and wrote it."""
    committed, generation = checkpoint.committed(), checkpoint.generation
    read = checkpoint.read_offsets()
    begins_at = generation.begins_at if committed is None else {}
    missing = sum(end - read.get(partition, begins_at.get(partition, 0)) for partition, end in ends.items())
    unfinished = checkpoint.planned() != committed
    if committed is not None and generation.agreement.query == stream.NAME:
        written = last_version(tables, LIVE_TABLES[-1], generation.app_id)
        unfinished = unfinished or written != generation.first_batch + committed
    if missing:
        return f"{missing} records of {generation.agreement.topic} are not read yet"
    return "a batch is begun and not finished" if unfinished else ""


def _check_read(checkpoint: Checkpoint, ends: Mapping[int, int], settings: StreamSettings) -> None:
    """Refuse a topic that has not been read to its end, and a batch that was not finished."""
    left_over = unread(checkpoint, ends, settings.tables)
    if checkpoint.committed() is None or left_over:
        raise CheckpointError(
            left_over or f"nothing of {settings.lanes_from} is read yet",
            str(checkpoint.directory),
            "a topic that is read to its end, and to which nobody writes any more",
            "stop its collectors, then run `kardia stream --once` as before, without --lanes-from, with "
            f"--topic {settings.lanes_from}; then come back",
        )


def take_over(
    spark: SparkSession, old: Left, settings: StreamSettings, lanes: int, factory: ModelFactory, reached: Reached
) -> Generation:
    """Steps 2 to 5; what the checkpoint is then. Raises a `CheckpointError` where the lanes are not at one point."""
    if not isinstance(factory, ObserverFactory):
        raise TypeError("only lanes of observers can be put into another number")
    checkpoint, generation = old.checkpoint, old.checkpoint.generation
    batch = generation.first_batch + (checkpoint.committed() or 0)
    before = read_lanes(spark, checkpoint, factory)
    reached("lanes:read", batch)
    try:
        regrouped = in_number(
            before, lanes, factory, settings.topic, settings.cluster, accept_loss=settings.accept_loss
        )
    except UnevenError as error:
        raise CheckpointError(
            f"the lanes of {settings.lanes_from} do not stand at one point: {error}",
            str(checkpoint.directory),
            "lanes that have each read the same of every log, as collectors leave them that are stopped in order",
            "start the collectors on the topic before once more, let them run for a minute, stop them in order, read "
            "it to its end with --once, and come back; or pass --accept-loss once: every group is then marked unknown "
            "across what the lanes differ in",
        ) from None
    name = secrets.token_hex(4)
    for lane in regrouped:
        lane.next_offset = 0  # of the new topic: what comes first is its first record, or there is a gap
        initial_lanes.write(seeds_of(checkpoint.directory, name), lane.lane, lane.save())
        reached(f"lane-{lane.lane}:written", batch)
    highest = highest_batch(settings.tables, LIVE_TABLES)
    made = Generation(
        generation.version,
        name,
        max(batch, -1 if highest is None else highest) + 1,
        msgspec.structs.replace(generation.agreement, topic=settings.topic, lanes=lanes),
        generation.state,
        before=Before(generation.name, generation.agreement.topic, generation.agreement.lanes, dict(old.ends)),
    )
    reached("lanes:before", batch)
    save(checkpoint.directory, made)
    reached("lanes:written", batch)
    return made


def in_number(
    before: Sequence[Lane], lanes: int, factory: ObserverFactory, topic: str, cluster: str, *, accept_loss: bool = False
) -> list[Lane]:
    """The groups of some lanes in another number of them, which have read nothing of their topic yet. Raises
    `UnevenError` where those before do not stand at one point, unless loss is accepted."""
    models = factory.regrouped([lane.model.snapshot() for lane in before], lanes, accept_loss=accept_loss)
    found = [Lane(factory, topic, number, lanes, cluster=cluster) for number in range(lanes)]
    for lane, model in zip(found, models, strict=True):
        lane.model = model
        lane.last_logged_at_ms = max(one.last_logged_at_ms for one in before)
        lane.sources = {broker: source for one in before for broker, source in one.sources.items()}
    return found


def is_left_behind(directory: Folder, live: Generation) -> bool:
    """Whether a checkpoint of another query is still of the topic that the live query has left, read to its end."""
    if not _was_left(live) or live.before is None or kardia_files.names(directory) == []:
        return False
    found = load(directory)
    return found is not None and (found.agreement.topic, found.agreement.lanes) == (
        live.before.topic,
        live.before.lanes,
    )


def _was_left(live: Generation) -> bool:
    """Whether the lanes came from another topic, which is still there perhaps."""
    before, now = live.before, live.agreement
    return before is not None and (before.topic, before.lanes) != (now.topic, now.lanes)


def strays(live: Generation, bootstrap: str, client: Mapping[str, str], say: Callable[[str], None]) -> None:
    """Say that somebody still writes to the topic that was left: nobody reads it any more."""
    if not _was_left(live) or live.before is None:
        return
    try:
        ends = topic_loss.ends_of(bootstrap, live.before.topic, live.before.lanes, client)
    except TopicError:
        return  # deleted, as it may be
    more = sum(max(0, end - live.before.offsets.get(partition, 0)) for partition, end in ends.items())
    if more:
        say(
            f"{more} records were written to {live.before.topic} after its lanes were taken over, and nobody reads "
            f"them. Expected: none. Next: start the collectors that still write to it on {live.agreement.topic}; what "
            "they sent meanwhile is a gap"
        )


def read_lanes(spark: SparkSession, checkpoint: Checkpoint, factory: ModelFactory) -> list[Lane]:
    """All lanes as the last batch left them."""
    stores: dict[int, InMemory] = {}
    for part in range(parts_of(checkpoint)):
        stores |= stores_of(spark, checkpoint, part)
    return [
        read_lane(checkpoint, factory, number, stores.get(number, InMemory()))
        for number in range(checkpoint.generation.agreement.lanes)
    ]


def parts_of(checkpoint: Checkpoint) -> int:
    """Parts that have state: lane `n` is in part `n` modulo their number (`topic.parts`)."""
    return 0 if checkpoint.committed() is None else max(1, checkpoint.generation.parts)


def stores_of(spark: SparkSession, checkpoint: Checkpoint, part: int) -> dict[int, InMemory]:
    """What Spark's store has of each lane of a part after the last batch."""
    _ = spark.streams  # makes the coordinator of state stores, without which none can be read
    stores: dict[int, InMemory] = {}
    for name in ("mark", "base", "journal"):
        _fill(stores, name, _state(spark, checkpoint, part, name))
    return stores


def read_lane(checkpoint: Checkpoint, factory: ModelFactory, number: int, store: InMemory) -> Lane:
    """A lane that is read back."""
    return journal.read(store, lambda: new_lane(checkpoint, factory, number)).lane


def new_lane(checkpoint: Checkpoint, factory: ModelFactory, number: int) -> Lane:
    """A lane as its generation began with it."""
    agreement = checkpoint.generation.agreement
    lane = Lane(factory, agreement.topic, number, agreement.lanes, cluster=agreement.cluster)
    if checkpoint.seeds is not None:
        lane.load(initial_lanes.read(checkpoint.seeds, number))
    return lane


def _state(spark: SparkSession, checkpoint: Checkpoint, part: int, name: str) -> list[Any]:
    """Rows that Spark's store has of a variable of the operator, after the last batch."""
    frame: DataFrame = (
        spark.read.format("statestore")
        .option("operatorId", part)
        .option("stateVarName", name)
        .option("batchId", str(checkpoint.committed()))
        .load(checkpoint.spark_location)
    )
    columns = ("key.lane", "value.*") if name == "mark" else ("key.lane", "user_map_key.number", "user_map_value.*")
    return list(frame.select(*columns).toLocalIterator())


def _fill(stores: dict[int, InMemory], name: str, rows: list[Any]) -> None:
    for lane, *values in rows:
        store = stores.setdefault(lane, InMemory())
        if name == "mark":
            version, token, pieces, steps = values
            store.put_mark(Mark(version, bytes(token), pieces, steps))
        else:
            number, data = values
            (store.pieces if name == "base" else store.steps)[number] = bytes(data)
