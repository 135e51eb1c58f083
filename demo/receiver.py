"""A webhook receiver on the loopback address, in the place of somebody's pager or chat.

It takes what a real Alertmanager and `kardia notify` post, stamps it with the instant of its arrival, and keeps it: in
memory, and one JSON line each in a file. It checks and decides nothing, and answers 200 to all that is JSON.
"""

from __future__ import annotations

import json
import threading
import time
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from demo.ports import HOST

BODY_MAX = 1_000_000
"""Bytes of one message. Alertmanager's are a few kB; whoever sends more is somebody else."""

KEPT_MAX = 10_000
"""Messages kept; a story of minutes makes some tens."""

FROM_ALERTMANAGER = "/alertmanager"
FROM_NOTIFIER = "/notifier"
"""Paths, so that it is known which road a message came."""


@dataclass(frozen=True)
class Message:
    """One POST. `at_ms` is when it had been read, epoch milliseconds."""

    at_ms: int
    path: str
    body: Any


class Receiver:
    """A server in a thread of its own; a context manager. What arrives is appended to `log`."""

    def __init__(self, log: Path) -> None:
        self.log = log
        self._lock = threading.Lock()
        self._messages: list[Message] = []
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                self.send_response(receiver._take(self.path, self._body()))
                self.send_header("content-length", "0")
                self.end_headers()

            def _body(self) -> bytes | None:
                length = self.headers.get("content-length", "")
                left = int(length) if length.isdecimal() else 0
                if left <= BODY_MAX:
                    return self.rfile.read(left)
                # Read to its end all the same, or the sender never hears the answer.
                while left > 0 and (piece := self.rfile.read(min(left, BODY_MAX))):
                    left -= len(piece)
                return None

            def log_message(self, *_: Any) -> None:
                """Say nothing: the terminal belongs to the story."""

        self._server = ThreadingHTTPServer((HOST, 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, name="receiver", daemon=True)

    def __enter__(self) -> Receiver:
        self.log.parent.mkdir(parents=True, exist_ok=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @property
    def url(self) -> str:
        """Address, without a path."""
        return f"http://{HOST}:{self._server.server_port}"

    @property
    def messages(self) -> list[Message]:
        """Everything that has arrived, in order."""
        with self._lock:
            return list(self._messages)

    def _take(self, path: str, body: bytes | None) -> int:
        """Keep a message; the status to answer."""
        at_ms = time.time_ns() // 1_000_000
        try:
            said = json.loads(body or b"")
        except ValueError:
            return 400
        with self._lock:
            if len(self._messages) >= KEPT_MAX:
                return 507
            self._messages.append(Message(at_ms, path, said))
            with self.log.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"at_ms": at_ms, "path": path, "body": said}) + "\n")
        return 200
