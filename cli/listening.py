"""An application of the API on a socket of this machine: certificate, bounds of its connections, uvicorn.

Imported when a verb is called.
"""

from __future__ import annotations

import logging
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from ssl import SSLContext
from typing import TYPE_CHECKING

import uvicorn

from api.access.certificates import Certificate
from api.access.connections import SENT_BYTES, Connections, allow_files

if TYPE_CHECKING:
    from fastapi import FastAPI

    from api.settings import ApiSettings

BACKLOG = 128
"""Connections that wait to be accepted. When no file is left, asyncio complains once for each of them, each second."""


class AddressTakenError(OSError):
    """The address cannot be listened on."""


@contextmanager
def listening(settings: ApiSettings) -> Iterator[tuple[socket.socket, str]]:
    """(The socket of the settings, its address as people type it); closed at the end."""
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
        shown = f"[{settings.host}]" if ":" in settings.host else settings.host
        scheme = f"http{'s' * (settings.tls_certificate is not None)}"
        yield listener, f"{scheme}://{shown}:{listener.getsockname()[1]}/"


def server(
    settings: ApiSettings, app: FastAPI, listener: socket.socket, tls: SSLContext | None = None
) -> uvicorn.Server:
    """What serves an application on a socket: `run` it with the socket, and set `should_exit` to end it."""
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
    return uvicorn.Server(
        uvicorn.Config(
            app,
            http=connections.protocol(tls),  # type: ignore[arg-type]  # whatever makes a protocol
            ws="none",
            log_config=None,
            access_log=False,  # a URL holds ids of groups and members
            server_header=False,
            proxy_headers=False,  # nothing here asks where a request came from, so nobody needs to be believed
            date_header=True,
            backlog=BACKLOG,
            timeout_keep_alive=15,
            timeout_graceful_shutdown=10,
            # The longest line a URL may need; beyond it the connection is closed.
            h11_max_incomplete_event_size=settings.url_bytes_max + 8_192,
        )
    )


def tls_of(settings: ApiSettings) -> SSLContext | None:
    """TLS with the certificate of the settings; None for HTTP."""
    if settings.tls_certificate is None or settings.tls_key is None:
        return None
    return Certificate(settings.tls_certificate, settings.tls_key).context
