"""`kardia replay`: archived logs into the tables, on this machine, without broker, topic or Java."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from cli.extras import lacking
from cli.options import PLACE, TABLES_PLACE, Folder, SeveralValues
from cli.shared import LogPatternOrEmpty


class Engine(StrEnum):
    """What does the work."""

    POOL = "pool"
    SPARK = "spark"


_FILES = "may be given several times, and followed by several files"


class COMMAND(SeveralValues):
    """Lets a shell pattern stand after the options that take files."""

    several = frozenset(("--request-log", "--server-log", "--offsets"))


def replay(
    tables: Annotated[
        Folder, typer.Option(help="Folder of the tables, here or s3://; must not hold any yet.", **TABLES_PLACE)
    ],
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            help="Files, folders, and patterns in quotes: request logs, server.log and captures in any order, of any "
            "number of brokers and days. What each is shows its content.",
            **PLACE,
        ),
    ] = None,
    request_log: Annotated[
        list[Path] | None, typer.Option(help=f"kafka-request.log, plain, compressed or wrapped; {_FILES}.", **PLACE)
    ] = None,
    server_log: Annotated[
        list[Path] | None, typer.Option(help=f"server.log with the coordinator's lines; {_FILES}.", **PLACE)
    ] = None,
    offsets: Annotated[list[Path] | None, typer.Option(help=f"File of `kardia capture`; {_FILES}.", **PLACE)] = None,
    message_field: Annotated[
        str, typer.Option(help="Field of JSON exports that holds the line, as a path; found out if not given.")
    ] = "",
    cluster: Annotated[str, typer.Option(help="Name of the cluster, the first column of every row.")] = "kafka",
    kafka_version: Annotated[
        str, typer.Option(help="Release of the brokers, e.g. 3.9.2; recognised if not given.")
    ] = "",
    consumer_session_ms: Annotated[
        int, typer.Option(min=-1, help="group.consumer.session.timeout.ms of the brokers; -1: not known.")
    ] = -1,
    share_session_ms: Annotated[
        int, typer.Option(min=-1, help="group.share.session.timeout.ms of the brokers; -1: not known.")
    ] = -1,
    streams_session_ms: Annotated[
        int, typer.Option(min=-1, help="group.streams.session.timeout.ms of the brokers; -1: not known.")
    ] = -1,
    log_timezone: Annotated[str, typer.Option(help="Time zone of the brokers' JVMs: IANA name or offset.")] = "UTC",
    log_pattern: LogPatternOrEmpty = "",
    engine: Annotated[
        Engine, typer.Option(help="pool: processes of this machine; spark: the live query.")
    ] = Engine.POOL,
    append: Annotated[bool, typer.Option("--append", help="Add to tables that hold rows.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace tables that hold rows.")] = False,
    workers: Annotated[int, typer.Option(min=0, help="Processes of the pool; 0: one per core.")] = 0,
    master: Annotated[str, typer.Option(help="Spark master of --engine spark.")] = "local[2]",
    health_every: Annotated[
        float | None,
        typer.Option(
            min=0.0,
            help="Seconds between rows of health of a member that is well; 0: its last one only. Without it: 5 for "
            "logs of up to 64 MiB together, else 0.",
        ),
    ] = None,
) -> None:
    """Read archived logs (request logs, server logs, captures) into the tables.

    Logs may be compressed (.gz, .zst, .xz, .bz2) and wrapped: by a container runtime (json-file, CRI), by the journal
    (`journalctl -o json --all` or `-o export`), or in exports of Elasticsearch, Loki and their like (JSON lines).

    Exit code 0 if something was understood, 1 if not: also if every line was rejected.
    """
    if engine is Engine.SPARK and (sentence := lacking("spark", "--engine spark")):
        typer.secho(f"kardia replay: {sentence}", err=True, fg=typer.colors.RED)
        raise typer.Exit(2)

    from cli.output.replaying import run_replay
    from ingest.errors import IngestError
    from spark_jobs.errors import JobError

    try:
        run_replay(
            files=files or [],
            message_field=message_field,
            request_logs=request_log or [],
            server_logs=server_log or [],
            offsets=offsets or [],
            tables=tables,
            cluster=cluster,
            kafka_version=kafka_version,
            session_ms=(consumer_session_ms, share_session_ms, streams_session_ms),
            zone=log_timezone,
            log_pattern=log_pattern,
            spark=engine is Engine.SPARK,
            append=append,
            overwrite=overwrite,
            workers=workers,
            master=master,
            health_every=health_every,
        )
    except (JobError, IngestError) as error:
        typer.secho(f"kardia replay: {error}", err=True, fg=typer.colors.RED)
        raise typer.Exit(1) from error
