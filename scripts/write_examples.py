"""Writes `api/shapes/examples.json`: what each route answers about a recorded story, and each problem.

    .venv/bin/python -m scripts.write_examples

The story is a real broker's (`tests/corpora`), read by the real dialects and the observer; the answers are those of the
real application, whose clock stands at the end of the story. Only what is drawn by lot is replaced: ids of requests and
cursors. A test compares the file with what this makes.
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import httpx
import orjson

from api.access.ids import to_segment
from api.settings import ApiSettings
from api.shapes.described import EXAMPLES
from tests.api.conftest import Api, Clock, running
from tests.api.recorded import CLUSTER, Span, write
from tests.api.written import Tables
from tests.support.stories import Story

STORY = "c04_mpi-4.1.2"
GROUP = "g04"
LOTS = {"request_id": "0a1b2c3d4e5f6071", "next_cursor": "b3ZlciB0aGUgcmVzdC1vZi10aGUtc3Rvcnk"}
"""Fields that are drawn by lot -> what stands for them."""

SERIES_SHOWN = 12
"""Lines of `/metrics` that are enough of an example."""

URL_MAX = 8_000
"""Bytes of a URL that the client of this script can still send more than."""

TOKEN = "an-example-of-a-token-" + "x" * 20


def main() -> int:
    """Write the file."""
    EXAMPLES.write_bytes(orjson.dumps(made(), option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS) + b"\n")
    return 0


def made() -> dict[str, Any]:
    """The matter of `api/shapes/examples.json`."""
    with tempfile.TemporaryDirectory() as folder:
        tables = Tables(Path(folder) / "tables")
        span = write(tables, Story(STORY))
        with running(ApiSettings(tables=tables.root, url_bytes_max=URL_MAX), Clock(span.to_ms)) as url:
            api = Api(url)
            api.wait_for_batch(0)
            known = parameters(api, span)
            answers = {path: list(answers_of(api, path, item["get"], known)) for path, item in paths(api)}
            problems = dict(problems_of(api, folder))
            api.client.close()
    return {"answers": answers, "problems": problems, "parameters": known}


def paths(api: Api) -> list[tuple[str, Any]]:
    """Routes of the document."""
    return list(api.get("/openapi.json")["paths"].items())


def parameters(api: Api, span: Span) -> dict[str, Any]:
    """A value of each parameter that means something in the story."""
    evicted = api.get(f"/api/v1/clusters/{CLUSTER}/groups/{GROUP}/evictions")["evictions"][0]
    return {
        "cluster": CLUSTER,
        "group": GROUP,
        "consumer": GROUP,
        "member": to_segment(evicted["member_id"]),
        "at": evicted["ended_at_ms"] - 1_000,
        "known_at": evicted["known_at_ms"],
        "from": evicted["ended_at_ms"] - 10_000,
        "to": span.to_ms,
        "limit": 1,
        "order": "oldest",
        "sort": "worst",
        "search": "04",
        "state": "Stable",
        "cause": ["poll_timeout"],
        "reason": "bad_json",
        "kind": "another_generation",
        "entity": "member",
        "events": "true",
        "format": "json",
    }


ASKED: dict[str, tuple[str, ...]] = {
    "groups": ("sort", "limit"),
    "history": ("from", "entity", "events", "limit"),
    "evictions": ("limit",),
    "incident": ("from", "limit"),
    "diff": ("from", "to", "limit"),
    "pulse": ("limit",),
}
"""Last word of a path -> parameters that its example is asked with; others: `limit`, where it has one."""


def answers_of(api: Api, path: str, operation: Any, known: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Example answers of a route."""
    has = {one["name"] for one in operation.get("parameters", ()) if one["in"] == "query"}
    filled = re.sub(r"{(\w+)}", lambda found: str(known[found[1]]), path)
    asked = {name: known[name] for name in ASKED.get(path.rsplit("/", 1)[-1], ("limit",)) if name in has}
    yield example(api, filled, asked)
    if "format" in has:
        yield example(api, filled, asked | {"format": "markdown"})
    if "at" in has:
        yield example(api, filled, asked | {"at": known["at"]})


def example(api: Api, path: str, asked: dict[str, Any]) -> dict[str, Any]:
    """One answer with its question."""
    url = f"{path}?{urlencode(asked, doseq=True)}" if asked else path
    reply = api.client.get(url)
    assert reply.status_code == 200, reply.text  # noqa: S101  of a script
    kind = reply.headers["content-type"].split(";")[0]
    if kind == "application/json":
        return {"url": url, "type": kind, "answer": without_lots(reply.json())}
    text = reply.text
    if path == "/metrics":
        text = "".join(text.splitlines(keepends=True)[:SERIES_SHOWN])
    return {"url": url, "type": kind, "answer": text}


def problems_of(api: Api, folder: str) -> Iterator[tuple[str, Any]]:
    """Code -> a problem of this code, of those that a caller can bring about."""
    group = f"/api/v1/clusters/{CLUSTER}/groups/{GROUP}"
    yield told(api.client.get(f"{group}/history", params={"cursor": "x" * 30}))
    yield told(api.client.get(f"{group}x"))
    yield told(api.client.get(f"{group}/history", params={"from": "yesterday"}))
    yield told(api.client.get(group, params={"at": "2030-01-01T00:00:00Z"}))
    yield told(api.client.post(group))
    yield told(api.client.request("GET", group, content=b"x"))
    yield told(api.client.get(group, headers={"Host": "kardia.example"}))
    yield told(api.client.get("/readyz?x=" + "y" * URL_MAX))
    tokens = Path(folder) / "tokens"
    tokens.write_text(f"{TOKEN} cluster={CLUSTER}\n")
    nothing = Tables(Path(folder) / "nothing")
    nothing.root.mkdir()
    bearer = {"Authorization": f"Bearer {TOKEN}"}
    with (
        running(ApiSettings(tables=nothing.root, token_file=tokens), Clock()) as url,
        httpx.Client(base_url=url, trust_env=False) as client,
    ):
        yield told(client.get("/api/v1/clusters"))
        yield told(client.get("/metrics", headers=bearer))
        yield told(client.get("/api/v1/clusters", headers=bearer))


def told(reply: httpx.Response) -> tuple[str, Any]:
    """Code and body of a problem."""
    body = without_lots(reply.json())
    return body["code"], body


def without_lots(found: Any) -> Any:
    """An answer in which nothing depends on the run that made it."""
    if isinstance(found, dict):
        return {
            name: LOTS[name] if name in LOTS and value is not None else without_lots(value)
            for name, value in found.items()
        }
    return [without_lots(one) for one in found] if isinstance(found, list) else found


if __name__ == "__main__":
    sys.exit(main())
