"""Runbooks as `kardia serve` shows them: every one, as a page that a browser opens, and nothing else of the disk."""

from __future__ import annotations

import re
from pathlib import Path

import httpx
import pytest

from api.settings import ApiSettings
from tests.api.conftest import WAIT_S, Api, Clock, Serve, running
from tests.api.written import Tables

FOLDER = Path(__file__).parents[2] / "docs" / "runbooks"
NAMES = sorted(path.name for path in FOLDER.glob("*.md"))


def test_every_runbook_is_a_page_without_a_token(tables: Tables, tmp_path: Path) -> None:
    path = tmp_path / "tokens"
    path.write_text("planted-token-" + "a" * 40 + "\n")
    with running(ApiSettings(tables=tables.root, refresh_ms=20, token_file=path), Clock()) as url:
        api = Api(url)
        index = api.client.get("/runbooks/").text
        for name in NAMES:
            reply = api.client.get(f"/runbooks/{name}")
            assert (reply.status_code, reply.headers["content-type"]) == (200, "text/html; charset=utf-8"), name
            assert "<script" not in reply.text
            title = (FOLDER / name).read_text().splitlines()[0].removeprefix("# ")
            assert f"<h1>{title}</h1>" in reply.text
            assert "<strong>Meaning.</strong>" in reply.text
            assert "**" not in reply.text, "nothing is left as it was written"
            assert reply.text == api.client.get(f"/runbooks/{name.removesuffix('.md')}").text
            assert f'href="{name}"' in index
        api.client.close()


def test_links_of_runbooks_lead_to_what_is_there(serve: Serve) -> None:
    api = serve()
    links = 0
    for name in NAMES:
        for href in re.findall(r'href="([^"]*)"', api.client.get(f"/runbooks/{name}").text):
            assert api.client.get(f"{api.url}/runbooks/{href}" if "/" not in href else href).status_code == 200, href
            links += "/" not in href
    assert links >= 1


@pytest.mark.parametrize(
    "asked",
    [
        "/runbooks/none.md",
        "/runbooks/..%2Falerts.md",
        "/runbooks/../alerts.md",
        "/runbooks/%2e%2e/alerts.md",
        "/runbooks/..%5Calerts.md",
        "/runbooks/%2Fetc%2Fpasswd",
        "/runbooks/evictions.md%00",
        "/runbooks/sub/evictions.md",
        "/runbooks/EVICTIONS.md",
    ],
)
def test_nothing_but_a_name_that_is_there_is_found(serve: Serve, asked: str) -> None:
    api = serve()
    host, port = api.url.removeprefix("http://").split(":")
    # The path goes out as it is written: a client of its own would tidy it up.
    transport = httpx.HTTPTransport(trust_env=False)
    request = httpx.Request("GET", api.url, extensions={"target": asked.encode()}, headers={"Host": f"{host}:{port}"})
    with httpx.Client(transport=transport, timeout=WAIT_S) as client:
        reply = client.send(request)
    assert (reply.status_code, reply.json()["code"]) == (404, "not_found")
    assert "passwd" not in reply.text
