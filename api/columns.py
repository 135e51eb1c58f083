"""Arrow columns as Python values, quickly: a second of a large fleet is half a million of them.

Text that repeats (names of clusters, groups, clients, states) becomes one object per piece instead of one per row; that
is most of the memory of a row that is kept.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

_REPEATS = 2
"""Rows per distinct text from which a dictionary pays."""


def values(column: pa.ChunkedArray) -> list[Any]:
    """Values of a column of a piece; null is None."""
    if column.null_count == len(column):
        return [None] * len(column)
    if pa.types.is_string(column.type):
        return _texts(column)
    if pa.types.is_list(column.type):
        return _lists(column)
    found: list[Any] = column.to_pylist()
    return found


def _texts(column: pa.ChunkedArray) -> list[str | None]:
    encoded = column.combine_chunks().dictionary_encode()
    texts: list[str | None] = encoded.dictionary.to_pylist()
    if len(texts) * _REPEATS > len(column):
        found: list[str | None] = column.to_pylist()
        return found
    texts.append(None)
    return [texts[at] for at in encoded.indices.fill_null(len(texts) - 1).to_pylist()]


def _lists(column: pa.ChunkedArray) -> list[Any]:
    """Lists, most of which are empty; those share one."""
    lengths = pc.list_value_length(column)
    if pc.max(lengths).as_py() == 0 and column.null_count == 0:
        return [[]] * len(column)
    found: list[Any] = [[] if length == 0 else None for length in lengths.to_pylist()]
    filled = pc.fill_null(pc.greater(lengths, 0), False)
    for at, value in zip(pc.indices_nonzero(filled).to_pylist(), column.filter(filled).to_pylist(), strict=True):
        found[at] = value
    return found
