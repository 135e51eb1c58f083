"""One Delta table as files: opened once, brought up to date incrementally, scanned with typed filters.

Writes nothing and never joins a filter from strings. The writer may append, compact and vacuum at any time; a scan that
loses a file under its hands starts again on the newest version, which holds the same rows in another file
(spark-facts: delta-rs writers, retention of minutes).
"""

from __future__ import annotations

import logging
from collections import namedtuple
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple, TypeVar

import pyarrow as pa
import pyarrow.dataset as ds
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError

from api.columns import values
from api.errors import TablesMissing, TableUnreadable
from kardia.tables import BATCH, TABLES

log = logging.getLogger("kardia.api.reader")

Found = TypeVar("Found")

VANISHED_RETRIES = 3
"""A vacuum takes files away once per pass; meeting three passes in one read means that retention is far too short."""


def _row_type(name: str) -> Any:
    """Tuple with the column names of a table as attributes; a fifth of the memory of a dict."""
    return namedtuple(f"{name}_row", [*TABLES[name].names, BATCH.name])


ROW_TYPES: dict[str, Any] = {name: _row_type(name) for name in TABLES}
"""Row of each table as read: its columns and `batch_id`."""


class Bound(NamedTuple):
    """A condition on a number by which whole files are passed over; the rows are filtered all the same."""

    column: str
    comparison: str
    value: int


class TableReader:
    """Reader of the Delta table `root/name`; columns of `hidden` are never read, and null in every row."""

    def __init__(self, root: Path, name: str, hidden: frozenset[str] = frozenset()) -> None:
        self.name = name
        self._path = root / name
        self._columns = (*TABLES[name].names, BATCH.name)
        self._hidden = hidden
        self._make = partial(tuple.__new__, ROW_TYPES[name])  # `_make` without a Python frame per row
        self._table: DeltaTable | None = None
        self._mark: tuple[int, int] | None = None
        self._lock = Lock()
        self.identity = ""
        """Id that the table got when it was created; another one means another table under the old name."""

    def refresh(self) -> int:
        """Look for commits; return the version. TablesMissing or TableUnreadable if there is nothing to read."""
        with self._lock:
            try:
                if self._table is None or self._mark != self._mark_of(self._table):
                    self._table = DeltaTable(self._path)
                    self.identity = str(self._table.metadata().id)
                else:
                    self._table.update_incremental()
                self._mark = self._mark_of(self._table)
                return int(self._table.version())
            except (TableNotFoundError, FileNotFoundError, NotADirectoryError):
                self._table = None
                raise TablesMissing([self.name]) from None
            except (DeltaError, OSError, ValueError) as error:
                self._table = None
                log.warning("table.refresh.failed table=%s error=%s", self.name, type(error).__name__, exc_info=error)
                raise TableUnreadable([self.name]) from error

    @property
    def version(self) -> int | None:
        """Version that `refresh` has brought it to; None before, and after a failure."""
        return None if self._table is None else int(self._table.version())

    def has_moved(self) -> bool:
        """Whether there may be a commit that `refresh` has not seen. Looks at two names, reads nothing."""
        table = self._table
        if table is None or self._mark != self._mark_of(table):
            return True
        return (self._path / "_delta_log" / f"{table.version() + 1:020d}.json").exists()

    def scan(
        self, where: ds.Expression | None, files: list[Bound], take: Callable[[Iterator[pa.Table]], Found]
    ) -> Found:
        """Give `take` the matching rows in pieces; called again from the start if a file vanished meanwhile."""
        for attempt in range(VANISHED_RETRIES):
            try:
                return take(self._pieces(where, files))
            except FileNotFoundError:
                log.info("table.scan.restarted table=%s attempt=%d", self.name, attempt + 1)
                self.refresh()
            except (pa.ArrowException, DeltaError, OSError) as error:
                log.warning("table.scan.failed table=%s error=%s", self.name, type(error).__name__, exc_info=error)
                raise TableUnreadable([self.name]) from error
        raise TableUnreadable([self.name])

    def rows(self, piece: pa.Table) -> Iterator[Any]:
        """Rows of a piece as `ROW_TYPES`; a column that is hidden, or that an older table lacks, is None."""
        there = set(piece.column_names)
        columns = [values(piece.column(name)) if name in there else [None] * piece.num_rows for name in self._columns]
        return map(self._make, zip(*columns, strict=True))

    def _mark_of(self, table: DeltaTable) -> tuple[int, int] | None:
        """What tells the newest known log entry from one of another table with the same version number."""
        try:
            entry = (self._path / "_delta_log" / f"{table.version():020d}.json").stat()
        except FileNotFoundError:
            return None
        return entry.st_ino, entry.st_mtime_ns

    def _pieces(self, where: ds.Expression | None, files: list[Bound]) -> Iterator[pa.Table]:
        with self._lock:
            if self._table is None:
                raise TablesMissing([self.name])
            dataset = self._table.to_pyarrow_dataset(
                file_pruning_predicate=[(found.column, found.comparison, found.value) for found in files] or None
            )
        known = [name for name in self._columns if name in dataset.schema.names and name not in self._hidden]
        for batch in dataset.scanner(columns=known, filter=where, batch_size=16_384).to_batches():
            if batch.num_rows:
                yield pa.Table.from_batches([batch])
