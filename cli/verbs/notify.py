"""`kardia notify`: what the tables say, pushed to Alertmanager and webhooks. Has the real clock and signals."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.options import PLACE, problems, there
from cli.shared import MetricsPort, RunbooksUrl, TablesToRead, Webhook

if TYPE_CHECKING:
    from api.notify.run import Notifier


def notify(
    tables: TablesToRead,
    state: Annotated[
        Path, typer.Option(help="Directory for what must survive a restart; for this notifier alone.", **PLACE)
    ],
    alertmanager: Annotated[
        list[str] | None, typer.Option(help="Address of an Alertmanager; may be repeated, all are told.")
    ] = None,
    webhook: Webhook = None,
    cluster: Annotated[str | None, typer.Option(help="Tell of this cluster only.")] = None,
    kardia_url: Annotated[str | None, typer.Option(help="Address of `kardia serve`, in front of links.")] = None,
    runbooks_url: RunbooksUrl = None,
    metrics_port: MetricsPort = None,
) -> None:
    """Tell Alertmanager and webhooks what is wrong, within a second after it is in the tables."""
    import logging

    from pydantic import ValidationError
    from rich.console import Console

    from api.http.gc_tuning import Pauses
    from api.notify.run import Notifier
    from api.notify.settings import NotifySettings
    from api.notify.state import StateError
    from ingest.clients import bounded_log
    from kardia.story import words
    from stores.locations import LocationError

    bounded_log.begin(logging.WARNING)
    err = Console(stderr=True, markup=False, soft_wrap=True)
    given = {
        "tables": tables,
        "state": state,
        "alertmanager": tuple(alertmanager) if alertmanager else None,
        "webhook": tuple(webhook) if webhook else None,
        "cluster": cluster,
        "kardia_url": kardia_url,
        "runbooks_url": runbooks_url,
        "metrics_port": metrics_port,
    }
    try:
        # What is not given on the command line may come from KARDIA_NOTIFY_...
        settings = NotifySettings(**{name: value for name, value in given.items() if value is not None})  # type: ignore[arg-type]
        if not settings.alertmanager and not settings.webhook:
            raise StateError("nobody is to be told; expected --alertmanager or --webhook with an address; give one")
        there(settings.tables)
        pauses = Pauses()
        pauses.begin()
        notifier = Notifier(settings, _now_ms, pauses.shown)
    except ValidationError as error:
        for found in problems(error):
            err.print(f"kardia notify: {found}")
        raise typer.Exit(2) from None
    except (StateError, LocationError) as error:
        err.print(f"kardia notify: {error}")
        raise typer.Exit(2) from None
    told = words.count(len(settings.alertmanager), "Alertmanager"), words.count(len(settings.webhook), "webhook")
    typer.echo(f"kardia notify: {', '.join(told)}")
    _run(notifier)


def _now_ms() -> int:
    import time

    return time.time_ns() // 1_000_000


def _run(notifier: Notifier) -> None:
    import asyncio
    import signal

    async def until_stopped() -> None:
        running = asyncio.create_task(notifier.run())
        for sign in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(sign, running.cancel)
        await running

    try:
        asyncio.run(until_stopped())
    except asyncio.CancelledError:
        typer.echo("Stopped.")
    finally:
        notifier.close()
