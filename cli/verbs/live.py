"""`kardia live`: collector, lanes, tables, API and page in one process. Has the threads, the clock and the signals."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.options import PLACE, SeveralValues, problems

if TYPE_CHECKING:
    from collections.abc import Callable

    from api.notify.settings import NotifySettings
    from api.settings import ApiSettings
    from live.settings import LiveSettings


class LiveCommand(SeveralValues):
    """The logs may be named as a shell writes them."""

    several = frozenset({"--request-log", "--server-log"})


COMMAND = LiveCommand

OF_THE_API = (
    *("host", "port", "token_file", "tls_certificate", "tls_key", "allowed_host", "hide_personal"),
    "serve_everyone_without_a_token",
)
"""Options that are for the API alone."""

OF_THE_NOTIFIER = ("alertmanager", "webhook", "kardia_url", "runbooks_url")
"""Options that are for the notifier alone."""

SEVERAL = {"allowed_host": "allowed_hosts", "alertmanager": "alertmanager", "webhook": "webhook"}
"""Options that may be repeated -> what the settings call them."""


def live(
    tables: Annotated[Path, typer.Option(help="Folder of the Delta tables on this machine; made if missing.", **PLACE)],
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
    from_topic: Annotated[
        str | None,
        typer.Option("--from-topic", help="Read what collectors on other hosts send to this topic, instead of logs."),
    ] = None,
    events_bootstrap_server: Annotated[
        str | None, typer.Option("--events-bootstrap-server", help="Brokers of that topic: HOST:PORT,…")
    ] = None,
    events_client_config: Annotated[
        Path | None,
        typer.Option("--events-client-config", help="Properties file (security) for the topic's brokers.", **PLACE),
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
    client_config: Annotated[
        Path | None,
        typer.Option(
            "--client-config",
            help="Properties file (security) for the observed cluster, in the names of librdkafka or Java.",
            **PLACE,
        ),
    ] = None,
    cluster: Annotated[str | None, typer.Option("--cluster", help="Name of the observed cluster.")] = None,
    broker: Annotated[
        str | None,
        typer.Option("--broker", help="Name of the broker whose logs these are; as the lines say by default."),
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
    rotate_wait_s: Annotated[
        float | None, typer.Option("--rotate-wait-s", help="Read a rotated file so long after its end. Default: 5.")
    ] = None,
    kafka_version: Annotated[
        str | None,
        typer.Option("--kafka-version", help="Release of the brokers; recognised from the lines if not given."),
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
    keep: Annotated[
        str | None,
        typer.Option("--keep", help="How long rows are kept. Default: health=7d,history=30d,rejected=7d; or forever."),
    ] = None,
    state: Annotated[
        Path | None,
        typer.Option("--state", help="Folder of what must survive a restart. Default: TABLES/_live.", **PLACE),
    ] = None,
    host: Annotated[str | None, typer.Option(help="Address to listen on. Default: 127.0.0.1.")] = None,
    port: Annotated[
        int | None,
        typer.Option(min=0, max=65_535, help="Port to listen on; 0 takes a free one and prints it. Default: 8765."),
    ] = None,
    token_file: Annotated[
        Path | None,
        typer.Option(
            help="Bearer tokens, one per line, for cluster=NAME or all, until expires=TIME; a must beyond loopback.",
            **PLACE,
        ),
    ] = None,
    tls_certificate: Annotated[
        Path | None, typer.Option(help="Certificate and its chain (PEM): serve HTTPS.", **PLACE)
    ] = None,
    tls_key: Annotated[Path | None, typer.Option(help="Key of the certificate (PEM).", **PLACE)] = None,
    allowed_host: Annotated[
        list[str] | None, typer.Option(help="Host name to answer to beside the address; may be repeated.")
    ] = None,
    hide_personal: Annotated[
        bool | None,
        typer.Option("--hide-personal", help="Answer without clients' addresses and their own words, everywhere."),
    ] = None,
    serve_everyone_without_a_token: Annotated[
        bool | None,
        typer.Option("--serve-everyone-without-a-token", help="Listen beyond loopback although anybody may read."),
    ] = None,
    alertmanager: Annotated[
        list[str] | None, typer.Option(help="Address of an Alertmanager to tell; may be repeated.")
    ] = None,
    webhook: Annotated[
        list[str] | None, typer.Option(help="Address that gets CloudEvents as JSON; may be repeated.")
    ] = None,
    kardia_url: Annotated[str | None, typer.Option(help="Address of this server, in front of links of alerts.")] = None,
    runbooks_url: Annotated[
        str | None, typer.Option(help="Address in front of the names of the runbooks; those of --kardia-url if absent.")
    ] = None,
) -> None:
    """Follow logs, conclude, write the tables and serve them, all in one process: no topic, no Java.

    For one machine. Ends in order at SIGTERM or SIGINT: what was read is in the tables then. Killed at any instant it
    goes on where the last batch ends; nothing is lost or told twice.
    """
    given: dict[str, Any] = {name: value for name, value in locals().items() if value is not None}

    import logging

    from pydantic import ValidationError

    from api.access.certificates import CertificateError
    from api.access.tokens import TokenFileError
    from api.notify.settings import NotifySettings
    from api.notify.state import StateError
    from api.settings import ApiSettings
    from cli.listening import AddressTakenError
    from ingest import bounded_log
    from ingest.errors import IngestError
    from kardia.locations import LocationError
    from live.settings import LiveSettings
    from spark_jobs.errors import JobError

    bounded_log.begin(logging.WARNING)

    def say(text: str) -> None:
        # Names of files and texts of errors may hold anything: nothing of them is to act on a terminal.
        typer.echo(
            "live: " + "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text), err=True
        )

    def of(names: tuple[str, ...]) -> dict[str, Any]:
        found = {name: given.pop(name) for name in names if name in given}
        return {SEVERAL.get(name, name): tuple(value) if name in SEVERAL else value for name, value in found.items()}

    of_api, of_notifier = of(OF_THE_API), of(OF_THE_NOTIFIER)
    try:
        settings = LiveSettings(**given)
        settings.tables.mkdir(parents=True, exist_ok=True)
        notify = NotifySettings(
            tables=settings.tables, state=settings.folder / "notify", cluster=settings.cluster, **of_notifier
        )
        _run(settings, ApiSettings(tables=settings.tables, **of_api), notify, say)
    except ValidationError as error:
        for problem in problems(error):
            say(problem)
        raise typer.Exit(2) from None
    except (
        *(IngestError, JobError, TokenFileError, AddressTakenError, CertificateError, LocationError, StateError),
        OSError,
    ) as error:
        say(str(error))
        raise typer.Exit(2) from None


def _run(settings: LiveSettings, of_api: ApiSettings, notify: NotifySettings, say: Callable[[str], None]) -> None:
    """The lanes in a thread of their own, API and notifier in this one; whichever ends, ends the others."""
    import gc
    import signal
    import time
    from threading import Event, Thread

    from api.app import create_app
    from api.http.gc_tuning import Pauses
    from api.notify.run import Notifier
    from cli.listening import listening, server, tls_of
    from ingest.live import SystemClock
    from ingest.metrics import Metrics
    from live.ahead import Ahead
    from live.metrics import LiveMetrics, Others
    from live.run import Around, run
    from live.view import LiveStore

    tls = tls_of(of_api)
    pauses = Pauses()
    pauses.begin()
    around = Around(SystemClock(), Ahead(), say, Metrics(), LiveMetrics())
    ending = Event()
    failures: list[BaseException] = []

    def now_ms() -> int:
        return time.time_ns() // 1_000_000

    def stop(number: int, _: object) -> None:
        # While the server runs it has handlers of its own, and raises what it got once more when it has ended.
        if ending.is_set():
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)
        ending.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    store = LiveStore(of_api, now_ms, around.ahead)
    notifier = Notifier(notify, now_ms, store=store) if notify.alertmanager or notify.webhook else None

    async def tell() -> None:
        try:
            if notifier is not None:
                await notifier.run()
        except Exception as error:
            failures.append(error)
            serving.should_exit = True

    app = create_app(of_api, now_ms, pauses.shown, store, [tell])
    others = [around.collecting.registry, around.metrics.registry]
    app.state.registry.register(Others(others if notifier is None else [*others, notifier.metrics.registry]))
    with listening(of_api) as (listener, address):
        serving = server(of_api, app, listener, tls)

        def step() -> None:
            try:
                run(settings, around, ending.is_set)
            except BaseException as error:  # told by the thread that waits for it
                failures.append(error)
            finally:
                serving.should_exit = True

        lanes = Thread(target=step, name="lanes")
        lanes.start()
        try:
            say(f"{address} over {settings.tables}")
            serving.run(sockets=[listener])
        finally:
            ending.set()
            lanes.join()
            if notifier is not None:
                notifier.close()
    gc.unfreeze()  # else libraries complain at the end that their objects are still there
    if failures:
        raise failures[0]
    say("stopped; everything that was read is in the tables")
