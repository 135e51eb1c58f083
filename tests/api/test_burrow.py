"""Scripts that ask Burrow: what maps is answered in its shapes, what does not says so, and nothing is made up."""

from __future__ import annotations

from typing import Any

import pytest

from api.access.ids import to_segment
from api.settings import ApiSettings
from api.shapes import report_models
from tests.api.conftest import Api, Clock, Serve, running
from tests.api.test_hostile_ids import IDS
from tests.api.written import NOW_MS, Tables, health, lag, member, progress, transition


@pytest.fixture
def api(tables: Tables, serve: Serve) -> Api:
    tables.create()
    rows: list[Any] = []
    for group, status in (("well", "ok"), ("late", "late"), ("near", "imminent"), ("over", "overdue"), ("blind", None)):
        rows += [transition(group, 1, "Stable"), member(group, "m"), member(group, "n"), health(group, "n")]
        rows += [health(group, "m", status=status)] if status else []
    waits = health("waits", "m", status="overdue", group_state="PreparingRebalance")  # or so it looks
    rows += [transition("waits", 1, "PreparingRebalance"), member("waits", "m"), waits]
    rows += [transition("moving", 1, "PreparingRebalance"), transition("empty", 1, "Empty"), member("stateless", "m")]
    rows += [lag("well", 0, None)]  # by its requests: nobody has looked at an end
    rows += [health("stateless", "m"), *(transition(text, 1, "Empty") for text in IDS)]
    tables.batch(0, *rows, progress(NOW_MS))
    found = serve()
    found.wait_for_batch(0)
    return found


def status(api: Api, group: str) -> Any:
    found = api.get(f"/v3/kafka/demo/consumer/{group}/status")
    report_models.BurrowStatus.model_validate(found, strict=True)
    return found["status"]


def test_clusters_and_groups_are_listed_in_its_shapes(api: Api) -> None:
    found = api.get("/v3/kafka")
    report_models.BurrowClusters.model_validate(found, strict=True)
    assert (found["error"], found["clusters"]) == (False, ["demo"])
    assert found["request"]["url"] == "/v3/kafka"
    listed = api.get("/v3/kafka/demo/consumer")
    report_models.BurrowConsumers.model_validate(listed, strict=True)
    assert {"well", "over", *IDS} <= set(listed["consumers"])


@pytest.mark.parametrize(
    ("group", "word", "complete"),
    [
        ("well", "OK", 1.0),
        ("late", "OK", 1.0),
        ("near", "WARN", 1.0),
        ("over", "ERR", 1.0),
        ("blind", "WARN", 0.5),
        ("waits", "WARN", 1.0),
        ("moving", "WARN", 0.0),
        ("empty", "OK", 0.0),
        ("stateless", "WARN", 1.0),
    ],
)
def test_a_status_is_the_liveness_of_members_and_never_a_lag(api: Api, group: str, word: str, complete: float) -> None:
    found = status(api, group)
    assert (found["status"], found["complete"]) == (word, complete)
    assert (found["totallag"], found["maxlag"], found["partitions"]) == (None, None, [])


def test_nothing_is_ok_while_the_feed_is_stale(tables: Tables) -> None:
    """Minutes after the last thing that is known: `kardia check` says UNKNOWN, which Burrow has no word for."""
    tables.create()
    tables.batch(
        0, *(row for group in ("well", "over") for row in (transition(group, 1, "Stable"), member(group, "m")))
    )
    tables.batch(1, health("well", "m"), health("over", "m", status="overdue"), progress(NOW_MS))
    clock = Clock()
    with running(ApiSettings(tables=tables.root, refresh_ms=20), clock) as url:
        api = Api(url)
        api.wait_for_batch(1)
        assert status(api, "well")["status"] == "OK"
        clock.now_ms = NOW_MS + 418_000
        for group in ("well", "over"):
            found = api.get(f"/v3/kafka/demo/consumer/{group}/status")
            assert (found["status"]["status"], found["status"]["complete"]) == ("WARN", 0.0)
            assert "nothing is known since 2025-10-09T08:53:20.000Z" in found["message"]
        api.client.close()


def test_ids_that_strangers_chose_are_found(api: Api) -> None:
    for text in IDS:
        assert status(api, to_segment(text))["group"] == text


def test_what_is_not_there_is_told_as_burrow_tells_it(api: Api) -> None:
    for path in ("/v3/kafka/demo/consumer/none/status", "/v3/kafka/none/consumer/none/status"):
        reply = api.client.get(path)
        assert (reply.status_code, reply.json()["error"], reply.json()["status"]["status"]) == (404, False, "NOTFOUND")
    reply = api.client.get("/v3/kafka/none/consumer")
    assert (reply.status_code, reply.json()["error"], reply.json()["message"]) == (404, True, "cluster not found")


@pytest.mark.parametrize(
    "path",
    [
        "demo",
        "demo/topic",
        "demo/topic/t",
        "demo/topic/t/consumers",
        "demo/consumer/well",
        "demo/consumer/well/topic/t/extra",
    ],
)
def test_what_does_not_map_says_so_in_its_error_shape(api: Api, path: str) -> None:
    reply = api.client.get(f"/v3/kafka/{path}")
    assert reply.status_code == 501
    found = reply.json()
    assert set(found) == {"error", "message", "request"}
    assert found["error"] is True
    assert "not known to Kardia" in found["message"]


def test_nothing_is_removed(api: Api) -> None:
    assert api.client.delete("/v3/kafka/demo/consumer/well").status_code == 405


def test_before_there_are_tables_it_is_an_error_in_its_shape(tables: Tables, serve: Serve) -> None:
    del tables
    early = serve()
    for path in ("/v3/kafka", "/v3/kafka/demo/consumer", "/v3/kafka/demo/consumer/well/status"):
        reply = early.client.get(path)
        assert (reply.status_code, reply.json()["error"]) == (503, True)
        assert "retry-after" in reply.headers
