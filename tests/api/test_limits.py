"""Bounds at, below and above; who may ask; what a refusal looks like. The sweeps are made from the OpenAPI document."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from pydantic import ValidationError
from starlette.datastructures import QueryParams

from api.access.tokens import TokenFileError, Tokens
from api.errors import LIMITS, VALUE_SHOWN_MAX
from api.http.routing import ApiRequest
from api.past.cursor import CURSOR_CHARS_MAX
from api.settings import OPEN_FLAG, ApiSettings
from tests.api.conftest import Api, Clock, running
from tests.api.written import NOW_MS, Tables, health, member, progress, rebalance, transition

GROUP = "/api/v1/clusters/demo/groups/orders"
HISTORIES = ("rebalances", "history", "evictions")
TOKEN, NEXT_TOKEN = "first-" + "a" * 40, "second-" + "b" * 40
URL_MAX = 2_000
LIMITED = re.compile(r'kardia_http_limited_total{limit="(\w+)"} (\S+)')


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Tables:
    made = Tables(tmp_path_factory.mktemp("limits") / "tables")
    made.create()
    rows = []
    for number in range(25):
        at = NOW_MS - 100_000 + number * 10
        rows += [
            transition("orders", number + 1, "Stable", at_ms=at),
            rebalance("orders", at, generation_before=number),
            member("orders", f"m{number:02}", joined_at_ms=at - 5, ended_at_ms=at, end_cause="session_expired"),
            member("orders", f"n{number:02}"),
            health("orders", f"n{number:02}"),
            transition(f"group-{number:02}", 1, "Stable"),
        ]
    made.batch(0, *rows, progress(NOW_MS))
    return made


@pytest.fixture(scope="module")
def api(tables: Tables) -> Iterator[Api]:
    with running(ApiSettings(tables=tables.root, refresh_ms=20, url_bytes_max=URL_MAX), Clock()) as url:
        found = Api(url)
        found.wait_for_batch(0)
        yield found
        found.client.close()


def operations(api: Api) -> list[tuple[str, dict[str, Any]]]:
    """Path with its ids filled in, and its parameters, of every route."""
    return [
        (
            path.replace("{cluster}", "demo")
            .replace("{group}", "orders")
            .replace("{member}", "n00")
            .replace("{consumer}", "orders"),
            {one["name"]: one for one in item["get"].get("parameters", ()) if one["in"] == "query"},
        )
        for path, item in api.get("/openapi.json")["paths"].items()
    ]


def test_unknown_and_repeated_parameters_are_refused_on_every_route(api: Api) -> None:
    for path, parameters in operations(api):
        assert api.problem(path, surprise="1") == (422, "parameter_refused"), path
        for name in (name for name, one in parameters.items() if one["schema"].get("type") != "array"):
            reply = api.client.get(f"{path}?{name}=1&{name}=1")
            assert reply.status_code == 422, (path, name)


def test_every_route_reads_the_parameters_that_it_is_described_with(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    read: set[str] = set()

    class Noted(QueryParams):
        def get(self, key: Any, default: Any = None) -> Any:
            read.add(key)
            return super().get(key, default)

        def getlist(self, key: Any) -> list[str]:
            read.add(key)
            return super().getlist(key)

    monkeypatch.setattr(ApiRequest, "query_params", property(lambda request: Noted(request.scope["query_string"])))
    for path, parameters in operations(api):
        read.clear()
        assert api.client.get(path).status_code == 200, path
        assert read == set(parameters), path


def test_the_ids_in_a_path_are_described(api: Api) -> None:
    for path, item in api.get("/openapi.json")["paths"].items():
        described = {one["name"] for one in item["get"].get("parameters", ()) if one["in"] == "path"}
        assert described == set(re.findall(r"{(\w+)}", path)), path


def test_a_limit_is_taken_from_one_to_its_maximum(api: Api) -> None:
    for path, parameters in operations(api):
        if "limit" not in parameters:
            continue
        for good in ("1", "999", "1000"):
            assert api.client.get(path, params={"limit": good}).status_code == 200, (path, good)
        for bad in ("0", "-1", "1001", "1000000000", "1e2", "", " 1", "٣", "9" * 400):
            assert api.problem(path, limit=bad) == (422, "parameter_refused"), (path, bad)


def test_instants_and_ranges_are_bounded(api: Api) -> None:
    year_ms = 366 * 86_400_000
    for name in HISTORIES:
        path = f"{GROUP}/{name}"
        for good in (
            {"from": 0, "to": year_ms},
            {"from": 5, "to": 5},
            {"to": 253_402_300_799_999},
            {"from": "2025-10-09T00:00:00Z"},
        ):
            api.get(path, **good)
        bad: list[dict[str, Any]] = [
            {"from": 0, "to": year_ms + 1},
            {"from": 6, "to": 5},
            {"from": -1},
            {"to": 253_402_300_800_000},
            {"to": "9" * 16},
            {"from": "2025-10-09T00:00:00"},
            {"from": "2025-13-09T00:00:00Z"},
            {"from": "yesterday"},
            {"from": ""},
            {"order": "up"},
        ]
        for params in bad:
            assert api.problem(path, **params) == (422, "parameter_refused"), (name, params)
    assert api.problem(f"{GROUP}/evictions", cause="bored") == (422, "parameter_refused")
    assert api.problem(f"{GROUP}/history", entity="planet") == (422, "parameter_refused")


def test_a_refused_value_comes_back_cut_and_escaped(api: Api) -> None:
    detail = api.client.get(f"{GROUP}/history", params={"from": "<b>\x1b\u202e" + "y" * 500}).json()["detail"]
    assert detail.isascii()
    assert "\\x1b\\u202e" in detail
    assert detail.count("y") <= VALUE_SHOWN_MAX + 5


@pytest.mark.parametrize("order", ["newest", "oldest"])
@pytest.mark.parametrize("name", HISTORIES)
def test_pages_together_are_the_whole_while_the_table_grows(tables: Tables, name: str, order: str) -> None:
    with running(ApiSettings(tables=tables.root, refresh_ms=20), Clock()) as url:
        api = Api(url)
        api.wait_for_batch(0)
        key = "transitions" if name == "history" else name
        batch = api.get("/readyz")["freshness"]["batch_id"] + 1
        whole = api.get(f"{GROUP}/{name}", order=order, limit=1000)[key]
        pages, cursor = [], None
        while True:
            found = api.get(f"{GROUP}/{name}", order=order, limit=7, **({"cursor": cursor} if cursor else {}))
            pages += found[key]
            cursor = found["next_cursor"]
            if cursor is None:
                break
            if len(pages) == 7:
                at = NOW_MS - 100_000 + 35 if order == "newest" else NOW_MS
                tables.batch(
                    batch,
                    transition("orders", 1_000 + batch, "Dead", at_ms=at),
                    rebalance("orders", at, generation_before=1_000 + batch),
                    member("orders", f"late{batch}", joined_at_ms=at - 5, ended_at_ms=at, end_cause="fenced"),
                    progress(NOW_MS),
                )
                tables.compact({"history": "transitions", "evictions": "members"}.get(name, name))
                api.wait_for_batch(batch)
        api.client.close()
    assert pages == whole


def test_lists_are_paged_too(api: Api) -> None:
    for path, key in (("/api/v1/clusters/demo/groups", "groups"), (f"{GROUP}/members", "members")):
        whole = api.get(path, limit=1000)[key]
        pages, cursor = [], None
        while True:
            found = api.get(path, limit=6, **({"cursor": cursor} if cursor else {}))
            assert len(found[key]) <= 6
            pages += found[key]
            cursor = found["next_cursor"]
            if cursor is None:
                break
        assert pages == whole
        assert len(whole) >= 25


def test_a_cursor_serves_its_own_question_only(api: Api) -> None:
    cursor = api.get(f"{GROUP}/history", limit=5)["next_cursor"]
    assert len(cursor) < CURSOR_CHARS_MAX
    api.get(f"{GROUP}/history", limit=3, cursor=cursor)
    for path, params in (
        (f"{GROUP}/rebalances", {}),
        (f"{GROUP}/history", {"order": "oldest"}),
        (f"{GROUP}/history", {"entity": "group"}),
        (f"{GROUP}/history", {"from": 1}),
        ("/api/v1/clusters/demo/groups/group-01/history", {}),
        (f"{GROUP}/members", {}),
    ):
        assert api.problem(path, cursor=cursor, **params) == (400, "bad_cursor"), path
    for at in range(0, len(cursor), 3):
        changed = cursor[:at] + ("A" if cursor[at] != "A" else "B") + cursor[at + 1 :]
        assert api.problem(f"{GROUP}/history", cursor=changed)[0] == 400, at
    for text in ("", "AAAA", "!", "x" * (URL_MAX // 2), "é"):
        assert api.problem(f"{GROUP}/history", cursor=text) == (400, "bad_cursor")


def test_only_get_and_head_exist_and_no_body_is_read(api: Api) -> None:
    for path, _ in operations(api):
        head = api.client.head(path)
        assert (head.status_code, head.content) == (200, b""), path
        for method in ("POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND"):
            reply = api.client.request(method, path)
            assert (reply.status_code, reply.json()["code"]) == (405, "method_refused"), (method, path)
            assert reply.headers["allow"] == "GET, HEAD"
        assert api.client.request("GET", path, content=b"x").json()["code"] == "body_refused", path


def test_a_url_is_taken_up_to_its_bound(api: Api) -> None:
    for length, status in ((URL_MAX - 1, 422), (URL_MAX, 422), (URL_MAX + 1, 414)):
        head = "/readyz?x="
        assert api.client.get(head + "y" * (length - len(head) + 1)).status_code == status, length


def test_a_header_without_end_closes_the_connection_and_hurts_nobody(api: Api) -> None:
    place = urlsplit(api.url)
    with socket.create_connection((place.hostname or "", place.port or 0), timeout=60) as connection:
        connection.sendall(b"GET /livez HTTP/1.1\r\nHost: 127.0.0.1\r\nX: ")
        with pytest.raises(OSError, match=r"."):  # noqa: PT012  the peer closes while we send
            for _ in range(2_000):
                connection.sendall(b"x" * 10_000)
                api.client.get("/livez").raise_for_status()


def test_answers_carry_the_headers_of_data(api: Api) -> None:
    for path, _ in operations(api):
        headers = api.client.get(path).headers
        assert headers["x-content-type-options"] == "nosniff", path
        assert headers["cache-control"] == "no-store", path
        assert headers["content-security-policy"].startswith("default-src 'none'"), path
        assert "access-control-allow-origin" not in headers, path
    page = api.client.get("/").headers["content-security-policy"]
    assert "unsafe" not in page
    assert "script-src 'self'" in page


def test_a_foreign_host_name_is_refused_on_loopback(api: Api) -> None:
    for host in (
        "evil.example",
        "127.0.0.1.evil.example",
        "",
        "localhost.evil:80",
        "[::1]evil.example",
        "127.0.0.1:80.evil",
        "[::1",
        "localhost:x",
    ):
        assert api.client.get("/version", headers={"Host": host}).status_code == 421, host
    for host in ("localhost:1", "127.0.0.1", "LOCALHOST", "[::1]", "[::1]:80"):
        assert api.client.get("/version", headers={"Host": host}).status_code == 200, host


def test_too_many_at_once_are_turned_away_and_the_rest_is_served(tables: Tables) -> None:
    with running(
        ApiSettings(tables=tables.root, refresh_ms=20, requests_at_once_max=1, reads_waiting_max=0), Clock()
    ) as url:
        api = Api(url)
        api.wait_for_batch(0)
        import asyncio

        async def rush() -> list[httpx.Response]:
            async with httpx.AsyncClient(base_url=url, trust_env=False) as client:
                return await asyncio.gather(*(client.get(f"{GROUP}/history") for _ in range(40)))

        replies = asyncio.run(rush())
        api.client.close()
    assert {reply.status_code for reply in replies} == {200, 503}
    refused = next(reply for reply in replies if reply.status_code == 503)
    assert refused.json()["code"] == "overloaded"
    assert {reply.json()["limit"] for reply in replies if reply.status_code == 503} <= {
        "requests_at_once_max",
        "reads_waiting_max",
    }
    assert refused.headers["retry-after"] == "1"


def test_who_meets_a_bound_is_told_its_setting_and_is_counted(tables: Tables, tmp_path: Path) -> None:
    bounds = {"url_bytes_max": 2_000, "followers_max": 0, "rows_read_max": 1_000, "range_max_ms": 10}
    many = Tables(tmp_path / "many")
    many.create()
    many.batch(
        0, transition("orders", 1, "Stable"), *(rebalance("orders", at) for at in range(1_001)), progress(NOW_MS)
    )
    with running(ApiSettings(tables=many.root, refresh_ms=20, **bounds), Clock()) as url:  # type: ignore[arg-type]
        api = Api(url)
        api.wait_for_batch(0)
        met = (
            ("url_bytes_max", 414, "/livez?x=" + "y" * 2_000),
            ("followers_max", 503, "/api/v1/changes"),
            ("rows_read_max", 422, f"{GROUP}/rebalances"),
            ("page_size_max", 422, f"{GROUP}/members?limit=1001"),
            ("range_max_ms", 422, f"{GROUP}/history?from=0&to=11"),
        )
        for limit, status, asked in met:
            reply = api.client.get(asked)
            assert (reply.status_code, reply.json()["limit"]) == (status, limit), asked
        for asked in (f"{GROUP}/members?limit=0", f"{GROUP}/members?limit=x", f"{GROUP}x", "/api/v1/clusters?limit=1"):
            assert "limit" not in api.client.get(asked).json(), asked
        text = api.client.get("/metrics").text
        api.client.close()
    counted = {name: float(count) for name, count in LIMITED.findall(text)}
    assert counted == dict.fromkeys(LIMITS, 0.0) | {limit: 1.0 for limit, _, _ in met}
    assert set(LIMITS) <= set(ApiSettings.model_fields), "a limit is the name of a setting"


@pytest.fixture
def token_file(tmp_path: Path) -> Path:
    path = tmp_path / "tokens"
    path.write_text(f"# rotation\n{TOKEN}\n\nsha256:{sha256(NEXT_TOKEN.encode()).hexdigest()}\n")
    return path


def test_without_a_token_nothing_is_said_on_any_route(tables: Tables, token_file: Path) -> None:
    open_paths = {"/livez", "/healthz", "/readyz"}
    with running(ApiSettings(tables=tables.root, refresh_ms=20, token_file=token_file), Clock()) as url:
        for token in (TOKEN, NEXT_TOKEN):
            api = Api(url, headers={"Authorization": f"Bearer {token}"})
            api.wait_for_batch(0)
            paths = [path for path, _ in operations(api)]
            for path in paths:
                assert api.client.get(path).status_code == 200, path
            api.client.close()
        bare = Api(url)
        texts = set()
        for path in [*paths, "/openapi.json", f"{GROUP}x", "/nowhere", "/api/v1/clusters/none"]:
            for given in (None, "Bearer", "Bearer " + TOKEN[:-1], f"Basic {TOKEN}", "Bearer " + "x" * 5_000):
                reply = bare.client.get(path, headers={"Authorization": given} if given else {})
                if path in open_paths:
                    assert reply.status_code == 200
                    continue
                assert reply.status_code == 401, (path, given)
                assert reply.headers["www-authenticate"].startswith("Bearer")
                texts.add(reply.json()["detail"])
        assert len(texts) == 1, "a refusal tells what exists"
        assert bare.client.get("/").status_code == 200
        bare.client.close()


def test_token_files_that_cannot_be_used_name_the_line_and_not_its_content(tmp_path: Path) -> None:
    path = tmp_path / "tokens"
    for content in ("short-secret\n", "", "# nothing\n", "sha256:abc\n", f"{TOKEN}\nshort-secret\n"):
        path.write_text(content)
        with pytest.raises(TokenFileError) as caught:
            Tokens.read(path)
        assert "short-secret" not in str(caught.value)
        assert "openssl rand -hex 32" in str(caught.value)
    with pytest.raises(TokenFileError, match="cannot be read"):
        Tokens.read(tmp_path / "absent")
    path.write_text(f"{TOKEN}\n")
    assert TOKEN not in repr(Tokens.read(path))


def test_a_token_for_some_clusters_finds_no_other_and_cannot_tell_it_from_none(tables: Tables, tmp_path: Path) -> None:
    path = tmp_path / "scoped"
    path.write_text(f"{TOKEN} cluster=demo cluster=~YSBi\n{NEXT_TOKEN} cluster=none\n")
    with running(ApiSettings(tables=tables.root, refresh_ms=20, token_file=path), Clock()) as url:
        mine = Api(url, headers={"Authorization": f"Bearer {TOKEN}"})
        other = Api(url, headers={"Authorization": f"Bearer {NEXT_TOKEN}"})
        mine.wait_for_batch(0)
        for of, clusters in ((mine, ["demo"]), (other, [])):
            assert [one["cluster_id"] for one in of.get("/api/v1/clusters")["clusters"]] == clusters
            assert of.get("/v3/kafka")["clusters"] == clusters
            assert of.problem("/metrics") == (403, "scope_too_narrow")
        for asked, _ in operations(mine):
            if "/demo" not in asked:
                continue
            assert mine.client.get(asked).status_code == 200, asked
            # The cluster is there, and not theirs; or theirs, and not there.
            not_theirs = other.client.get(asked)
            not_there = other.client.get(asked.replace("/demo", "/none"))
            assert not_theirs.status_code == not_there.status_code == 404, asked
            told = [re.sub(r'"request_id":"[^"]*"', "", reply.text) for reply in (not_theirs, not_there)]
            assert told[0].replace("demo", "none") == told[1], asked
        mine.client.close()
        other.client.close()


def test_a_scope_that_cannot_be_read_is_refused_and_not_widened(tmp_path: Path) -> None:
    path = tmp_path / "tokens"
    for words in ("clusters=a", "cluster=", "demo", "cluster=a b", "cluster=~!"):
        path.write_text(f"{TOKEN} {words}\n")
        with pytest.raises(TokenFileError, match="expected nothing, or cluster=NAME") as caught:
            Tokens.read(path)
        assert TOKEN not in str(caught.value)
    path.write_text(f"{TOKEN} cluster=a\n{TOKEN} cluster=b\n")
    found = Tokens.read(path).accept(f"Bearer {TOKEN}".encode(), NOW_MS)
    assert found is not None
    assert (found.allows("a"), found.allows("b"), found.allows("c")) == (True, True, False)


def rights_in(path: Path, *shown: str) -> list[set[str]]:
    """Of each token the clusters among a, b and c that it may ask about, now and after the end of the rights."""
    known = Tokens.read(path)
    scopes = [known.accept(f"Bearer {one}".encode(), at) for one in shown for at in (NOW_MS, NOW_MS + 2)]
    return [set() if scope is None else {name for name in "abc" if scope.allows(name)} for scope in scopes]


def test_a_file_cut_anywhere_gives_nobody_more_than_the_whole_file(tmp_path: Path) -> None:
    """It may be read while it is written, and a disk may be full behind any byte."""
    path = tmp_path / "tokens"
    digest = f"sha256:{sha256(NEXT_TOKEN.encode()).hexdigest()}"
    whole = f"{TOKEN} cluster=a cluster=b\n# whose\n{digest} cluster=c expires={NOW_MS + 1}\r\n".encode()
    path.write_bytes(whole)
    meant = rights_in(path, TOKEN, NEXT_TOKEN)
    assert meant == [{"a", "b"}, {"a", "b"}, {"c"}, set()]
    used = []
    for cut in range(len(whole)):
        path.write_bytes(whole[:cut])
        try:
            found = rights_in(path, TOKEN, NEXT_TOKEN)
        except TokenFileError:
            continue
        used.append(cut)
        assert all(some <= full for some, full in zip(found, meant, strict=True)), cut
    assert used == [at + 1 for at, byte in enumerate(whole[:-1]) if byte == ord("\n")]


@pytest.mark.parametrize("separator", ["\x0b", "\x0c", "\x1c", "\x85", "\u2028", "\r"])
def test_only_a_newline_ends_a_line(tmp_path: Path, separator: str) -> None:
    """What an editor shows as one line must not be read as two, of which the first has all rights."""
    path = tmp_path / "tokens"
    path.write_bytes(f"{TOKEN}{separator}cluster=a\n".encode())
    with pytest.raises(TokenFileError, match="line 1"):
        Tokens.read(path)


def test_binding_beyond_loopback_needs_a_token_or_the_ugly_flag(tmp_path: Path) -> None:
    for host in ("0.0.0.0", "::", "192.0.2.1", "kardia.example"):  # noqa: S104  refused is the point
        with pytest.raises(ValidationError, match="there is no token") as caught:
            ApiSettings(tables=tmp_path, host=host)
        assert OPEN_FLAG in str(caught.value)
        ApiSettings(tables=tmp_path, host=host, serve_everyone_without_a_token=True)
        ApiSettings(tables=tmp_path, host=host, token_file=tmp_path / "tokens")
    for host in ("127.0.0.1", "127.8.8.8", "::1", "localhost"):
        ApiSettings(tables=tmp_path, host=host)


def test_unknown_settings_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValidationError):
        ApiSettings(tables=tmp_path, refresh_seconds=1)  # type: ignore[call-arg]
