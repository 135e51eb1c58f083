"""When something breaks inside: a torn file, a defect, a read that never ends. The caller gets a code and nothing of
the inside."""

from __future__ import annotations

import asyncio
import logging
import threading
from pathlib import Path

import pytest

from api.app import create_app
from api.errors import Overloaded, ReadTimedOut
from api.http.request_context import RequestContext
from api.past.cursor import Cursors
from api.settings import ApiSettings
from api.store import Store
from tests.api.conftest import Api, Clock, Serve, served
from tests.api.written import NOW_MS, Tables, member, progress, rebalance, transition

GROUP = "/api/v1/clusters/demo/groups/orders"


def test_a_torn_file_makes_its_own_routes_unavailable_and_names_no_path(tables: Tables, serve: Serve) -> None:
    tables.create()
    tables.batch(
        0, transition("orders", 1, "Stable"), member("orders", "a"), rebalance("orders", NOW_MS), progress(NOW_MS)
    )
    api = serve()
    api.wait_for_batch(0)
    for file in (tables.root / "rebalances").glob("*.parquet"):
        file.write_bytes(b"PAR1" + bytes(100))
    reply = api.client.get(f"{GROUP}/rebalances")
    assert (reply.status_code, reply.json()["code"]) == (503, "table_unreadable")
    assert reply.json()["tables"] == ["rebalances"]
    assert str(tables.root) not in reply.text
    assert "parquet" not in reply.text.lower()
    api.get(f"{GROUP}/history")
    api.get(GROUP)


def test_a_defect_is_a_request_id_for_the_caller_and_a_trace_for_the_log(
    tables: Tables, caplog: pytest.LogCaptureFixture
) -> None:
    app = create_app(ApiSettings(tables=tables.root), Clock())

    @app.get("/defect")
    async def defect() -> None:
        raise ValueError("a secret detail")

    with served(app) as url:
        api = Api(url)
        reply = api.client.get("/defect")
        api.client.get("/livez").raise_for_status()
        api.client.close()
    assert (reply.status_code, reply.json()["code"]) == (500, "internal_error")
    assert "secret" not in reply.text
    assert reply.json()["request_id"] == reply.headers["x-request-id"]
    traced = [record for record in caplog.records if reply.json()["request_id"] in record.getMessage()]
    assert [record.levelno for record in traced] == [logging.ERROR]
    assert traced[0].exc_info is not None


def test_a_read_that_does_not_end_is_given_up_and_keeps_its_place_until_it_ends(tmp_path: Path) -> None:
    limits = ApiSettings(tables=tmp_path, read_timeout_ms=100, reads_at_once_max=1, reads_waiting_max=0)
    ends = threading.Event()

    async def ask() -> None:
        context = RequestContext(Store(limits, Clock()), Cursors(b"key"), lambda _read: None)
        with pytest.raises(ReadTimedOut) as timed_out:
            await context.read(ends.wait)
        assert timed_out.value.members == {"limit": "read_timeout_ms"}
        for _ in range(3):
            with pytest.raises(Overloaded) as overloaded:
                await context.read(lambda: None)
            assert overloaded.value.members == {"limit": "reads_waiting_max"}
        ends.set()
        async with asyncio.timeout(10):
            while True:
                try:
                    assert await context.read(lambda: 7) == 7
                    break
                except Overloaded:
                    await asyncio.sleep(0)
        context.close()

    asyncio.run(ask())
