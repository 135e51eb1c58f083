"""One Delta table as files: opened once, brought up to date when it is asked, scanned with typed filters.

Writes nothing and never joins a filter from strings. The writer may append, compact and vacuum at any time; a scan
whose file is removed while it reads starts again on the newest version, which holds the same rows in another file.
"""

from __future__ import annotations

import logging
from collections import namedtuple
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from threading import Lock
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError

from api.background_work import resting
from api.errors import TablesMissing, TableUnreadable
from api.files import columns
from api.files.data_files import Bound, Files
from api.files.folders import Entry, Mark, folder_of
from api.files.pieces import Span
from kardia.tables import BATCH, TABLES
from stores.locations import Folder
from stores.read_again import is_gone, surviving

log = logging.getLogger("kardia.api.reader")

Found = TypeVar("Found")

AT_ONCE = 250
"""Rows whose columns are made without a break for other threads. All of a second of a large fleet at once would keep
them from running for tens of ms."""

CHUNK_ROWS = 16_384
"""Rows of a chunk at the most."""

VANISHED_RETRIES = 3
"""Looks of a scan. A vacuum takes files away once per pass; meeting three passes in one read means that retention is
far too short."""


def _row_type(name: str) -> Any:
    """Tuple with the column names of a table as attributes; a fifth of the memory of a dict."""
    return namedtuple(f"{name}_row", [*TABLES[name].names, BATCH.name])


ROW_TYPES: dict[str, Any] = {name: _row_type(name) for name in TABLES}
"""Row of each table as read: its columns and `batch_id`."""


class TableReader:
    """Reader of the Delta table `root/name`; columns of `hidden` are never read, and null in every row."""

    def __init__(self, root: Folder, name: str, hidden: frozenset[str] = frozenset()) -> None:
        self.name = name
        self._folder = folder_of(root / name)
        self._columns = (*TABLES[name].names, BATCH.name)
        self._hidden = hidden
        self._make = partial(tuple.__new__, ROW_TYPES[name])  # `_make` without a Python frame per row
        self._table: DeltaTable | None = None
        self._mark: Mark | None = None
        self._files = Files(root / name)
        self._lock = Lock()
        self.identity = ""
        """Id that the table got when it was created; another one means another table under the old name."""

    def refresh(self) -> int:
        """Look for commits; return the version. TablesMissing or TableUnreadable if there is nothing to read."""
        with self._lock:
            return int(self._newest().version())

    def transaction_of(self, app_id: str) -> int | None:
        """Number of the last transaction of an application, as of now; None if it has made none. Errors as of
        `refresh`."""
        with self._lock:
            version: int | None = self._newest().transaction_version(app_id)
            return version

    @property
    def version(self) -> int | None:
        """Version that the last look at the table has brought it to; None before, and after a failure."""
        return None if self._table is None else int(self._table.version())

    @property
    def is_near(self) -> bool:
        """Whether a look costs nothing to speak of; in a store it costs a request."""
        return self._folder.is_near

    def has_entry(self, version: int) -> bool:
        """Whether the log has the entry of a version. TableUnreadable, as of the next three, if nobody can say."""
        return self._asked(lambda: self._folder.has_entry(version))

    def entry(self, version: int) -> Entry | None:
        """Log entry of a version; None if it is not there."""
        return self._asked(lambda: self._folder.entry(version))

    def mark_of(self, version: int) -> Mark | None:
        """What tells a log entry from one of another table with the same version number; None if it is not there."""
        return self._asked(lambda: self._folder.mark_of(version))

    def has_checkpoint_after(self, version: int) -> bool:
        """Whether the log was checkpointed later: the entries up to there may have been cleaned away."""
        return self._asked(lambda: self._folder.checkpointed() > version)

    def scan(
        self, where: ds.Expression | None, files: list[Bound], take: Callable[[Iterator[pa.Table]], Found]
    ) -> Found:
        """Give `take` the matching rows in chunks; called again from the start if a file vanished meanwhile."""
        for attempt in range(VANISHED_RETRIES):
            try:
                return take(self._chunks(where, files))
            except (pa.ArrowException, DeltaError, OSError) as error:
                if is_gone(error):
                    log.info("table.scan.restarted table=%s attempt=%d", self.name, attempt + 1)
                    self._forget()
                    continue
                raise self._unreadable("scan", error) from None
        raise TableUnreadable([self.name])

    def spans(self, files: list[Bound]) -> list[Span]:
        """Batches and rows of the row groups that may hold what is within bounds; nothing of a file that has just been
        replaced. TablesMissing or TableUnreadable."""
        with self._lock:
            chosen = self._files.chosen(self._newest(), files)
        found: list[Span] = []
        for one in chosen:
            try:
                found += one.spans(files)
            except (pa.ArrowException, OSError) as error:
                if not is_gone(error):
                    raise self._unreadable("spans", error) from None
        with self._lock:
            self._files.keep(chosen)
        return found

    def forget_footers(self) -> None:
        """For whoever follows from here on, and reads files that are new."""
        with self._lock:
            self._files.forget()

    def rows(self, chunk: pa.Table) -> Iterator[Any]:
        """Rows of a chunk as `ROW_TYPES`; a column that is hidden, or that an older table lacks, is None."""
        there = set(chunk.column_names)
        found = [chunk.column(name) if name in there else None for name in self._columns]
        return map(self._make, columns.rows(found, chunk.num_rows, AT_ONCE))

    def file_rows(self, name: str) -> list[Any]:
        """All rows of one data file. FileNotFoundError if it is gone, TableUnreadable if it is no Parquet."""
        try:
            with pq.ParquetFile(self._folder.source(name)) as file:
                return list(resting(self.rows(file.read(self._known(file.schema_arrow.names)))))
        except FileNotFoundError:
            raise
        except (pa.ArrowException, OSError) as error:
            raise self._unreadable("file", error) from None

    def _newest(self) -> DeltaTable:
        """The table with all its commits; the lock is held."""
        try:
            table = surviving(self._opened, self._forget)
        except (TableNotFoundError, FileNotFoundError, NotADirectoryError):
            self._table = None
            raise TablesMissing([self.name]) from None
        except (DeltaError, OSError, ValueError) as error:
            self._table = None
            raise self._unreadable("refresh", error) from None
        self._table, self._mark = table, self.mark_of(table.version())
        return table

    def _opened(self) -> DeltaTable:
        table = self._table
        if table is None or not self._leads_on(table.version()):
            table = self._folder.opened()
            self.identity = str(table.metadata().id)
        elif self.has_entry(table.version() + 1):
            table.update_incremental()
        return table

    def _forget(self) -> None:
        self._table = None

    def _leads_on(self, version: int) -> bool:
        """Whether the log still goes on from a version that was read: same table, and no entry cleaned away since."""
        return self._mark is not None and self._mark == self.mark_of(version) and not self.has_checkpoint_after(version)

    def _asked(self, look: Callable[[], Found]) -> Found:
        try:
            return look()
        except (OSError, DeltaError) as error:
            raise self._unreadable("log", error) from None

    def _unreadable(self, step: str, error: Exception) -> TableUnreadable:
        """Say in the log why a table cannot be read, and give the error of it."""
        why, trace = self._folder.why(error)
        log.warning("table.%s.failed table=%s error=%s", step, self.name, why, exc_info=trace)
        return TableUnreadable([self.name])

    def _known(self, there: list[str]) -> list[str]:
        return [name for name in self._columns if name in there and name not in self._hidden]

    def _chunks(self, where: ds.Expression | None, files: list[Bound]) -> Iterator[pa.Table]:
        with self._lock:
            chosen = self._files.chosen(self._newest(), files)
        found = []
        for one in chosen:
            fragment = one.within(files)
            if fragment is not None:
                one.count_read(fragment)
                found.append(fragment)
        dataset = self._files.dataset(found)
        batches = dataset.scanner(
            columns=self._known(dataset.schema.names), filter=where, batch_size=CHUNK_ROWS, use_threads=False
        ).to_batches()
        yield from _together(batches)
        with self._lock:
            self._files.keep(chosen)


def _together(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Rows in chunks of up to `CHUNK_ROWS`. A live table has hundreds of files of a few rows each, and what a chunk
    costs beside its rows, a call for each column, was most of reading them."""
    some: list[pa.RecordBatch] = []
    count = 0
    for batch in batches:
        if some and count + batch.num_rows > CHUNK_ROWS:
            yield pa.Table.from_batches(some).combine_chunks()
            some, count = [], 0
        if batch.num_rows:
            some.append(batch)
            count += batch.num_rows
    if some:
        yield pa.Table.from_batches(some).combine_chunks()
