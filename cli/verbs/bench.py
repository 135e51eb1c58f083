"""`kardia bench`: what each stage manages on this machine, each beside a baseline of the same run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cli.options import PLACE


def bench(
    only: Annotated[
        list[str] | None,
        typer.Option(
            "--only",
            help="Stage: lines, text, observer, replay, collect, backlog, live, one-process, follow, sustained, "
            "size, uneven, api, notify, store, verbs, request-log; several are allowed.",
        ),
    ] = None,
    scale: Annotated[
        float, typer.Option(min=0.01, max=100, help="Size of the inputs; 1 takes about twenty minutes.")
    ] = 1.0,
    json: Annotated[
        Path | None, typer.Option("--json", help="Write the results to this file as well.", **PLACE)
    ] = None,
    history: Annotated[
        Path | None,
        typer.Option(
            "--history", help="Add this run to a file of runs, and say what is worse than in the last of them.", **PLACE
        ),
    ] = None,
    work: Annotated[
        Path | None, typer.Option(help="Directory for logs and tables; a temporary one by default.", **PLACE)
    ] = None,
) -> None:
    """Measure throughput, latency, start-up and memory on this machine."""
    from bench.run import STAGES, run_bench

    unknown = [name for name in only or [] if name not in STAGES]
    if unknown:
        typer.echo(f"kardia bench: there is no stage {unknown[0]}; there are {', '.join(STAGES)}.", err=True)
        raise typer.Exit(2)
    try:
        run_bench(only or list(STAGES), scale, json, work, history)
    except ValueError as error:
        typer.echo(f"kardia bench: {error}.", err=True)
        raise typer.Exit(2) from error
