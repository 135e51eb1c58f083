"""`kardia live`: collector, lanes, tables, API and page in one process. Has the threads, the clock and the signals."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.options import PLACE, SeveralValues, problems
from cli.running import ending_event, sayer
from cli.shared import (
    Admin,
    AdminEveryS,
    AllowedHost,
    Broker,
    Cluster,
    ConsumerSessionMs,
    EndsEveryS,
    HidePersonal,
    Host,
    KafkaVersion,
    LogPattern,
    LogTimezone,
    ObservedBrokers,
    ObservedClientConfig,
    Offsets,
    OffsetsPartitions,
    Port,
    RequestLog,
    RotateWaitS,
    RunbooksUrl,
    SelfTest,
    ServeEveryoneWithoutAToken,
    ServerLog,
    ShareSessionMs,
    StreamsSessionMs,
    TlsKey,
    TokenFile,
    Webhook,
)

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
    request_log: RequestLog = None,
    server_log: ServerLog = None,
    bootstrap_server: ObservedBrokers = None,
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
    offsets: Offsets = None,
    admin: Admin = None,
    admin_every_s: AdminEveryS = None,
    ends_every_s: EndsEveryS = None,
    offsets_partitions: OffsetsPartitions = None,
    client_config: ObservedClientConfig = None,
    cluster: Cluster = None,
    broker: Broker = None,
    log_timezone: LogTimezone = None,
    log_pattern: LogPattern = None,
    rotate_wait_s: RotateWaitS = None,
    kafka_version: KafkaVersion = None,
    consumer_session_ms: ConsumerSessionMs = None,
    share_session_ms: ShareSessionMs = None,
    streams_session_ms: StreamsSessionMs = None,
    self_test: SelfTest = None,
    keep: Annotated[
        str | None,
        typer.Option("--keep", help="How long rows are kept. Default: health=7d,history=30d,rejected=7d; or forever."),
    ] = None,
    state: Annotated[
        Path | None,
        typer.Option("--state", help="Folder of what must survive a restart. Default: TABLES/_live.", **PLACE),
    ] = None,
    host: Host = None,
    port: Port = None,
    token_file: TokenFile = None,
    tls_certificate: Annotated[
        Path | None, typer.Option(help="Certificate and its chain (PEM): serve HTTPS.", **PLACE)
    ] = None,
    tls_key: TlsKey = None,
    allowed_host: AllowedHost = None,
    hide_personal: HidePersonal = None,
    serve_everyone_without_a_token: ServeEveryoneWithoutAToken = None,
    alertmanager: Annotated[
        list[str] | None, typer.Option(help="Address of an Alertmanager to tell; may be repeated.")
    ] = None,
    webhook: Webhook = None,
    kardia_url: Annotated[str | None, typer.Option(help="Address of this server, in front of links of alerts.")] = None,
    runbooks_url: RunbooksUrl = None,
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
    from ingest.clients import bounded_log
    from ingest.errors import IngestError
    from live.settings import LiveSettings
    from spark_jobs.errors import JobError
    from stores.locations import LocationError

    bounded_log.begin(logging.WARNING)

    say = sayer("live")

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
    import time
    from threading import Thread

    from api.app import create_app
    from api.http.gc_tuning import Pauses
    from api.notify.run import Notifier
    from cli.listening import listening, server, tls_of
    from ingest.assembly import SystemClock
    from ingest.metrics import Metrics
    from live.ahead import Ahead
    from live.metrics import LiveMetrics, Others
    from live.run import Around, run
    from live.view import LiveStore

    tls = tls_of(of_api)
    pauses = Pauses()
    pauses.begin()
    around = Around(SystemClock(), Ahead(), say, Metrics(), LiveMetrics())
    ending = ending_event()
    failures: list[BaseException] = []

    def now_ms() -> int:
        return time.time_ns() // 1_000_000

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
