"""`kardia stream`: the topic of events through the observer into the Delta tables, each batch once."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from cli.options import PLACE, TABLES_PLACE, Folder, problems
from cli.running import ordered_end, sayer
from cli.shared import (
    ClientConfig,
    Cluster,
    ConsumerSessionMs,
    EventsTopic,
    KafkaVersion,
    MetricsPort,
    SelfTest,
    ShareSessionMs,
    StreamsSessionMs,
)


class Writer(StrEnum):
    """Who writes the live tables."""

    DELTA_RS = "delta-rs"
    DELTA_SPARK = "delta-spark"


def stream(
    bootstrap_server: Annotated[
        str | None, typer.Option("--bootstrap-server", help="Brokers of the topic of events: HOST:PORT,…")
    ] = None,
    client_config: ClientConfig = None,
    topic: EventsTopic = None,
    tables: Annotated[
        Folder | None, typer.Option("--tables", help="Folder of the Delta tables, here or s3://.", **TABLES_PLACE)
    ] = None,
    checkpoint: Annotated[
        Folder | None,
        typer.Option("--checkpoint", help="Folder of the checkpoint, here or s3://.", **TABLES_PLACE),
    ] = None,
    cluster: Cluster = None,
    kafka_version: KafkaVersion = None,
    consumer_session_ms: ConsumerSessionMs = None,
    share_session_ms: ShareSessionMs = None,
    streams_session_ms: StreamsSessionMs = None,
    master: Annotated[str | None, typer.Option("--master", help="Spark master. Default: local\\[3].")] = None,
    executors: Annotated[
        Path | None,
        typer.Option(
            "--executors",
            help="Archive for the executors of a cluster, of `python -m spark_jobs.executor_archive`.",
            **PLACE,
        ),
    ] = None,
    conf: Annotated[
        list[str] | None, typer.Option("--conf", help="Setting of Spark, spark.NAME=VALUE; may be repeated.")
    ] = None,
    writer: Annotated[
        Writer | None,
        typer.Option("--writer", help="delta-rs on one machine; delta-spark on a cluster, with --trigger-ms 5000."),
    ] = None,
    archive: Annotated[
        bool | None, typer.Option("--archive/--no-archive", help="Write every event into the table events as well.")
    ] = None,
    trigger_ms: Annotated[
        int | None, typer.Option("--trigger-ms", help="Time between two batches; 0, the default: back to back.")
    ] = None,
    self_test: SelfTest = None,
    keep: Annotated[
        str | None,
        typer.Option(
            "--keep", help="How long rows are kept. Default: health=7d,history=30d,rejected=7d,events=7d; or forever."
        ),
    ] = None,
    metrics_port: MetricsPort = None,
    new_generation: Annotated[
        bool | None,
        typer.Option(
            "--new-generation", help="Begin a new checkpoint at the topic's beginning, into the tables there are."
        ),
    ] = None,
    lanes_from: Annotated[
        str | None,
        typer.Option(
            "--lanes-from", help="Topic read until now: take its lanes over, in the number of those of --topic."
        ),
    ] = None,
    accept_loss: Annotated[
        bool | None,
        typer.Option("--accept-loss", help="Read on over records the topic has lost, and mark the gap; for one run."),
    ] = None,
    once: Annotated[
        bool | None, typer.Option("--once", help="Stop when everything there was at the start is in the tables.")
    ] = None,
) -> None:
    """Read the topic of events into the Delta tables.

    Ends in order at SIGTERM or SIGINT: the batch in hand is finished or repeated at the next start, nothing is lost or
    written twice. A second signal ends it at once.
    """
    given: dict[str, Any] = {name: value for name, value in locals().items() if value is not None}
    if writer is not None:
        given["writer"] = writer.value

    from pydantic import ValidationError

    from spark_jobs.errors import JobError
    from spark_jobs.job import run
    from spark_jobs.jvm.errors import JvmError
    from spark_jobs.settings import StreamSettings

    say = sayer("stream")
    is_ending = ordered_end()
    try:
        run(StreamSettings(**given), is_ending, say)
    except ValidationError as error:
        for problem in problems(error):
            say(problem)
        raise typer.Exit(2) from None
    except (JobError, JvmError) as error:
        say(str(error))
        raise typer.Exit(2) from None
