"""Generated pages equal what they are generated from."""

from __future__ import annotations

from pathlib import Path

import pytest

from kardia.reference import PAGES

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "reference"


@pytest.mark.parametrize("name", sorted(PAGES))
def test_the_committed_page_is_what_is_rendered(name: str) -> None:
    written = (FOLDER / name).read_text(encoding="utf-8")
    assert written == PAGES[name](), f"{name} is old: run scripts/write_reference.py"
