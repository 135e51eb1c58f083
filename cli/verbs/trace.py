"""`kardia trace`: a history in the language of traces, run by the model, to see what Kafka would do."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cli.options import place


def _teach(wanted: bool) -> None:
    if wanted:
        from kardia.trace.page import language

        typer.echo(language(), nl=False)
        raise typer.Exit


def trace(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The trace.", parser=place)],
    kafka_version: Annotated[
        str, typer.Option(help="Release of the broker, e.g. 3.9.2; the last one the trace names if not given.")
    ] = "",
    language: Annotated[  # noqa: ARG001 - its callback does it
        bool,
        typer.Option("--language", help="Print all that a trace can say, and end.", is_eager=True, callback=_teach),
    ] = False,
) -> None:
    """Tell what Kafka's coordinator does with a history, and where that differs from what the file expects.

    Exit status 1 when it differs; 2 when the file is no trace.
    """
    from kardia.trace import TraceError, play, read

    try:
        known = read(file.read_text(encoding="utf-8"), str(file))
        version = kafka_version or known.versions[-1]
        checked = version in known.versions and any(step.expectations for step in known.steps)
        played = play(known._replace(versions=(version,)), version)
    except (TraceError, OSError, ValueError) as error:
        typer.secho(f"kardia trace: {error}", err=True, fg=typer.colors.RED)
        raise typer.Exit(2) from error
    typer.echo(f"{known.title}\n\nKafka {version}, by the model")
    for at_ms, text, told in played.told:
        instant = f"+{at_ms // 1000}.{at_ms % 1000:03}"
        typer.echo(f"{instant:<10}{text:<28}{', '.join(told)}".rstrip())
    if version not in known.versions:
        typer.echo(f"\nNot compared: what it expects is written for Kafka {', '.join(known.versions)}.")
    if checked and played.differences:
        typer.secho("\n" + "\n".join(played.differences), err=True, fg=typer.colors.RED)
        raise typer.Exit(1)
