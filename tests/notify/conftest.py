"""Parts of these tests: a receiver of webhooks, a real Alertmanager, a real `kardia notify`."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from tests.api.written import Tables

WAIT_S = 90.0
"""A generous bound for a loaded machine; what is waited for comes within a second on an idle one."""


class Received:
    """What arrived at a receiver, in order: (instant in epoch ms, content type, body)."""

    def __init__(self) -> None:
        self.messages: list[tuple[int, str, Any]] = []
        self.answers: list[int] = []
        """Status codes of the next answers; then 200."""
        self._arrived = threading.Condition()
        self.url = ""

    def take(self, content_type: str, body: bytes) -> int:
        """Keep a message, and say what to answer."""
        with self._arrived:
            status = self.answers.pop(0) if self.answers else 200
            self.messages.append((time.time_ns() // 1_000_000, content_type, json.loads(body)))
            self._arrived.notify_all()
            return status

    def wait(self, reached: Callable[[list[Any]], Any], what: str) -> Any:
        """Until a function of the bodies gives something."""
        with self._arrived:
            assert self._arrived.wait_for(lambda: reached([body for _, _, body in self.messages]), WAIT_S), (
                f"{what} never arrived: {self.messages}"
            )
            return reached([body for _, _, body in self.messages])


@pytest.fixture
def received() -> Iterator[Received]:
    found = Received()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            self.send_response(found.take(self.headers["content-type"], body))
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    found.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield found
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def free_port() -> int:
    """A port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def until(reached: Callable[[], Any], what: str) -> Any:
    """Until something is there; a refused connection is not there yet."""
    end = time.monotonic() + WAIT_S
    while time.monotonic() < end:
        try:
            if found := reached():
                return found
        except (httpx.HTTPError, ValueError):  # not up yet, or up and not ready
            pass
        time.sleep(0.02)
    raise AssertionError(f"{what} never came")


@contextmanager
def process(words: list[Any], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A program that ends with the test."""
    with log.open("ab") as output:
        running = subprocess.Popen([str(word) for word in words], stdout=output, stderr=subprocess.STDOUT)
        try:
            yield running
        finally:
            running.terminate()
            running.wait(WAIT_S)


@pytest.fixture
def alertmanager(received: Received, tmp_path: Path) -> Iterator[str]:
    """A real Alertmanager that tells `received`; gives its address."""
    config = {
        "route": {
            "receiver": "test",
            "group_by": ["alertname", "cluster", "group"],
            "group_wait": "0s",
            "group_interval": "1s",
            "repeat_interval": "1h",
        },
        "receivers": [{"name": "test", "webhook_configs": [{"url": received.url, "send_resolved": True}]}],
    }
    path, port = tmp_path / "alertmanager.yml", free_port()
    path.write_text(yaml.safe_dump(config))
    words = ["prometheus-alertmanager", f"--config.file={path}", f"--storage.path={tmp_path / 'alertmanager'}"]
    words += [f"--web.listen-address=127.0.0.1:{port}", "--cluster.listen-address="]
    url = f"http://127.0.0.1:{port}"
    with process(words, tmp_path / "alertmanager.log"):
        until(lambda: httpx.get(f"{url}/-/ready", trust_env=False, timeout=60).is_success, "Alertmanager")
        yield url


Notify = Callable[..., Any]


@pytest.fixture
def notify(tables: Tables, tmp_path: Path) -> Notify:
    """Run `kardia notify` over the tables of the test, as a context manager; options as words."""

    def run(*words: str) -> Any:
        command = [sys.executable, "-m", "cli.main", "notify", "--tables", tables.root]
        return process([*command, "--state", tmp_path / "state", *words], tmp_path / "notify.log")

    return run


@pytest.fixture
def tables(tmp_path: Path) -> Tables:
    found = Tables(tmp_path / "tables")
    found.create()
    return found
