"""`kardia capture`: write what `__consumer_offsets` holds now into a file that `kardia replay --offsets` reads."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cli.options import PLACE


def capture(
    bootstrap_server: Annotated[str, typer.Option("--bootstrap-server", help="Brokers of the cluster: HOST:PORT,…")],
    out: Annotated[Path, typer.Option("--out", help="File to write; compressed when its name ends in .gz.", **PLACE)],
    client_config: Annotated[
        Path | None, typer.Option("--client-config", help="Properties file (security), librdkafka's names.", **PLACE)
    ] = None,
) -> None:
    """Write every record of `__consumer_offsets`, up to its end at this moment, as JSON lines.

    Key and value are in hex, a value of null is a tombstone, control records of transactions are not shown. The file
    holds group, member and client ids: treat it as personal data.
    """
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    from ingest.capture import Capture
    from ingest.clients import client_settings
    from ingest.errors import IngestError

    console = Console(stderr=True)
    try:
        with (
            Capture(bootstrap_server, out, client_settings(client_config)) as work,
            Progress(
                TextColumn("reading __consumer_offsets"),
                BarColumn(),
                TextColumn("{task.completed}/{task.total} records"),
                TimeElapsedColumn(),
                console=console,
            ) as progress,
        ):
            task = progress.add_task("capture", total=work.total)
            for passed in work.run():
                progress.update(task, completed=passed)
    except IngestError as error:
        console.print(str(error), markup=False, highlight=False)
        raise typer.Exit(2) from None
    console.print(f"{work.written} records in {out}", markup=False, highlight=False)
