"""Lists of situations that a run must reach, as data: one file of cells for each kind of groups that has one."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tests.truth.coverage import Cell, Verdict


class Listed(NamedTuple):
    """A cell of a list."""

    cell: Cell
    releases: tuple[str, ...]
    """Releases it exists in; empty for all."""


def read(path: Path) -> list[Listed]:
    """A list."""
    rows = json.loads(path.read_text(encoding="utf-8"))
    return [Listed(Cell(*row["cell"]), tuple(row.get("releases", ()))) for row in rows]


def judged(listed: Sequence[Listed], counts: Counter[Cell], version: str) -> Verdict:
    """Counts against a list."""
    reached = {cell for cell in counts if counts[cell]}
    wanted = [one.cell for one in listed if not one.releases or version in one.releases]
    return Verdict(len(reached), 0, [cell for cell in wanted if cell not in reached], ())
