"""The writer of the live tables on one machine: delta-rs, one commit of a few milliseconds per table and batch.

The default; it needs no JVM, so both engines of `kardia replay` use it as well. Steps and promises:
`spark_jobs.writers`. A batch of four tables takes 1/110 of the CPU time of delta-spark, which runs a Spark job for
every commit.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
from deltalake.exceptions import CommitFailedError

from kardia.tables import LIVE_TABLES
from spark_jobs.storage_errors import store_named
from spark_jobs.writers import BODY_TABLES, Reached, fence, nothing_happens
from spark_jobs.writers.tables import SMALL_ROW_GROUPS, by_group, create_or_open, open_table
from stores.locations import Folder, Store
from stores.read_again import surviving

THREADS = 4
"""Commits at the same time: four take 14 ms where one takes 9 (a commit waits for the disk)."""

COMMIT_RETRIES = 15
"""Attempts against a concurrent compaction before the batch fails; it is then repeated as a whole."""

CONFLICTS_MAX = 5
"""Attempts against commits that took rows away, each from a new look at the table. Upkeep makes such a commit once an
hour in each table (`spark_jobs.upkeep.retention`)."""


class DeltaRsWriter:
    """Body of `TableWriter` on delta-rs."""

    def __init__(self, directory: Folder, app_id: str, reached: Reached = nothing_happens) -> None:
        """Remember where and as whom to write; `prepare` opens."""
        self.directory = directory
        self.app_id = app_id
        self._reached = reached
        self._open: dict[str, DeltaTable] = {}
        self._numbers: dict[str, int] = {}
        """Number of this writer in each table of a store (`spark_jobs.writers.fence`)."""
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="delta-rs")

    def prepare(self) -> None:
        """Create missing tables; refuse a table of another shape. In a store, stop whoever wrote them before."""
        with store_named(self.directory):
            for name in LIVE_TABLES:
                self._open[name] = create_or_open(self.directory, name)
                if isinstance(self.directory, Store):
                    self._numbers[name] = fence.begin(self._open[name])

    def written(self) -> int | None:
        """Give the last complete batch of this app_id."""
        return surviving(lambda: self._done("progress"), lambda: self._reopen("progress"))

    def write(self, batch_id: int, tables: Mapping[str, pa.Table]) -> None:
        """Run steps 1 and 2 for one batch."""
        self._reached("batch:before", batch_id)
        body = [name for name in BODY_TABLES if name in tables]
        for done in [self._threads.submit(self._append, name, batch_id, tables[name]) for name in body]:
            done.result()
        if "progress" in tables:
            self._append("progress", batch_id, tables["progress"])
        self._reached("batch:written", batch_id)

    def close(self) -> None:
        """Let the threads go."""
        self._threads.shutdown()

    def _done(self, name: str) -> int | None:
        """Last batch of this app_id in a table, as of now. A look at the log, entries of which upkeep may remove."""
        self._open[name].update_incremental()
        version: int | None = self._open[name].transaction_version(self.app_id)
        return version

    def _append(self, name: str, batch_id: int, rows: pa.Table) -> None:
        """Append, once: what a look that failed did after all is found by the next one, as a transaction. A commit of
        upkeep that took old rows away meanwhile is a conflict for delta-rs, although nothing is read here."""
        with store_named(self.directory):
            for attempts_left in reversed(range(CONFLICTS_MAX)):
                try:
                    surviving(lambda: self._append_once(name, batch_id, rows), lambda: self._reopen(name))
                except CommitFailedError:
                    if not attempts_left:
                        raise
                else:
                    return

    def _reopen(self, name: str) -> None:
        self._open[name] = open_table(self.directory, name)

    def _append_once(self, name: str, batch_id: int, rows: pa.Table) -> None:
        done = self._done(name)
        self._check(name)
        if done is not None and done >= batch_id:
            return
        self._reached(f"{name}:before", batch_id)
        number = self._numbers.get(name)
        try:
            write_deltalake(
                self._open[name],
                by_group(rows),
                mode="append",
                writer_properties=SMALL_ROW_GROUPS,
                commit_properties=CommitProperties(
                    app_transactions=[
                        Transaction(self.app_id, batch_id),
                        *([] if number is None else [fence.mark(number)]),
                    ],
                    max_commit_retries=COMMIT_RETRIES,
                ),
            )
        except CommitFailedError:
            self._reopen(name)
            self._check(name)  # says it in better words, if it is that
            raise
        self._reached(f"{name}:written", batch_id)

    def _check(self, name: str) -> None:
        """Whether this is still the writer of the table; the table is as of now."""
        if name in self._numbers:
            fence.check(self._open[name], self._numbers[name], str(self.directory))
