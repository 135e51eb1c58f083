"""Arrow columns as Python values, quickly and some rows at a time: a second of a large fleet is half a million of them.

Making values keeps all other threads from running, so what is made without a break is bounded by the caller. Text that
repeats (names of clusters, groups, clients, states) becomes one object per column instead of one per row; that is most
of the memory of a row that is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

_REPEATS = 2
"""Rows per distinct text from which a dictionary pays."""

ColumnValues = Callable[[int, int], list[Any]]
"""Values of a column from a row on, so many of them; null is None."""


def rows(columns: list[pa.ChunkedArray | None], count: int, at_once: int) -> Iterator[tuple[Any, ...]]:
    """`count` rows of columns, made `at_once` at a time; a column that is not there is None in each."""
    all_values = [_missing if column is None else _values_of(column) for column in columns]
    for begin in range(0, count, at_once):
        some = min(at_once, count - begin)
        yield from zip(*[values(begin, some) for values in all_values], strict=True)


def _missing(_: int, count: int) -> list[None]:
    return [None] * count


def _values_of(column: pa.ChunkedArray) -> ColumnValues:
    if column.null_count == len(column):
        return _missing
    if pa.types.is_string(column.type):
        return _texts(column)
    if pa.types.is_list(column.type):
        return lambda begin, count: _lists(column.slice(begin, count))
    return lambda begin, count: column.slice(begin, count).to_pylist()


def _texts(column: pa.ChunkedArray) -> ColumnValues:
    encoded = column.combine_chunks().dictionary_encode()
    if len(encoded.dictionary) * _REPEATS > len(column):
        return lambda begin, count: column.slice(begin, count).to_pylist()
    texts: list[str | None] = encoded.dictionary.to_pylist()
    texts.append(None)
    places = encoded.indices.fill_null(len(texts) - 1)
    return lambda begin, count: [texts[at] for at in places.slice(begin, count).to_pylist()]


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
