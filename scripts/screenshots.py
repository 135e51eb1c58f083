"""Makes the pictures of the page in `docs/images`: recorded stories as tables, the real API, a real Chromium.

    .venv/bin/python -m scripts.screenshots

Needs Chromium on the path (Debian: `chromium`). Several stories of real brokers end in one instant, and the API's clock
stands there, so that one picture shows a fleet in which something is about to happen.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path
from typing import Literal

from playwright.sync_api import Browser, sync_playwright

from api.settings import ApiSettings
from tests.api.conftest import Api, running
from tests.support.pictures import write_live

IMAGES = Path(__file__).resolve().parent.parent / "docs" / "images"
CLUSTER, GROUP = "demo", "g04"
STORIES: tuple[tuple[str, float | None], ...] = (
    ("c04_mpi-4.1.2", None),
    ("c01_kill-3.9.2", 18_300),
    ("c02_sigstop-3.9.2", 22_000),
    ("c06_static-3.9.2", None),
    ("c10_slow-3.9.2", 30_000),
)
"""Stories, and after how many ms each is cut: in the second and the third somebody has fallen silent by then."""

FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--force-color-profile=srgb")
Light = Literal["light", "dark"]


def main() -> int:
    """Take all pictures."""
    IMAGES.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "tables"
        end_ms: float | None = None
        for name, cut_ms in STORIES:
            _, end_ms = write_live(name, root, CLUSTER, cut_ms, end_ms)
        settings = ApiSettings(tables=root, stale_after_ms=600_000)
        at_ms = int(end_ms or 0) + 150
        with running(settings, lambda: at_ms) as url, sync_playwright() as play:
            api = Api(url)
            api.wait_for_batch(0)
            api.client.close()
            browser = play.chromium.launch(executable_path=shutil.which("chromium"), args=list(FLAGS))
            lights: tuple[Light, ...] = ("light", "dark")
            for light in lights:
                picture(browser, url, light, "fleet", (1200, 800))
                picture(browser, url, light, "group", (1200, 1400))
            picture(browser, url, "dark", "phone", (390, 844))
            browser.close()
    return 0


def picture(browser: Browser, url: str, light: Light, name: str, size: tuple[int, int]) -> None:
    """One picture: the fleet as it stands, or the group with a rebalance explained."""
    page = browser.new_page(viewport={"width": size[0], "height": size[1]}, timezone_id="UTC")
    page.emulate_media(color_scheme=light, reduced_motion="reduce")
    page.goto(url if name == "fleet" else f"{url}/#/clusters/{CLUSTER}/groups/{GROUP}")
    if name == "fleet":
        page.wait_for_function("() => document.querySelectorAll('.pulse .trace').length === 6")
    else:
        page.wait_for_selector(".lane .trace", state="attached")
        if name == "group":
            page.locator(".why").last.click()
            page.wait_for_selector(".cause:not([hidden])")
    page.screenshot(path=IMAGES / f"{name}-{light}.png")
    page.close()


if __name__ == "__main__":
    sys.exit(main())
