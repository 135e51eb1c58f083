"""Server-sent events: one at once, one per batch, a bound on followers, and a server that ends although one follows."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import httpx

from tests.api.conftest import Serve
from tests.api.test_serve import served
from tests.api.written import NOW_MS, Tables, progress, transition

CHANGES = "/api/v1/changes"


def news(reply: httpx.Response) -> Iterator[Any]:
    """Data of the events of a stream as they come."""
    for line in reply.iter_lines():
        if line.startswith("data: "):
            yield json.loads(line.removeprefix("data: "))


def test_a_follower_hears_of_each_batch(tables: Tables, serve: Serve) -> None:
    tables.create()
    tables.batch(0, transition("orders", 1, "Stable"), progress(NOW_MS - 100))
    api = serve()
    api.wait_for_batch(0)
    with api.client.stream("GET", CHANGES, timeout=90.0) as reply:
        assert reply.headers["content-type"].startswith("text/event-stream")
        assert reply.headers["cache-control"] == "no-store"
        heard = news(reply)
        assert next(heard)["batch_id"] == 0
        tables.batch(1, progress(NOW_MS))
        found = next(heard)
        assert (found["batch_id"], found["complete_as_of_ms"]) == (1, NOW_MS)
    assert CHANGES not in api.client.get("/metrics").text, "an hour of following is no slow answer"


def test_one_too_many_is_refused_and_a_place_that_is_left_is_given_on(tables: Tables, serve: Serve) -> None:
    tables.create()
    tables.batch(0, progress(NOW_MS))
    api = serve(followers_max=1)
    api.wait_for_batch(0)
    with api.client.stream("GET", CHANGES, timeout=90.0) as reply:
        heard = news(reply)
        next(heard)  # closes the answer when it is forgotten
        assert api.problem(CHANGES) == (503, "overloaded")

    def is_given_on() -> bool:
        with api.client.stream("GET", CHANGES, timeout=90.0) as again:
            return again.status_code == 200

    api.wait(is_given_on, "a free place")


def test_the_server_ends_in_order_although_somebody_follows(tables: Tables) -> None:
    tables.create()
    tables.batch(0, progress(NOW_MS))
    with served("--tables", str(tables.root), "--port", "0") as (process, url):
        with httpx.stream("GET", f"{url}{CHANGES}", trust_env=False, timeout=90.0) as reply:
            heard = news(reply)
            next(heard)
            process.send_signal(signal.SIGTERM)
            with suppress(httpx.RemoteProtocolError):  # cut off; a page asks again elsewhere
                list(heard)
        out, err = process.communicate(timeout=90)
        assert process.returncode in (0, -signal.SIGTERM, 128 + signal.SIGTERM), (out, err)
        assert "Traceback" not in err
