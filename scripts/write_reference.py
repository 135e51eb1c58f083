"""Write the generated reference pages into `docs/reference`."""

from __future__ import annotations

from pathlib import Path

from kardia.reference import PAGES
from scripts.config_page import config_page
from scripts.metrics_page import metrics_page

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "docs" / "reference"


if __name__ == "__main__":
    for name, render in {
        **PAGES,
        "metrics.md": metrics_page,
        "kardia-yaml.md": config_page,
    }.items():
        (FOLDER / name).write_text(render(), encoding="utf-8")
