"""The fleet on the page where nothing runs: before anything is read, and of an archive."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Page

from api.settings import ApiSettings
from tests.api.conftest import running
from tests.api.test_page import browser, has_text, page, wall_ms  # noqa: F401 - fixtures
from tests.api.written import Tables, health, member, progress, rebalance, transition

pytestmark = [pytest.mark.slow, pytest.mark.needs_chromium]


def test_an_empty_feed_says_what_to_do_next(page: Page, tables: Tables) -> None:  # noqa: F811
    tables.create()
    with running(ApiSettings(tables=tables.root, refresh_ms=20), wall_ms) as url:
        page.goto(url)
        has_text(page, ".next-steps", "kardia doctor")
        tables.batch(0, transition("orders", 1, "Stable", at_ms=wall_ms()), progress(wall_ms()))
        page.locator(".groups > li").wait_for()
        assert page.locator(".next-steps").is_hidden()
        page.goto("about:blank")


def test_the_fleet_says_how_many_answers_the_model_predicted(page: Page, tables: Tables) -> None:  # noqa: F811
    tables.create()
    tables.batch(0, transition("orders", 1, "Stable", at_ms=wall_ms()), progress(wall_ms()))
    with running(ApiSettings(tables=tables.root, refresh_ms=20), wall_ms) as url:
        page.goto(url)
        page.locator(".groups > li").wait_for()
        assert page.locator(".self-test").is_hidden()
        counts: dict[str, Any] = {"answers": 41_210, "predicted": 41_203, "evidence_missing": 2}
        tables.batch(1, progress(wall_ms(), **counts))
        has_text(
            page, ".self-test", "Self-test: 41,203 answers predicted, 2 surprises, 5 of groups that were not known"
        )
        has_text(page, ".self-test", "kardia surprises lists them.")
        page.goto("about:blank")


def test_an_archive_tells_what_each_group_went_through(page: Page, tables: Tables) -> None:  # noqa: F811
    now = wall_ms()
    tables.create()
    tables.batch(
        0,
        *(transition(group, 1, "Stable", at_ms=now - 60_000) for group in ("bad", "calm")),
        member("calm", "c"),
        health("calm", "c", at_ms=now, status="imminent"),
        member("bad", "a", joined_at_ms=now - 60_000, ended_at_ms=now - 5_000, end_cause="session_expired"),
        rebalance("bad", now - 5_000, completed_at_ms=now - 3_000),
        progress(now),
    )
    later = lambda: wall_ms() + 7_200_000  # noqa: E731
    with running(ApiSettings(tables=tables.root, refresh_ms=20), later) as url:
        page.goto(url)
        has_text(page, ".groups > li", "1 × session expired · 1 rebalance, 2.0 s.")
        bad, calm = page.locator(".groups > li").all_inner_texts()
        assert "1 evicted" in bad
        assert "nobody evicted" in calm
        assert page.locator(".tile", has_text="evictions").locator("b").inner_text() == "1"
        assert "the logs end 2 h" in page.locator(".feed").inner_text()
        assert not {"was", "imminent"} & set(page.locator("main").inner_text().split())
        page.goto("about:blank")
