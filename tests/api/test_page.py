"""The page in a real Chromium: what it shows, that countdowns run, that ids stay text, that it fits a phone.

Without Chromium these tests are left out and the run says so.
"""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import quote

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from api.settings import ApiSettings
from tests.api.conftest import Api, running
from tests.api.written import Tables, health, member, prediction, progress, rebalance, transition

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)
EVIL = "a/b <img src=x onerror=document.title='owned'> \u202e'\";\x00\n"

pytestmark = [pytest.mark.slow, pytest.mark.needs_chromium]


def wall_ms() -> int:
    return time.time_ns() // 1_000_000


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=list(FLAGS))
        yield browser
        browser.close()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A tab in which any script error or breach of the content policy fails the test."""
    tab = browser.new_page(viewport={"width": 1280, "height": 900})
    tab.set_default_timeout(90_000)  # a starved machine
    troubles: list[str] = []
    tab.on("pageerror", lambda error: troubles.append(str(error)))
    tab.on("console", lambda line: troubles.append(line.text) if "Content Security Policy" in line.text else None)
    yield tab
    tab.close()
    assert troubles == []


@pytest.fixture
def url(tables: Tables) -> Iterator[str]:
    now = wall_ms()
    tables.create()
    tables.batch(
        0,
        transition("orders", 1, "PreparingRebalance", at_ms=now - 61_000, from_state="Empty"),
        transition("orders", 2, "Stable", at_ms=now - 60_000, from_state="PreparingRebalance"),
        transition("quiet", 1, "Stable", at_ms=now - 60_000),
        member("orders", "m-well", client_id="well"),
        member("orders", "m-weak", client_id="weak"),
        member(
            "orders",
            "m-gone",
            client_id="gone",
            joined_at_ms=now - 50_000,
            ended_at_ms=now - 30_000,
            end_cause="session_expired",
        ),
        member("quiet", "q"),
        member(EVIL, EVIL, client_id=EVIL),
        health(
            "orders",
            "m-well",
            at_ms=now,
            client_id="well",
            session_deadline_at_ms=now + 590_000,
            session_timeout_ms=600_000,
        ),
        health(
            "orders",
            "m-weak",
            at_ms=now,
            client_id="weak",
            session_timeout_ms=600_000,
            session_deadline_at_ms=now + 200_000,
            status="imminent",
            reasons=["silent for a while"],
        ),
        health("quiet", "q", at_ms=now),
        health(EVIL, EVIL, at_ms=now, client_id=EVIL),
        prediction("orders", "m-weak", "session", predicted_at_ms=now, deadline_at_ms=now + 200_000),
        rebalance(
            "orders", now - 30_000, trigger="session_expired", trigger_client_id="gone", reason="heartbeat expired"
        ),
        progress(now),
    )
    with running(ApiSettings(tables=tables.root, refresh_ms=20, stale_after_ms=600_000), wall_ms) as found:
        api = Api(found)
        api.wait_for_batch(0)
        api.client.close()
        yield found


def has_text(page: Page, selector: str, text: str) -> None:
    page.wait_for_function(
        "([selector, text]) => [...document.querySelectorAll(selector)].some((one) => one.textContent.includes(text))",
        arg=[selector, text],
    )


def test_the_fleet_shows_the_worst_group_first(page: Page, url: str) -> None:
    page.goto(url)
    has_text(page, ".groups > li", "imminent")
    assert page.locator(".groups > li .name").first.inner_text() == "orders"
    assert page.locator(".tile", has_text="members").locator("b").inner_text() == "4"
    assert "session expired" in page.locator(".groups > li").first.inner_text()


def test_the_fleet_names_who_is_next_to_be_evicted(page: Page, url: str) -> None:
    page.goto(url)
    has_text(page, ".next > li", "session ends")
    [found] = page.locator(".next > li").all_inner_texts()
    assert found.split("\n")[0] == "weak in orders"
    assert "imminent" in found
    assert "3 min " in found
    page.locator(".next a", has_text="orders").click()
    has_text(page, "h1", "orders")


@pytest.fixture
def rebalancing(tables: Tables) -> Iterator[str]:
    """A group that waits for one of its members; the ledger does not have its rebalance: nobody has been answered."""
    now = wall_ms()
    waiting = {"group_state": "PreparingRebalance", "session_timeout_ms": 600_000, "at_ms": now}
    tables.create()
    tables.batch(
        0,
        transition("orders", 1, "Stable", at_ms=now - 60_000),
        transition("orders", 2, "PreparingRebalance", at_ms=now - 5_000, from_state="Stable"),
        rebalance("orders", now - 61_000),
        member("orders", "a", client_id="slow", rebalance_timeout_ms=400_000),
        member("orders", "b", client_id="there", rebalance_timeout_ms=400_000),
        health(
            "orders",
            "a",
            client_id="slow",
            session_deadline_at_ms=now + 590_000,
            awaited_since_at_ms=now - 4_000,
            awaited_until_at_ms=now + 300_000,
            **waiting,
        ),
        health("orders", "b", client_id="there", session_deadline_at_ms=now + 590_000, **waiting),
        *(transition(f"other-{number:02}", 1, "Stable", at_ms=now - 60_000) for number in range(12)),
        progress(now),
    )
    with running(ApiSettings(tables=tables.root, refresh_ms=20, stale_after_ms=600_000), wall_ms) as found:
        api = Api(found)
        api.wait_for_batch(0)
        api.client.close()
        yield found


def test_a_rebalance_under_way_tells_whom_it_waits_for(page: Page, rebalancing: str) -> None:
    page.goto(rebalancing)
    has_text(page, ".open > li", "waits for slow")
    assert page.locator(".tile", has_text="rebalancing").locator("b").inner_text() == "1"
    text = page.locator(".open > li").inner_text()
    assert "PreparingRebalance" in text
    assert "goes on without them in 6 min " in text
    assert "there" not in text.replace("without them", "")
    row = page.locator(".groups > li", has_text="orders").inner_text()
    assert "Rebalancing for" in row
    assert "Last rebalance" not in row
    page.locator(".open a").click()
    has_text(page, "p.open", "waits for slow")


def test_a_group_is_found_by_a_part_of_its_name(page: Page, rebalancing: str) -> None:
    page.goto(rebalancing)
    page.wait_for_function("() => document.querySelectorAll('.groups > li').length === 13")
    page.get_by_placeholder("Find a group").fill("-07")
    page.wait_for_function("() => document.querySelectorAll('.groups > li').length === 1")
    assert page.locator(".groups .name").inner_text() == "other-07"
    assert page.locator(".tile").first.is_hidden(), "numbers of all groups would be taken for those of what was found"
    page.get_by_placeholder("Find a group").fill("nowhere & ?")
    has_text(page, ".lists .empty", "No group's name contains this.")
    page.get_by_placeholder("Find a group").fill("")
    page.wait_for_function("() => document.querySelectorAll('.groups > li').length === 13")


def test_the_zone_of_the_times_is_said(browser: Browser, url: str) -> None:
    for zone, said in (("Asia/Kolkata", "UTC+05:30"), ("UTC", "yours, UTC;")):
        tab = browser.new_page(timezone_id=zone)
        tab.goto(url)
        has_text(tab, "footer", said)
        tab.close()


def test_a_countdown_runs_between_two_answers(page: Page, url: str) -> None:
    page.goto(f"{url}/#/clusters/demo/groups/orders")
    has_text(page, ".members > li", "imminent")
    read: Callable[[], Any] = lambda: page.evaluate(  # noqa: E731
        "document.querySelector('.members > li .count b').textContent"
    )
    page.route("**/api/**", lambda _: None)  # no further question is answered
    first = read()
    assert first.startswith("3 min "), first
    page.wait_for_function("(was) => document.querySelector('.members > li .count b').textContent !== was", arg=first)
    seconds = [int(text.split()[2]) + 60 * int(text.split()[0]) for text in (first, read())]
    assert seconds[1] < seconds[0]


def test_a_group_tells_its_members_rebalances_evictions_and_history(page: Page, url: str) -> None:
    page.goto(url)
    page.locator(".groups .name a").first.click()
    has_text(page, "h1", "orders")
    has_text(page, ".members > li", "silent for a while")
    has_text(page, ".story li", "gone fell silent and its session expired.")
    has_text(page, ".story li", "“heartbeat expired”")
    has_text(page, ".story li", "gone: session expired.")
    has_text(page, ".story li", "Group: PreparingRebalance → Stable")
    assert page.locator(".band svg .stable").count() == 1
    assert page.locator(".band svg .eviction").count() == 1
    assert page.title() == "orders · Kardia"


def test_ids_are_text_and_nothing_else(page: Page, url: str) -> None:
    page.goto(url)
    link = page.locator(".groups .name a", has_text="onerror")
    link.wait_for()
    assert "\\u{202e}" in link.inner_text()
    link.click()
    has_text(page, ".members > li", "onerror")
    assert page.locator("main img").count() == 0
    assert page.title() != "owned"


def test_a_link_may_carry_the_ids_as_parameters(page: Page, url: str) -> None:
    page.goto(f"{url}/#/clusters/~/groups/~?cluster=demo&group={quote(EVIL, safe='')}")
    has_text(page, "h1", "onerror")
    has_text(page, ".members > li", "onerror")


def test_it_says_at_once_that_it_loads(page: Page, url: str) -> None:
    page.route("**/page/main.js", lambda _: None)  # not even the program has come
    page.goto(url, wait_until="commit")
    page.get_by_text("Loading the page").wait_for()
    page.unroute_all()
    page.route("**/api/v1/clusters**", lambda _: None)
    page.goto("about:blank")
    for path, said in (("/", "Loading all groups"), ("/#/clusters/demo/groups/quiet", "Loading the group")):
        page.goto(url + path)
        page.get_by_text(said).wait_for()
    page.unroute_all()
    page.reload()
    page.get_by_text("Nobody was evicted.").wait_for()
    assert page.locator(".loading").is_hidden()


def test_nothing_is_said_of_a_group_before_there_is_an_answer(page: Page, url: str) -> None:
    page.route("**/api/v1/clusters/demo/groups/**", lambda _: None)  # no question is answered
    page.goto(f"{url}/#/clusters/demo/groups/quiet")
    page.wait_for_selector("main[aria-busy=true] .lanes", state="attached")
    assert page.get_by_text("Nobody was evicted.").is_hidden()
    page.unroute_all()
    page.reload()
    page.get_by_text("Nobody was evicted.").wait_for()


@pytest.fixture
def told(tables: Tables) -> Iterator[str]:
    """A group with late timers, one in which a member waits for a rebalance unseen, one of the consumer protocol."""
    now = wall_ms()
    seen = {"at_ms": now, "session_timeout_ms": 600_000}
    tables.create()
    tables.batch(
        0,
        transition("late", 1, "Stable", at_ms=now - 60_000, cause="first", at_bound_ms=0),
        transition("late", 4, "Stable", at_ms=now - 20_000, cause="fourth", at_bound_ms=0),
        transition("late", 2, "PreparingRebalance", at_ms=now - 30_000, cause="second", at_bound_ms=250),
        transition("late", 3, "CompletingRebalance", at_ms=now - 25_000, cause="third", at_bound_ms=None),
        member("late", "there", at_bound_ms=0),
        member("late", "a", client_id="a", ended_at_ms=now - 30_000, end_cause="session_expired", at_bound_ms=250),
        member("late", "b", client_id="b", ended_at_ms=now - 40_000, end_cause="session_expired", at_bound_ms=None),
        member("late", "c", client_id="c", ended_at_ms=now - 50_000, end_cause="poll_timeout", at_bound_ms=5),
        rebalance("late", now - 30_000, at_bound_ms=250, completed_at_ms=now - 20_000, completed_bound_ms=None),
        transition("waits", 1, "Stable", at_ms=now - 60_000),
        transition("waits", 2, "PreparingRebalance", at_ms=now - 15_000, from_state="Stable"),
        member("waits", "w", client_id="waiting"),
        health(
            "waits",
            "w",
            client_id="waiting",
            status="overdue",
            group_state="PreparingRebalance",
            session_deadline_at_ms=now - 5_000,
            **seen,
        ),
        transition("new", 1, "Reconciling", at_ms=now - 60_000, generation_id=7),
        member("new", "n", protocol="consumer"),
        health("new", "n", group_state="Reconciling", generation_id=7, **seen),
        progress(now),
    )
    with running(ApiSettings(tables=tables.root, refresh_ms=20, stale_after_ms=600_000), wall_ms) as found:
        api = Api(found)
        api.wait_for_batch(0)
        api.client.close()
        yield found


def test_an_instant_that_may_be_later_is_told_with_its_bounds(page: Page, told: str) -> None:
    page.goto(f"{told}/#/clusters/demo/groups/late")
    has_text(page, ".story li", "a: session expired.")
    ends = page.locator(".two .card:last-child li")
    a, b, c = (ends.filter(has_text=f"{name}: ").inner_text() for name in ("a", "b", "c"))
    first, last = re.findall(r"between (\S+) and (\S+)", a)[0]
    assert int(last[-3:]) - int(first[-3:]) in (250, -750)
    assert "nothing that was seen says how much later" in b
    assert "between" not in c, "that is the width of two stamps"
    text = page.locator(".two .card:first-child li").inner_text()
    assert "it began between" in text
    assert "it was over not before" in text
    assert page.locator(".band title", has_text="evicted").count() == 3
    assert page.locator(".band title", has_text="between").count() == 1


def test_a_history_is_in_the_order_of_time(page: Page, told: str) -> None:
    page.goto(f"{told}/#/clusters/demo/groups/late")
    has_text(page, ".story li", "fourth")
    history = page.locator(".card", has=page.get_by_text("State history")).locator("li")
    causes = [text.split("\n")[-1].split(" ")[0] for text in history.all_inner_texts()]
    assert causes == ["fourth", "third", "second", "first"]


def test_who_may_wait_for_a_rebalance_is_unseen_and_not_overdue(page: Page, told: str) -> None:
    page.goto(told)
    has_text(page, ".groups > li", "1 unseen")
    assert page.locator(".tile", has_text="overdue").locator("b").inner_text() == "0"
    assert "overdue" not in page.locator(".groups > li", has_text="waits").inner_text()
    page.goto(f"{told}/#/clusters/demo/groups/waits")
    has_text(page, ".members .status", "unseen")
    has_text(page, ".facts .status", "unseen")
    assert page.locator(".members .count b").all_inner_texts() == ["–", "–"]
    assert "overdue" not in page.locator("main").inner_text()


def test_a_group_of_the_consumer_protocol_has_an_epoch(page: Page, told: str) -> None:
    page.goto(told)
    has_text(page, ".groups > li", "Reconciling")
    page.goto(f"{told}/#/clusters/demo/groups/new")
    has_text(page, ".facts", "Reconciling")
    has_text(page, ".facts", "epoch 7")


def test_of_an_old_feed_it_tells_what_was(page: Page, tables: Tables) -> None:
    now = wall_ms()
    tables.create()
    tables.batch(
        0,
        transition("quiet", 1, "Stable", at_ms=now - 67_000),
        member("quiet", "q"),
        health("quiet", "q", at_ms=now),
        progress(now - 60_000),
    )
    with running(ApiSettings(tables=tables.root, refresh_ms=20, stale_after_ms=1_000), wall_ms) as url:
        page.goto(url)
        has_text(page, ".groups .status.unknown", "was ok")
        assert page.locator(".feed").inner_text().endswith("countdowns stand still")
        page.locator(".groups .name a").click()
        has_text(page, ".facts .status.unknown", "was ok")
        has_text(page, ".facts", "for 7.0 s, up to ")
        has_text(page, ".members .status.unknown", "was ok")
        page.goto("about:blank")


def test_new_facts_appear_by_themselves(page: Page, url: str, tables: Tables) -> None:
    page.goto(f"{url}/#/clusters/demo/groups/quiet")
    has_text(page, ".members > li", "app")
    now = wall_ms()
    tables.batch(
        1,
        member("quiet", "q", ended_at_ms=now, end_cause="left"),
        transition("quiet", 2, "Empty", at_ms=now),
        progress(now),
    )
    has_text(page, ".facts", "Empty")
    page.wait_for_function("() => document.querySelectorAll('.members > li').length === 0")


def test_it_fits_a_phone_and_is_used_by_keyboard_in_both_lights(page: Page, url: str) -> None:
    page.set_viewport_size({"width": 360, "height": 780})
    for light in ("light", "dark"):
        page.emulate_media(color_scheme=light)
        for path in ("/", "/#/clusters/demo/groups/orders"):
            page.goto(url + path)
            page.wait_for_selector(".rows > li")
            assert page.evaluate("document.documentElement.scrollWidth") <= 360, (light, path)
    page.goto(url)
    page.wait_for_selector(".groups > li")
    page.locator(".groups .name a").first.focus()
    for _ in range(2):  # the second answer has been shown when the third question is asked
        with page.expect_response("**/groups?*"):
            pass
    assert page.evaluate("document.activeElement.closest('.groups') !== null"), "an answer took the focus away"
    page.keyboard.press("Enter")
    has_text(page, "h1", "orders")


def test_the_page_asks_for_a_token_and_says_when_tables_are_missing(page: Page, tables: Tables) -> None:
    token = "t" * 32
    tables.root.mkdir()
    secret = tables.root / "token"
    secret.write_text(f"{token}\n")
    with running(ApiSettings(tables=tables.root, token_file=secret), wall_ms) as url:
        page.goto(url)
        page.locator("form.ask input").fill(token)
        page.keyboard.press("Enter")
        has_text(page, ".notice", "do not exist yet")
