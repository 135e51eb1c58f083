"""Write the generated reference pages into `docs/reference`."""

from __future__ import annotations

from pathlib import Path

from kardia.reference import PAGES

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "reference"

if __name__ == "__main__":
    for name, render in PAGES.items():
        (FOLDER / name).write_text(render(), encoding="utf-8")
