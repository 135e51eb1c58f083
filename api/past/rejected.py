"""Lines that could not be understood, page by page: which line of which log, what was expected, how it begins.

A line has no group, so nothing here is about one. Newest means brought by the latest batch, and within a batch by the
line's own stamp: this order stays as it is while the table grows. A line whose stamp could not be read (the table says
0) may be of any time; it stands in the answer whatever range was asked for, without an instant.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds

from api.answers import as_dicts
from api.files.data_files import Bound
from api.files.reader import TableReader
from api.past.archive import HistoryPart, Page, behind, cut, first_of, up_to

SHOWN = ("cluster_id", "source", "start", "end", "at_ms", "reason", "expected", "excerpt", "certainty", "batch_id")
"""Columns of the answer; the others say nothing of a line."""

ORDER = ("batch_id", "at_ms", "source", "start")
NO_STAMP = 0
"""`at_ms` of a line without a stamp that can be read."""


def lines(reader: TableReader, cluster_id: str, part: HistoryPart, reason: str | None) -> Page:
    """Rejected lines of a cluster. The page is kept small while reading, so no number of lines is too large."""
    at_ms = ds.field("at_ms")
    where = (ds.field("cluster_id") == cluster_id) & (ds.field("batch_id") <= part.place.batch_id)
    files = [up_to(part.place.batch_id)]
    if reason is not None:
        where &= ds.field("reason") == reason
    if part.from_ms is not None:
        where &= (at_ms >= part.from_ms) | (at_ms == NO_STAMP)
    if part.to_ms is not None:
        where &= (at_ms < part.to_ms) | (at_ms == NO_STAMP)
        files.append(Bound("at_ms", "<", max(part.to_ms, NO_STAMP + 1)))
    if part.place.after:
        where &= behind(ORDER, part.place.after, newest_first=part.newest_first)

    def take(chunks: Iterator[pa.Table]) -> list[Any]:
        return first_of(reader, chunks, ORDER, part)

    return cut(reader.scan(where, files, take), part, lambda row: tuple(getattr(row, name) for name in ORDER))


def line(row: Any) -> dict[str, Any]:
    """A rejected line as it is answered."""
    found = as_dicts.columns("rejected", row, SHOWN)
    if row.at_ms == NO_STAMP:
        found["at_ms"] = found["at"] = None
    return found
