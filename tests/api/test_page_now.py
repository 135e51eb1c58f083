"""What the page says of now is true at the instant at which it says it: between two answers, and when none come.

A member's session is about to end; then nothing is read any more, or it is heard, or the server is away. What the page
shows is taken every 50 ms, with the instant.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Page

from api.settings import ApiSettings
from tests.api.conftest import Api, running
from tests.api.test_page import browser, has_text, page, wall_ms  # noqa: F401 - fixtures
from tests.api.written import Tables, health, member, prediction, progress, transition

pytestmark = [pytest.mark.slow, pytest.mark.needs_chromium]

AHEAD_MS = 12_000
"""From the first batch to the deadline: time for a starved machine to show it once."""

WITHIN_MS = 1_500
"""A page of a starved machine may be that late; what was wrong lasted until the next answer, or for good."""

WATCH = """() => {
  window.taken = [];
  setInterval(() => {
    const texts = (selector) => [...document.querySelectorAll(selector)].map((one) => one.textContent);
    window.taken.push([Date.now(), texts("main .status"), texts(".rows .count b")]);
  }, 50);
}"""


def near(tables: Tables, deadline_ms: int) -> None:
    """`weak` was heard last 10 s before its deadline, and that it may end is predicted."""
    now = wall_ms()
    tables.create()
    tables.batch(
        0,
        transition("orders", 1, "Stable", at_ms=now - 60_000),
        member("orders", "weak", client_id="weak", joined_at_ms=now - 60_000),
        health(
            "orders",
            "weak",
            at_ms=now,
            client_id="weak",
            status="imminent",
            session_timeout_ms=20_000,
            last_heard_at_ms=deadline_ms - 20_000,
            session_deadline_at_ms=deadline_ms,
        ),
        # Its outcome is told by another batch, which finds it by this instant.
        prediction("orders", "weak", "session", predicted_at_ms=deadline_ms - AHEAD_MS, deadline_at_ms=deadline_ms),
        progress(now),
    )


@pytest.fixture
def deadline_ms(tables: Tables) -> int:
    found = wall_ms() + AHEAD_MS
    near(tables, found)
    return found


@pytest.fixture
def url(tables: Tables, deadline_ms: int) -> Iterator[str]:
    with running(ApiSettings(tables=tables.root, refresh_ms=20, stale_after_ms=600_000), wall_ms) as found:
        api = Api(found)
        api.wait_for_batch(0)
        api.client.close()
        yield found


def shown_after(page: Page, at_ms: int) -> list[Any]:  # noqa: F811
    """What was shown from an instant on."""
    taken: list[Any] = page.evaluate("window.taken")
    return [(words, left) for seen_ms, words, left in taken if seen_ms > at_ms + WITHIN_MS]


def watched_until(page: Page, at_ms: int) -> None:  # noqa: F811
    page.wait_for_function("(at) => window.taken.length > 0 && window.taken.at(-1)[0] > at", arg=at_ms)


PLACES = ["#/", "#/clusters/demo/groups/orders"]


@pytest.mark.parametrize("place", PLACES, ids=["fleet", "group"])
def test_nothing_is_near_once_its_deadline_has_passed_unread(
    page: Page,  # noqa: F811
    url: str,
    deadline_ms: int,
    place: str,
) -> None:
    """The job stands still, and its tables are not old yet: the page asks again and again, and learns nothing."""
    page.goto(f"{url}/{place}")
    has_text(page, ".status", "imminent")
    page.evaluate(WATCH)
    has_text(page, ".count b", "due ")
    watched_until(page, deadline_ms + WITHIN_MS + 1_500)
    after = shown_after(page, deadline_ms)
    assert after
    for words, left in after:
        assert "imminent" not in words, "it is not coming any more"
        assert "was imminent" in words
        assert any(one.startswith("due ") and one.endswith(" ago") for one in left), left
    page.goto("about:blank")


@pytest.mark.parametrize("place", PLACES, ids=["fleet", "group"])
def test_who_was_heard_again_is_near_no_more(
    page: Page,  # noqa: F811
    url: str,
    tables: Tables,
    deadline_ms: int,
    place: str,
) -> None:
    page.goto(f"{url}/{place}")
    has_text(page, ".status", "imminent")
    now = wall_ms()
    averted = {"outcome": "averted", "outcome_at_ms": now, "known_at_ms": now, "deadline_at_ms": deadline_ms}
    tables.batch(
        1,
        health("orders", "weak", at_ms=now, client_id="weak", session_timeout_ms=20_000, last_heard_at_ms=now),
        prediction("orders", "weak", "session", predicted_at_ms=deadline_ms - AHEAD_MS, **averted),
        progress(now),
    )
    page.wait_for_function("() => document.body.dataset.batch === '1'")
    page.evaluate(WATCH)
    watched_until(page, wall_ms() + 1_000)
    for words, _ in page.evaluate("window.taken.map(([, words, left]) => [words, left])"):
        assert not [one for one in words if "imminent" in one], words
    assert page.locator(".next > li").count() == 0
    page.goto("about:blank")


def test_a_server_that_is_away_leaves_nothing_near(page: Page, url: str, deadline_ms: int) -> None:  # noqa: F811
    page.goto(url)
    has_text(page, ".status", "imminent")
    page.route("**/api/**", lambda route: route.abort())
    has_text(page, ".feed", "no answer")
    page.evaluate(WATCH)
    watched_until(page, wall_ms() + 1_500)
    words, left = page.evaluate("window.taken.at(-1).slice(1)")
    assert "imminent" not in words
    assert "was imminent" in words
    assert not any(one.endswith(" s") for one in left), "no countdown runs"
    page.goto("about:blank")
