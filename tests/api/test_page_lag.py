"""Lag on the page of a group, in a real Chromium: below the electrocardiogram, by partition, with why."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, Route

from api.settings import ApiSettings
from kardia.instants import to_rfc3339
from tests.api.conftest import Api, running
from tests.api.test_page import EVIL, browser, has_text, page, wall_ms  # noqa: F401 - fixtures
from tests.api.written import Tables, health, lag, looked, member, progress, transition

pytestmark = [pytest.mark.slow, pytest.mark.needs_chromium]


@pytest.fixture
def url(tables: Tables) -> Iterator[str]:
    now = wall_ms()
    stopped = {"verdict": "STOP", "window_produced": 40, "window_read": 0, "held": "nobody"}
    tables.create()
    tables.batch(
        0,
        *(row for group in ("orders", "quiet") for row in (transition(group, 1, "Stable", at_ms=now - 60_000),)),
        member("orders", "m"),
        health("orders", "m", at_ms=now),
        lag("orders", 0, 1_200, at_ms=now, **stopped),
        lag("orders", 1, 0, at_ms=now, held="member", client_id=EVIL, topic=EVIL),
        lag("orders", 2, None, at_ms=now),
        lag("orders", 3, 3, at_ms=now, behind_from_ms=None, behind_at_ms=None, window_produced=0),
        looked(now),
        progress(now),
    )
    settings = ApiSettings(tables=tables.root, refresh_ms=20, stale_after_ms=600_000, lag_stale_after_ms=600_000)
    with running(settings, wall_ms) as found:
        api = Api(found)
        api.wait_for_batch(0)
        api.client.close()
        yield found


def test_a_group_shows_its_partitions_and_why_it_falls_behind(page: Page, url: str) -> None:  # noqa: F811
    page.goto(f"{url}/#/clusters/demo/groups/orders")
    has_text(page, ".lag .reasons li", "The group has 1 member, and none of them has orders-0.")
    assert "1,203 records behind in 2 of 4 partitions, of 1 not known" in page.locator(".lag .facts").inner_text()
    shown = page.locator(".partitions > li").all_inner_texts()
    assert ["1,200 records" in shown[0], "STOP" in shown[0], "held by nobody" in shown[0]] == [True] * 3
    assert any("not known" in one and "UNKNOWN" in one for one in shown)
    assert any("at least 8" in one for one in shown), "a bound is shown as one"
    assert page.locator("script:not([src])").count() == 0
    # Below the electrocardiogram.
    above = page.locator(".ecg").first.bounding_box()
    below = page.locator(".lag").bounding_box()
    assert above is not None
    assert below is not None
    assert below["y"] >= above["y"] + above["height"] - 1


def test_a_group_that_commits_nothing_has_no_such_part(page: Page, url: str) -> None:  # noqa: F811
    page.goto(f"{url}/#/clusters/demo/groups/quiet")
    has_text(page, "h1", "quiet")
    assert page.locator(".lag").is_hidden()


@pytest.mark.parametrize(("pages", "shown"), [(5, "41 of 41"), (1, "40 of 40")], ids=["all", "more than is read"])
def test_of_the_past_all_partitions_are_shown_or_it_is_said_that_some_are_not(
    page: Page,  # noqa: F811
    tables: Tables,
    pages: int,
    shown: str,
) -> None:
    """Only the last 1,000 rows were looked at: a partition that had not changed since had never had a lag."""
    now = wall_ms()
    tables.create()
    tables.batch(
        0,
        transition("orders", 1, "Stable", at_ms=now - 600_000),
        member("orders", "m", joined_at_ms=now - 600_000),
        health("orders", "m", at_ms=now),
        lag("orders", 99, 40, at_ms=now - 300_000),
        *(lag("orders", n % 40, 3, at_ms=now - 200_000 + 100 * n) for n in range(1_200)),
        looked(now),
        progress(now),
    )

    def bounded(route: Route) -> None:
        script = route.fetch()
        route.fulfill(
            response=script, body=script.text().replace("const PAGES_BACK = 5", f"const PAGES_BACK = {pages}")
        )

    page.route("**/lag.js", bounded)
    settings = ApiSettings(tables=tables.root, refresh_ms=20, stale_after_ms=600_000, lag_stale_after_ms=600_000)
    with running(settings, wall_ms) as url:
        page.goto(f"{url}/#/clusters/demo/groups/orders?at={to_rfc3339(now - 1_000)}")
        has_text(page, ".lag .facts", f"behind in {shown} partitions")
        more = page.locator(".lag > p.soft").inner_text()
        assert ("Partitions that last changed before" in more) is (pages == 1), more
        page.goto("about:blank")
