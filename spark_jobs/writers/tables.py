"""Creates, opens and checks Delta tables with delta-rs, gives them the columns that have come since an earlier version,
and gives the last batch in them.

Tables of an earlier version lack columns that may be null: whoever reads them finds null there, and a writer adds them
when it starts, by a commit without rows; so does a field in the entries of a list. Nothing else may differ.

Shared by the delta-rs writer, by maintenance and by the checks at start. It must not enable deletion vectors or liquid
clustering: with them one of the two engines can no longer read or write the table
(docs/adr/0003-two-writers-one-interface.md).
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable, WriterProperties, write_deltalake
from deltalake.exceptions import DeltaError

from kardia.tables import LIVE_TABLES, TABLES
from spark_jobs.errors import TablesError
from spark_jobs.schemas import ARROW_SCHEMAS, TABLE_VERSION, VERSION_PROPERTY
from stores import delta, store_errors
from stores.locations import Folder, Store
from stores.read_again import surviving

PROPERTIES: dict[str, str] = {
    VERSION_PROPERTY: str(TABLE_VERSION),
    # A commit per second: a checkpoint of the log every 100 commits, log files kept for as long as a slow reader
    # may need them. Commit time grows with the number of log files (20 ms at 1,300, 49 ms at 2,600).
    "delta.checkpointInterval": "100",
    "delta.logRetentionDuration": "interval 30 minutes",
    # How long a file that was compacted away stays for a reader of an older version.
    "delta.deletedFileRetentionDuration": "interval 10 minutes",
    # delta.setTransactionRetentionDuration stays unset: a forgotten transaction would let a repeat write twice.
}
"""Properties of every table."""

FIRST_ENTRY = f"{0:020}.json"
"""Entry of the log that creates a table."""

ROW_GROUP_ROWS = 4_096
"""Rows of a row group. The smallest piece a reader can pass over: by default one has a million rows, and whoever asks
about one group at one instant reads them all."""

SMALL_ROW_GROUPS = WriterProperties(compression="SNAPPY", max_row_group_size=ROW_GROUP_ROWS)
"""How data files are written."""


def by_group(rows: pa.Table) -> pa.Table:
    """Rows of a batch with those of a group side by side, in the order in which they came: a reader that asks for one
    group then passes over all other pieces. Rows that fit into one piece stay as they are."""
    if rows.num_rows <= ROW_GROUP_ROWS:
        return rows
    return rows.sort_by([("cluster_id", "ascending"), ("group_id", "ascending")])  # a stable sort


def path_of(directory: Folder, name: str) -> Folder:
    """Folder of one table."""
    return directory / name


def spark_path(directory: Folder, name: str) -> str:
    """The same, as Spark takes it."""
    path = path_of(directory, name)
    return path.hadoop if isinstance(path, Store) else str(path)


def open_table(directory: Folder, name: str) -> DeltaTable:
    """Open a table and check that it has the shape this version writes."""
    path = path_of(directory, name)
    try:
        table = surviving(lambda: delta.opened(path))
    except (DeltaError, FileNotFoundError) as error:
        if isinstance(path, Store):
            why = store_errors.of(error)
            raise TablesError(
                f"table {name} cannot be opened: {why.what}",
                str(path),
                "a Delta table whose log is whole",
                why.next_step,
            ) from None
        raise TablesError(
            f"table {name} cannot be opened: {str(error).splitlines()[0]}",
            str(path),
            "a Delta table whose log is whole",
            "restore the folder from a copy, or move it away and rebuild",
        ) from error
    version = table.metadata().configuration.get(VERSION_PROPERTY) or ""
    if version.isdigit() and int(version) > TABLE_VERSION:
        raise TablesError(
            f"table {name} has version {version}: a later Kardia has written it",
            str(path),
            f"version {TABLE_VERSION} or before",
            "start the later Kardia again; or restore tables and checkpoint from the copy made before the upgrade",
        )
    found = pa.schema(table.schema().to_arrow())
    if not _is_of(found, ARROW_SCHEMAS[name]):
        differences = sorted(
            {str(field) for field in found} ^ {str(field) for field in ARROW_SCHEMAS[name]},
        )
        raise TablesError(
            f"table {name} has another shape: {', '.join(differences)}",
            str(path),
            f"the columns of table version {TABLE_VERSION}, or of one before",
            "write into a new directory, or use the version of Kardia that made this one",
        )
    return table


def _is_of(found: pa.Schema, wanted: pa.Schema) -> bool:
    """Whether a table has these columns, in any order; of an earlier version without some that may be null."""
    there = _types_in(found)
    return there.keys() <= set(wanted.names) and all(
        _is_of_type(there[field.name], field.type) if field.name in there else field.nullable for field in wanted
    )


def _is_of_type(found: pa.DataType, wanted: pa.DataType) -> bool:
    if pa.types.is_list(found) and pa.types.is_list(wanted) and pa.types.is_struct(wanted.value_type):
        entries = found.value_type
        return pa.types.is_struct(entries) and _is_of(pa.schema(list(entries)), pa.schema(list(wanted.value_type)))
    return bool(found == wanted)


def never_null_before(table: DeltaTable, name: str) -> list[str]:
    """Columns that may be null and could not in the version of a table that was opened."""
    could_not = {field.name for field in pa.schema(table.schema().to_arrow()) if not field.nullable}
    return [field.name for field in ARROW_SCHEMAS[name] if field.nullable and field.name in could_not]


def _types_in(schema: pa.Schema) -> dict[str, pa.DataType]:
    return {field.name: field.type for field in schema}


def has_all_columns(table: DeltaTable, name: str) -> bool:
    """Whether a table that was opened has the columns of now."""
    return _types_in(pa.schema(table.schema().to_arrow())) == _types_in(ARROW_SCHEMAS[name])


def says_version(table: DeltaTable) -> bool:
    """Whether a table says that it is of this version."""
    return bool(table.metadata().configuration.get(VERSION_PROPERTY) == str(TABLE_VERSION))


def is_there(directory: Folder, name: str) -> bool:
    """Whether there is such a table: one that was created to the end."""
    return surviving(lambda: delta.is_there(path_of(directory, name))) and _torn(directory, name) is None


def _torn(directory: Folder, name: str) -> Path | None:
    """The log of a table whose creation a full disk or a death has cut off: there is no entry in it, or a part of the
    first, so nothing was ever in the table. In a store an entry is whole or not there."""
    log = path_of(directory, name) / "_delta_log"
    if not isinstance(log, Path) or not log.is_dir():
        return None
    entries = [path for path in log.iterdir() if not path.name.startswith(".")]
    if [path.name for path in entries] not in ([], [FIRST_ENTRY]):
        return None
    try:
        lines = [line for path in entries for line in path.read_bytes().splitlines()]
        actions = {action for line in lines for action in msgspec.json.decode(line)}
    except msgspec.DecodeError:
        return log
    return None if {"metaData", "protocol"} <= actions else log


def clear_torn(directory: Folder, name: str) -> None:
    """Take away what is left of a creation that was cut off, before it is done again: to delta-spark even a folder
    without a file is a table."""
    torn = _torn(directory, name)
    if torn is not None:
        shutil.rmtree(torn)


def create_or_open(directory: Folder, name: str) -> DeltaTable:
    """Open a table with all its columns; create it first if it is not there."""
    if not is_there(directory, name):
        clear_torn(directory, name)
        delta.create(
            path_of(directory, name),
            ARROW_SCHEMAS[name],
            name=name,
            description=TABLES[name].meaning,
            configuration=PROPERTIES,
            raise_if_key_not_exists=False,
        )
    table = open_table(directory, name)
    for column in never_null_before(table, name):
        table.alter.drop_column_not_null(column)
        table = open_table(directory, name)
    if not has_all_columns(table, name):
        write_deltalake(table, ARROW_SCHEMAS[name].empty_table(), mode="append", schema_mode="merge")
        table = open_table(directory, name)
    if not says_version(table):
        table.alter.set_table_properties({VERSION_PROPERTY: str(TABLE_VERSION)}, raise_if_not_exists=False)
        table = open_table(directory, name)
    return table


def highest_batch(directory: Folder, names: tuple[str, ...] = LIVE_TABLES) -> int | None:
    """Highest batch_id in any of the tables, complete or not; None if there is no row at all."""
    found = [surviving(partial(_highest_of, directory, name)) for name in names if is_there(directory, name)]
    return max((batch_id for batch_id in found if batch_id is not None), default=None)


def _highest_of(directory: Folder, name: str) -> int | None:
    batches = open_table(directory, name).to_pyarrow_dataset().scanner(columns=["batch_id"]).to_batches()
    found = (pc.max(batch.column(0)).as_py() for batch in batches)
    return max((int(batch_id) for batch_id in found if batch_id is not None), default=None)


def versions_of(directory: Folder) -> dict[str, int]:
    """Version of each live table that is there."""
    return {name: open_table(directory, name).version() for name in LIVE_TABLES if is_there(directory, name)}


def take_back(directory: Folder, versions: Mapping[str, int]) -> None:
    """Undo what was written since; `progress` first, so that no reader believes a batch of which parts are gone."""
    for name in reversed(LIVE_TABLES):
        if name in versions and (table := open_table(directory, name)).version() > versions[name]:
            table.restore(versions[name])


def last_version(directory: Folder, name: str, app_id: str) -> int | None:
    """Last transaction version of an application in a table."""
    if not is_there(directory, name):
        return None
    version: int | None = surviving(lambda: open_table(directory, name).transaction_version(app_id))
    return version
