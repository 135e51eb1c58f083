"""`kardia move`: tables from `kardia live` to `kardia stream` or back, with the state of lanes and the positions."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from cli.options import PLACE, problems
from cli.running import ordered_end, sayer
from cli.shared import ClientConfig, Cluster, ConsumerSessionMs, KafkaVersion, ShareSessionMs, StreamsSessionMs


class Engine(StrEnum):
    """Whose the tables are to be."""

    SPARK = "spark"
    LOCAL = "local"


def move(
    to: Annotated[Engine, typer.Option("--to", help="spark: to `kardia stream`; local: to `kardia live`.")],
    tables: Annotated[Path, typer.Option("--tables", help="Folder of the Delta tables on this machine.", **PLACE)],
    checkpoint: Annotated[
        Path, typer.Option("--checkpoint", help="Folder of the checkpoint of `kardia stream`.", **PLACE)
    ],
    bootstrap_server: Annotated[
        str, typer.Option("--bootstrap-server", help="Brokers of the topic of events: HOST:PORT,…")
    ],
    positions: Annotated[
        Path | None,
        typer.Option("--positions", help="Directory of the collector's positions. Default: kardia-positions.", **PLACE),
    ] = None,
    state: Annotated[
        Path | None,
        typer.Option("--state", help="Folder of the state of `kardia live`. Default: TABLES/_live.", **PLACE),
    ] = None,
    from_topic: Annotated[
        bool | None,
        typer.Option(
            "--from-topic", help="To local: `kardia live --from-topic` goes on in the topic, and collectors go on."
        ),
    ] = None,
    client_config: ClientConfig = None,
    topic: Annotated[
        str | None, typer.Option("--topic", help="Topic of events; made if missing. Default: kardia.events.")
    ] = None,
    cluster: Cluster = None,
    kafka_version: KafkaVersion = None,
    consumer_session_ms: ConsumerSessionMs = None,
    share_session_ms: ShareSessionMs = None,
    streams_session_ms: StreamsSessionMs = None,
    archive: Annotated[
        bool | None, typer.Option("--archive/--no-archive", help="As the job is told: whether it writes table events.")
    ] = None,
) -> None:
    """Give the tables to the other engine, with the state of every lane and the positions in the logs.

    Stop both engines and the collector first. No row is lost or told twice, killed at whatever instant: repeat it then,
    or start the engine before again. To `local` the job reads its topic to the end first.
    """
    given: dict[str, Any] = {name: value for name, value in locals().items() if value is not None and name != "to"}

    from pydantic import ValidationError

    from ingest.errors import IngestError
    from live.mover import MoveSettings, run
    from spark_jobs.errors import JobError
    from spark_jobs.jvm.errors import JvmError

    say = sayer("move")
    is_ending = ordered_end()
    try:
        run(MoveSettings(**given), to.value, is_ending, say)
    except ValidationError as error:
        for problem in problems(error):
            say(problem)
        raise typer.Exit(2) from None
    except (IngestError, JobError, JvmError) as error:
        say(str(error))
        raise typer.Exit(2) from None
