"""`kardia surprises`: answers that are not as the model of the release predicts, of the tables or of given logs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cli.asking.common import (
    ApiOption,
    ClusterOption,
    FromOption,
    TablesOption,
    TextOutput,
    TimezoneOption,
    TokenOption,
    ToOption,
    asking,
    print_as,
    range_options,
    stdout,
)
from cli.extras import lacking
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
    limit: Annotated[
        int, typer.Option(min=1, max=10_000, help="At most that many surprises, of logs the earliest, else the latest.")
    ] = 100,
    group: Annotated[
        str | None, typer.Option("--group", metavar="GROUP", help="Without logs: only of this group.")
    ] = None,
    surprise_class: Annotated[
        str | None, typer.Option(help="Without logs: only of this class, e.g. broker_not_as_release.")
    ] = None,
    from_: FromOption = None,
    to: ToOption = None,
    tables: TablesOption = None,
    api: ApiOption = None,
    cluster: ClusterOption = None,
    token_file: TokenOption = None,
    timezone: TimezoneOption = None,
    output: Annotated[TextOutput, typer.Option("-o", "--output", help="Form of the answer.")] = TextOutput.TEXT,
) -> None:
    """Tell which answers to classic requests are not as the model of the brokers' release predicts.

    Without logs: what the job, or one process, has found while it ran. With logs: what is found in them now.
    Exit status 0 if requests were compared, 1 if there were none, 2 if nothing can be read.
    """
    if not (files or request_log):
        with asking("surprises", tables, api, token_file, cluster, timezone, no_answer=2) as questions:
            from cli.output import shown

            from_ms, to_ms = range_options(questions, from_, to)
            rows, more = questions.surprises(group, from_ms, to_ms, surprise_class, limit)
            counted = questions.self_test()
            if output is TextOutput.TEXT:
                stdout().print(shown.surprises(counted["self_test_in_words"], rows, more, traces=traces))
            else:
                print_as(output, {"self_test": counted["self_test"], "surprises": rows, "more": more})
        if not counted["self_test"]["answers"]:
            raise typer.Exit(1)
        return
    if why := lacking("collect", "reading logs"):
        typer.secho(f"kardia surprises: {why}", err=True, fg=typer.colors.RED)
        raise typer.Exit(2)
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
