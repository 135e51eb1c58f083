"""The electrocardiogram of a group that has epochs, in a real Chromium, and what the API and the terminal say of it.

k08 is a recorded story of a real broker: k08-c joins, k08-b is told to give a partition up for it and does not, and its
rebalance timeout of 8 s evicts it. The instants are those of the broker's own log (`expect.json`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Page
from typer.testing import CliRunner

from api.settings import ApiSettings
from cli.main import app
from tests.api.conftest import Api, running
from tests.api.test_page import browser, has_text, page  # noqa: F401 - fixtures
from tests.support.pictures import write_live
from tests.support.stories import CORPORA

STORY, GROUP = "k08_rebalance_timeout-4.1.2", "/api/v1/clusters/demo/groups/h08"
EVICTED_AT_MS = 1_795_213_073_759
TOLD_MS = 8_000
BEFORE_MS = EVICTED_AT_MS - 3_000


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    """The API over the story up to 3 s before the eviction; its clock stands there."""
    root = tmp_path_factory.mktemp("epochs") / "tables"
    first_ms = json.loads((CORPORA / STORY / "expect.json").read_text())["start_ms"]
    begin_ms, end_ms = write_live(STORY, root, "demo", cut_ms=BEFORE_MS - first_ms)
    with running(ApiSettings(tables=root, refresh_ms=20, stale_after_ms=600_000), lambda: end_ms) as url:
        found = Api(url)
        found.wait_for_batch(0)
        assert begin_ms < end_ms < EVICTED_AT_MS
        yield found
        found.client.close()


def member(api: Api, client_id: str) -> dict[str, Any]:
    return next(one for one in api.get(f"{GROUP}/members")["members"] if one["client_id"] == client_id)


def test_the_api_says_who_holds_what_back_for_whom_and_until_when(api: Api) -> None:
    holds, waits = member(api, "k08-b"), member(api, "k08-c")
    (held,) = holds["assignment"]["moving"]
    assert (held["topic"], held["from_member_id"], held["to_member_id"]) == (
        "orders",
        holds["member_id"],
        waits["member_id"],
    )
    assert held in waits["assignment"]["moving"]
    assert holds["assignment"]["member_state"] == "unrevoked"
    assert (holds["assignment"]["member_epoch"], holds["assignment"]["group_epoch"]) == (2, 3)
    assert abs(holds["assignment"]["awaited_until_at_ms"] - EVICTED_AT_MS) <= 10
    open_now = api.get("/api/v1/clusters/demo/open-rebalances")["open_rebalances"]
    (waited,) = open_now[0]["waits_for"]
    assert waited["member_id"] == holds["member_id"]
    assert waited["shown_by"] == "was told to give partitions up, and has not"
    assert abs(waited["until_at_ms"] - EVICTED_AT_MS) <= 10


def test_the_terminal_says_so_as_well(api: Api) -> None:
    members = CliRunner(env={"COLUMNS": "400"}).invoke(app, ["group", "h08", "--members", "--api", api.url])
    assert members.exit_code == 0, members.output
    line = next(line for line in members.output.splitlines() if line.startswith("k08-b"))
    assert "2 of 3" in line
    assert "must give up orders " in line
    assert " for k08-c, until 2026-11-20T22:17:53.75" in line
    assert " of k08-b" in next(line for line in members.output.splitlines() if line.startswith("k08-c"))
    one = CliRunner(env={"COLUMNS": "400"}).invoke(app, ["member", "h08", "k08-b", "--api", api.url])
    assert "on the way" in one.output
    assert "must give up orders" in one.output


def test_why_says_what_the_epoch_waits_for(api: Api) -> None:
    told = CliRunner(env={"COLUMNS": "400"}).invoke(app, ["why", "h08", "--api", api.url])
    assert told.exit_code == 0, told.output
    said = " ".join(told.output.split())
    assert "A rebalance began (epoch 2 to 3" in said
    assert "The rebalance waited for k08-b (to give up orders " in said
    assert " for k08-c) since " in said


@pytest.mark.slow
@pytest.mark.needs_chromium
class TestElectrocardiogram:
    """In the browser."""

    def test_a_lane_says_what_its_member_has_and_is_to_have(self, page: Page, api: Api) -> None:  # noqa: F811
        page.goto(f"{api.url}/#/clusters/demo/groups/h08")
        page.wait_for_selector(".lane .trace", state="attached")
        has_text(page, ".lane .assignment", "must give up orders ")
        lines = {
            one.locator(".who").inner_text(): one.locator(".assignment").inner_text()
            for one in page.locator(".lane").all()
        }
        assert lines["k08-a"].startswith("epoch 3 · has "), "it is where its group is"
        assert lines["k08-b"].startswith("epoch 2 of 3 · has ")
        assert " to k08-c, until " in lines["k08-b"]
        assert "17:53.75" in lines["k08-b"]
        assert " · waits for orders " in lines["k08-c"]
        assert " of k08-b, until " in lines["k08-c"]
        assert page.locator(".deadline.give-up").count() == 1
        label = page.locator(".lane", has_text="k08-b").first.locator(".track").get_attribute("aria-label")
        assert label is not None
        assert "must give up orders" in label
        has_text(page, ".open", "waits for k08-b")

    def test_before_anybody_joined_nothing_is_on_its_way(self, page: Page, api: Api) -> None:  # noqa: F811
        page.goto(f"{api.url}/#/clusters/demo/groups/h08?at={BEFORE_MS - 8_000}")
        page.wait_for_selector(".live[aria-pressed=false]")
        has_text(page, ".lane .assignment", "epoch 2 · has ")
        assert page.locator(".deadline.give-up").count() == 0
        assert "give up" not in " ".join(page.locator(".lane .assignment").all_inner_texts())

    def test_a_click_on_a_rebalance_tells_its_phases_in_the_words_of_epochs(self, page: Page, api: Api) -> None:  # noqa: F811
        page.goto(f"{api.url}/#/clusters/demo/groups/h08")
        why = page.locator(".why", has_text="2→3")
        why.focus()
        page.keyboard.press("Enter")
        has_text(page, ".cause .phases", "computing the target ")
        has_text(page, ".cause .phases", "handing over, so far ")

    def test_it_fits_a_phone(self, page: Page, api: Api) -> None:  # noqa: F811
        page.set_viewport_size({"width": 360, "height": 780})
        page.goto(f"{api.url}/#/clusters/demo/groups/h08")
        has_text(page, ".lane .assignment", "must give up orders ")
        assert page.evaluate("document.documentElement.scrollWidth") <= 360
