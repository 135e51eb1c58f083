"""`kardia capture`: write `__consumer_offsets` as it is now, or samples of the admin API, into a file for a replay."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cli.options import PLACE
from cli.running import sayer
from cli.shared import ClientConfig


def capture(
    bootstrap_server: Annotated[str, typer.Option("--bootstrap-server", help="Brokers of the cluster: HOST:PORT,…")],
    out: Annotated[Path, typer.Option("--out", help="File to write; compressed when its name ends in .gz.", **PLACE)],
    client_config: ClientConfig = None,
    admin: Annotated[
        bool, typer.Option("--admin", help="Sample groups by the admin API instead, until Ctrl-C or --for-s.")
    ] = False,
    admin_every_s: Annotated[float, typer.Option(min=1.0, help="Seconds from one sample to the next.")] = 10.0,
    for_s: Annotated[float, typer.Option(min=0.0, help="Seconds to sample; 0: until Ctrl-C.")] = 0.0,
) -> None:
    """Write every record of `__consumer_offsets`, up to its end at this moment, as JSON lines.

    Key and value are in hex, a value of null is a tombstone, control records of transactions are not shown. The file
    holds group, member and client ids: treat it as personal data. With --admin: what the admin API answers about each
    group, whenever it is other than the time before; `kardia replay` knows both by their content.
    """
    if admin:
        _sample(bootstrap_server, out, client_config, admin_every_s, for_s)
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    from ingest.clients.settings import client_settings
    from ingest.errors import IngestError
    from ingest.offsets.capture import Capture

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


def _sample(bootstrap_server: str, out: Path, client_config: Path | None, every_s: float, for_s: float) -> None:
    import signal
    import threading
    import time

    from ingest.clients.settings import client_settings
    from ingest.errors import IngestError
    from ingest.offsets.capture import capture_samples

    stopped = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopped.set())
    end_s = time.monotonic() + for_s if for_s else float("inf")

    def ended() -> bool:
        return stopped.wait(min(0.2, max(0.0, end_s - time.monotonic()))) or time.monotonic() >= end_s

    say = sayer("capture")
    try:
        written = capture_samples(bootstrap_server, out, client_settings(client_config), every_s, ended, say)
    except IngestError as error:
        say(str(error))
        raise typer.Exit(2) from None
    say(f"{written} samples in {out}")
