"""Connections and their bounds: who connects and says nothing holds a place only until somebody else needs it.

A server process may hold `connections_max` of them. One more closes the one that has asked nothing for longest; if all
are being answered, the new one is closed at once. Who has connected must send a whole request head within
`request_within_ms`. Open files are bounded by the system, and a connection that cannot be accepted costs a line of the
log each time, so the bound on files is raised first. What is closed here is counted.

Extends a class of uvicorn (checked with 0.54): `connection_made`, `connection_lost`, `data_received`, `cycle`.
"""

from __future__ import annotations

import asyncio
import resource
from collections.abc import Callable
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

FILES_BESIDE = 512
"""Open files that a server needs beside its connections: tables that are read, the log, the listener."""


class Connections:
    """All connections of one server process, the one that was quiet longest first."""

    def __init__(self, most: int, request_within_ms: int, closed: Callable[[str], None]) -> None:
        """`closed` is told one of `api.metrics.requests.CLOSED` for each connection that is closed here."""
        self.most = most
        self.request_within_s = request_within_ms / 1_000
        self.closed = closed
        self._open: dict[Connection, None] = {}

    def __len__(self) -> int:
        return len(self._open)

    def enter(self, connection: Connection) -> bool:
        """Give a new connection a place; False: there is none."""
        if len(self._open) >= self.most:
            idle = next((one for one in self._open if not one.is_asking), None)
            if idle is None:
                self.closed("refused")
                return False
            self.leave(idle)
            idle.close_now()
            self.closed("idle")
        self._open[connection] = None
        return True

    def leave(self, connection: Connection) -> None:
        """Its place is free."""
        self._open.pop(connection, None)

    def heard(self, connection: Connection) -> None:
        """It has said something: others were quiet for longer."""
        if connection in self._open:
            del self._open[connection]
            self._open[connection] = None

    def protocol(self) -> Callable[..., asyncio.Protocol]:
        """What uvicorn makes for each connection."""

        def made(*given: Any, **named: Any) -> Connection:
            return Connection(self, *given, **named)

        return made


class Connection(H11Protocol):
    """One connection that has a place among `Connections`."""

    def __init__(self, among: Connections, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._among = among
        self._awaited: asyncio.TimerHandle | None = None

    @property
    def is_asking(self) -> bool:
        """Whether a request of it is being answered."""
        return self.cycle is not None and not self.cycle.response_complete

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """A place, or the end."""
        super().connection_made(transport)
        if not self._among.enter(self):
            self.close_now()
            return
        self._awaited = self.loop.call_later(self._among.request_within_s, self._no_request)

    def data_received(self, data: bytes) -> None:
        """Something was said; a request head ends the wait for one."""
        self._among.heard(self)
        super().data_received(data)
        if self.cycle is not None and self._awaited is not None:
            self._awaited.cancel()
            self._awaited = None

    def connection_lost(self, exc: Exception | None) -> None:
        """The place is free."""
        self._among.leave(self)
        if self._awaited is not None:
            self._awaited.cancel()
        super().connection_lost(exc)

    def close_now(self) -> None:
        """Without a word: whoever says nothing may not read either."""
        self.transport.abort()

    def _no_request(self) -> None:
        self._awaited = None
        self._among.leave(self)
        self._among.closed("no_request")
        self.close_now()


def allow_files(connections_max: int) -> int:
    """Raise the bound on open files as far as needed and allowed; returns the connections that it leaves room for."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = connections_max + FILES_BESIDE
    if soft != resource.RLIM_INFINITY and soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return connections_max if soft == resource.RLIM_INFINITY else max(1, min(connections_max, soft - FILES_BESIDE))
