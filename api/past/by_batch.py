"""Rows about one line of a log each, page by page: of a cluster, or of one group.

Newest means brought by the latest batch, and within a batch by the row's own instant: this order stays as it is while
the table grows. Reads files through `api.past.archive`; knows no HTTP.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds

from api.files.data_files import Bound
from api.files.reader import TableReader
from api.past.archive import HistoryPart, Page, behind, cut, first_of, up_to

ORDER = ("batch_id", "at_ms", "source", "start")


def rows(
    reader: TableReader, cluster_id: str, group_id: str | None, part: HistoryPart, equal: Mapping[str, str | None]
) -> Page:
    """A page of a table that has the columns `ORDER`, kept small while reading. `equal`: column -> its value, None for
    any."""
    where = (ds.field("cluster_id") == cluster_id) & (ds.field("batch_id") <= part.place.batch_id)
    files = [up_to(part.place.batch_id)]
    if group_id is not None:
        where &= ds.field("group_id") == group_id
        files.append(Bound("group_id", "=", group_id))
    for column, value in equal.items():
        if value is not None:
            where &= ds.field(column) == value
    if part.from_ms is not None:
        where &= ds.field("at_ms") >= part.from_ms
        files.append(Bound("at_ms", ">=", part.from_ms))
    if part.to_ms is not None:
        where &= ds.field("at_ms") < part.to_ms
        files.append(Bound("at_ms", "<", part.to_ms))
    if part.known_at_ms is not None:
        where &= ds.field("known_at_ms") <= part.known_at_ms
    if part.place.after:
        where &= behind(ORDER, part.place.after, newest_first=part.newest_first)

    def take(chunks: Iterator[pa.Table]) -> list[Any]:
        return first_of(reader, chunks, ORDER, part)

    return cut(reader.scan(where, files, take), part, lambda row: tuple(getattr(row, name) for name in ORDER))
