"""A stop prints no trace: neither of the JVM nor of what this process runs for it."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from pyspark import accumulators

from spark_jobs.session import quieten


@pytest.fixture
def server() -> Iterator[accumulators.AccumulatorTCPServer]:
    """Spark's own server of accumulators, as a session starts it."""
    running = accumulators._start_update_server("secret", is_unix_domain_sock=False)
    assert isinstance(running, accumulators.AccumulatorTCPServer)
    yield running
    running.shutdown()
    running.server_close()


def torn_message(server: accumulators.AccumulatorTCPServer) -> None:
    """The JVM is killed within a message; the server is busy with it until it has noticed."""
    ended = threading.Event()
    shut = server.shutdown_request

    def shut_and_tell(request: Any) -> None:
        shut(request)
        ended.set()

    server.shutdown_request = shut_and_tell  # type: ignore[method-assign]
    host, port = server.server_address[:2]
    with socket.create_connection((str(host), port)) as connection:
        connection.sendall(b"secret" + b"\0")
    assert ended.wait(30)


def test_a_killed_jvm_makes_the_server_of_accumulators_print_a_trace(
    server: accumulators.AccumulatorTCPServer, capfd: pytest.CaptureFixture[str]
) -> None:
    torn_message(server)
    assert "Traceback" in capfd.readouterr().err


def test_after_a_stop_it_prints_none(
    server: accumulators.AccumulatorTCPServer, capfd: pytest.CaptureFixture[str]
) -> None:
    quieten(server)
    torn_message(server)
    assert capfd.readouterr().err == ""


def test_there_may_be_none() -> None:
    quieten(None)
