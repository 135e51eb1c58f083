"""Rows of small data files, laid into larger ones by group: what upkeep makes of the files of the writer.

Whoever asks about one group then reads the few row groups whose smallest and largest group ids enclose it, and of a
file no more than those and its footer. Files are put together in the order in which they came, up to a number of rows:
a file stays a stretch of time, so that retention lets go of whole ones, and a question about an instant opens one.

    (1) name files that are small and follow one another; (2) read them, sort stably by group, write one file in row
    groups of about `ROW_GROUP_BYTES`; (3) commit it in their place, if they are all still there.

delta-rs has `compact`, which keeps rows in the order of files, and `z_order`, which rewrites a table as a whole.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple
from urllib.parse import unquote
from uuid import uuid4

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from deltalake import CommitProperties, DeltaTable
from deltalake.exceptions import CommitFailedError
from deltalake.transaction import AddAction, RemoveAction
from pyarrow.fs import FileSystem

from kardia.retention_setting import KINDS
from kardia.tables import BATCH
from stores import delta
from stores.locations import Folder, Store

LAID = (*KINDS["health"].tables, *KINDS["history"].tables)
"""Tables that are asked about one group."""

ROWS_MAX = 262_144
"""Rows of a file: 130 MB while it is sorted. Whoever begins over a table folds it from batch to batch in pieces of
50,000 rows, and reads a file for each of its pieces."""

HOUR_ROWS_MAX = 4 * ROWS_MAX
"""The same of `health` and `lag`, of which a reader begins with the last minutes only, once an hour."""

SMALL_SHARE = 0.5
"""A file with that share of the most rows, or more, is left as it is."""

OUTWEIGHS = 4
"""A file with so many times the rows of all that came after it waits until there are more: else it would be written
anew in every minute."""

ROW_GROUP_BYTES = 128 << 10
"""Of a row group. A question about a group reads one or two of them and the footer, which has 3 kB for each."""

ROW_GROUP_ROWS = (1_024, 16_384)
"""Least and most rows of a row group."""

TRIAL_ROWS = 4_096
"""Rows that are written first, to nowhere: how long a row is follows from what is in it."""

STATED_CHARS_MAX = 64
"""Characters of a text that the log states as smallest or largest of a file."""

LAST = chr(sys.maxunicode)
"""The character after all others."""

COMMITS_MAX = 10
"""Attempts to commit, each after a new look at the table: the writer commits once a second or oftener."""

_BY = ("group_id", "cluster_id")


class _File(NamedTuple):
    """A data file as the log names it."""

    path: str
    size_bytes: int
    rows: int
    since_ms: int
    """When its first row was known."""


def lay(table: DeltaTable, folder: Folder, rows_max: int) -> int:
    """Put the small files of a table together, each result of at most `rows_max` rows; how many files were replaced.

    What another pass of upkeep has replaced meanwhile is left to it. CommitFailedError after `COMMITS_MAX` attempts.
    """
    replaced = 0
    for some in list(_together(_files(table), rows_max)):
        replaced += len(some) if _replace(table, folder, some) else 0
    return replaced


def _files(table: DeltaTable) -> list[_File]:
    """All files in the order in which their rows came, but those of which the log does not say how many rows they have,
    or since when."""
    listed = pa.table(table.get_add_actions(flatten=True))
    stated = set(listed.column_names)
    if not {"num_records", "min.known_at_ms"} <= stated:
        return []
    columns = ("path", "size_bytes", "num_records", "min.known_at_ms")
    rows = zip(*(listed[name].to_pylist() for name in columns), strict=True)
    files = [_File(*row) for row in rows if None not in row]
    return sorted(files, key=lambda file: (file.since_ms, file.path))


def _together(files: Sequence[_File], rows_max: int) -> Iterator[list[_File]]:
    """Small files that follow one another, two or more."""
    some: list[_File] = []
    for file in files:
        if file.rows >= rows_max * SMALL_SHARE or sum(one.rows for one in some) + file.rows > rows_max:
            yield from _worth_it(some)
            some = []
        if file.rows < rows_max * SMALL_SHARE:
            some.append(file)
    yield from _worth_it(some)


def _worth_it(some: list[_File]) -> Iterator[list[_File]]:
    while len(some) > 1 and some[0].rows > OUTWEIGHS * sum(file.rows for file in some[1:]):
        some = some[1:]
    if len(some) > 1:
        yield some


def _replace(table: DeltaTable, folder: Folder, some: Sequence[_File]) -> bool:
    files = delta.file_system(folder)
    schema = pa.schema(table.schema().to_arrow())
    rows = _read(files, folder, schema, [file.path for file in some])
    name = f"laid-{uuid4()}.parquet"
    path = _path(folder, name)
    _write(files, path, schema, rows, _order(rows))
    # Not `json.dumps`: what it escapes beyond the basic plane delta-rs reads as another character, below the right one.
    stats = msgspec.json.encode(_statistics(rows)).decode()
    added = AddAction(name, files.get_file_info(path).size, {}, _now_ms(), data_change=False, stats=stats)
    if _commit(table, [added], some):
        return True
    files.delete_file(path)
    return False


def _read(files: FileSystem, folder: Folder, schema: pa.Schema, names: Sequence[str]) -> pa.Table:
    """Rows of files, in the order of the files. Texts stay in dictionaries: most of them repeat."""
    texts = [field.name for field in schema if pa.types.is_string(field.type)]
    in_dictionaries = pa.schema(
        [field.with_type(pa.dictionary(pa.int32(), pa.string())) if field.name in texts else field for field in schema]
    )
    kind = ds.ParquetFileFormat(read_options=ds.ParquetReadOptions(dictionary_columns=texts))
    fragments = [kind.make_fragment(_path(folder, unquote(name)), files) for name in names]
    dataset = ds.FileSystemDataset(fragments, in_dictionaries, kind, files)
    rows = pa.Table.from_batches(dataset.scanner(use_threads=False).to_batches(), in_dictionaries)
    return rows.unify_dictionaries().combine_chunks()


def _order(rows: pa.Table) -> pa.Array:
    """Places of the rows by group; those of a group as they were."""
    ranks = pa.table({name: _ranks(rows[name]) for name in _BY})
    return pc.sort_indices(ranks, sort_keys=[(name, "ascending") for name in _BY])


def _ranks(texts: pa.ChunkedArray) -> pa.Array:
    """Place of each text in the order of all: numbers are sorted ten times as fast. Null is null, and comes last."""
    encoded = pa.concat_arrays(texts.chunks)
    order = pc.sort_indices(encoded.dictionary)
    return pc.sort_indices(order).take(encoded.indices)  # the order of an order is the place in it


def _write(files: FileSystem, path: str, schema: pa.Schema, rows: pa.Table, order: pa.Array) -> None:
    """Write a file whose footer says of the columns that are asked for what is in each row group, and no more: of all
    columns it would be half as long again."""
    each = _rows_of_row_group(rows.take(order[:TRIAL_ROWS]).cast(schema))
    with pq.ParquetWriter(
        path, schema, filesystem=files, compression="snappy", write_statistics=_stated(schema)
    ) as writer:
        for begin in range(0, rows.num_rows, each):
            writer.write_table(rows.take(order[begin : begin + each]).cast(schema), row_group_size=each)


def _rows_of_row_group(trial: pa.Table) -> int:
    sink = pa.BufferOutputStream()
    pq.write_table(trial, sink, compression="snappy", write_statistics=False)
    least, most = ROW_GROUP_ROWS
    fitting: int = ROW_GROUP_BYTES * max(1, trial.num_rows) // max(1, sink.tell())
    return max(least, min(most, fitting))


def _stated(schema: pa.Schema) -> list[str]:
    """Columns that questions bound."""
    return [name for name in schema.names if name in (*_BY, BATCH.name) or name.endswith("at_ms")]


def _statistics(rows: pa.Table) -> dict[str, Any]:
    """What the log says of a file (Delta protocol, "Per-file Statistics"): of every column that is no list. The dataset
    that delta-rs makes of a table takes one of which nothing is said as compared with null, and passes over its rows.
    """
    least: dict[str, Any] = {}
    most: dict[str, Any] = {}
    nulls: dict[str, int] = {}
    for name, column in zip(rows.column_names, rows.columns, strict=True):
        if not pa.types.is_nested(column.type):
            nulls[name] = column.null_count
            values = column.unique().cast(pa.string()) if pa.types.is_dictionary(column.type) else column
            found = pc.min_max(values).as_py()
            if found["min"] is not None:
                least[name], most[name] = _at_least(found["min"]), _at_most(found["max"])
    return {"numRecords": rows.num_rows, "minValues": least, "maxValues": most, "nullCount": nulls}


def _at_least(value: Any) -> Any:
    """A value, or of a long text a short one that is not above it."""
    return value[:STATED_CHARS_MAX] if isinstance(value, str) else value


def _at_most(value: Any) -> Any:
    """A value, or of a long text a short one that is not below it, as far as there is one."""
    if not isinstance(value, str) or len(value) <= STATED_CHARS_MAX:
        return value
    begin = value[:STATED_CHARS_MAX].rstrip(LAST)
    return begin + LAST if begin + LAST > value else value


def _commit(table: DeltaTable, added: list[AddAction], some: Sequence[_File]) -> bool:
    """Step 3; False if one of the files is not there any more.

    The library would commit on top of whatever came in between, another removal of the same files among it, and the
    rows would be there twice. So it may not try again by itself (`max_commit_retries`): the commit stands on the very
    version that was looked at, or is not.
    """
    removed = [
        RemoveAction(unquote(file.path), data_change=False, deletion_timestamp=_now_ms(), size=file.size_bytes)
        for file in some
    ]
    for attempts_left in reversed(range(COMMITS_MAX)):
        table.update_incremental()
        if not {file.path for file in some} <= {file.path for file in _files(table)}:
            return False
        try:
            table.create_write_transaction(
                [*added, *removed], "append", table.schema(), commit_properties=CommitProperties(max_commit_retries=0)
            )
        except CommitFailedError:
            if not attempts_left:
                raise
        else:
            table.update_incremental()
            return True
    return False


def _path(folder: Folder, name: str) -> str:
    return name if isinstance(folder, Store) else str(folder / name)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
