"""Clients that ask and never read, against a real `kardia serve`: they cost what is not sent to them, and nobody else.

Method: real sockets with small windows, each with a thousand requests in one go, from one address or from several, with
a token or without one; meanwhile somebody asks as everybody does. Then the bounds one by one.
"""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import httpx
import pytest

from api.access.connections import TAKEN_BYTES
from api.settings import ApiSettings
from tests.api.conftest import WAIT_S, Api, Clock, Pair, running
from tests.api.test_security import closed_by
from tests.api.test_serve import served
from tests.api.written import NOW_MS, Tables, health, member, progress, transition

TOKEN = "planted-token-" + "a" * 40
MEMBERS = "/api/v1/clusters/demo/groups/orders/members"
REQUESTS = 1_000
ANSWERED_S = 10.0
"""So soon a question is answered meanwhile, on a machine that does other things as well: `kubelet` gives up after
three times that."""


@contextmanager
def never_reading(
    url: str,
    connections: int,
    path: str,
    *,
    sources: Sequence[str] = ("127.0.0.1",),
    token: str = "",
    trusted: ssl.SSLContext | None = None,
) -> Iterator[list[socket.socket]]:
    """Connections that have asked a thousand times each and read nothing; `trusted`: by TLS."""
    host, port = url.rpartition("/")[2].split(":")
    authorization = f"Authorization: Bearer {token}\r\n" if token else ""
    asked = f"GET {path} HTTP/1.1\r\nHost: {host}\r\n{authorization}\r\n".encode() * REQUESTS
    with ExitStack() as stack:
        found = []
        for number in range(connections):
            one = stack.enter_context(socket.socket())
            one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
            one.bind((sources[number % len(sources)], 0))
            one.settimeout(WAIT_S)
            one.connect((host, int(port)))
            if trusted is not None:
                one = stack.enter_context(trusted.wrap_socket(one, server_hostname=host))
            one.setblocking(False)
            with suppress(BlockingIOError, ssl.SSLWantWriteError):
                one.send(asked)
            found.append(one)
        yield found


def slowest_s(
    url: str, paths: Sequence[str], times: int, headers: dict[str, str], trusted: ssl.SSLContext | None = None
) -> float:
    """How long the slowest answer took, each over a connection of its own."""
    slowest = 0.0
    for _ in range(times):
        for path in paths:
            began = time.monotonic()
            reply = httpx.get(f"{url}{path}", headers=headers, trust_env=False, timeout=60, verify=trusted or True)
            assert reply.status_code == 200, (path, reply.text)
            slowest = max(slowest, time.monotonic() - began)
    return slowest


def story(tables: Tables) -> None:
    tables.create()
    rows = [row for at in range(50) for row in (member("orders", f"m{at}"), health("orders", f"m{at}"))]
    tables.batch(0, transition("orders", 1, "Stable"), *rows, progress(NOW_MS))


@pytest.mark.slow
@pytest.mark.parametrize("given", ["nothing", "token", "addresses", "tls"])
def test_who_never_reads_takes_the_api_from_nobody(tables: Tables, tmp_path: Path, pair: Pair, given: str) -> None:
    story(tables)
    words, headers = ["--tables", str(tables.root), "--port", "0"], dict[str, str]()
    if given == "token":
        path = tmp_path / "tokens"
        path.write_text(f"{TOKEN}\n{TOKEN[::-1]}\n")
        words += ["--token-file", str(path)]
        headers = {"Authorization": f"Bearer {TOKEN[::-1]}"}
    trusted = None
    if given == "tls":
        words += pair.words
        trusted = pair.trusted
    sources = [f"127.0.0.{at}" for at in range(1, 9)] if given == "addresses" else ["127.0.0.1"]
    with served(*words) as (_, url):
        until = time.monotonic() + WAIT_S
        while httpx.get(f"{url}/readyz", trust_env=False, timeout=60, verify=trusted or True).status_code != 200:
            assert time.monotonic() < until
        token = TOKEN if given == "token" else ""
        with never_reading(url, 300, MEMBERS, sources=sources, token=token, trusted=trusted):
            assert slowest_s(url, ["/livez", MEMBERS], 10, headers, trusted) < ANSWERED_S


@pytest.mark.parametrize("by_tls", [False, True])
def test_who_never_reads_is_closed_and_who_reads_slowly_is_not(
    tables: Tables, pair: Pair, monkeypatch: pytest.MonkeyPatch, by_tls: bool
) -> None:
    story(tables)
    monkeypatch.setenv("KARDIA_SERVE_SEND_WITHIN_MS", "3000")
    words, trusted = (pair.words, pair.trusted) if by_tls else ((), None)
    with (
        served("--tables", str(tables.root), "--port", "0", *words) as (_, url),
        never_reading(url, 2, "/openapi.json", trusted=trusted) as (never, slow),
    ):
        slow.setblocking(True)
        slow.settimeout(WAIT_S)
        while not closed_by(url, trusted)["unread"]:  # the wait for an answer paces it
            read = 0
            while read < 2 * TAKEN_BYTES:
                read += len(slow.recv(TAKEN_BYTES))
        assert is_closed(never)
        assert slow.recv(1), "it is answered still"
        assert closed_by(url, trusted)["unread"] == 1


def is_closed(connection: socket.socket) -> bool:
    """Whether the other side has closed it, behind whatever it has sent."""
    connection.settimeout(1)
    try:
        while connection.recv(1 << 16):
            pass
    except TimeoutError:
        return False
    except (ConnectionResetError, ssl.SSLError):
        pass
    return True


def test_one_address_has_not_all_places(tables: Tables, monkeypatch: pytest.MonkeyPatch) -> None:
    story(tables)
    monkeypatch.setenv("KARDIA_SERVE_CONNECTIONS_MAX", "20")
    monkeypatch.setenv("KARDIA_SERVE_CONNECTIONS_OF_ADDRESS_MAX", "5")
    with served("--tables", str(tables.root), "--port", "0") as (_, url), ExitStack() as stack:
        host, port = url.removeprefix("http://").split(":")
        others = [stack.enter_context(_connected(host, int(port), "127.0.0.2")) for _ in range(3)]
        mine = [stack.enter_context(_connected(host, int(port), "127.0.0.3")) for _ in range(8)]
        assert httpx.get(f"{url}/livez", trust_env=False, timeout=WAIT_S).status_code == 200
        assert closed_by(url)["idle"] == 3
        assert [is_closed(one) for one in mine] == [True] * 3 + [False] * 5
        assert not any(is_closed(one) for one in others)


def test_who_never_says_hello_takes_no_place_of_others(
    tables: Tables, pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where TLS is spoken a connection that has not shaken hands is one as well: within the same bounds, and closed
    after the same time."""
    story(tables)
    monkeypatch.setenv("KARDIA_SERVE_CONNECTIONS_MAX", "20")
    monkeypatch.setenv("KARDIA_SERVE_CONNECTIONS_OF_ADDRESS_MAX", "10")
    monkeypatch.setenv("KARDIA_SERVE_REQUEST_WITHIN_MS", "3000")
    with served("--tables", str(tables.root), "--port", "0", *pair.words) as (_, url), ExitStack() as stack:
        host, port = url.rpartition("/")[2].split(":")
        silent = [stack.enter_context(_connected(host, int(port), "127.0.0.2")) for _ in range(40)]
        halfway = stack.enter_context(_connected(host, int(port), "127.0.0.3"))
        halfway.sendall(b"\x16\x03\x01\x02\x00\x01")  # how a hello begins
        assert slowest_s(url, ["/livez"], 1, {}, pair.trusted) < ANSWERED_S
        assert closed_by(url, pair.trusted)["idle"] == 30
        assert [is_closed(one) for one in silent[:30]] == [True] * 30
        while closed_by(url, pair.trusted)["no_request"] < 11:  # the wait for an answer paces it
            pass
        assert is_closed(halfway)


def _connected(host: str, port: int, source: str) -> socket.socket:
    return socket.create_connection((host, port), timeout=1, source_address=(source, 0))


def test_probes_are_answered_whatever_is_in_work(tables: Tables) -> None:
    story(tables)
    with running(ApiSettings(tables=tables.root, refresh_ms=20, requests_at_once_max=1), Clock()) as url:
        api = Api(url)
        api.wait_for_batch(0)
        with api.client.stream("GET", "/api/v1/changes") as following:
            assert following.status_code == 200
            assert api.problem(MEMBERS) == (503, "overloaded")
            for path in ("/livez", "/healthz"):
                assert api.client.get(path).text == "ok\n"
        api.client.close()
