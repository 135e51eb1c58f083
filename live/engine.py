"""The lanes of one process: events in, rows shown at once, and a batch in the tables every two seconds.

For a collector it is the topic that it sends to and the place where its positions are saved (`ingest.ports`): a record
is acknowledged when its lane has taken it, and positions are saved by the batch that holds what they stand behind. A
batch is what came between two saves; its steps are those of `live.files`. Where records come from a real topic, they
are taken with the offsets that they have there (`take`), and the lanes remember how far they are.

Everything here belongs to one thread, but for the commits of the tables, of which one is under way at most.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa

from ingest.offsets.committed import SavedCommitted
from ingest.ports import Clock
from ingest.router import Directory
from ingest.tail.positions import SAVE_MS, Positions, SavedDirectory
from ingest.tail.positions import Store as PositionsStore
from ingest.wire.batches import format_of
from kardia.observe.careful import REASON as NOT_APPLIED
from kardia.tables import PROGRESS, Row
from live import thinning
from live.ahead import Ahead, Rows
from live.files import Batch, BatchFiles, LaneStore, packed, unpacked
from live.metrics import LiveMetrics
from spark_jobs.batch_pacing import SAMPLED
from spark_jobs.checkpoint import journal
from spark_jobs.checkpoint.journal import Kept
from spark_jobs.lane import ANEW, Lane, Record
from spark_jobs.schemas import to_tables
from spark_jobs.storage_errors import disk_named
from spark_jobs.writers import Reached, TableWriter, nothing_happens
from stores.locations import Folder

TOKEN_BYTES = 16

JOURNAL_BYTES = journal.MIN_BYTES
"""What a journal may hold, however small its base."""

STEPS_MIN = 300
"""Steps of a journal, half a minute of them, that are read again at a start; of a large lane more, as its base costs
more than they do."""

BYTES_OF_A_STEP = 16_384
"""Bytes of a base that cost as much as one step more at a start."""

ROWS_MAX = 50_000
"""Rows from which a batch is full: it is written before its time."""

RECORDS_MAX_BYTES = 32 << 20
"""The same for the records that it took."""

QUIET_SAVE_MS = 10_000
"""A batch of nothing but samples is written so long after the one before. Two commits cost as much as three hundred
lines; whoever asks this process has what they hold anyway."""


class Engine:
    """Lanes, the batch in the making, and the way of batches into files and tables."""

    def __init__(
        self,
        begin: Callable[[int], Lane],
        lanes: int,
        files: BatchFiles,
        positions: PositionsStore,
        tables: Folder,
        writer: TableWriter,
        ahead: Ahead,
        clock: Clock,
        first_batch: int,
        metrics: LiveMetrics,
        reached: Reached = nothing_happens,
    ) -> None:
        """Take up what the files have: the rows of the last batch go into the tables, the lanes to where they were.

        `begin` makes a lane that has read nothing. `positions`: where the router's directory and the partitions with
        commits are kept, which are no part of a batch.
        """
        self.directory: Path = positions.directory
        self._clock, self._files, self._writer, self._ahead, self._reached = clock, files, writer, ahead, reached
        self._beside, self._tables, self._metrics = positions, tables, metrics
        self._stores = [LaneStore() for _ in range(lanes)]
        self.positions = Positions()
        """As of the last batch."""
        self._number, self._told_before = first_batch - 1, -1
        self._directory = Directory()
        """Who speaks for which shards, as the collector learns it; what was learned since the one beside was saved is
        in the files from `_directory_from` on."""
        self._directory_from = (files.numbers() or [first_batch])[0]
        last: Batch | None = None
        for last in files.read_all():
            self._load(last)
        if last is not None:
            # The one file of which the tables may lack something: the next is written after they have all of it.
            writer.write(last.number, unpacked(last.tables))
        self._lanes: list[Kept] = [
            journal.read(store, lambda number=number: begin(number))  # type: ignore[misc]
            for number, store in enumerate(self._stores)
        ]
        self._begin = begin
        self._sent: dict[int, list[tuple[bytes, Callable[[], None]]]] = {}
        self._waiting = 0
        self._told: Rows = {}
        """What the lanes told since the last batch."""
        self._clients: list[tuple[str, str, list[int]]] = []
        """And what of the directory no file has yet."""
        self._rows = self._bytes = 0
        self._last_based = -1
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="tables")
        self._writing: Future[None] | None = None
        ahead.begin(self._number)

    def _load(self, batch: Batch) -> None:
        for lane, puts in batch.lanes.items():
            self._stores[lane].load(puts, batch.number)
        self.positions, self._number = batch.positions, batch.number
        self._told_before = batch.told_before
        self._directory.merge(batch.clients)
        if PROGRESS.name in batch.tables:
            self._told_before = batch.number

    def follow(self, directory: Directory) -> None:
        """Add to the directory of a collector what the files have of it; keep what it learns from now on."""
        directory.merge(self._directory.entries())
        directory.fresh()
        self._directory = directory

    # --- the topic of a collector ------------------------------------------------------------------------------------

    @property
    def in_flight(self) -> int:
        """Records sent and not yet taken."""
        return self._waiting

    def send(self, lane: int, data: bytes, acknowledged: Callable[[], None]) -> None:
        """Have a lane take a record at the next `poll`."""
        self._sent.setdefault(lane, []).append((data, acknowledged))
        self._waiting += 1

    def poll(self, timeout_s: float) -> None:  # noqa: ARG002  there is nothing to wait for
        """Step the lanes with what was sent, and acknowledge it."""
        if not self._sent:
            return
        at_ms = int(self._clock.wall_ms())
        records: dict[int, list[Record]] = {}
        for number, one in self._sent.items():
            offset = max(0, self._lanes[number].lane.next_offset)
            records[number] = [
                Record(offset + place, at_ms, format_of(data).encode(), data) for place, (data, _) in enumerate(one)
            ]
        self.take(records)
        sent, self._sent, self._waiting = self._sent, {}, 0
        for told in sent.values():
            for _, acknowledged in told:
                acknowledged()

    # --- the lanes ---------------------------------------------------------------------------------------------------

    def take(self, records: Mapping[int, Sequence[Record]]) -> None:
        """Step some lanes, each with its records, and show what they tell."""
        told: Rows = {}
        self._metrics.steps.inc()
        for number in sorted(records):
            for name, rows in self._step(number, list(records[number])).items():
                if rows:
                    told.setdefault(name, []).extend(rows)
        if told:
            for name, rows in told.items():
                self._told.setdefault(name, []).extend(rows)
                self._rows += len(rows)
            self._ahead.put(self._number + 1, told)

    def _step(self, number: int, records: list[Record]) -> Mapping[str, Sequence[Row]]:
        kept, store = self._lanes[number], self._stores[number]
        rows = kept.lane.step(records, lambda: self._read(number).lane.save())
        turn = self._last_based != self._number  # one base in a batch, unless it has waited for long
        most = STEPS_MIN + kept.base_bytes // BYTES_OF_A_STEP
        if journal.write(store, kept, records, secrets.token_bytes(TOKEN_BYTES), JOURNAL_BYTES, turn=turn, steps=most):
            self._last_based = self._number
        self._bytes += journal.size_of(records)
        return rows

    def _read(self, number: int) -> Kept:
        """A lane as it was before the step that cannot be applied."""
        return journal.read(self._stores[number], lambda: self._begin(number))

    def begin_anew(self) -> None:
        """The topic was made again: what its lanes remember is kept, and before its first record lies a gap."""
        for kept, store in zip(self._lanes, self._stores, strict=True):
            if kept.lane.next_offset != -1:
                kept.lane.next_offset = ANEW
                journal.rebase(store, kept, secrets.token_bytes(TOKEN_BYTES))

    def next_offsets(self) -> list[int]:
        """Of each lane the offset after the last record that it took; below 0 before the first of a topic."""
        return [kept.lane.next_offset for kept in self._lanes]

    # --- the positions of a collector --------------------------------------------------------------------------------

    @property
    def save_ms(self) -> float:
        """So long after a batch the next is written: at once when it is full, later while nothing has happened."""
        if self._rows >= ROWS_MAX or self._bytes >= RECORDS_MAX_BYTES:
            return 0
        return SAVE_MS if self._told.keys() - SAMPLED else QUIET_SAVE_MS

    def save(self, positions: Positions) -> None:
        """Write the batch: what the lanes took, what they told, and the positions behind it. Steps 2 to 4."""
        self.await_tables()
        positions.number += 1
        number = self._number + 1
        tables = thinning.thinned(to_tables(self._told, number))
        lanes = {lane: puts for lane, store in enumerate(self._stores) if (puts := store.unsaved()) is not None}
        self._clients += self._directory.fresh()
        batch = Batch(number, self._told_before, positions, lanes, packed(tables), self._clients)
        self._reached("file:before", number)
        self._metrics.batch_bytes.inc(self._files.write(batch))
        self._reached("file:written", number)
        for lane, puts in lanes.items():
            self._stores[lane].saved(puts, number)
        self._number, self._told, self._clients, self._rows, self._bytes = number, {}, [], 0, 0
        if PROGRESS.name in tables:
            self._told_before = number
        of_lanes = (store.needs_from for store in self._stores if store.needs_from is not None)
        needed = min((self._directory_from, *of_lanes))
        self._writing = self._thread.submit(self._write, number, tables, needed)

    def _write(self, number: int, tables: dict[str, pa.Table], needed: int) -> None:
        with disk_named(self._tables):
            self._writer.write(number, tables)
        self._metrics.batches.inc()
        self._metrics.rows.inc(sum(map(len, tables.values())))
        if "rejected" in tables:
            self._metrics.not_applied.inc(tables["rejected"]["reason"].to_pylist().count(NOT_APPLIED))
        self._ahead.wrote(number)
        self._files.forget(min(number, needed))
        self._reached("files:forgotten", number)

    def await_tables(self) -> None:
        """Wait until the tables have the last batch; raises what prevented it."""
        if self._writing is not None:
            self._writing.result()
            self._writing = None

    def save_directory(self, directory: SavedDirectory) -> None:
        """Save the router's directory."""
        self._beside.save_directory(directory)
        self._directory_from = self._number + 1

    def save_committed(self, committed: SavedCommitted, number: int) -> None:
        """Save the partitions with commits."""
        self._beside.save_committed(committed, number)

    def close(self) -> None:
        """Wait for the tables, and let the thread go."""
        try:
            self.await_tables()
        finally:
            self._thread.shutdown()
