"""What `docs/security.md` says of the API and no other test shows. Routes come from the OpenAPI document."""

from __future__ import annotations

import re
import socket
import ssl
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from api.access.connections import FILES_BESIDE
from api.access.token_file import RETRY_MS, TokenFile
from api.access.tokens import TokenFileError, Tokens
from api.settings import ApiSettings
from tests.api.conftest import WAIT_S, Api, Clock, Serve, running
from tests.api.recorded import every_answer, write
from tests.api.test_serve import served
from tests.api.written import NOW_MS, Tables, health, member, progress, transition
from tests.support.stories import Story

GROUP = "/api/v1/clusters/demo/groups/orders"
TOKEN, WRONG = "planted-token-" + "a" * 40, "planted-wrong-" + "b" * 40
CLAIMS = {
    "Forwarded": "for=192.0.2.1;host=evil.example;proto=https",
    "X-Forwarded-For": "192.0.2.1",
    "X-Forwarded-Host": "evil.example",
    "X-Forwarded-Proto": "https",
    "X-Forwarded-Prefix": "/evil",
    "X-Original-URL": "/openapi.json",
    "X-Rewrite-URL": "/openapi.json",
    "X-HTTP-Method-Override": "DELETE",
}
"""Headers by which a proxy would speak; anybody can send them."""


def story(tables: Tables) -> None:
    tables.create()
    tables.batch(0, transition("orders", 1, "Stable"), member("orders", "a"), health("orders", "a"), progress(NOW_MS))


def paths(api: Api) -> list[str]:
    """Every route with its ids filled in."""
    known = {"cluster": "demo", "group": "orders", "consumer": "orders", "member": "a"}
    return [re.sub(r"{(\w+)}", lambda found: known[found[1]], path) for path in api.get("/openapi.json")["paths"]]


def test_a_token_is_one_until_it_expires(tables: Tables, tmp_path: Path) -> None:
    story(tables)
    path, clock = tmp_path / "tokens", Clock()
    path.write_text(f"{TOKEN} cluster=demo expires=2025-10-09T08:53:20.001Z\n")  # NOW_MS and 1 ms
    with running(ApiSettings(tables=tables.root, refresh_ms=20, token_file=path), clock) as url:
        api = Api(url, headers={"Authorization": f"Bearer {TOKEN}"})
        api.wait_for_batch(0)
        assert api.client.get(GROUP).status_code == 200
        clock.now_ms = NOW_MS + 1
        assert api.problem(GROUP) == (401, "unauthenticated")
        api.client.close()


def test_an_expiry_that_cannot_be_read_is_refused_and_not_ignored(tmp_path: Path) -> None:
    path = tmp_path / "tokens"
    for words in ("expires=", "expires=tomorrow", "expires=2027-01-01T00:00:00", "expires=1 expires=2", "until=1"):
        path.write_text(f"{TOKEN} {words}\n")
        with pytest.raises(TokenFileError, match="expires=INSTANT") as caught:
            Tokens.read(path)
        assert TOKEN not in str(caught.value)


CHANGES = re.compile(r'^kardia_token_file_changes_total{outcome="(\w+)"} (\S+)$', re.M)


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def test_a_token_is_revoked_and_given_by_its_file_without_a_restart(tables: Tables, tmp_path: Path) -> None:
    story(tables)
    path, next_path = tmp_path / "tokens", tmp_path / "next"
    path.write_text(f"{TOKEN}\n")
    with running(ApiSettings(tables=tables.root, refresh_ms=20, token_file=path), Clock()) as url:
        api = Api(url)

        def statuses(asked: str = GROUP) -> list[int]:
            return [api.client.get(asked, headers=bearer(token)).status_code for token in (TOKEN, WRONG)]

        api.wait_for_batch(0)
        assert statuses() == [200, 401]
        path.write_text(f"{TOKEN}\n{WRONG}\n")
        assert statuses() == [200, 200]
        next_path.write_text(f"{WRONG} cluster=none\n")
        next_path.replace(path)
        assert statuses() == [401, 404], "the scope is the file's, too"
        path.write_text(f"{WRONG}\n")
        assert statuses() == [401, 200]
        assert dict(CHANGES.findall(api.client.get("/metrics", headers=bearer(WRONG)).text))["taken"] == "3.0"
        api.client.close()


def test_a_token_file_that_cannot_be_used_leaves_the_tokens_before_it_and_is_counted(
    tables: Tables, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    story(tables)
    path = tmp_path / "tokens"
    path.write_text(f"{TOKEN}\n")
    with running(ApiSettings(tables=tables.root, refresh_ms=20, token_file=path), Clock()) as url:
        api = Api(url, headers=bearer(TOKEN))
        api.wait_for_batch(0)
        for content in (f"{WRONG}\nshort-secret\n", "", f"{WRONG} cluster=\n", None):
            if content is None:
                path.unlink()
            else:
                path.write_text(content)
            assert [api.client.get(GROUP).status_code for _ in range(3)] == [200] * 3, content
            assert api.client.get(GROUP, headers=bearer(WRONG)).status_code == 401, content
        text = api.client.get("/metrics").text
        assert dict(CHANGES.findall(text)) == {"taken": "0.0", "kept": "4.0"}
        path.write_text(f"{WRONG}\n")
        assert api.client.get(GROUP).status_code == 401
        api.client.close()
    told = [record.getMessage() for record in caplog.records if record.name == "kardia.api.token_file"]
    assert [one.split(":")[0].split(" ")[0] for one in told] == ["token_file.kept"] * 4 + ["token_file.taken"]
    assert not any(secret in one for one in told for secret in (TOKEN, WRONG, "short-secret"))


def test_a_token_file_that_the_disk_would_not_give_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, outcomes = tmp_path / "tokens", list[str]()
    path.write_text(f"{TOKEN}\n")
    tokens = TokenFile(path, outcomes.append)

    def accepts(now_ms: int) -> bool:
        return tokens.accept(f"Bearer {TOKEN}".encode(), now_ms) is not None

    path.write_text(f"{WRONG}\n")
    with monkeypatch.context() as disk:
        disk.setattr(Path, "read_bytes", _fails)
        assert [accepts(at_ms) for at_ms in (0, 1, RETRY_MS, RETRY_MS + 1)] == [True] * 4
    assert outcomes == ["kept"]
    assert accepts(2 * RETRY_MS - 1)
    assert not accepts(2 * RETRY_MS)
    assert outcomes == ["kept", "taken"]


def _fails(*_: object, **__: object) -> str:
    raise OSError(5, "Input/output error")


@pytest.mark.parametrize("why", ["revoked", "expired", "narrowed"])
def test_a_stream_ends_when_its_token_is_revoked(tables: Tables, tmp_path: Path, why: str) -> None:
    story(tables)
    path, clock = tmp_path / "tokens", Clock()
    path.write_text(f"{TOKEN} expires={NOW_MS + 1}\n{WRONG}\n")
    with running(ApiSettings(tables=tables.root, refresh_ms=20, token_file=path), clock) as url:
        api = Api(url, headers=bearer(TOKEN))
        api.wait_for_batch(0)
        with api.client.stream("GET", "/api/v1/changes") as stream:
            lines = stream.iter_lines()
            assert any(line.startswith("data:") for line in lines)
            if why == "expired":
                clock.now_ms += 1
            else:
                path.write_text(f"{WRONG}\n" + (f"{TOKEN} cluster=other\n" if why == "narrowed" else ""))
            tables.batch(1, progress(NOW_MS + 1))
            # It ends by itself; nothing but comments comes before that.
            assert not [line for line in lines if line.startswith("data:")]
        api.client.close()


def test_cursors_of_before_are_refused_once_the_file_has_changed_and_the_question_can_be_asked_anew(
    tables: Tables, tmp_path: Path
) -> None:
    tables.create()
    tables.batch(0, *(transition(f"g{at}", 1, "Stable") for at in range(3)), progress(NOW_MS))
    path, asked = tmp_path / "tokens", "/api/v1/clusters/demo/groups"
    path.write_text(f"{TOKEN}\n")
    settings = ApiSettings(tables=tables.root, refresh_ms=20, token_file=path)
    with running(settings, Clock()) as url:
        api = Api(url, headers=bearer(TOKEN))
        api.wait_for_batch(0)
        old = api.get(asked, limit=1)["next_cursor"]
        path.write_text(f"{TOKEN}\n{WRONG}\n")
        assert api.problem(asked, limit=1, cursor=old) == (400, "bad_cursor")
        new = api.get(asked, limit=1)["next_cursor"]
        with running(settings, Clock()) as other_url:  # a server that was started with the new file
            other = Api(other_url, headers=bearer(TOKEN))
            other.wait_for_batch(0)
            assert len(other.get(asked, limit=1, cursor=new)["groups"]) == 1
            other.client.close()
        api.client.close()


def test_one_token_cannot_take_all_places(tables: Tables, tmp_path: Path) -> None:
    story(tables)
    path = tmp_path / "tokens"
    path.write_text(f"{TOKEN}\n{WRONG}\n")
    settings = ApiSettings(tables=tables.root, refresh_ms=20, token_file=path, requests_of_token_max=2)
    mine, other = ({"Authorization": f"Bearer {token}"} for token in (TOKEN, WRONG))
    with running(settings, Clock()) as url, ExitStack() as following:
        api = Api(url, headers=mine)
        api.wait_for_batch(0)
        for _ in range(2):
            stream = following.enter_context(httpx.Client(base_url=url, headers=mine, trust_env=False, timeout=WAIT_S))
            reply = following.enter_context(stream.stream("GET", "/api/v1/changes"))
            assert reply.status_code == 200
        refused = api.client.get(GROUP)
        assert (refused.status_code, refused.json()["code"]) == (429, "too_many_requests")
        assert refused.headers["retry-after"] == "1"
        assert refused.json()["limit"] == "requests_of_token_max"
        assert api.client.get(GROUP, headers=other).status_code == 200
        following.close()
        api.wait(lambda: api.client.get(GROUP).status_code == 200, "a free place")
        api.client.close()


def test_news_tell_a_token_of_its_own_clusters_alone(tables: Tables, tmp_path: Path) -> None:
    story(tables)
    tables.batch(1, progress(NOW_MS - 3_600_000, cluster_id="other"))
    path = tmp_path / "tokens"
    path.write_text(f"{TOKEN} cluster=demo\n{WRONG}\n")
    with running(ApiSettings(tables=tables.root, refresh_ms=20, token_file=path), Clock()) as url:
        seen = []
        for token in (TOKEN, WRONG):
            api = Api(url, headers={"Authorization": f"Bearer {token}"})
            api.wait_for_batch(1)
            with api.client.stream("GET", "/api/v1/changes") as stream:
                news = next(line for line in stream.iter_lines() if line.startswith("data:"))
            seen.append(f'"complete_as_of_ms":{NOW_MS - 3_600_000}' in news)
            api.client.close()
    assert seen == [False, True]


def test_what_a_proxy_would_say_is_believed_from_nobody(tables: Tables, serve: Serve) -> None:
    story(tables)
    api = serve()
    api.wait_for_batch(0)
    for path in paths(api):
        if path == "/metrics":
            continue  # it counts the requests for itself
        plain, claimed = api.client.get(path), api.client.get(path, headers=CLAIMS)
        assert (plain.status_code, plain.content) == (claimed.status_code, claimed.content), path
        assert "evil" not in str(claimed.headers)
        assert "location" not in claimed.headers


def test_no_documentation_page_calls_elsewhere(tables: Tables, serve: Serve) -> None:
    tables.create()
    api = serve()
    for path in ("/docs", "/redoc", "/docs/oauth2-redirect"):
        assert api.problem(path) == (404, "not_found")


def test_no_question_changes_a_table_or_leaves_a_file(tmp_path: Path) -> None:
    tables = Tables(tmp_path / "tables")
    span = write(tables, Story("c04_mpi-4.1.2"))

    def files() -> dict[str, tuple[int, int]]:
        found = (path for path in tmp_path.rglob("*") if path.is_file())
        return {str(path): (path.stat().st_size, path.stat().st_mtime_ns) for path in found}

    before = files()
    with running(ApiSettings(tables=tables.root, refresh_ms=20), Clock(span.to_ms)) as url:
        api = Api(url)
        api.wait_for_batch(0)
        assert sum(reply.status_code == 200 for _, reply in every_answer(api, span)) > 80
        api.client.close()
    assert files() == before


def test_tokens_are_in_no_answer_no_log_and_no_setting_that_is_shown(tables: Tables, tmp_path: Path) -> None:
    story(tables)
    path = tmp_path / "tokens"
    path.write_text(f"{TOKEN}\n")
    told = [repr(ApiSettings(tables=tables.root, token_file=path)), repr(Tokens.read(path))]
    with served("--tables", str(tables.root), "--port", "0", "--token-file", str(path)) as (process, url):
        for token in (TOKEN, WRONG):
            api = Api(url, headers={"Authorization": f"Bearer {token}"})
            for asked in (*(paths(api) if token == TOKEN else ["/version"]), f"/nowhere?token={token}", f"/{token}"):
                reply = api.client.get(asked)
                told += [reply.text, str(reply.headers)]
            api.client.close()
        process.terminate()
        told += process.communicate(timeout=WAIT_S)
    for text in told:
        for token in (TOKEN, WRONG):
            assert token not in text


CLOSED = re.compile(r'^kardia_http_connections_closed_total{why="(\w+)"} (\S+)$', re.M)


def closed_by(url: str, trusted: ssl.SSLContext | None = None) -> dict[str, float]:
    """Connections that the server closed, by why."""
    text = httpx.get(f"{url}/metrics", trust_env=False, timeout=WAIT_S, verify=trusted or True).text
    return {why: float(count) for why, count in CLOSED.findall(text)}


def test_who_connects_and_says_nothing_takes_nobody_s_place(tables: Tables, monkeypatch: pytest.MonkeyPatch) -> None:
    """More silent connections than there are places: everybody who asks is answered, and they are closed one by one."""
    story(tables)
    monkeypatch.setenv("KARDIA_SERVE_CONNECTIONS_MAX", "20")
    with served("--tables", str(tables.root), "--port", "0") as (_, url), ExitStack() as stack:
        place = (urlsplit(url).hostname or "", urlsplit(url).port or 0)
        for _ in range(60):
            stack.enter_context(socket.create_connection(place, timeout=WAIT_S))
            assert httpx.get(f"{url}/livez", trust_env=False, timeout=WAIT_S).status_code == 200
        closed = closed_by(url)
        assert closed["idle"] >= 40
        assert closed["refused"] == 0


def test_a_connection_must_ask_something_in_time(tables: Tables, monkeypatch: pytest.MonkeyPatch) -> None:
    """A head that never ends is no request, however often a byte of it comes."""
    story(tables)
    monkeypatch.setenv("KARDIA_SERVE_REQUEST_WITHIN_MS", "500")
    with served("--tables", str(tables.root), "--port", "0") as (_, url):
        place = (urlsplit(url).hostname or "", urlsplit(url).port or 0)
        with socket.create_connection(place, timeout=WAIT_S) as silent, socket.create_connection(place) as slow:
            slow.settimeout(0.05)
            ended = False
            while not ended:  # the wait for an answer paces it
                try:
                    slow.sendall(b"G")
                    ended = slow.recv(1) == b""
                except TimeoutError:
                    continue
                except OSError:
                    ended = True
            assert ended_by_peer(silent)
        with socket.create_connection(place, timeout=WAIT_S) as asking:
            asking.sendall(b"GET /livez HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n")
            assert asking.recv(12) == b"HTTP/1.1 200"
        assert closed_by(url)["no_request"] == 2


def ended_by_peer(connection: socket.socket) -> bool:
    """Whether the other side closes it."""
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True


def test_connections_that_cannot_be_accepted_flood_no_log(tables: Tables, tmp_path: Path) -> None:
    """The system gives the server few files. It says so, stays reachable, and its log stays small."""
    story(tables)
    command = [sys.executable, "-m", "cli.main", "serve", "--tables", str(tables.root), "--port", "0"]
    limit = f'ulimit -n {FILES_BESIDE + 30}; exec "$@"'
    log = tmp_path / "log"
    with log.open("wb") as told, ExitStack() as stack:
        server = subprocess.Popen(["/bin/sh", "-c", limit, "sh", *command], stdout=subprocess.PIPE, stderr=told)
        stack.callback(server.wait, WAIT_S)
        stack.callback(server.terminate)
        assert server.stdout is not None
        stack.callback(server.stdout.close)
        url = server.stdout.readline().decode().split()[2].rstrip("/")
        place = (urlsplit(url).hostname or "", urlsplit(url).port or 0)
        for _ in range(FILES_BESIDE + 200):
            stack.enter_context(socket.create_connection(place, timeout=WAIT_S))
        assert httpx.get(f"{url}/livez", trust_env=False, timeout=WAIT_S).status_code == 200
    text = log.read_text()
    assert "this system allows 30 connections" in text
    assert len(text) < 20_000


def test_the_application_can_call_nobody() -> None:
    """It has no HTTP client: whoever wants to send something must first import one, and this test."""
    code = "import sys, api.app; print(sorted({'httpx', 'requests', 'aiohttp', 'api.notify'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=WAIT_S, check=True)
    assert done.stdout.strip() == "[]"


def test_every_test_that_the_checklist_names_exists() -> None:
    root = Path(__file__).parents[2]
    named = re.findall(r"`([\w/]+\.py)::(\w+)`", (root / "docs" / "security.md").read_text())
    assert len(named) > 40
    for file, name in named:
        assert f"def {name}(" in (root / "tests" / file).read_text(), (file, name)
