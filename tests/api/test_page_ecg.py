"""The electrocardiogram in a real Chromium, drawn from a recorded story of a real broker: beats, ends, causes, time.

What is drawn is compared with what the broker's own log says (`expect.json` of the story) or with the API's answer.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page

from api.app import PAGE
from api.settings import ApiSettings
from tests.api.conftest import Api, running
from tests.api.test_page import browser, has_text, page, wall_ms  # noqa: F401 - fixtures
from tests.api.written import Tables, health, member, progress, transition
from tests.support.pictures import write_live

STORY, GROUP = "c04_mpi-4.1.2", "/#/clusters/demo/groups/g04"
ENDED_ARE = (
    "() => [...document.querySelectorAll('.lane .status')].filter((one) => one.textContent === 'ended').length === "
)
VENDOR = PAGE / "vendor"


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    """The API over the story; its clock stands a moment behind the end, and its feed is old: countdowns stand still."""
    root = tmp_path_factory.mktemp("ecg") / "tables"
    _, end_ms = write_live(STORY, root, "demo")
    with running(ApiSettings(tables=root, refresh_ms=20, stale_after_ms=100), lambda: end_ms + 150) as url:
        found = Api(url)
        found.wait_for_batch(0)
        yield found
        found.client.close()


def drawn(page: Page, api: Api) -> None:  # noqa: F811
    """The electrocardiogram of the story's group is there."""
    page.goto(api.url + GROUP)
    page.wait_for_selector(".lane .trace", state="attached")


def beats_of(api: Api, from_ms: float, to_ms: float) -> dict[str, int]:
    found = api.get(
        "/api/v1/clusters/demo/groups/g04/pulse", **{"from": int(from_ms) - 15_000, "to": int(to_ms), "limit": 500}
    )
    return {
        one["member_id"]: sum(beat["error_code"] == 0 and beat["at_ms"] >= from_ms for beat in one["beats"])
        for one in found["members"]
    }


def test_what_lies_in_vendor_is_what_was_published_with_its_licences() -> None:
    lines = (line.split() for line in (VENDOR / "SHA256SUMS").read_text().splitlines())
    sums = {name: digest for digest, name in lines}
    there = {path.name: path for path in VENDOR.iterdir() if path.name != "SHA256SUMS"}
    assert set(sums) == set(there)
    for name, path in there.items():
        assert hashlib.sha256(path.read_bytes()).hexdigest() == sums[name], name
    shown = (PAGE / "index.html").read_text() + (PAGE / "follow.js").read_text()
    for name in there:
        assert name in shown or name.startswith("LICENSE-"), name


@pytest.mark.slow
@pytest.mark.needs_chromium
class TestElectrocardiogram:
    """In the browser."""

    def test_a_lane_per_member_a_beat_per_heartbeat_and_the_ends(self, page: Page, api: Api) -> None:  # noqa: F811
        drawn(page, api)
        fresh = api.get("/readyz")["freshness"]["complete_as_of_ms"]
        expected = beats_of(api, fresh - 45_000, fresh + 15_000)
        assert sum(expected.values()) > 100
        found: dict[str, int] = dict(
            page.evaluate(
                "[...document.querySelectorAll('.lane')].map((one) => [one.querySelector('.who').title,"
                " Number(one.querySelector('.track').dataset.beats)])"
            )
        )
        assert set(found) == set(expected)
        for member_id, count in expected.items():
            assert abs(found[member_id] - count) <= 2, "beats at the very edge may be cut off"
        assert page.locator(".end.evicted").count() == 2
        assert page.locator(".poll").count() > 20
        assert page.locator(".deadline.session").count() == 3
        assert page.locator(".straggler").count() > 0

    def test_a_click_on_a_rebalance_tells_its_cause_and_escape_puts_it_away(self, page: Page, api: Api) -> None:  # noqa: F811
        drawn(page, api)
        why = page.locator(".why", has_text="4→5")
        why.focus()
        page.keyboard.press("Enter")
        has_text(page, ".cause h3", "stopped polling and gave up its membership")
        has_text(page, ".cause .phases", "joining")
        assert page.evaluate("document.activeElement.classList.contains('cause')")
        page.keyboard.press("Escape")
        page.wait_for_selector(".cause", state="hidden")
        assert page.evaluate("document.activeElement.textContent.includes('4→5')"), "focus returns to where it was"

    def test_the_slider_goes_to_the_past_by_keyboard_and_back(self, page: Page, api: Api) -> None:  # noqa: F811
        drawn(page, api)
        assert page.locator(".live").get_attribute("aria-pressed") == "true"
        assert page.locator(".lane .status", has_text="ended").count() == 2
        page.locator("input.time").focus()
        with page.expect_response(lambda reply: "/pulse?" in reply.url and "&to=" in reply.url):
            page.keyboard.press("PageDown")
        page.keyboard.press("PageDown")
        page.wait_for_selector(".live[aria-pressed=false]")
        # 30 s before the end only c04-a has been evicted, and the one that came last is not there yet.
        page.wait_for_function(ENDED_ARE + "1")
        has_text(page, ".lane .status", "to come")
        assert page.locator(".lane .left p", has_text="session").count() >= 2
        page.keyboard.press("End")
        page.wait_for_selector(".live[aria-pressed=true]")
        page.wait_for_function(ENDED_ARE + "2")

    def test_where_the_slider_stands_is_in_the_address_and_leads_back_to_there(self, page: Page, api: Api) -> None:  # noqa: F811
        drawn(page, api)
        entries = page.evaluate("history.length")
        assert "at=" not in page.url
        page.locator("input.time").focus()
        page.keyboard.press("PageDown")
        page.keyboard.press("PageDown")
        page.wait_for_function("() => location.hash.includes('?at=2')")
        address = page.evaluate("location.href")  # the driver hears of it later
        shown = page.locator(".instant").text_content()
        assert page.evaluate("history.length") == entries, "the way back leads to the page before"
        page.goto("about:blank")
        page.goto(address)
        page.wait_for_selector(".live[aria-pressed=false]")
        has_text(page, ".instant", str(shown))
        page.wait_for_function(ENDED_ARE + "1")
        assert page.evaluate("location.href") == address, "looking at it does not change it"
        page.locator(".live").click()
        page.wait_for_function("() => !location.hash.includes('at=')")

    def test_an_address_is_taken_as_alerts_give_it_with_its_report_open(self, page: Page, api: Api) -> None:  # noqa: F811
        fresh_ms = api.get("/readyz")["freshness"]["complete_as_of_ms"]
        place, at_ms = "/#/clusters/~/groups/~?cluster=demo&group=g04", fresh_ms - 30_000
        page.goto(f"{api.url}{place}&at={at_ms}&from={at_ms - 600_000}&to={at_ms + 3_000_000}")
        has_text(page, ".report pre", "# Incident of a Kafka consumer group")
        page.wait_for_function(ENDED_ARE + "1")
        page.locator("input.time").focus()
        page.keyboard.press("PageDown")
        page.wait_for_function("() => !location.hash.includes('from=')")
        assert page.url.startswith(f"{api.url}{place}&at=2"), "what the API is asked stays word for word"

    @pytest.mark.parametrize("at", ["tomorrow", "2026-11-20T21:52:03", "", "99999999999999", "9" * 30])
    def test_an_address_with_an_instant_that_is_none_or_is_still_to_come_is_live(
        self,
        page: Page,  # noqa: F811
        api: Api,
        at: str,
    ) -> None:
        page.goto(f"{api.url}{GROUP}?at={at}")
        page.wait_for_selector(".lane .trace", state="attached")
        page.wait_for_selector(".live[aria-pressed=true]")

    def test_an_instant_that_is_not_read_yet_is_said_to_be_unknown(self, page: Page, api: Api) -> None:  # noqa: F811
        """The page showed the present and said nothing; the API refuses the same instant."""
        page.goto(f"{api.url}{GROUP}?at=2030-01-01T00:00:00Z")
        has_text(page, ".beyond", "Nothing is known beyond")
        page.locator("input.time").focus()
        page.keyboard.press("PageDown")
        page.wait_for_function("() => document.querySelector('.beyond').textContent === ''")

    def test_whoever_was_evicted_before_the_window_has_no_lane_in_it(self, page: Page, api: Api) -> None:  # noqa: F811
        drawn(page, api)
        fresh = api.get("/readyz")["freshness"]["complete_as_of_ms"]
        ends = [one["ended_at_ms"] for one in api.get("/api/v1/clusters/demo/groups/g04/evictions")["evictions"]]
        assert any(fresh - 22_500 - 15_000 < end < fresh - 22_500 for end in ends), "one ended just before the window"
        page.locator(".switch button", has_text="30 s").first.click()
        page.wait_for_function("() => document.querySelectorAll('.lane').length === 4")
        statuses = page.locator(".lane .status").all_inner_texts()
        assert sorted(statuses) == ["ended", "ok", "ok", "ok"]

    def test_in_the_past_the_head_tells_what_was_so_then(self, page: Page, api: Api) -> None:  # noqa: F811
        drawn(page, api)
        has_text(page, ".facts", "generation 6")
        assert page.locator(".facts > b").inner_text() == ""
        before = page.get_by_label("To the event before")
        for _ in range(2):
            before.click()
        has_text(page, ".facts", "generation 4")
        shown = page.locator(".instant").inner_text()
        assert page.locator(".facts > b").inner_text() == f"at {shown}"
        has_text(page, ".card h2", f"Members at {shown}")
        page.locator(".live").click()
        has_text(page, ".facts", "generation 6")
        assert "Members at" not in page.locator("main").inner_text()

    def test_in_the_past_the_band_of_states_ends_where_the_slider_stands(self, page: Page, api: Api) -> None:  # noqa: F811
        drawn(page, api)
        marks = page.locator(".band .eviction")
        page.wait_for_function("() => document.querySelectorAll('.band .eviction').length === 2")
        ends = page.locator(".band-labels span").last
        live = ends.inner_text()
        page.locator("input.time").focus()
        for _ in range(2):
            page.keyboard.press("PageDown")
        page.wait_for_function("() => document.querySelectorAll('.band .eviction').length === 1")
        assert ends.inner_text() == page.locator(".instant").inner_text().split(".")[0]
        page.locator(".live").click()
        page.wait_for_function("() => document.querySelectorAll('.band .eviction').length === 2")
        assert ends.inner_text() == live
        assert marks.count() == 2

    def test_an_incident_report_of_what_is_shown_can_be_copied(self, page: Page, api: Api) -> None:  # noqa: F811
        drawn(page, api)
        page.get_by_role("button", name="Incident report").click()
        has_text(page, ".report pre", "# Incident of a Kafka consumer group")
        has_text(page, ".report pre", "gave up its membership")
        page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        page.get_by_role("button", name="Copy").click()
        has_text(page, ".report [role=status]", "copied")
        copied = page.evaluate("navigator.clipboard.readText()")
        assert copied == page.locator(".report pre").evaluate("(one) => one.textContent")
        page.keyboard.press("Escape")
        page.wait_for_selector(".report", state="hidden")
        assert page.evaluate("document.activeElement.textContent") == "Incident report"

    def test_buttons_of_rebalances_do_not_cover_each_other(self, page: Page, api: Api) -> None:  # noqa: F811
        drawn(page, api)
        page.locator(".switch button", has_text="5 min").first.click()
        page.wait_for_function("() => document.querySelectorAll('.why').length === 6")
        texts = page.locator(".why").all_inner_texts()
        assert texts[-1].endswith("5→6")
        assert "⟳" in texts, "where they stand close together the sign alone is shown"

    def test_it_fits_a_phone_in_both_lights(self, page: Page, api: Api) -> None:  # noqa: F811
        page.set_viewport_size({"width": 360, "height": 780})
        grounds = set()
        for light in ("light", "dark"):
            page.emulate_media(color_scheme=light)
            drawn(page, api)
            page.locator(".why").last.click()
            page.wait_for_selector(".cause")
            assert page.evaluate("document.documentElement.scrollWidth") <= 360, light
            grounds.add(page.evaluate("getComputedStyle(document.body).backgroundColor"))
        assert len(grounds) == 2

    def test_the_fleet_shows_the_pulse_of_each_group(self, page: Page, api: Api) -> None:  # noqa: F811
        page.goto(api.url)
        page.wait_for_function(
            "() => document.querySelectorAll('.groups .pulse').length === 2 &&"
            " [...document.querySelectorAll('.groups .pulse')].every((one) => Number(one.dataset.beats) > 10)"
        )

    def test_news_come_by_themselves(self, page: Page, tables: Tables) -> None:  # noqa: F811
        now = wall_ms()
        tables.create()
        tables.batch(
            0,
            transition("quiet", 1, "Stable", at_ms=now),
            member("quiet", "q"),
            health("quiet", "q", at_ms=now),
            progress(now),
        )
        heard: list[str] = []
        page.on("request", lambda request: heard.append(request.url))
        with running(ApiSettings(tables=tables.root, refresh_ms=20, stale_after_ms=600_000), wall_ms) as url:
            page.goto(f"{url}/#/clusters/demo/groups/quiet")
            page.wait_for_selector(".lane")
            page.wait_for_function("() => document.body.dataset.following === 'true'")
            now = wall_ms()
            tables.batch(1, member("quiet", "r", client_id="newcomer", joined_at_ms=now), progress(now))
            has_text(page, ".lane .who", "newcomer")
            assert sum("/api/v1/changes" in one for one in heard) >= 1
            page.goto("about:blank")
