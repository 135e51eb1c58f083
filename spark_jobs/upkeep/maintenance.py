"""Upkeep of the tables while they are written: compact, let go what is too old, checkpoint and clean the log, vacuum.

Without it a point query takes 1.4 s after an hour of one commit per second, with it 16 ms (measured). One thread, the
tables in turn, each once a minute. It changes no row, and a failure of it fails no batch: it is counted, said, and
tried again. Appends and compactions do not conflict in Delta; a compaction that meets another one is dropped.

Steps per table: (1) put small files together, each minute into files of `ROWS_MAX` rows laid by group
(`spark_jobs.upkeep.compaction`), each hour those of samples into larger ones: what is put together every minute must
not be rewritten every minute; tables that nobody asks about one group are compacted as they are; (2) each hour, let go
of rows that are older than the setting says (`spark_jobs.upkeep.retention`); (3) checkpoint the log; (4) remove log
files that are older than the retention; (5) remove data files that were replaced ten minutes ago or earlier. A crash
between any two leaves files that the next pass removes. The clock is an argument.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from deltalake import DeltaTable

from kardia.retention_setting import HOUR_MS, KINDS, Keep
from kardia.tables import LIVE_TABLES
from spark_jobs.errors import JobError
from spark_jobs.upkeep import retention
from spark_jobs.upkeep.compaction import HOUR_ROWS_MAX, LAID, ROWS_MAX, lay
from spark_jobs.writers.tables import SMALL_ROW_GROUPS, is_there, open_table, path_of
from stores import store_errors
from stores.locations import Folder, Store

EVERY_S = 60.0
"""A pass costs 0.13 to 0.45 s per table; queries slow down by about 20 ms per minute without it."""

STOP_S = 1.0
"""How long a stop waits for the table in hand."""

SMALL_BYTES = 8 << 20
LARGE_BYTES = 128 << 20
"""A file of a minute, and of many hours, of a table that is not asked about one group. With one size of 100 MB a table
that grows by 3 MB a minute had 50 MB of its newest rows written anew in each of them."""

LARGE_EVERY_MS = HOUR_MS
"""Time between two passes that make large files and let go of what is old."""

MIN_NEW_COMMITS = 20
"""Commits since its last pass below which a table is left alone: rewriting a quiet table buys nothing."""


@dataclass(frozen=True)
class Pass:
    """What one pass did."""

    tables: int
    failures: tuple[str, ...]


class Maintenance:
    """A thread that keeps a directory of tables quick to read."""

    def __init__(
        self,
        directory: Folder,
        names: tuple[str, ...] = LIVE_TABLES,
        *,
        every_s: float = EVERY_S,
        said: Callable[[str], None] = lambda _line: None,
        keep: Keep = Keep(),
        now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        """Name the tables; `said` takes a sentence for every failure; `keep` says how long rows are kept."""
        self._keeping = keep
        self._now_ms = now_ms
        self._large_at_ms: dict[str, int] = {}
        self._directory = directory
        self._names = names
        self._every_s = every_s
        self._said = said
        self._stop = threading.Event()
        self._versions: dict[str, int] = {}
        self._thread = threading.Thread(target=self._run, name="maintenance", daemon=True)

    def start(self) -> None:
        """Begin; within the first interval each table has its turn, at even distances."""
        self._thread.start()

    def stop(self) -> None:
        """End after the table in hand, or leave it after `STOP_S`: what it has not committed never was."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(STOP_S)

    def run_once(self) -> Pass:
        """Do one pass over all tables."""
        done: list[bool | None] = []
        for name in self._names:
            if self._stop.is_set():
                break
            done.append(self._try(name))
        failures = tuple(name for name, kept in zip(self._names, done, strict=False) if kept is None)
        return Pass(done.count(True), failures)

    def _run(self) -> None:
        """Keep the tables in turn, spread over the interval: all at once would hold up several live batches."""
        for name in itertools.cycle(self._names):
            if self._stop.wait(self._every_s / len(self._names)):
                return
            self._try(name)

    def _try(self, name: str) -> bool | None:
        """Whether a table had upkeep; None after a failure."""
        try:
            return self._keep(name)
        except Exception as error:  # whatever it was: the thread must not end
            hushed = isinstance(self._directory, Store) and not isinstance(error, JobError)
            why = store_errors.of(error).what if hushed else (str(error).splitlines() or [type(error).__name__])[0]
            self._said(f"maintenance of {name} failed and is tried again: {why}")
            return None

    def _keep(self, name: str) -> bool:
        if not is_there(self._directory, name):
            return False
        table = open_table(self._directory, name)
        now_ms = self._now_ms()
        large = now_ms >= self._large_at_ms.get(name, now_ms)
        if not large and table.version() - self._versions.get(name, 0) < MIN_NEW_COMMITS:
            return False
        self._put_together(table, name, large=large)
        if large:
            before = retention.cutoffs(name, self._keeping, retention.newest(self._directory, now_ms))
            retention.let_go(table, name, before)
            self._large_at_ms[name] = now_ms + LARGE_EVERY_MS
            table.update_incremental()
        table.create_checkpoint()
        table.cleanup_metadata()
        # Each hour also what no log ever named: files of a writer that was killed before its commit.
        table.vacuum(dry_run=False, full=large)
        self._versions[name] = table.version()
        return True

    def _put_together(self, table: DeltaTable, name: str, *, large: bool) -> None:
        """Step 1."""
        if name in LAID:
            of_hour = large and name in KINDS["health"].tables
            lay(table, path_of(self._directory, name), HOUR_ROWS_MAX if of_hour else ROWS_MAX)
        else:
            size = LARGE_BYTES if large else SMALL_BYTES
            table.optimize.compact(target_size=size, writer_properties=SMALL_ROW_GROUPS)
