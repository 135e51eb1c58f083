"""Connections and their bounds: who connects and says nothing, or asks and does not read, holds a place only until
somebody else needs it.

A server process may hold `connections_max` of them, `connections_of_address_max` of one address. One more closes the
one that has asked nothing for longest, then the one that for longest has not read its answer; if all are answered just
now, it is closed itself. Who has connected must send a whole request head within `request_within_ms`, and take what it
is sent: the next request of a connection is not looked at before the system has the answer to the last one, of which it
keeps about `SENT_BYTES`; who takes less than `TAKEN_BYTES` within `send_within_ms` is closed. So whoever never reads
costs one answer, and is no request in work. With TLS a connection has its place before it shakes hands, for which it
has `request_within_ms` as well: uvicorn would count it afterwards, and wait a minute for it. Open files are bounded by
the system, and a connection that cannot be accepted costs a line of the log each time, so the bound on files is raised
first. What is closed here is counted.

Extends a class of uvicorn (checked with 0.54): `connection_made`, `connection_lost`, `data_received`, `handle_events`,
`pause_writing`, `resume_writing`, `cycle`, `flow`, `client`.
"""

from __future__ import annotations

import asyncio
import resource
import ssl
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, Protocol

from uvicorn.protocols.http.h11_impl import H11Protocol

FILES_BESIDE = 512
"""Open files that a server needs beside its connections: tables that are read, the log, the listener."""

SENT_BYTES = 128 << 10
"""The system keeps about twice as much of what is sent and not taken, of each connection; left alone it takes up to
4 MB. At 100 ms from here to there and back it is 2.5 MB a second."""

TAKEN_BYTES = 64 << 10
"""Who takes that much of an answer in time goes on: 52 kbit/s, with `send_within_ms` as it is by default."""


class Placed(Protocol):
    """What has a place among `Connections`."""

    @property
    def address(self) -> str:
        """Where it comes from."""

    @property
    def is_asking(self) -> bool:
        """Whether a request of it is being answered."""

    @property
    def unread_since(self) -> float | None:
        """Since when something is sent that the other side does not take, by the clock of the loop."""

    def close_now(self) -> None:
        """Without a word: whoever says nothing may not read either."""


class Connections:
    """All connections of one server process, the one that was quiet longest first."""

    def __init__(
        self,
        most: int,
        most_of_address: int,
        request_within_ms: int,
        send_within_ms: int,
        closed: Callable[[str], None],
    ) -> None:
        """`closed` is told one of `api.metrics.requests.CLOSED` for each connection that is closed here."""
        self.most = most
        self.most_of_address = most_of_address
        self.request_within_s = request_within_ms / 1_000
        self.send_within_s = send_within_ms / 1_000
        self.closed = closed
        self._open: dict[Placed, None] = {}
        self._of_address: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self._open)

    def enter(self, connection: Placed) -> bool:
        """Give a new connection a place; False: there is none."""
        address = connection.address
        if self._of_address[address] >= self.most_of_address:
            free = self._give_up(one for one in self._open if one.address == address)
        else:
            free = len(self._open) < self.most or self._give_up(self._open)
        if not free:
            self.closed("refused")
            return False
        self._open[connection] = None
        self._of_address[address] += 1
        return True

    def _give_up(self, among: Iterable[Placed]) -> bool:
        """Close one of these that nobody misses; whether there was one."""
        asking = []
        for one in among:
            if not one.is_asking:
                self.drop(one, "idle")
                return True
            asking.append(one)
        unread = [one for one in asking if one.unread_since is not None]
        if not unread:
            return False
        self.drop(min(unread, key=lambda one: one.unread_since or 0.0), "unread")
        return True

    def drop(self, connection: Placed, why: str) -> None:
        """Close a connection, and count it."""
        self.leave(connection)
        self.closed(why)
        connection.close_now()

    def leave(self, connection: Placed) -> None:
        """Its place is free."""
        if connection in self._open:
            del self._open[connection]
            self._of_address[connection.address] -= 1
            if not self._of_address[connection.address]:
                del self._of_address[connection.address]

    def heard(self, connection: Placed) -> None:
        """It has said something: others were quiet for longer."""
        if connection in self._open:
            del self._open[connection]
            self._open[connection] = None

    def protocol(self, tls: ssl.SSLContext | None = None) -> Callable[..., asyncio.Protocol]:
        """What uvicorn makes for each connection; with `tls`, of which uvicorn itself knows nothing then."""

        def made(*given: Any, **named: Any) -> asyncio.Protocol:
            connection = Connection(self, *given, **named)
            return connection if tls is None else Greeting(self, connection, tls)

        return made


class Connection(H11Protocol):
    """One connection that has a place among `Connections`."""

    def __init__(self, among: Connections, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._among = among
        self._awaited: asyncio.TimerHandle | None = None
        self._sending: asyncio.TimerHandle | None = None
        self._unsent = 0
        self.unread_since: float | None = None
        """Since when something is sent that the other side does not take, by the clock of the loop."""

    @property
    def address(self) -> str:
        """Where it comes from."""
        return self.client[0] if self.client else ""

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
        # Whatever the system does not take at once stops this connection. Not 0: TLS would wait for less than that.
        transport.set_write_buffer_limits(high=1)
        self._awaited = self.loop.call_later(self._among.request_within_s, self._no_request)

    def data_received(self, data: bytes) -> None:
        """Something was said; a request head ends the wait for one."""
        self._among.heard(self)
        super().data_received(data)
        if self.cycle is not None and self._awaited is not None:
            self._awaited.cancel()
            self._awaited = None

    def handle_events(self) -> None:
        """The next request is looked at when the answer to the one before was taken."""
        if self.unread_since is not None and not self.is_asking:
            self.flow.pause_reading()
        else:
            super().handle_events()

    def pause_writing(self) -> None:
        """The other side does not take what it is sent, for a moment or for good."""
        super().pause_writing()
        self.unread_since = self.loop.time()
        self._look_again()

    def resume_writing(self) -> None:
        """It has taken all of it."""
        self.unread_since = None
        self._end(self._sending)
        super().resume_writing()
        if not self.is_asking and not self.transport.is_closing():
            self.flow.resume_reading()
            self.handle_events()

    def connection_lost(self, exc: Exception | None) -> None:
        """The place is free."""
        self._among.leave(self)
        self._end(self._awaited)
        self._end(self._sending)
        super().connection_lost(exc)

    def close_now(self) -> None:
        """Without a word: whoever says nothing may not read either."""
        self.transport.abort()

    def _no_request(self) -> None:
        self._awaited = None
        self._among.drop(self, "no_request")

    def _look_again(self) -> None:
        self._unsent = self.transport.get_write_buffer_size()
        self._sending = self.loop.call_later(self._among.send_within_s, self._not_taken)

    def _not_taken(self) -> None:
        if self._unsent - self.transport.get_write_buffer_size() < TAKEN_BYTES:
            self._among.drop(self, "unread")
        else:
            self._look_again()

    @staticmethod
    def _end(timer: asyncio.TimerHandle | None) -> None:
        if timer is not None:
            timer.cancel()


class Greeting(asyncio.Protocol):
    """A connection that has yet to shake hands. Then it is the one it was made for, and gives its place to it."""

    is_asking = False
    unread_since = None

    def __init__(self, among: Connections, connection: Connection, tls: ssl.SSLContext) -> None:
        self._among, self._connection, self._tls = among, connection, tls
        self._early: list[bytes] = []
        """What came with the last of the handshake, before anybody could ask for it."""
        self._is_over = False
        self.address = ""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A place, or the end."""
        assert isinstance(transport, asyncio.Transport)  # noqa: S101 - it is a socket that was accepted
        self._transport = transport
        self.address = str(transport.get_extra_info("peername")[0])
        if not self._among.enter(self):
            self.close_now()
            return
        loop = asyncio.get_running_loop()
        self._awaited = loop.call_later(self._among.request_within_s, self._among.drop, self, "no_request")
        self._greeting = loop.create_task(self._greet(loop))

    async def _greet(self, loop: asyncio.AbstractEventLoop) -> None:
        try:
            transport = await loop.start_tls(self._transport, self, self._tls, server_side=True)
        except OSError:  # it hung up, or does not speak TLS: nobody who would read what is wrong
            self.connection_lost(None)
            return
        finally:
            self._awaited.cancel()
        if self._is_over or transport is None:
            self.connection_lost(None)
            return
        self._among.leave(self)
        transport.set_protocol(self._connection)
        self._connection.connection_made(transport)
        for data in self._early:
            if not transport.is_closing():
                self._connection.data_received(data)

    def data_received(self, data: bytes) -> None:
        """Keep it for whom it is meant for."""
        self._early.append(data)

    def connection_lost(self, _exc: Exception | None) -> None:
        """The place is free."""
        self._is_over = True
        self._among.leave(self)

    def close_now(self) -> None:
        """Without a word."""
        self._is_over = True
        self._transport.abort()


def allow_files(connections_max: int) -> int:
    """Raise the bound on open files as far as needed and allowed; returns the connections that it leaves room for."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = connections_max + FILES_BESIDE
    if soft != resource.RLIM_INFINITY and soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return connections_max if soft == resource.RLIM_INFINITY else max(1, min(connections_max, soft - FILES_BESIDE))
