"""`kardia collect`: follow the logs of brokers and the offsets topic, send what they say to the topic of events."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from cli.options import PLACE, SeveralValues, problems


class CollectCommand(SeveralValues):
    """The logs may be named as a shell writes them."""

    several = frozenset({"--request-log", "--server-log"})


COMMAND = CollectCommand

YOUNG_MAX = 50_000
"""Objects that are made before the interpreter walks through them for cycles. Lines that are decoded are tens of
thousands at a time and have none; as it is set by default, such walks took a sixth of catching up."""


def collect(
    request_log: Annotated[
        list[str] | None,
        typer.Option("--request-log", help="Request logs to follow, or patterns; may be given several times."),
    ] = None,
    server_log: Annotated[
        list[str] | None,
        typer.Option("--server-log", help="server.log files to follow, or patterns; may be given several times."),
    ] = None,
    bootstrap_server: Annotated[
        str | None, typer.Option("--bootstrap-server", help="Brokers of the observed cluster: HOST:PORT,…")
    ] = None,
    offsets: Annotated[
        bool | None, typer.Option("--offsets/--no-offsets", help="Read __consumer_offsets of the observed cluster.")
    ] = None,
    admin: Annotated[
        bool | None,
        typer.Option("--admin/--no-admin", help="Sample groups by the admin API; needs nothing on a broker."),
    ] = None,
    admin_every_s: Annotated[
        float | None, typer.Option("--admin-every-s", help="Seconds from one sample to the next. Default: 10.")
    ] = None,
    ends_every_s: Annotated[
        float | None,
        typer.Option(
            "--ends-every-s",
            help="Ask so often, in seconds, where the partitions end that groups read; 0: never. Default: 5.",
        ),
    ] = None,
    offsets_partitions: Annotated[
        int | None,
        typer.Option("--offsets-partitions", help="Partitions of __consumer_offsets when the cluster cannot be asked."),
    ] = None,
    events_bootstrap_server: Annotated[
        str | None,
        typer.Option("--events-bootstrap-server", help="Brokers of the topic of events; the observed ones by default."),
    ] = None,
    client_config: Annotated[
        Path | None,
        typer.Option(
            "--client-config",
            help="Properties file (security) for the observed cluster, in the names of librdkafka or Java.",
            **PLACE,
        ),
    ] = None,
    events_client_config: Annotated[
        Path | None,
        typer.Option(
            "--events-client-config", help="The same for the topic of events, when it is on other brokers.", **PLACE
        ),
    ] = None,
    topic: Annotated[str | None, typer.Option("--topic", help="Topic of events. Default: kardia.events.")] = None,
    lanes: Annotated[
        int | None, typer.Option("--lanes", help="Partitions of the topic of events, for its life. Default: 6.")
    ] = None,
    cluster: Annotated[str | None, typer.Option("--cluster", help="Name of the observed cluster.")] = None,
    broker: Annotated[
        str | None,
        typer.Option("--broker", help="Name of the broker whose logs these are; as the lines say by default."),
    ] = None,
    positions: Annotated[
        Path | None, typer.Option("--positions", help="Directory of the positions. Default: kardia-positions.", **PLACE)
    ] = None,
    log_timezone: Annotated[
        str | None,
        typer.Option("--log-timezone", help="Time zone of the brokers' JVM: UTC, Europe/Berlin, +05:30. No default."),
    ] = None,
    log_pattern: Annotated[
        str | None,
        typer.Option(
            "--log-pattern",
            help="Conversion pattern of the logs as the brokers' log4j file has it, for a layout that is not known.",
        ),
    ] = None,
    metrics_port: Annotated[
        int | None, typer.Option("--metrics-port", help="Serve Prometheus counters on this port of loopback.")
    ] = None,
    rotate_wait_s: Annotated[
        float | None, typer.Option("--rotate-wait-s", help="Read a rotated file so long after its end. Default: 5.")
    ] = None,
) -> None:
    """Send what the brokers' logs and the offsets topic say to the topic of events.

    Ends in order at SIGTERM or SIGINT: sends what is pending, waits for the acknowledgements, saves the positions. A
    second signal ends it at once.
    """
    import gc
    import signal
    import sys

    # First of all: a signal during the imports below is an ordered stop as well.
    signals = 0

    def stop(number: int, _: object) -> None:
        nonlocal signals
        signals += 1
        if signals > 1:
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)

    from pydantic import ValidationError

    from ingest.errors import IngestError
    from ingest.live import SystemClock, run
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

    def say(text: str) -> None:
        # Names of files and texts of errors may hold anything: nothing of them is to act on a terminal.
        typer.echo(
            "collect: " + "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text),
            err=True,
        )

    try:
        settings = CollectSettings(**{name: value for name, value in given.items() if value is not None})
        gc.freeze()  # what was loaded stays
        gc.set_threshold(YOUNG_MAX)
        complete = run(settings, SystemClock(), lambda: signals > 0, say)
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
