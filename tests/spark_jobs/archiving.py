"""The archive's batches without Spark: its decoder, its marks and a real Delta table; killed where a test says."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake

from ingest.wire.batches import FORMAT
from kardia.events import DEFAULT_LANES
from kardia.tables import EVENTS
from spark_jobs.archive.archive_query import decoder
from spark_jobs.archive.marks import MarksFiles, advanced
from spark_jobs.writers.tables import create_or_open

APP_ID = "kardia-archive/test"
ALIVE, BEFORE, WRITTEN = "alive", "before", "written"
"""A batch is done, killed before its rows are in the table, or killed before its marks are saved."""

INPUT = pa.schema(
    [
        ("lane", pa.int32()),
        ("offset", pa.int64()),
        ("at_ms", pa.int64()),
        ("format", pa.binary()),
        ("value", pa.binary()),
        ("cluster", pa.binary()),
    ]
)


class Archiving:
    """An archive that reads a topic in memory; it goes on after the last batch that was done."""

    def __init__(self, directory: Path, lanes: int = DEFAULT_LANES) -> None:
        self.tables = directory
        self.lanes = lanes
        self.batch = 0
        self.read = 0
        self._planned = 0
        self.forgotten = 0
        create_or_open(directory, EVENTS.name)
        self.marks = MarksFiles(directory / "marks")

    def run(self, topic: Sequence[tuple[int, bytes]], records: int, fate: str = ALIVE) -> None:
        """Archive the next records of the topic: (lane, value). A batch that was killed is repeated as it was."""
        self._planned = self._planned or records
        taken = topic[self.read : self.read + self._planned]
        rows = sorted((lane, self.read + at, value) for at, (lane, value) in enumerate(taken))
        block = pa.RecordBatch.from_pylist(
            [
                {"lane": lane, "offset": offset, "at_ms": 0, "format": FORMAT.encode(), "value": value, "cluster": b"c"}
                for lane, offset, value in rows
            ],
            INPUT,
        )
        marks = self.marks.load(self.batch - 1)
        found = list(decoder("c", marks, self.tables, self.batch)(iter([block])))
        if fate == BEFORE:
            return
        path = self.tables / EVENTS.name
        written = DeltaTable(path).transaction_version(APP_ID)
        if found and (written is None or written < self.batch):
            done = CommitProperties(app_transactions=[Transaction(APP_ID, self.batch)])
            write_deltalake(path, pa.Table.from_batches(found), mode="append", commit_properties=done)
        if fate == WRITTEN:
            return
        after, forgotten = advanced(marks, self.tables, self.batch, self.lanes)
        self.marks.save(self.batch, after)
        self.forgotten += forgotten
        self._planned = 0
        self.batch += 1
        self.read += len(taken)

    def ids(self) -> list[str]:
        """Ids in the table."""
        rows = DeltaTable(self.tables / EVENTS.name).to_pyarrow_dataset().to_table(columns=["event_id"])
        found: list[str] = rows.column(0).to_pylist()
        return found
