"""What is answered ahead of the tables is what they say afterwards: rows, the present and the past, side by side."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from api.app import create_app
from api.files.reader import TableReader
from api.settings import ApiSettings
from api.store import Store
from kardia.tables import TABLES
from live.rows import as_read
from live.view import LiveStore
from spark_jobs.schemas import to_tables
from tests.live.living import CLUSTER, Living
from tests.support.stories import lanes_of, observe

STORIES = ("c04_mpi-4.1.2", "k05_leave-4.4.0", "c18_libs-4.1.2")


@pytest.mark.parametrize("name", [*STORIES, "e04_share-4.4.0", "e05_streams-4.2.1"])
def test_rows_are_as_they_are_read(name: str, tmp_path: Path) -> None:
    """Of every live table, with and without what is hidden."""
    for table, rows in observe(lanes_of(name, server_log=True)).items():
        if not rows:
            continue
        hides = frozenset({"client_host", "detail"}) & frozenset(TABLES[table].names)
        for hidden in (frozenset[str](), hides):
            chunk = to_tables({table: rows}, 7)[table].drop_columns(list(hidden))
            read = list(TableReader(tmp_path, table, hidden).rows(chunk))
            assert as_read(table, rows, 7, hidden) == read


def test_half_of_a_surrogate_pair_is_shown_as_it_is_written(tmp_path: Path) -> None:
    rows = observe(lanes_of("c04_mpi-4.1.2"))["members"]
    place = TABLES["members"].names.index("client_id")
    rows = [(*row[:place], "half \ud800 é", *row[place + 1 :]) for row in rows]
    chunk = to_tables({"members": rows}, 1)["members"]
    assert as_read("members", rows, 1, frozenset()) == list(TableReader(tmp_path, "members").rows(chunk))


CHANGING = ("in_tables", "batch_id", "answered_at", "answered_at_ms", "age_ms", "next_cursor")


def _without(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without(one) for name, one in value.items() if name not in CHANGING}
    return [_without(one) for one in value] if isinstance(value, list) else value


class Asked:
    """One application, asked without a socket, over a store that is refreshed by hand."""

    def __init__(self, store: Store, now_ms: Any) -> None:
        self.store = store
        self._app = create_app(store.settings, now_ms, store=store)

    def answers(self, paths: list[str]) -> dict[str, Any]:
        async def ask() -> dict[str, Any]:
            transport = httpx.ASGITransport(app=self._app)
            async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8765") as client:
                return {path: _without((await client.get(path)).json()) for path in paths}

        return asyncio.run(ask())


def _paths(store: Store) -> list[str]:
    base = f"/api/v1/clusters/{CLUSTER}"
    groups = [f"{base}/groups/{name}" for name in store.current.clusters[CLUSTER].groups]
    about = ("", "/members", "/rebalances", "/history", "/evictions", "/predictions", "/why")
    return [f"{base}/groups", *(group + end for group in groups for end in about)]


@pytest.mark.parametrize("name", [*STORIES[:2], pytest.param(STORIES[2], marks=pytest.mark.long)])
def test_answers_ahead_of_the_tables_are_those_of_the_tables(name: str, tmp_path: Path) -> None:
    """At many instants of a story: what is answered before a batch is written, and what a server of the tables says
    when it is."""
    living = Living(tmp_path, name)
    now = {"ms": 0}
    settings = ApiSettings(tables=living.settings.tables)
    compared = 0
    with living.alive() as running:
        ahead = Asked(LiveStore(settings, lambda: now["ms"], living.ahead), lambda: now["ms"])
        for number in living.rounds(running):
            now["ms"] = int(living.clock.wall_ms())
            ahead.store.refresh()
            if number % 97 or ahead.store.freshness().in_tables:
                continue  # a batch has just been written
            paths = _paths(ahead.store)
            told = ahead.answers(paths)
            running.engine.save(living_positions(running))
            running.engine.await_tables()
            assert ahead.store.freshness().in_tables
            behind = Asked(Store(settings, lambda: now["ms"]), lambda: now["ms"])
            behind.store.refresh()
            written = behind.answers(paths)
            for path in paths:
                assert told[path] == written[path], (path, json.dumps(told[path])[:2000])
                compared += 1
    assert compared > 20


def living_positions(running: Any) -> Any:
    return running.engine.positions
