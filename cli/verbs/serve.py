"""`kardia serve`: the tables as REST, `/metrics` and a page. Puts the real clock, socket and signals together."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.options import PLACE, TABLES_PLACE, Folder, problems, there

if TYPE_CHECKING:
    from api.settings import ApiSettings


def serve(
    tables: Annotated[Folder, typer.Option(help="Folder with the Delta tables, here or s3://.", **TABLES_PLACE)],
    host: Annotated[str | None, typer.Option(help="Address to listen on. Default: 127.0.0.1.")] = None,
    port: Annotated[
        int | None,
        typer.Option(min=0, max=65_535, help="Port to listen on; 0 takes a free one and prints it. Default: 8765."),
    ] = None,
    cluster: Annotated[str | None, typer.Option(help="Show this cluster only.")] = None,
    token_file: Annotated[
        Path | None,
        typer.Option(
            help="Bearer tokens, one per line, for cluster=NAME or all, until expires=TIME; a must beyond loopback.",
            **PLACE,
        ),
    ] = None,
    tls_certificate: Annotated[
        Path | None,
        typer.Option(
            help="Certificate and its chain (PEM): serve HTTPS, TLS 1.2 or newer; followed when renewed.", **PLACE
        ),
    ] = None,
    tls_key: Annotated[Path | None, typer.Option(help="Key of the certificate (PEM).", **PLACE)] = None,
    allowed_host: Annotated[
        list[str] | None, typer.Option(help="Host name to answer to beside the address; may be repeated.")
    ] = None,
    hide_personal: Annotated[
        bool | None,
        typer.Option("--hide-personal", help="Answer without clients' addresses and their own words, everywhere."),
    ] = None,
    lag_names: Annotated[
        bool | None,
        typer.Option("--lag-names", help="Series of lag under the names of kafka_exporter and KMinion as well."),
    ] = None,
    serve_everyone_without_a_token: Annotated[
        bool | None,
        typer.Option("--serve-everyone-without-a-token", help="Listen beyond loopback although anybody may read."),
    ] = None,
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
