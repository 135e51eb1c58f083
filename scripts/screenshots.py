"""Makes the pictures of the page in `docs/images`: recorded stories as tables, the real API, a real Chromium.

    .venv/bin/python -m scripts.screenshots

Needs Chromium on the path (Debian: `chromium`). The API's clock stands where the story is told, so the same story gives
the same picture.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

from api.settings import ApiSettings
from tests.api.conftest import running
from tests.support.pictures import write_live

ROOT = Path(__file__).resolve().parent.parent
IMAGES = ROOT / "docs" / "images"
STORY, CLUSTER, GROUP = "c04_mpi-4.1.2", "demo", "g04"
AFTER_MS = 45_500
"""So long after the first eviction of the story the pictures are taken."""

FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--force-color-profile=srgb")


def main() -> int:
    """Take all pictures."""
    IMAGES.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "tables"
        _, end_ms = write_live(STORY, root, CLUSTER)
        with (
            running(ApiSettings(tables=root, stale_after_ms=100), lambda: end_ms + 150) as url,
            sync_playwright() as play,
        ):
            browser = play.chromium.launch(executable_path=shutil.which("chromium"), args=list(FLAGS))
            for light in ("light", "dark"):
                picture(browser, url, light, "fleet", (1200, 520))
                picture(browser, url, light, "group", (1200, 860))
            picture(browser, url, "light", "phone", (390, 844))
            browser.close()
    return 0


def picture(browser: Browser, url: str, light: str, name: str, size: tuple[int, int]) -> None:
    """One picture of the fleet or of the group."""
    page = browser.new_page(viewport={"width": size[0], "height": size[1]}, timezone_id="UTC")
    page.emulate_media(color_scheme="dark" if light == "dark" else "light", reduced_motion="reduce")
    page.goto(url if name == "fleet" else f"{url}/#/clusters/{CLUSTER}/groups/{GROUP}")
    if name == "fleet":
        page.wait_for_selector(".pulse .trace", state="attached")
    else:
        page.wait_for_selector(".lane .trace", state="attached")
        page.locator(".transport .quiet").first.click()
        page.wait_for_selector(".live[aria-pressed=false]")
        page.locator(".why").last.click()
        page.wait_for_load_state("networkidle") if False else page.wait_for_selector(".cause:not([hidden])")
    page.screenshot(path=IMAGES / f"{name}-{light}.png")
    page.close()


if __name__ == "__main__":
    sys.exit(main())
