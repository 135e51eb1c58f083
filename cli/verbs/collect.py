"""`kardia collect`: follow the logs of brokers and the offsets topic, send what they say to the topic of events."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from cli.options import PLACE, SeveralValues, problems
from cli.running import ordered_end, sayer
from cli.shared import (
    Admin,
    AdminEveryS,
    Broker,
    Cluster,
    EndsEveryS,
    EventsTopic,
    LogPattern,
    LogTimezone,
    MetricsPort,
    ObservedBrokers,
    ObservedClientConfig,
    Offsets,
    OffsetsPartitions,
    RequestLog,
    RotateWaitS,
    ServerLog,
)


class CollectCommand(SeveralValues):
    """The logs may be named as a shell writes them."""

    several = frozenset({"--request-log", "--server-log"})


COMMAND = CollectCommand

YOUNG_MAX = 50_000
"""Objects that are made before the interpreter walks through them for cycles. Lines that are decoded are tens of
thousands at a time and have none; as it is set by default, such walks took a sixth of catching up."""


def collect(
    request_log: RequestLog = None,
    server_log: ServerLog = None,
    bootstrap_server: ObservedBrokers = None,
    offsets: Offsets = None,
    admin: Admin = None,
    admin_every_s: AdminEveryS = None,
    ends_every_s: EndsEveryS = None,
    offsets_partitions: OffsetsPartitions = None,
    events_bootstrap_server: Annotated[
        str | None,
        typer.Option("--events-bootstrap-server", help="Brokers of the topic of events; the observed ones by default."),
    ] = None,
    client_config: ObservedClientConfig = None,
    events_client_config: Annotated[
        Path | None,
        typer.Option(
            "--events-client-config", help="The same for the topic of events, when it is on other brokers.", **PLACE
        ),
    ] = None,
    topic: EventsTopic = None,
    lanes: Annotated[
        int | None, typer.Option("--lanes", help="Partitions of the topic of events, for its life. Default: 6.")
    ] = None,
    cluster: Cluster = None,
    broker: Broker = None,
    positions: Annotated[
        Path | None, typer.Option("--positions", help="Directory of the positions. Default: kardia-positions.", **PLACE)
    ] = None,
    log_timezone: LogTimezone = None,
    log_pattern: LogPattern = None,
    metrics_port: MetricsPort = None,
    rotate_wait_s: RotateWaitS = None,
) -> None:
    """Send what the brokers' logs and the offsets topic say to the topic of events.

    Ends in order at SIGTERM or SIGINT: sends what is pending, waits for the acknowledgements, saves the positions. A
    second signal ends it at once.
    """
    import gc
    import sys

    # First of all: a signal during the imports below is an ordered stop as well.
    is_ending = ordered_end()

    from pydantic import ValidationError

    from ingest.assembly import SystemClock, run
    from ingest.errors import IngestError
    from ingest.settings import CollectSettings

    given: dict[str, Any] = {
        "request_log": request_log,
        "server_log": server_log,
        "bootstrap_server": bootstrap_server,
        "offsets": offsets,
        "admin": admin,
        "admin_every_s": admin_every_s,
        "ends_every_s": ends_every_s,
        "offsets_partitions": offsets_partitions,
        "events_bootstrap_server": events_bootstrap_server,
        "client_config": client_config,
        "events_client_config": events_client_config,
        "topic": topic,
        "lanes": lanes,
        "cluster": cluster,
        "broker": broker,
        "positions": positions,
        "log_timezone": log_timezone,
        "log_pattern": log_pattern,
        "metrics_port": metrics_port,
        "rotate_wait_s": rotate_wait_s,
    }

    say = sayer("collect")
    try:
        settings = CollectSettings(**{name: value for name, value in given.items() if value is not None})
        gc.freeze()  # what was loaded stays
        gc.set_threshold(YOUNG_MAX)
        complete = run(settings, SystemClock(), is_ending, say)
    except ValidationError as error:
        for problem in problems(error):
            say(problem)
        raise typer.Exit(2) from None
    except IngestError as error:
        say(str(error))
        raise typer.Exit(2) from None
    if not complete:
        say("stopped before the topic had acknowledged everything; what is missing is sent again at the next start")
        sys.exit(1)
