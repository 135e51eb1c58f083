"""Lines that could not be understood, over HTTP: all of them, in pages that stay as they are, and never interpreted."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from api.settings import ApiSettings
from api.shapes import models
from tests.api.conftest import Api, Clock, Serve, running
from tests.api.test_hostile_ids import IDS
from tests.api.written import NOW_MS, Tables, progress, rejected

REJECTED = "/api/v1/clusters/demo/rejected"
OTHER_LOG = "b2/server/1a1b2c3d4e5f6071"
TOKEN = "a-token-for-one-cluster-" + "x" * 20


def starts(answer: Any) -> list[int]:
    return [line["start"] for line in answer["rejected"]]


def pages(api: Api, limit: int, **params: Any) -> list[int]:
    """First bytes of all lines, page by page."""
    found: list[int] = []
    while True:
        answer = api.get(REJECTED, limit=limit, **params)
        found += starts(answer)
        params["cursor"] = answer["next_cursor"]
        if params["cursor"] is None:
            return found
        assert len(answer["rejected"]) == limit


def story(tables: Tables) -> None:
    """Two batches; in the second, a line of another log and two whose stamps cannot be read."""
    tables.create()
    tables.batch(0, rejected(500, at_ms=NOW_MS - 9_000), rejected(100, at_ms=NOW_MS - 8_000), progress(NOW_MS))
    tables.batch(
        1,
        rejected(700, at_ms=NOW_MS - 5_000),
        rejected(600, at_ms=NOW_MS - 5_000, source=OTHER_LOG, reason="unknown_shape", expected=None, excerpt=None),
        rejected(900, at_ms=0, reason="bad_timestamp"),
        rejected(800, at_ms=0, reason="bad_timestamp"),
        progress(NOW_MS),
    )


def test_a_line_is_told_with_its_place_and_with_what_was_expected(tables: Tables, serve: Serve) -> None:
    story(tables)
    api = serve()
    api.wait_for_batch(1)
    answer = api.get(REJECTED, limit=2)
    models.Rejected.model_validate(answer)
    other, line = answer["rejected"]
    assert line == {
        "cluster_id": "demo",
        "source": "b1/request/0a1b2c3d4e5f6071",
        "start": 700,
        "end": 800,
        "at_ms": NOW_MS - 5_000,
        "at": "2025-10-09T08:53:15.000Z",
        "reason": "bad_json",
        "expected": "a whole JSON object",
        "excerpt": "line at 700",
        "certainty": "exact",
        "batch_id": 1,
    }
    assert (other["source"], other["expected"], other["excerpt"]) == (OTHER_LOG, None, None)
    assert api.get("/api/v1/clusters/demo")["cluster"]["links"]["rejected"] == REJECTED


def test_each_line_is_met_once_in_one_order_whatever_the_size_of_a_page(tables: Tables, serve: Serve) -> None:
    story(tables)
    api = serve()
    api.wait_for_batch(1)
    newest = [600, 700, 900, 800, 100, 500]
    for limit in (1, 2, 3, 5, 6, 7):
        assert pages(api, limit) == newest
        assert pages(api, limit, order="oldest") == newest[::-1]
        assert pages(api, limit, reason="bad_json") == [700, 100, 500]


def test_a_line_without_a_stamp_is_in_every_range_and_has_no_instant(tables: Tables, serve: Serve) -> None:
    story(tables)
    api = serve()
    api.wait_for_batch(1)
    for bounds, dated in (
        ({"from": NOW_MS - 8_000}, [600, 700, 100]),
        ({"from": NOW_MS - 8_000, "to": NOW_MS - 5_000}, [100]),
        ({"to": NOW_MS - 8_000}, [500]),
        ({"from": NOW_MS}, []),
        ({"from": 0, "to": 0}, []),
        ({"to": 0}, []),
    ):
        lines = api.get(REJECTED, **bounds)["rejected"]
        assert [line["start"] for line in lines if line["at_ms"] is not None] == dated, bounds
        undated = [line for line in lines if line["at_ms"] is None]
        assert [(line["start"], line["at"]) for line in undated] == [(900, None), (800, None)], bounds


@pytest.mark.parametrize(
    ("order", "rest"), [("newest", [700, 900, 800, 100, 500]), ("oldest", [100, 800, 900, 700, 600])]
)
def test_pages_stay_as_they_are_while_the_table_grows_and_is_compacted(
    tables: Tables, serve: Serve, order: str, rest: list[int]
) -> None:
    story(tables)
    api = serve()
    api.wait_for_batch(1)
    cursor = api.get(REJECTED, limit=1, order=order)["next_cursor"]
    batch_id = api.get(REJECTED)["freshness"]["batch_id"] + 1
    tables.batch(batch_id, rejected(batch_id, at_ms=NOW_MS - 8_500), rejected(9_999, at_ms=0), progress(NOW_MS))
    tables.compact("rejected")
    api.wait_for_batch(batch_id)
    assert pages(api, 2, order=order, cursor=cursor) == rest


def test_a_batch_that_is_half_written_is_not_told(tables: Tables, serve: Serve) -> None:
    story(tables)
    tables.batch(2, rejected(1_000), progress(NOW_MS), only=("rejected",))
    api = serve()
    api.wait_for_batch(1)
    assert 1_000 not in starts(api.get(REJECTED))


def test_what_a_line_says_is_text_and_nothing_else(tables: Tables, serve: Serve) -> None:
    texts = [text for text in IDS if len(text) < 2_000]
    tables.create()
    tables.batch(
        0,
        *(rejected(place, expected=text, excerpt=text, source=text) for place, text in enumerate(texts)),
        progress(NOW_MS),
    )
    api = serve()
    api.wait_for_batch(0)
    lines = api.get(REJECTED, limit=len(texts))["rejected"]
    assert {(line["start"], line["source"], line["expected"], line["excerpt"]) for line in lines} == {
        (place, text, text, text) for place, text in enumerate(texts)
    }
    assert sorted(pages(api, 7)) == list(range(len(texts)))
    assert api.client.get(REJECTED).headers["content-type"] == "application/json"


def test_reasons_are_a_closed_list(tables: Tables, serve: Serve) -> None:
    story(tables)
    api = serve()
    api.wait_for_batch(1)
    for reason in ("", "boredom", "bad_json'", "BAD_JSON"):
        assert api.problem(REJECTED, reason=reason) == (422, "parameter_refused"), reason
    assert starts(api.get(REJECTED, reason="foreign_cluster")) == []


def test_lines_of_a_cluster_are_for_those_who_may_ask_about_it(tables: Tables, tmp_path: Path) -> None:
    story(tables)
    tables.batch(2, rejected(5, cluster_id="other"), progress(NOW_MS, cluster_id="other"))
    (tmp_path / "tokens").write_text(f"{TOKEN} cluster=other\n")
    settings = ApiSettings(tables=tables.root, refresh_ms=20, token_file=tmp_path / "tokens")
    with running(settings, Clock()) as url:
        api = Api(url, headers={"Authorization": f"Bearer {TOKEN}"})
        api.wait_for_batch(2)
        assert starts(api.get("/api/v1/clusters/other/rejected")) == [5]
        assert api.problem(REJECTED) == (404, "not_found")
        api.client.close()


def test_how_a_line_begins_is_hidden_with_what_is_personal(tables: Tables, serve: Serve) -> None:
    story(tables)
    api = serve(hide_personal=True)
    api.wait_for_batch(1)
    lines = api.get(REJECTED)["rejected"]
    assert {line["excerpt"] for line in lines} == {None}
    assert {line["expected"] for line in lines} == {"a whole JSON object", None}


def test_without_the_table_it_is_said_which_one_is_missing(tables: Tables, serve: Serve) -> None:
    story(tables)
    shutil.rmtree(tables.root / "rejected")
    api = serve()
    api.wait_for_batch(1)
    reply = api.client.get(REJECTED)
    assert (reply.status_code, reply.json()["code"], reply.json()["tables"]) == (503, "tables_missing", ["rejected"])
