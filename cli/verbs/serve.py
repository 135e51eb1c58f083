"""`kardia serve`: the tables as REST, `/metrics` and a page. Puts the real clock, socket and signals together."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.options import PLACE, problems, there
from cli.shared import (
    AllowedHost,
    HidePersonal,
    Host,
    Port,
    ServeEveryoneWithoutAToken,
    TablesToRead,
    TlsKey,
    TokenFile,
)

if TYPE_CHECKING:
    from api.settings import ApiSettings


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
) -> None:
    """Serve the tables as REST, /metrics and a page."""
    import logging

    from pydantic import ValidationError
    from rich.console import Console

    from api.access.certificates import CertificateError
    from api.access.tokens import TokenFileError
    from api.settings import ApiSettings
    from cli.listening import AddressTakenError
    from ingest import bounded_log
    from kardia.locations import LocationError

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
    try:
        # What is not given on the command line may come from KARDIA_SERVE_...
        settings = ApiSettings(**{name: value for name, value in given.items() if value is not None})  # type: ignore[arg-type]
        _run(settings)
    except ValidationError as error:
        Console(stderr=True).print(
            "\n".join(f"kardia serve: {problem}" for problem in problems(error)),
            markup=False,
            soft_wrap=True,
        )
        raise typer.Exit(2) from None
    except (TokenFileError, AddressTakenError, CertificateError, LocationError) as error:
        Console(stderr=True).print(f"kardia serve: {error}", markup=False, soft_wrap=True)
        raise typer.Exit(2) from None


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
