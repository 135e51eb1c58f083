"""What a run lays ready before Spark starts: settings of the clients, the lanes of the topic, checkpoints that belong
to the tables, and a look at whether anything unread is gone.

Each refusal is a sentence, made before anything is written. It starts nothing, and knows no rule of the coordinator.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ingest.clients.settings import client_config
from ingest.errors import SettingsError
from ingest.security import for_java
from ingest.security.rendering import librdkafka as rendered
from kardia.tables import LIVE_TABLES
from spark_jobs import stream, topic, topic_loss
from spark_jobs.archive import archive_query
from spark_jobs.checkpoint import change_lane_count, damaged_lanes, recreated_topic, state_codec
from spark_jobs.checkpoint.checkpoint_directory import Agreement, Checkpoint, open_checkpoint
from spark_jobs.errors import RefusedError, TopicError
from spark_jobs.jvm import jars
from spark_jobs.lane_model import ModelFactory
from spark_jobs.settings import StreamSettings
from spark_jobs.spark import cluster, s3a, session
from spark_jobs.storage_errors import disk_named, store_named
from spark_jobs.writers import faults
from stores.locations import Store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ASK_AGAIN_S = 0.5

FAIR = {"spark.scheduler.mode": "FAIR"}
"""Two queries share the cores, each in a pool of its own name: in one pool the jobs of one run before the other's."""


class Client(NamedTuple):
    """Settings of the clients that read the topic."""

    librdkafka: dict[str, str]
    java: dict[str, str]


def client_of(settings: StreamSettings, temporary: Path) -> Client:
    """What the file of client settings means to both libraries; secrets of Java lie in the folder of this run."""
    try:
        config = client_config(settings.client_config)
        if not cluster.is_local(settings.master):
            return Client(rendered(config), for_java.on_a_cluster(config))
        if config.path is None:
            return Client(rendered(config), {})
        return Client(rendered(config), for_java.settings(config, temporary))
    except SettingsError as error:
        raise RefusedError(error.what, error.where, error.expected, error.next_step) from None


def await_lanes(
    settings: StreamSettings, client: Client, stop: Callable[[], bool], say: Callable[[str], None]
) -> int | None:
    """Lanes of the topic; waits for a collector that is just creating it. None if asked to stop meanwhile."""
    deadline = time.monotonic() + settings.wait_s
    said = False
    while not stop():
        try:
            return topic.lanes_of(settings.bootstrap_server, settings.topic, client.librdkafka)
        except TopicError as error:
            if time.monotonic() >= deadline:
                raise
            if not said:
                say(f"waiting up to {settings.wait_s:.0f} s: {error.what} ({error.where})")
                said = True
        time.sleep(ASK_AGAIN_S)
    return None


def checkpoints_of(settings: StreamSettings, lanes: int) -> dict[str, Checkpoint]:
    """Checkpoints of the queries that are wanted, by name."""
    wanted = {stream.NAME: LIVE_TABLES} | ({archive_query.NAME: archive_query.TABLES} if settings.archive else {})
    found: dict[str, Checkpoint] = {}
    for name, tables in wanted.items():
        directory = settings.checkpoint / name
        behind = name != stream.NAME and change_lane_count.is_left_behind(directory, found[stream.NAME].generation)
        found[name] = open_checkpoint(
            directory,
            settings.tables,
            Agreement(name, settings.cluster, settings.topic, lanes),
            tables,
            new_generation=settings.new_generation or behind,
            state=state_codec.VERSION if name == stream.NAME else 0,
        )
    return found


def taken_over(
    spark: SparkSession,
    old: change_lane_count.Left,
    settings: StreamSettings,
    lanes: int,
    factory: ModelFactory,
    client: Client,
    say: Callable[[str], None],
) -> dict[str, Checkpoint]:
    """The lanes of another topic, in the number of those of this one; the checkpoints then."""
    before = old.checkpoint.generation.agreement
    with disk_named(settings.checkpoint), store_named(settings.tables):
        change_lane_count.take_over(spark, old, settings, lanes, factory, faults.from_environment(os.environ))
        checkpoints = checkpoints_of(settings, lanes)
    say(f"took over the {before.lanes} lanes of {before.topic}, as {lanes} of {settings.topic}")
    recreated_topic.found(settings, client.librdkafka, checkpoints)
    check_losses(settings, client, checkpoints, say)
    return checkpoints


def begun_anew(
    spark: SparkSession,
    topic_id: str,
    settings: StreamSettings,
    checkpoints: dict[str, Checkpoint],
    factory: ModelFactory,
    say: Callable[[str], None],
) -> dict[str, Checkpoint]:
    """The lanes as they were left by a topic that is no more; the checkpoints then."""
    with disk_named(settings.checkpoint), store_named(settings.tables):
        reached = faults.from_environment(os.environ)
        return recreated_topic.begin(spark, topic_id, settings, checkpoints, factory, reached, say)


def built_again(
    spark: SparkSession,
    settings: StreamSettings,
    client: Client,
    checkpoints: dict[str, Checkpoint],
    factory: ModelFactory,
    say: Callable[[str], None],
) -> dict[str, Checkpoint]:
    """The live query's checkpoint without the lanes that could not be read back."""
    with disk_named(settings.checkpoint), store_named(settings.tables):
        reached = faults.from_environment(os.environ)
        live = checkpoints[stream.NAME]
        return {stream.NAME: damaged_lanes.begin(spark, settings, client.librdkafka, live, factory, reached, say)}


def check_losses(
    settings: StreamSettings, client: Client, checkpoints: dict[str, Checkpoint], say: Callable[[str], None]
) -> None:
    """Refuse to go on where the topic no longer has what was not read, or, where that is accepted, say what is lost."""
    for name, checkpoint in checkpoints.items():
        losses = topic_loss.find_losses(
            settings.bootstrap_server, settings.topic, checkpoint.read_offsets(), client.librdkafka
        )
        if losses and not settings.accept_loss:
            raise topic_loss.refuse(settings.topic, losses)
        for loss in losses:
            say(
                f"{name}: partition {loss.partition} has lost offsets {loss.start}–{loss.end - 1}; "
                f"read on from {loss.end}, the groups of this lane are unknown across the gap"
            )


def for_spark(settings: StreamSettings, temporary: Path) -> tuple[list[Path], dict[str, str]]:
    """Jars and settings of the session."""
    files, own = jars.ensure("spark"), dict(FAIR)
    if settings.java_options is not None:
        own[session.JAVA_OPTIONS] = settings.java_options
    here = temporary if isinstance(settings.checkpoint, Store) else settings.checkpoint
    own["spark.sql.warehouse.dir"] = str(here / "spark-warehouse")  # else below the current folder
    if isinstance(settings.checkpoint, Store) or (isinstance(settings.tables, Store) and settings.spark_writes):
        files += jars.ensure(s3a.JARS)
        own |= s3a.settings()
    return files, own
