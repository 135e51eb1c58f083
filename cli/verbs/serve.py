"""`kardia serve`: the tables as REST, `/metrics` and a page. Puts the real clock, socket and signals together."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.options import PLACE, TABLES_PLACE, Folder, problems, there

if TYPE_CHECKING:
    from ssl import SSLContext

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


class AddressTakenError(OSError):
    """The address cannot be listened on."""


def _tls(settings: ApiSettings) -> SSLContext | None:
    """TLS with the certificate of the settings; None for HTTP."""
    from api.access.certificates import Certificate

    if settings.tls_certificate is None or settings.tls_key is None:
        return None
    return Certificate(settings.tls_certificate, settings.tls_key).context


BACKLOG = 128
"""Connections that wait to be accepted. When no file is left, asyncio complains once for each of them, each second."""


def _run(settings: ApiSettings) -> None:
    import logging
    import socket
    import time

    import uvicorn

    from api.access.connections import SENT_BYTES, Connections, allow_files
    from api.app import create_app
    from api.http.gc_tuning import Pauses

    tls = _tls(settings)
    there(settings.tables)
    pauses = Pauses()
    pauses.begin()
    app = create_app(settings, lambda: time.time_ns() // 1_000_000, pauses.shown)
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    # The protocol is named, because asyncio switches Nagle's delay off only where it is: 40 ms per answer otherwise.
    with socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SENT_BYTES)  # each connection has it from here
        try:
            listener.bind((settings.host, settings.port))
        except OSError as error:
            raise AddressTakenError(
                f"{settings.host}:{settings.port} cannot be listened on ({error.strerror}); expected a free port of "
                "this machine; stop what uses it, choose another --port, or --port 0 for any free one."
            ) from None
        room = allow_files(settings.connections_max)
        connections = Connections(
            room,
            settings.connections_of_address_max,
            settings.request_within_ms,
            settings.send_within_ms,
            app.state.requests.connection_closed,
        )
        if room < settings.connections_max:
            logging.getLogger("kardia.api.serve").warning(
                "open files: this system allows %d connections beside them; expected %d; raise the limit (ulimit -n).",
                room,
                settings.connections_max,
            )
        listener.listen(BACKLOG)
        shown = f"[{settings.host}]" if ":" in settings.host else settings.host
        typer.echo(
            f"kardia serve: http{'s' * (tls is not None)}://{shown}:{listener.getsockname()[1]}/ over {settings.tables}"
        )
        config = uvicorn.Config(
            app,
            http=connections.protocol(),  # type: ignore[arg-type]  # whatever makes a protocol
            ws="none",
            log_config=None,
            access_log=False,  # a URL holds ids of groups and members
            server_header=False,
            proxy_headers=False,  # nothing here asks where a request came from, so nobody needs to be believed
            date_header=True,
            backlog=BACKLOG,
            timeout_keep_alive=15,
            timeout_graceful_shutdown=10,
            ssl_context_factory=None if tls is None else lambda _config, _default: tls,
            # The longest line a URL may need; beyond it the connection is closed.
            h11_max_incomplete_event_size=settings.url_bytes_max + 8_192,
        )
        uvicorn.Server(config).run(sockets=[listener])
