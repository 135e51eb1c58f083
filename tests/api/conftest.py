"""Fixtures of the API tests: table directories, a clock that stands still, a server on a socket of its own."""

from __future__ import annotations

import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest
import trustme
import uvicorn
from fastapi import FastAPI

from api.app import create_app
from api.settings import ApiSettings
from tests.api.written import NOW_MS, Tables

WAIT_S = 90.0
URL_AND_HEADERS_BYTES = 110_000


class Pair(NamedTuple):
    """A certificate for 127.0.0.1 with its key, and who vouches for it."""

    certificate: Path
    key: Path
    authority: Path

    @property
    def words(self) -> tuple[str, ...]:
        """Options of a server that shows it."""
        return ("--tls-certificate", str(self.certificate), "--tls-key", str(self.key))

    @property
    def trusted(self) -> ssl.SSLContext:
        """What a client believes it by."""
        return ssl.create_default_context(cafile=str(self.authority))


@pytest.fixture
def pair(tmp_path: Path) -> Pair:
    """Made for one test."""
    authority = trustme.CA()
    issued = authority.issue_cert("127.0.0.1")
    made = Pair(tmp_path / "server.crt", tmp_path / "server.key", tmp_path / "authority.crt")
    issued.cert_chain_pems[0].write_to_path(str(made.certificate))
    issued.private_key_pem.write_to_path(str(made.key))
    authority.cert_pem.write_to_path(str(made.authority))
    return made


class Clock:
    """A wall clock that the test moves."""

    def __init__(self, now_ms: int = NOW_MS) -> None:
        self.now_ms = now_ms

    def __call__(self) -> int:
        return self.now_ms


@contextmanager
def running(settings: ApiSettings, now_ms: Callable[[], int]) -> Iterator[str]:
    """The API over some tables; gives its URL."""
    with served(create_app(settings, now_ms)) as url:
        yield url


class Served(uvicorn.Server):
    """A server that leaves no socket open: those of a page that still follows would be closed in another test."""

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """What waits is cancelled after a second, as ever; then what is left is cut off."""
        await super().shutdown(sockets)
        for connection in list(self.server_state.connections):
            connection.transport.abort()


@contextmanager
def served(app: FastAPI) -> Iterator[str]:
    """An application in a thread of its own on a free port; gives its URL."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()  # from here on a client waits for the server instead of being refused
        config = uvicorn.Config(
            app,
            http="h11",
            ws="none",
            log_config=None,
            h11_max_incomplete_event_size=URL_AND_HEADERS_BYTES,
            timeout_graceful_shutdown=1,  # a page that is still open follows for ever
        )
        server = Served(config)
        thread = threading.Thread(target=server.run, args=([listener],))
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(WAIT_S)
            assert not thread.is_alive(), "the server did not stop"


class Api:
    """A client of a running server that knows how to wait for what the server has seen."""

    def __init__(self, url: str, **options: Any) -> None:
        self.url = url
        self.client = httpx.Client(base_url=url, timeout=WAIT_S, trust_env=False, **options)

    def get(self, path: str, **params: Any) -> Any:
        """JSON of a 200."""
        reply = self.client.get(path, params=params or None)
        assert reply.status_code == 200, reply.text
        return reply.json()

    def problem(self, path: str, **params: Any) -> tuple[int, str]:
        """Status and code of a problem."""
        reply = self.client.get(path, params=params or None)
        assert reply.headers["content-type"] == "application/problem+json", reply.text
        return reply.status_code, reply.json()["code"]

    def wait_for_batch(self, batch_id: int) -> None:
        """Until the server has folded a batch."""
        self.wait(lambda: self.client.get("/readyz").json()["freshness"]["batch_id"] >= batch_id, f"batch {batch_id}")

    def wait(self, reached: Callable[[], bool], what: str) -> None:
        """Until a condition holds; httpx blocks until the server answered, so this does not spin."""
        until = time.monotonic() + WAIT_S
        while not reached():
            assert time.monotonic() < until, f"the server never reached {what}"


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def tables(tmp_path: Path) -> Tables:
    return Tables(tmp_path / "tables")


Serve = Callable[..., Api]


@pytest.fixture
def serve(tables: Tables, clock: Clock) -> Iterator[Serve]:
    """Start a server over the test's tables; settings as keywords."""
    with ExitStack() as stack:

        def start(**settings: Any) -> Api:
            url = stack.enter_context(running(ApiSettings(tables=tables.root, refresh_ms=20, **settings), clock))
            api = Api(url)
            stack.callback(api.client.close)
            return api

        yield start
