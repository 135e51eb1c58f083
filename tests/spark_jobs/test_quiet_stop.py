"""A stop prints no trace: neither of the JVM nor of what this process runs for it."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark import accumulators

from spark_jobs.spark.daemon import Worker, quiet
from spark_jobs.spark.session import quieten

ROOT = Path(__file__).resolve().parents[2]


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


BRIDGE = """
import logging, sys
from py4j import java_gateway
from spark_jobs.jvm.voice import Voice

if sys.argv[1] == "stopped":
    Voice().hush()
# As its `send_command` says it: in the name of the root logger, from its own file.
exec(compile("logging.error('Exception while sending command.')", java_gateway.__file__, "exec"))
logging.error("what we say")
"""


@pytest.mark.parametrize(("moment", "said"), [("running", True), ("stopped", False)])
def test_the_bridge_to_a_jvm_that_goes_is_heard_until_we_stop(moment: str, said: bool) -> None:
    done = subprocess.run([sys.executable, "-c", BRIDGE, moment], cwd=ROOT, capture_output=True, text=True, check=True)
    assert ("Exception while sending command" in done.stderr) == said
    assert "what we say" in done.stderr


def test_a_worker_that_nobody_reads_ends_without_a_trace_and_any_other_error_is_heard() -> None:
    def fails(error: Exception) -> Worker:
        def worker(_connection: socket.socket, _authenticated: bool) -> int:
            raise error

        return worker

    one, other = socket.socketpair()
    with one, other:
        assert quiet(fails(BrokenPipeError()))(one, True) == 1
        with pytest.raises(ConnectionResetError):
            quiet(fails(ConnectionResetError()))(one, True)


def test_there_may_be_none() -> None:
    quieten(None)
