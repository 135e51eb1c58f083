"""`kardia serve`: the tables as REST, `/metrics` and a page. Puts the real clock, socket and signals together."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.options import PLACE, TABLES_PLACE, Folder, problems, there
from cli.shared import (
    AllowedHost,
    ClientConfig,
    ConsumerSessionMs,
    HidePersonal,
    Host,
    KafkaVersion,
    Port,
    ServeEveryoneWithoutAToken,
    ShareSessionMs,
    StreamsSessionMs,
    TablesToRead,
    TlsKey,
    TokenFile,
)

if TYPE_CHECKING:
    from api.settings import ApiSettings
    from live.settings import FollowSettings

FOLLOWS = ("--follow-topic", "KARDIA_SERVE_FOLLOW_TOPIC")
"""The option, and its name in the environment: looked for here, so that nothing is loaded where it is not given."""


def follows(words: Iterable[str], names: Iterable[str]) -> bool:
    """Whether a topic is to be followed, by words of the command line and names of the environment."""
    return any(word.partition("=")[0] == FOLLOWS[0] for word in words) or FOLLOWS[1] in map(str.upper, names)


def serve(
    tables: TablesToRead,
    host: Host = None,
    port: Port = None,
    cluster: Annotated[str | None, typer.Option(help="Show this cluster only.")] = None,
    token_file: TokenFile = None,
    tls_certificate: Annotated[
        Path | None,
        typer.Option(
            help="Certificate and its chain (PEM): serve HTTPS, TLS 1.2 or newer; followed when renewed.", **PLACE
        ),
    ] = None,
    tls_key: TlsKey = None,
    allowed_host: AllowedHost = None,
    hide_personal: HidePersonal = None,
    lag_names: Annotated[
        bool | None,
        typer.Option("--lag-names", help="Series of lag under the names of kafka_exporter and KMinion as well."),
    ] = None,
    serve_everyone_without_a_token: ServeEveryoneWithoutAToken = None,
    follow_topic: Annotated[
        str | None,
        typer.Option(
            "--follow-topic", help="Topic of events that the job reads: answer from it, ahead of the tables (as well)."
        ),
    ] = None,
    bootstrap_server: Annotated[
        str | None, typer.Option("--bootstrap-server", help="Brokers of that topic: HOST:PORT,…")
    ] = None,
    checkpoint: Annotated[
        Folder | None,
        typer.Option(help="Folder of the job's checkpoint; only read, for --follow-topic.", **TABLES_PLACE),
    ] = None,
    client_config: ClientConfig = None,
    kafka_version: KafkaVersion = None,
    consumer_session_ms: ConsumerSessionMs = None,
    share_session_ms: ShareSessionMs = None,
    streams_session_ms: StreamsSessionMs = None,
) -> None:
    """Serve the tables as REST, /metrics and a page.

    With --follow-topic answers come from the job's topic, ahead of what the job has written; needs Java for a moment.
    """
    import logging

    from pydantic import ValidationError
    from rich.console import Console

    from api.access.certificates import CertificateError
    from api.access.tokens import TokenFileError
    from api.settings import ApiSettings
    from cli.listening import AddressTakenError
    from ingest.clients import bounded_log
    from stores.locations import LocationError

    bounded_log.begin(logging.WARNING)
    given = {
        "tables": tables,
        "host": host,
        "port": port,
        "cluster": cluster,
        "token_file": token_file,
        "tls_certificate": tls_certificate,
        "tls_key": tls_key,
        "allowed_hosts": tuple(allowed_host) if allowed_host else None,
        "hide_personal": hide_personal,
        "lag_names": lag_names,
        "serve_everyone_without_a_token": serve_everyone_without_a_token,
    }
    of_follower = {
        "follow_topic": follow_topic,
        "bootstrap_server": bootstrap_server,
        "checkpoint": checkpoint,
        "client_config": client_config,
        "kafka_version": kafka_version,
        "consumer_session_ms": consumer_session_ms,
        "share_session_ms": share_session_ms,
        "streams_session_ms": streams_session_ms,
    }
    try:
        # What is not given on the command line may come from KARDIA_SERVE_...
        settings = ApiSettings(**_given(given))
        follow = _follow_settings(_given(of_follower))
        if follow is None:
            _run(settings)
        else:
            _run_ahead(settings, follow)
    except ValidationError as error:
        Console(stderr=True).print(
            "\n".join(f"kardia serve: {problem}" for problem in problems(error)),
            markup=False,
            soft_wrap=True,
        )
        raise typer.Exit(2) from None
    except (TokenFileError, AddressTakenError, CertificateError, LocationError, RefusedFollowing) as error:
        Console(stderr=True).print(f"kardia serve: {error}", markup=False, soft_wrap=True)
        raise typer.Exit(2) from None


class RefusedFollowing(Exception):  # noqa: N818  as it is said
    """Why the topic cannot be followed, in one sentence."""


def _given(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _follow_settings(given: dict[str, Any]) -> FollowSettings | None:
    """What a follower is told; None: nothing is followed."""
    import os

    if "follow_topic" not in given and not follows((), os.environ):
        if given:
            name = "--" + next(iter(given)).replace("_", "-")
            raise RefusedFollowing(
                f"{name} is given without --follow-topic (command line). Expected: both, or neither: without a topic "
                "answers come from the tables alone. Next: name the topic, or leave the option out."
            )
        return None
    from cli.asking.left_out import BY_READERS
    from cli.extras import lacking

    if sentence := lacking("spark", "--follow-topic", BY_READERS):
        raise RefusedFollowing(sentence)
    from live.settings import FollowSettings

    return FollowSettings(**given)


def _run(settings: ApiSettings) -> None:
    import time

    from api.app import create_app
    from api.http.gc_tuning import Pauses
    from cli.listening import listening, server, tls_of

    tls = tls_of(settings)
    there(settings.tables)
    pauses = Pauses()
    pauses.begin()
    app = create_app(settings, lambda: time.time_ns() // 1_000_000, pauses.shown)
    with listening(settings) as (listener, address):
        serving = server(settings, app, listener, tls)
        typer.echo(f"kardia serve: {address} over {settings.tables}")
        serving.run(sockets=[listener])


def _run_ahead(settings: ApiSettings, follow: FollowSettings) -> None:
    """The follower in a thread of its own, the API in this one. The follower ends with it, whatever it is doing."""
    import gc
    import time
    from threading import Thread

    from api.app import create_app
    from api.http.gc_tuning import Pauses
    from cli.listening import listening, server, tls_of
    from cli.running import ending_event, sayer
    from ingest.assembly import SystemClock
    from ingest.errors import IngestError
    from live.followed import Followed
    from live.followed_store import FollowedStore
    from live.follower import Around, Follower
    from live.metrics import FollowMetrics, Others
    from spark_jobs.errors import JobError

    tls = tls_of(settings)
    there(settings.tables)
    pauses, ending = Pauses(), ending_event()
    pauses.begin()

    def now_ms() -> int:
        return time.time_ns() // 1_000_000

    around = Around(SystemClock(), Followed(), sayer("serve"), FollowMetrics(), ending.is_set, ending.wait)
    follower = Follower(follow, settings.tables, settings.cluster, around)
    try:
        follower.check()
    except (JobError, IngestError) as error:
        raise RefusedFollowing(str(error)) from error
    app = create_app(settings, now_ms, pauses.shown, FollowedStore(settings, now_ms, around.followed))
    app.state.registry.register(Others([around.metrics.registry]))
    with listening(settings) as (listener, address):
        serving = server(settings, app, listener, tls)
        following = Thread(target=follower.run, name="follower", daemon=True)
        following.start()
        try:
            typer.echo(f"kardia serve: {address} over {settings.tables}")
            serving.run(sockets=[listener])
        finally:
            ending.set()
            following.join()
    gc.unfreeze()  # else libraries complain at the end that their objects are still there
