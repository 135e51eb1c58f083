"""`kardia move` put together: leases, the topic, Spark where its state is to be read; then the steps of `live.moves`.

Both engines and the collector must be stopped: the leases of tables, state, checkpoint and positions are held from the
begin to the end, so that nothing is read or written meanwhile. To `local` the job reads the topic to its end first
(`kardia stream --once`). Where `kardia live` reads the topic itself, collectors go on: each engine reads on where the
other was. What cannot be moved is refused with a sentence, and nothing is changed then.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

from pydantic import Field

from ingest.settings import Place
from ingest.tail.positions import Positions, Store
from ingest.wire.producer import ensure_topic
from ingest.wire.topic_id import UNKNOWN
from kardia.events import DEFAULT_LANES
from kardia.observe.lanes import UnevenError
from kardia.tables import LIVE_TABLES
from live import left, moves
from spark_jobs import job, preflight, stream, topic_loss
from spark_jobs.archive import archive_query
from spark_jobs.checkpoint import change_lane_count, state_codec
from spark_jobs.checkpoint.checkpoint_directory import Agreement, Checkpoint, load, open_checkpoint
from spark_jobs.errors import CheckpointError, TopicError
from spark_jobs.jvm import java
from spark_jobs.jvm.voice import Voice
from spark_jobs.lane import Lane
from spark_jobs.lane_model import ObserverFactory
from spark_jobs.leases import table_owner
from spark_jobs.leases.disk_lease import held
from spark_jobs.leases.table_owner import Engine
from spark_jobs.preflight import ASK_AGAIN_S
from spark_jobs.settings import StreamSettings
from spark_jobs.spark import scratch, session
from spark_jobs.storage_errors import disk_named
from spark_jobs.topic import lanes_of
from spark_jobs.writers import Reached, faults
from stores.locations import Folder
from stores.locations import Store as ObjectStore


class MoveSettings(StreamSettings):
    """What the job is told, and where the other engine and the collector keep what they go on from. The environment of
    the job counts here as well."""

    positions: Place = Field(default=Path("kardia-positions"), description="directory of the collector's positions")
    from_topic: bool = Field(default=False, description="`kardia live` reads the topic itself, as collectors go on")
    lanes: int = Field(default=DEFAULT_LANES, ge=1, le=1_000, description="partitions of the topic of events")
    state: Place | None = Field(default=None, description="directory of the state of `kardia live`; TABLES/_live")

    @property
    def factory(self) -> ObserverFactory:
        """What reads the lanes."""
        return ObserverFactory(self.observer)


class Places(NamedTuple):
    """What is on this machine."""

    tables: Path
    state: Path
    checkpoint: Folder


def run(settings: MoveSettings, to: Engine, stop: Callable[[], bool], say: Callable[[str], None]) -> None:
    """Move the tables to an engine, if they are not its own. Raises a `JobError` or an `IngestError`."""
    if isinstance(settings.tables, ObjectStore):
        raise CheckpointError(
            "tables in an object store are not moved",
            str(settings.tables),
            "tables on this machine: `kardia live` writes no others",
            "let `kardia stream` go on",
        )
    places = Places(settings.tables, settings.state or settings.tables / table_owner.STATE, settings.checkpoint)
    reached = faults.from_environment(os.environ)
    found = table_owner.engine_of(*places)
    if found is None:
        raise CheckpointError(
            "there is nothing to move: neither engine has state",
            f"{places.state}, {places.checkpoint}",
            "the folders of the engine that wrote the tables",
            f"name them; where nothing is written yet, start `{table_owner.VERBS[to]}`",
        )
    if found == to:
        say(f"the tables in {places.tables} belong to `{table_owner.VERBS[to]}` already; nothing is moved")
        return
    with ExitStack() as stack:
        collector = None
        if not (settings.from_topic if to == table_owner.LOCAL else _topic_of(places)):
            # Before anything else, and to the end: no collector sends to the topic meanwhile.
            collector = Store(settings.positions)
            stack.callback(collector.close)
        if to == table_owner.SPARK:
            _to_spark(settings, places, collector, reached, say)
        else:
            _to_local(settings, places, collector, reached, stop, say)


def _topic_of(places: Places) -> str:
    """The topic that `kardia live` has read; empty: logs of this machine."""
    found = load(places.state)
    return "" if found is None else found.agreement.topic


@contextmanager
def _alone(places: Places) -> Iterator[Store]:
    """Nobody uses tables or state of either engine; gives the positions of `kardia live`."""
    with ExitStack() as stack:
        for directory, role in (
            (places.tables, "writer of these tables"),
            (places.state, "run on this state"),
            (places.checkpoint, "run on this checkpoint"),
        ):
            with disk_named(directory):
                stack.enter_context(held(directory, role))
        beside = Store(places.state / "positions")
        stack.callback(beside.close)
        with disk_named(places.tables):
            yield beside


def _to_spark(
    settings: MoveSettings, places: Places, collector: Store | None, reached: Reached, say: Callable[[str], None]
) -> None:
    with scratch.scratch() as temporary:
        client = preflight.client_of(settings, temporary).librdkafka
    with _alone(places) as beside:
        found = left.read(places.state, beside, places.tables, settings.cluster, settings.factory, reached)
        if collector is None:
            topic = _read_on(found, settings, client)
        else:
            lanes = _lanes_of(settings, client)
            found = found._replace(lanes=_in_number(found.lanes, lanes, settings))
            ensure_topic(settings.bootstrap_server, settings.topic, lanes, client)
            id_now = topic_loss.id_of(settings.bootstrap_server, settings.topic, client)
            topic = moves.Topic(settings.topic, id_now, _ends(settings, lanes, client))
        made = moves.to_spark(found, topic, places.checkpoint, collector, places.tables, reached)
        lanes = len(found.lanes)
    if collector is None:
        say(
            f"the tables in {places.tables} belong to `kardia stream` from batch {made.first_batch} on: {lanes} lanes, "
            f"which go on in {settings.topic} where they were. Next: `kardia stream --checkpoint "
            f"{settings.checkpoint}`, `kardia serve`"
        )
        return
    say(
        f"the tables in {places.tables} belong to `kardia stream` from batch {made.first_batch} on: {lanes} lanes, "
        f"which go on in {settings.topic}. Next: `kardia collect --positions {settings.positions}` on the same logs, "
        f"`kardia stream --checkpoint {settings.checkpoint}`, `kardia serve`"
    )


def _lanes_of(settings: MoveSettings, client: dict[str, str]) -> int:
    """Partitions of the topic; of one that is not there yet, as many as it will be made with."""
    try:
        return lanes_of(settings.bootstrap_server, settings.topic, client)
    except TopicError:
        return settings.lanes  # whatever else it may be, making the topic meets it as well


def _in_number(lanes: list[Lane], number: int, settings: MoveSettings) -> list[Lane]:
    """The lanes in the number of those of the topic."""
    if len(lanes) == number:
        return lanes
    try:
        return change_lane_count.in_number(lanes, number, settings.factory, settings.topic, settings.cluster)
    except UnevenError as error:
        raise CheckpointError(
            f"the lanes do not stand at one point: {error}",
            str(settings.tables),
            "lanes that have each read the same of every log",
            "start `kardia live` again, let it run for a minute, stop it in order, and come back; nothing was moved",
        ) from None


def _read_on(found: left.Left, settings: MoveSettings, client: dict[str, str]) -> moves.Topic:
    """The topic that the lanes have read, from where they are."""
    topic, known = found.generation.agreement.topic, found.kept.positions.topic_id
    now = topic_loss.id_of(settings.bootstrap_server, topic, client)
    if topic != settings.topic or (UNKNOWN not in (known, now) and known != now):
        raise CheckpointError(
            f"the lanes have read {topic}"
            + (f", not {settings.topic}" if topic != settings.topic else ", which was deleted and made again since"),
            f"{settings.topic} at {settings.bootstrap_server}",
            "the topic that `kardia live` has read",
            "name it with --topic; where it was made again, start `kardia live` once more, stop it, and come back",
        )
    begins_at = {lane.lane: lane.next_offset for lane in found.lanes if lane.next_offset >= 0}
    return moves.Topic(topic, now or known, begins_at)


def _ends(settings: MoveSettings, lanes: int, client: dict[str, str]) -> dict[int, int]:
    """Where the topic ends. One that was just made has no leaders for a moment."""
    deadline_s = time.monotonic() + settings.wait_s
    while True:
        try:
            return topic_loss.ends_of(settings.bootstrap_server, settings.topic, lanes, client)
        except TopicError:
            if time.monotonic() >= deadline_s:
                raise
        time.sleep(ASK_AGAIN_S)


def _to_local(
    settings: MoveSettings,
    places: Places,
    collector: Store | None,
    reached: Reached,
    stop: Callable[[], bool],
    say: Callable[[str], None],
) -> None:
    with scratch.scratch() as temporary:
        client = preflight.client_of(settings, temporary).librdkafka
        with _alone(places):
            missing = _unread(settings, client)
        if missing:
            say(f"{missing}; the job does that first")
            job.run(settings.model_copy(update={"once": True}), stop, say)
        with _alone(places) as beside:
            missing = _unread(settings, client)
            if missing:
                raise CheckpointError(
                    missing,
                    f"{settings.topic} at {settings.bootstrap_server}",
                    "a topic that is read to its end, and to which nobody writes any more",
                    "stop all its collectors, also those of other hosts, and come back; nothing was moved",
                )
            checkpoint = _checkpoints(settings)[stream.NAME]
            kept = left.Kept(Positions(), [], None) if collector is None else moves.collected(collector)
            if collector is not None and not kept.positions.number and checkpoint.read_offsets():
                raise CheckpointError(
                    "there are no positions of a collector: the logs would be read from their beginning",
                    str(settings.positions),
                    "the folder of the collector that sent what the tables are made of",
                    "name it with --positions",
                )
            lanes = _read_lanes(settings, checkpoint, temporary)
            batch = checkpoint.generation.first_batch + (checkpoint.committed() or 0)
            reached("lanes:read", batch)
            found = left.Left(checkpoint.generation, batch, lanes, kept)
            made = moves.to_local(found, places.state, beside, places.tables, reached, reads_topic=collector is None)
    say(
        f"the tables in {places.tables} belong to `kardia live` from batch {made.first_batch} on, with all "
        f"{len(lanes)} lanes and the positions. Next: `kardia live --tables {places.tables}` on the same logs"
    )


def _checkpoints(settings: MoveSettings) -> dict[str, Checkpoint]:
    """Those that the job has, checked against the tables."""
    found: dict[str, Checkpoint] = {}
    for name, names in {stream.NAME: LIVE_TABLES, archive_query.NAME: archive_query.TABLES}.items():
        generation = load(settings.checkpoint / name)
        if generation is None:
            continue
        agreement = Agreement(name, settings.cluster, settings.topic, generation.agreement.lanes)
        state = state_codec.VERSION if name == stream.NAME else 0
        found[name] = open_checkpoint(settings.checkpoint / name, settings.tables, agreement, names, state=state)
    if stream.NAME not in found:
        raise CheckpointError(
            "there is no checkpoint of the job",
            str(settings.checkpoint),
            "that of `kardia stream` on these tables",
            "name it with --checkpoint",
        )
    return found


def _unread(settings: MoveSettings, client: dict[str, str]) -> str:
    """What the job has not done yet, in words; empty: all that is in the topic is in the tables, or will be read."""
    opened = _checkpoints(settings)
    lanes = opened[stream.NAME].generation.agreement.lanes
    known = opened[stream.NAME].generation.topic_id
    now = topic_loss.id_of(settings.bootstrap_server, settings.topic, client)
    if known and now and known != now:
        return f"{settings.topic} was deleted and made again since it was read"
    if settings.from_topic:
        return change_lane_count.unread(
            opened[stream.NAME], {}, settings.tables
        )  # what is in the topic is read from there
    ends = topic_loss.ends_of(settings.bootstrap_server, settings.topic, lanes, client)
    wanted = (stream.NAME, archive_query.NAME) if settings.archive else (stream.NAME,)
    said = (change_lane_count.unread(opened[name], ends, settings.tables) for name in wanted if name in opened)
    return next((one for one in said if one), "")


def _read_lanes(settings: MoveSettings, checkpoint: Checkpoint, temporary: Path) -> list[Lane]:
    """All lanes, from Spark's state of the last batch."""
    if checkpoint.committed() is None:
        agreement = checkpoint.generation.agreement
        return [change_lane_count.new_lane(checkpoint, settings.factory, number) for number in range(agreement.lanes)]
    files, own = preflight.for_spark(settings, temporary)
    voice = Voice()
    with voice.lent():
        spark = session.start_session("kardia-move", "local[1]", files, java.find().home, own, None, temporary)
    try:
        return change_lane_count.read_lanes(spark, checkpoint, settings.factory)
    except job.of_others() as error:
        where = f"checkpoint {settings.checkpoint}"
        raise stream.explain(None, error, where, session.ended_by_itself(spark)) from error
    finally:
        voice.hush()
        session.end_session(spark)
