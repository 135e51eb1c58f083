"""How far the archive has come: the marks of each batch in a file of their own, and what the table itself holds.

A marks file is written under its batch's number, durably (`spark_jobs.checkpoint.kardia_files`), so that a batch that
is repeated begins with the marks it began with before. It starts no Spark.
"""

from __future__ import annotations

import duckdb
import msgspec
import pyarrow.compute as pc
import pyarrow.dataset as ds

from kardia.tables import EVENTS
from spark_jobs.archive.deduplication import Marks, moved
from spark_jobs.archive.rows import lane_of_row
from spark_jobs.checkpoint import kardia_files
from spark_jobs.errors import CheckpointError
from spark_jobs.writers.tables import open_table
from stores.datasets import dataset_of
from stores.locations import Folder
from stores.read_again import surviving

KEEP_MARKS = 20
"""Marks of so many batches stay, as many as Spark keeps of its own log."""

LaneMarks = dict[int, Marks]
"""Marks by lane."""


class MarksFiles:
    """The marks of one generation."""

    def __init__(self, directory: Folder) -> None:
        """Make nothing yet."""
        self._directory = directory

    def load(self, spark_batch_id: int) -> LaneMarks:
        """Marks after a batch; none before the first."""
        if spark_batch_id < 0:
            return {}
        name = _name(spark_batch_id)
        try:
            return msgspec.json.decode(kardia_files.read(self._directory, name), type=LaneMarks)
        except (OSError, msgspec.DecodeError) as error:
            raise CheckpointError(
                f"the marks of the archive cannot be read: {error}",
                str(self._directory / name),
                "the file the batch before has written",
                "restore the checkpoint from a copy, or begin a new one with --new-generation",
            ) from error

    def save(self, spark_batch_id: int, marks: LaneMarks) -> None:
        """Keep the marks after a batch, and drop those that no repeat asks for any more."""
        kardia_files.write(self._directory, _name(spark_batch_id), msgspec.json.encode(marks))
        kardia_files.remove(self._directory, _name(spark_batch_id - KEEP_MARKS))


def _name(spark_batch_id: int) -> str:
    return f"{spark_batch_id}.json"


class ArchivedEvents:
    """The rows of `events` as the batches before have left them; the table is opened when it is first asked."""

    def __init__(self, tables: Folder) -> None:
        """`tables` is the directory of the tables."""
        self._tables = tables
        self._rows: ds.Dataset | None = None

    def _read(self, columns: list[str], filter_: ds.Expression) -> ds.Scanner:
        if self._rows is None:
            self._rows = open_table(self._tables, EVENTS.name).to_pyarrow_dataset()
        return self._rows.scanner(columns=columns, filter=filter_)

    def _forget(self) -> None:
        self._rows = None

    def highest(self, source: str) -> int:
        """Highest start of a source, -1 if there is none."""
        return surviving(lambda: self._highest(source), self._forget)

    def starts(self, source: str, lowest: int, highest: int) -> set[tuple[int, int]]:
        """(start, shard) of the events of a source from one start to another, both included."""
        return surviving(lambda: self._starts(source, lowest, highest), self._forget)

    def _highest(self, source: str) -> int:
        found = -1
        for batch in self._read(["start"], ds.field("source") == source).to_batches():
            if batch.num_rows:
                found = max(found, pc.max(batch.column(0)).as_py())
        return found

    def _starts(self, source: str, lowest: int, highest: int) -> set[tuple[int, int]]:
        start = ds.field("start")
        found = self._read(["start", "shard"], (ds.field("source") == source) & (start >= lowest) & (start <= highest))
        table = found.to_table()
        return set(zip(table.column("start").to_pylist(), table.column("shard").to_pylist(), strict=True))


def advanced(marks: LaneMarks, tables: Folder, batch_id: int, lanes: int) -> tuple[LaneMarks, int]:
    """(marks after a batch: those before it, moved by what the batch has in the table; how many were forgotten)."""
    starts: dict[int, list[tuple[str, int]]] = {}
    for source, shard, start in surviving(lambda: _written(tables, batch_id)):
        starts.setdefault(lane_of_row(shard, lanes), []).append((source, start))
    after = {lane: moved(marks.get(lane, {}), starts.get(lane, ())) for lane in marks.keys() | starts.keys()}
    return {lane: one.marks for lane, one in after.items()}, sum(one.forgotten for one in after.values())


def _written(tables: Folder, batch_id: int) -> list[tuple[str, int, int]]:
    """Source, shard and highest start of what a batch has in the table."""
    with duckdb.connect() as connection:
        connection.register("written", dataset_of(open_table(tables, EVENTS.name)))
        return connection.execute(
            "SELECT source, shard, max(start) FROM written WHERE batch_id = ? GROUP BY ALL ORDER BY ALL", [batch_id]
        ).fetchall()
