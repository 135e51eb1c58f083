"""Where to cut a history of batches, so that each piece has about so many rows.

Whoever begins over the tables of a month folds all of it, and needs none of its rows afterwards: read whole they take
more memory than all that is kept of them. Pure: reads no file.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import NamedTuple

ROWS_AT_ONCE = 50_000
"""Rows of a piece: some 80 MB as values of Python. Smaller pieces read the same row groups more often."""

_LEAST = 1e-6
"""Rows of a batch that are none: sums of fractions do not come back to 0."""


class Span(NamedTuple):
    """A file: its first batch, its last one, and how many rows it has of them."""

    first: int
    last: int
    rows: int


def ends(spans: Iterable[Span], up_to: int, rows_at_once: int) -> list[int]:
    """Last batches of the pieces, in order, the last one `up_to`. Rows of a file are taken as spread evenly over its
    batches; a batch is never cut."""
    more: dict[int, float] = {}
    """Batch -> how many rows more each batch has from there on."""
    for span in spans:
        each = span.rows / (span.last - span.first + 1)
        more[span.first] = more.get(span.first, 0.0) + each
        more[span.last + 1] = more.get(span.last + 1, 0.0) - each
    found: list[int] = []
    rows = each = 0.0
    for first, following in pairwise(sorted(more)):
        each += more[first]
        batch = first
        while each > _LEAST and batch < following:
            fitting = int((rows_at_once - rows) / each) or (0 if rows else 1)
            if batch + fitting > following:
                rows += each * (following - batch)
                break
            batch, rows = batch + fitting, 0.0
            found.append(batch - 1)
    return [*(end for end in found if end < up_to), up_to]
