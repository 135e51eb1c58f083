"""`kardia move`: tables from `kardia live` to `kardia stream` or back, with the state of lanes and the positions."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from cli.options import PLACE, problems


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
    client_config: Annotated[
        Path | None,
        typer.Option(
            "--client-config", help="Properties file (security), in the names of librdkafka or of Java.", **PLACE
        ),
    ] = None,
    topic: Annotated[
        str | None, typer.Option("--topic", help="Topic of events; made if missing. Default: kardia.events.")
    ] = None,
    cluster: Annotated[str | None, typer.Option("--cluster", help="Name of the observed cluster.")] = None,
    kafka_version: Annotated[
        str | None, typer.Option("--kafka-version", help="Release of the brokers; recognised if not given.")
    ] = None,
    consumer_session_ms: Annotated[
        int | None,
        typer.Option("--consumer-session-ms", help="group.consumer.session.timeout.ms of the brokers, if it is known."),
    ] = None,
    share_session_ms: Annotated[
        int | None,
        typer.Option("--share-session-ms", help="group.share.session.timeout.ms of the brokers, if it is known."),
    ] = None,
    streams_session_ms: Annotated[
        int | None,
        typer.Option("--streams-session-ms", help="group.streams.session.timeout.ms of the brokers, if it is known."),
    ] = None,
    archive: Annotated[
        bool | None, typer.Option("--archive/--no-archive", help="As the job is told: whether it writes table events.")
    ] = None,
) -> None:
    """Give the tables to the other engine, with the state of every lane and the positions in the logs.

    Stop both engines and the collector first. No row is lost or told twice, killed at whatever instant: repeat it then,
    or start the engine before again. To `local` the job reads its topic to the end first.
    """
    import signal

    given: dict[str, Any] = {
        name: value for name, value in locals().items() if value is not None and name not in ("signal", "to")
    }

    from pydantic import ValidationError

    from ingest.errors import IngestError
    from live.mover import MoveSettings, run
    from spark_jobs.errors import JobError
    from spark_jobs.jvm.errors import JvmError

    def say(text: str) -> None:
        # Names and texts of errors may hold anything: nothing of them is to act on a terminal.
        typer.echo(
            "move: " + "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text), err=True
        )

    signals = 0

    def stop(number: int, _: object) -> None:
        nonlocal signals
        signals += 1
        if signals > 1:
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    try:
        run(MoveSettings(**given), to.value, lambda: signals > 0, say)
    except ValidationError as error:
        for problem in problems(error):
            say(problem)
        raise typer.Exit(2) from None
    except (IngestError, JobError, JvmError) as error:
        say(str(error))
        raise typer.Exit(2) from None
