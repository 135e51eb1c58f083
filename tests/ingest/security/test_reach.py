"""Back-off: a broker that takes nobody is called seldom, by every kind of client; and settings that no client takes.

Method: listeners that close each connection, as a broker that is going down, or show a certificate nobody trusts.
"""

from __future__ import annotations

import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer

from ingest.errors import AwayError, SettingsError
from ingest.security.config import ClientConfig, Password
from ingest.security.reach import connect, made
from ingest.security.rendering import GENTLE, librdkafka
from tests.support.secured import authority, issued

SECONDS = 5.0
MOST = 6
"""Connections of one client in that time: one a second where TLS fails, fewer where the connection is closed. Without
`GENTLE` some ninety are counted."""


class Closing:
    """A listener that closes each connection, or first shows a certificate that nobody trusts."""

    def __init__(self, store: Path | None = None) -> None:
        self._tls = None
        if store is not None:
            self._tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self._tls.load_cert_chain(store)
        self._socket = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.address = f"127.0.0.1:{self._socket.getsockname()[1]}"
        self.calls = 0
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            self.calls += 1
            with connection, suppress(OSError):
                if self._tls is not None:
                    self._tls.wrap_socket(connection, server_side=True).close()

    def close(self) -> None:
        """End."""
        self._socket.close()


@pytest.fixture(params=["closes", "untrusted"])
def closing(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Closing]:
    pair = issued("broker", authority())
    store = tmp_path / "store.pem"
    store.write_text(pair.key_pem + pair.certificate_pem)
    one = Closing(store if request.param == "untrusted" else None)
    yield one
    one.close()


@pytest.mark.parametrize("kind", [Consumer, Producer])
def test_a_client_that_is_never_answered_calls_seldom(kind: Callable[[dict[str, Any]], Any], closing: Closing) -> None:
    more = {"group.id": "g"} if kind is Consumer else {}
    tls = {"security.protocol": "SSL", "ssl.ca.pem": authority("Another").certificate_pem}
    client = kind({**GENTLE, **tls, "bootstrap.servers": closing.address, "log_level": 0, **more})
    end_s = time.monotonic() + SECONDS
    while time.monotonic() < end_s:
        client.poll(0.1)
    assert 1 <= closing.calls <= MOST


def test_the_first_connection_looks_a_few_times_and_gives_up_with_a_sentence() -> None:
    closing = Closing()
    with pytest.raises(AwayError) as away:
        connect(closing.address, GENTLE, SECONDS)
    looks = 3  # after 1 s, 2 s, and at the end, two connections each
    closing.close()
    assert closing.calls <= MOST + 2 * looks
    assert "Expected: an answer within 5 s" in str(away.value)


def test_what_the_library_does_not_take_is_named_without_its_value() -> None:
    with pytest.raises(SettingsError, match=r"the setting fetch\.nosuch is not taken") as refused:
        made(Producer, {"fetch.nosuch": "top-secret"})
    assert "top-secret" not in str(refused.value)
    with pytest.raises(SettingsError, match=r"the setting socket\.timeout\.ms is not taken") as refused:
        made(Producer, {"socket.timeout.ms": "top-secret"})
    assert "top-secret" not in str(refused.value)


def test_gssapi_is_for_libraries_that_have_it() -> None:
    config = ClientConfig(None, "SASL_PLAINTEXT", "GSSAPI", Password("u", "p"))
    with pytest.raises(SettingsError, match="without GSSAPI"):
        connect("127.0.0.1:1", librdkafka(config), 1)
