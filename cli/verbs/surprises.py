"""`kardia surprises`: put the requests of a log to the model of its release, and tell which answers are otherwise."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cli.asking.common import TextOutput, print_as
from cli.options import PLACE, SeveralValues
from cli.shared import LogPatternOrEmpty


class COMMAND(SeveralValues):
    """Lets a shell pattern stand after the option that takes files."""

    several = frozenset(("--request-log",))


def surprises(
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            help="Files, folders, and patterns in quotes: request logs of any number of brokers of one cluster. What "
            "each is shows its content.",
            **PLACE,
        ),
    ] = None,
    request_log: Annotated[
        list[Path] | None,
        typer.Option(
            help="kafka-request.log, plain, compressed or wrapped; may be followed by several files.", **PLACE
        ),
    ] = None,
    message_field: Annotated[
        str, typer.Option(help="Field of JSON exports that holds the line, as a path; found out if not given.")
    ] = "",
    kafka_version: Annotated[
        str, typer.Option(help="Release of the brokers, e.g. 3.9.2; recognised if not given.")
    ] = "",
    log_timezone: Annotated[str, typer.Option(help="Time zone of the brokers' JVMs: IANA name or offset.")] = "UTC",
    log_pattern: LogPatternOrEmpty = "",
    traces: Annotated[
        bool, typer.Option("--traces", help="Print with each surprise the trace that `kardia trace` replays.")
    ] = False,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="At most that many surprises, the earliest.")] = 100,
    output: Annotated[TextOutput, typer.Option("-o", "--output", help="Form of the answer.")] = TextOutput.TEXT,
) -> None:
    """Put the requests of a log to the model of its release, and tell which answers are not as it predicts.

    Exit status 0 if requests were compared, 1 if there were none, 2 if nothing can be read.
    """
    from cli.output import surprising
    from ingest.errors import IngestError

    try:
        told = surprising.followed(
            files or [],
            request_log or [],
            message_field=message_field,
            kafka_version=kafka_version,
            zone=log_timezone,
            log_pattern=log_pattern,
        )
    except (IngestError, ValueError) as error:
        typer.secho(f"kardia surprises: {error}", err=True, fg=typer.colors.RED)
        raise typer.Exit(2) from error
    if output is TextOutput.TEXT:
        surprising.show(told, traces=traces, limit=limit)
    else:
        print_as(output, surprising.as_json(told, limit))
    if not told.counts.answers:
        raise typer.Exit(1)
