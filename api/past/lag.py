"""Lag of one group as it was, page by page: a row per partition and change. Reads files; knows no HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds

from api.files.data_files import Bound
from api.files.reader import TableReader
from api.past.archive import HistoryPart, Page, behind, cut, first_of, up_to

ORDER = ("at_ms", "topic", "partition", "batch_id")


def rows(
    reader: TableReader, cluster_id: str, group_id: str, part: HistoryPart, topic: str | None, partition: int | None
) -> Page:
    """Rows of a group, of one topic or one partition of it if they are given. The page is kept small while reading."""
    where = (
        (ds.field("cluster_id") == cluster_id)
        & (ds.field("group_id") == group_id)
        & (ds.field("batch_id") <= part.place.batch_id)
    )
    files = [Bound("group_id", "=", group_id), up_to(part.place.batch_id)]
    if topic is not None:
        where &= ds.field("topic") == topic
    if partition is not None:
        where &= ds.field("partition") == partition
    if part.from_ms is not None:
        where &= ds.field("at_ms") >= part.from_ms
        files.append(Bound("at_ms", ">=", part.from_ms))
    if part.to_ms is not None:
        where &= ds.field("at_ms") < part.to_ms
        files.append(Bound("at_ms", "<", part.to_ms))
    if part.place.after:
        where &= behind(ORDER, part.place.after, newest_first=part.newest_first)

    def take(chunks: Iterator[pa.Table]) -> list[Any]:
        return first_of(reader, chunks, ORDER, part)

    return cut(reader.scan(where, files, take), part, lambda row: tuple(getattr(row, name) for name in ORDER))
