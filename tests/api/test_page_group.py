"""What the page says of a group and of its members to somebody who was not there: why, who, and what was so then."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page

from api.settings import ApiSettings
from tests.api.conftest import Api, running
from tests.api.test_page import EVIL, browser, has_text, page, wall_ms  # noqa: F401 - fixtures
from tests.api.written import Tables, health, lag, looked, member, prediction, progress, rebalance, transition

pytestmark = [pytest.mark.slow, pytest.mark.needs_chromium]

STAYS, GONE = (f"billing-1-{head}-0000-4000-8000-000000000000" for head in ("6f6050d6", "0a0b0c0d"))
HEARD = {"session_timeout_ms": 600_000, "poll_interval_ms": 300_000}
GROUP = "/#/clusters/demo/groups/orders"


@pytest.fixture
def api(tables: Tables) -> Iterator[Api]:
    """`billing-1` was evicted 30 s ago and has come back; a prediction about it is younger than its health row. Lag was
    7 a minute ago and is 900 now."""
    now = wall_ms()
    tables.create()
    tables.batch(
        0,
        transition("orders", 1, "Stable", at_ms=now - 300_000, generation_id=2),
        transition("orders", 2, "PreparingRebalance", at_ms=now - 30_000, from_state="Stable", generation_id=2),
        transition("orders", 3, "Stable", at_ms=now - 29_500, from_state="PreparingRebalance", generation_id=3),
        member("orders", STAYS, client_id="billing-1", joined_at_ms=now - 25_000),
        member(
            "orders",
            GONE,
            client_id="billing-1",
            joined_at_ms=now - 300_000,
            ended_at_ms=now - 30_000,
            end_cause="session_expired",
        ),
        member("orders", EVIL, client_id=EVIL, joined_at_ms=now - 300_000),
        health(
            "orders",
            GONE,
            at_ms=now - 61_000,
            client_id="billing-1",
            session_deadline_at_ms=now - 30_000,
            poll_deadline_at_ms=now - 20_000,
            generation_id=2,
            **HEARD,
        ),
        health("orders", EVIL, at_ms=now - 61_000, client_id=EVIL, generation_id=2, **HEARD),
        health("orders", EVIL, at_ms=now, client_id=EVIL, **HEARD),
        health(
            "orders",
            STAYS,
            at_ms=now,
            client_id="billing-1",
            session_deadline_at_ms=now + 590_000,
            poll_deadline_at_ms=now + 290_000,
            **HEARD,
        ),
        prediction("orders", STAYS, "poll", predicted_at_ms=now, deadline_at_ms=now + 290_000),
        rebalance("orders", now - 30_000, trigger="session_expired", trigger_member_id=GONE),
        lag("orders", 0, 7, at_ms=now - 70_000),
        lag("orders", 0, 900, at_ms=now - 1_000),
        looked(now),
        progress(now),
    )
    settings = ApiSettings(tables=tables.root, refresh_ms=20, stale_after_ms=600_000, lag_stale_after_ms=600_000)
    with running(settings, wall_ms) as url:
        found = Api(url)
        found.wait_for_batch(0)
        yield found
        found.client.close()


def test_the_sentences_of_why_stand_under_the_title(page: Page, api: Api) -> None:  # noqa: F811
    page.goto(api.url + GROUP)
    expected = [one["text"] for one in api.get("/api/v1/clusters/demo/groups/orders/why")["sentences"]]
    assert any("session" in text for text in expected)
    has_text(page, ".told li", expected[0])
    assert page.locator(".told li p:first-child").all_inner_texts() == expected
    places = [
        page.locator(one).first.evaluate("(one) => one.getBoundingClientRect().y") for one in ("h1", ".told", ".ecg")
    ]
    assert places == sorted(places)


def test_members_of_one_name_are_told_apart(page: Page, api: Api) -> None:  # noqa: F811
    page.goto(api.url + GROUP)
    has_text(page, ".lane .who", "billing-1 (6f6050d6)")
    has_text(page, ".lane .who", "billing-1 (0a0b0c0d)")
    has_text(page, ".members .name", "billing-1 (6f6050d6)")
    has_text(page, ".story li", "billing-1 (0a0b0c0d): session expired.")
    assert "onerror" in page.locator(".lane .who").filter(has_text="onerror").inner_text()
    assert page.locator("main img").count() == 0


def test_a_member_has_its_page(page: Page, api: Api) -> None:  # noqa: F811
    page.goto(api.url + GROUP)
    page.locator(".members a", has_text="billing-1").click()
    has_text(page, "h1", "billing-1 (6f6050d6)")
    has_text(page, ".facts", "group orders")
    has_text(page, ".told li", "first seen here")
    assert page.locator(".lane").count() == 1
    assert page.locator(".deadlines .count b").first.inner_text().startswith("≥ 9 min")
    assert page.locator("nav").inner_text() == "demo / orders / billing-1"
    page.locator("nav a", has_text="orders").click()
    page.locator(".lane a", has_text="billing-1").first.click()  # the lanes stand in the order in which they came
    has_text(page, "h1", "billing-1")
    has_text(page, ".story li", "session expired · exact")
    has_text(page, ".facts .status", "ended")
    assert page.locator(".deadlines").is_hidden()


def test_the_page_of_a_member_shows_any_id_as_text(page: Page, api: Api) -> None:  # noqa: F811
    page.goto(api.url + GROUP)
    page.locator(".members a", has_text="onerror").click()
    has_text(page, "h1", "onerror")
    has_text(page, ".told li", "onerror")
    assert page.locator("main img").count() == 0
    assert page.title() != "owned"


def test_in_the_past_nothing_of_the_present_stands_beside_it(page: Page, api: Api) -> None:  # noqa: F811
    at_ms = api.get("/readyz")["freshness"]["complete_as_of_ms"] - 60_000
    page.goto(f"{api.url}{GROUP}?at={at_ms}")
    has_text(page, ".card h2", "Members at ")
    has_text(page, ".members .name", "billing-1 (0a0b0c0d)")
    has_text(page, ".feed", "shown as of ")
    has_text(page, ".facts", "generation 2")
    has_text(page, ".lag .facts", "7 records behind in 1 of 1 partition")
    has_text(page, ".told li", "generation 2")
    assert page.locator(".members > li").count() == 2
    assert "6f6050d6" not in page.locator(".members").inner_text()
    left = page.locator(".members > li", has_text="0a0b0c0d").locator(".count b").all_inner_texts()
    assert left == ["≥ 30.0 s", "≥ 40.0 s"], "what was left then, which does not run"
    assert page.get_by_text("Nobody was evicted.").is_visible()
    assert "session expired" not in " ".join(page.locator(".story").all_inner_texts())
    page.locator(".members a", has_text="billing-1").click()
    has_text(page, ".deadlines .count b", "30.0 s")
    assert "Joined, and was a member since." in page.locator(".story").last.inner_text()
    page.locator(".live").click()
    has_text(page, ".facts .status", "ended")


def test_one_state_has_one_word_everywhere(page: Page, api: Api) -> None:  # noqa: F811
    """The health row says ok; the prediction is younger than it."""
    page.goto(api.url)
    has_text(page, ".next > li", "billing-1")
    assert page.locator(".next .status").inner_text() == "late"
    assert page.locator(".groups .status").inner_text() == "late"
    page.goto(api.url + GROUP)
    has_text(page, ".members .name", "6f6050d6")
    words = [
        page.locator(place).inner_text()
        for place in (".facts > .status", ".members > li:first-child .status", ".lane:has-text('6f6050d6') .status")
    ]
    assert words == ["late"] * 3


def test_a_phone_shows_the_deadline_that_is_next(page: Page, api: Api) -> None:  # noqa: F811
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(api.url + GROUP)
    shown = page.locator(".lane", has_text="6f6050d6").locator(".left p:visible")
    shown.nth(1).wait_for()
    assert shown.count() == 2, "its status and one deadline"
    assert shown.last.inner_text().startswith("poll "), "the session goes on for longer"
    page.locator(".lane a", has_text="billing-1").last.click()
    has_text(page, "h1", "billing-1")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_where_nobody_looks_at_ends_it_shows_what_was_committed_and_by_whom(page: Page, tables: Tables) -> None:  # noqa: F811
    now = wall_ms()
    by = {"committed_by": "m", "committed_by_client_id": "app"}
    tables.create()
    tables.batch(
        0,
        transition("orders", 1, "Stable", at_ms=now),
        member("orders", "m"),
        health("orders", "m", at_ms=now),
        lag("orders", 3, None, at_ms=now, looked_at_ms=None, **by),
        progress(now),
    )
    with running(ApiSettings(tables=tables.root, refresh_ms=20, stale_after_ms=600_000), wall_ms) as url:
        page.goto(url + GROUP)
        has_text(page, ".lag .facts", "Lag is not known")
        has_text(page, ".lag .partitions", "offset 100 committed by app")
        page.goto("about:blank")


def test_lag_that_is_not_known_takes_one_line(page: Page, tables: Tables) -> None:  # noqa: F811
    now = wall_ms()
    tables.create()
    tables.batch(
        0,
        transition("orders", 1, "Stable", at_ms=now),
        member("orders", "m"),
        health("orders", "m", at_ms=now),
        *(lag("orders", partition, None, at_ms=now) for partition in range(30)),
        progress(now),
    )
    with running(ApiSettings(tables=tables.root, refresh_ms=20, stale_after_ms=600_000), wall_ms) as url:
        page.goto(url + GROUP)
        has_text(page, ".lag .facts", "Lag is not known")
        box = page.locator(".lag").bounding_box()
        assert box
        assert box["height"] < 60, "thirty partitions say it no better than one line"
        read = page.locator(".rung summary").bounding_box()
        assert read
        assert read["height"] < 30
        page.goto("about:blank")
