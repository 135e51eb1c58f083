"""Creates, opens and checks Delta tables with delta-rs, and gives the last batch in them. Upgrades none.

Shared by the delta-rs writer, by maintenance and by the checks at start. It must not enable deletion vectors or liquid
clustering: with them one of the two engines can no longer read or write the table
(docs/adr/0003-two-writers-one-interface.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable, WriterProperties
from deltalake.exceptions import DeltaError

from kardia.locations import Folder, Store
from kardia.tables import LIVE_TABLES, TABLES
from kardia.upkeep import surviving
from spark_jobs.errors import TablesError
from spark_jobs.schemas import ARROW_SCHEMAS, TABLE_VERSION, VERSION_PROPERTY
from stores import delta, said

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
            why = said.of(error)
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
    found = pa.schema(table.schema().to_arrow())
    if found != ARROW_SCHEMAS[name]:
        differences = sorted(
            {str(field) for field in found} ^ {str(field) for field in ARROW_SCHEMAS[name]},
        )
        raise TablesError(
            f"table {name} has another shape: {', '.join(differences) or 'order of columns'}",
            str(path),
            f"the columns of table version {TABLE_VERSION}",
            "write into a new directory, or use the version of Kardia that made this one",
        )
    return table


def is_there(directory: Folder, name: str) -> bool:
    """Whether there is such a table."""
    return surviving(lambda: delta.is_there(path_of(directory, name)))


def create_or_open(directory: Folder, name: str) -> DeltaTable:
    """Open a table; create it first if it is not there."""
    if not is_there(directory, name):
        delta.create(
            path_of(directory, name),
            ARROW_SCHEMAS[name],
            name=name,
            description=TABLES[name].meaning,
            configuration=PROPERTIES,
            raise_if_key_not_exists=False,
        )
    return open_table(directory, name)


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
