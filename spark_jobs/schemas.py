"""Arrow and Spark schemas of the tables, and rows turned into Arrow: all rendered from `kardia.tables`.

Nothing here lists a column. Types on disk: long is int64, int is int32, instants are int64 epoch milliseconds; the last
column of every table is `batch_id`. delta-rs and delta-spark must agree on every type exactly
(`int` and `bigint` do not mix), which is why one is derived from the other.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from kardia.observe.careful import REASON as NOT_APPLIED
from kardia.table_types import STRUCTS, Column, Table
from kardia.tables import BATCH, REJECTED, TABLES
from spark_jobs.errors import RowsError

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

TABLE_VERSION = 7
"""Version of the shape of all tables, carried as a property of each; raised with every release that adds a column."""

VERSION_PROPERTY = "kardia.tableVersion"

_SCALARS: dict[str, pa.DataType] = {
    "string": pa.string(),
    "long": pa.int64(),
    "int": pa.int32(),
    "double": pa.float64(),
    "bool": pa.bool_(),
}

_ARROW: dict[str, pa.DataType] = (
    _SCALARS
    | {"strings": pa.list_(pa.string())}
    | {
        name: pa.list_(pa.struct([(field, _SCALARS[kind]) for field, kind in fields]))
        for name, fields in STRUCTS.items()
    }
)


def columns_of(table: Table) -> tuple[Column, ...]:
    """Columns on disk: those of the description and `batch_id`."""
    return (*table.columns, BATCH)


def arrow_schema(table: Table) -> pa.Schema:
    """Arrow schema of a table on disk."""
    return pa.schema([pa.field(column.name, _ARROW[column.type], column.nullable) for column in columns_of(table)])


def spark_schema(table: Table) -> StructType:
    """Spark schema of a table on disk, derived from the Arrow one so that both cannot differ."""
    from pyspark.sql.pandas.types import from_arrow_schema

    return from_arrow_schema(arrow_schema(table))


ARROW_SCHEMAS: dict[str, pa.Schema] = {name: arrow_schema(table) for name, table in TABLES.items()}
"""Arrow schema of each table."""


def to_arrow(table: Table, rows: Sequence[Sequence[Any]], batch_id: int) -> pa.Table:
    """Rows of one table, `batch_id` added, as Arrow. A value that does not fit its column stops the batch by name."""
    schema = ARROW_SCHEMAS[table.name]
    width = len(table.columns)
    for row in rows:
        if len(row) != width:
            raise RowsError(
                f"a row of {table.name} has {len(row)} values",
                f"batch {batch_id}",
                f"{width}, one for each column of kardia.tables",
                "this is a defect of the observer: report it with the row's batch",
            )
    values: Iterable[Sequence[Any]] = zip(*rows, strict=True) if rows else [()] * width
    arrays = [_array(table, column, given, batch_id) for column, given in zip(table.columns, values, strict=True)]
    arrays.append(pa.array([batch_id] * len(rows), pa.int64()))
    return pa.Table.from_arrays(arrays, schema=schema)


def to_tables(rows: Mapping[str, Sequence[Sequence[Any]]], batch_id: int) -> dict[str, pa.Table]:
    """Arrow tables of everything one batch says; tables without rows are left out.

    A row that does not fit its table must not stop the batch, which would be repeated for ever: it is left out, and a
    row of `rejected` tells of it.
    """
    try:
        return {name: to_arrow(TABLES[name], rows[name], batch_id) for name in TABLES if rows.get(name)}
    except RowsError:
        given = {name: list(rows[name]) for name in TABLES if rows.get(name)}
    for name in list(given):
        given[name], refused = fitting(TABLES[name], given[name], batch_id)
        given.setdefault(REJECTED.name, []).extend(_of_refused(name, row, why) for row, why in refused)
    return {name: to_arrow(TABLES[name], given[name], batch_id) for name in TABLES if given.get(name)}


def fitting(
    table: Table, rows: Sequence[Sequence[Any]], batch_id: int
) -> tuple[list[Sequence[Any]], list[tuple[Sequence[Any], str]]]:
    """Rows that fit their table, and those that do not, each with the reason. Halves, so that few cost little."""
    try:
        to_arrow(table, rows, batch_id)
    except RowsError as refusal:
        if len(rows) == 1:
            return [], [(rows[0], refusal.what)]
        middle = len(rows) // 2
        before, refused = fitting(table, rows[:middle], batch_id)
        after, more = fitting(table, rows[middle:], batch_id)
        return before + after, refused + more
    return list(rows), []


def _of_refused(name: str, row: Sequence[Any], why: str) -> Sequence[Any]:
    """The row of `rejected` about a row that does not fit."""
    cluster_id = row[0] if row and isinstance(row[0], str) else ""
    known_at = next((value for value in row[3:5] if isinstance(value, int) and 0 <= value < 2**63), 0)
    expected = f"a row that its table takes; a defect of Kardia, please report it: {why}"[:400]
    excerpt = ascii(row[1:3])[:200]
    start = zlib.crc32(repr(row).encode("utf-8", "backslashreplace"))  # one row of the table each
    source = f"kardia/observer/{name}"
    return (cluster_id, "", -1, known_at, known_at, "exact", source, start, start, NOT_APPLIED, expected, excerpt)


def _array(table: Table, column: Column, values: Sequence[Any], batch_id: int) -> pa.Array:
    prepare = _PREPARE.get(column.type)
    kind = _ARROW[column.type]
    given = [None if value is None else prepare(value) for value in values] if prepare else values
    try:
        try:
            array = _whole(given, kind) if column.type in _WHOLE else pa.array(given, kind)
        except UnicodeEncodeError:
            array = pa.array([_printable(value) for value in given], kind)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise _refusal(table, column, batch_id, str(error)) from error
    if not column.nullable and array.null_count:
        raise _refusal(table, column, batch_id, f"{array.null_count} values are null")
    return array


def _whole(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """Whole numbers. Inferred first, then cast: given the type at once, Arrow would cut a fraction off in silence."""
    inferred = pa.array(values)
    if not (
        pa.types.is_integer(inferred.type) or pa.types.is_floating(inferred.type) or pa.types.is_null(inferred.type)
    ):
        raise TypeError(f"{inferred.type} is no number")
    return inferred.cast(kind)


def _refusal(table: Table, column: Column, batch_id: int, why: str) -> RowsError:
    return RowsError(
        f"a value of {table.name}.{column.name} does not fit: {why}",
        f"batch {batch_id}",
        f"{column.type}{'' if column.nullable else ', never null'}",
        "this is a defect of the observer: report it with the batch",
    )


def _printable(value: Any) -> Any:
    """Make half of a surrogate pair visible instead of unwritable: client ids are any UTF-16 a client likes."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, dict):
        return {key: _printable(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_printable(inner) for inner in value)
    return value


def _entries(value: Sequence[Any]) -> list[Any]:
    """Entries as Arrow takes them for a struct: by position a tuple, by name a dict. msgpack made lists of tuples."""
    return [entry if isinstance(entry, dict) else tuple(entry) for entry in value]


_WHOLE = frozenset({"long", "int"})

_PREPARE: dict[str, Callable[[Any], Any]] = {"strings": list} | dict.fromkeys(STRUCTS, _entries)
