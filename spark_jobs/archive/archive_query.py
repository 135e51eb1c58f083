"""The second query: every accepted event into the table `events`, each id once, written by delta-spark.

    Kafka source (lane after lane in order of offsets, one task) -> mapInArrow: decode, drop repeats -> append

Steps of a batch: (1) the marks after the batch before are read, (2) the rows are appended with the transaction (app_id,
batch), (3) the marks after this batch are computed from the rows of the table and saved under the batch's number
(see `spark_jobs.archive.marks`), (4) Spark commits. A repeat after a crash begins with the same marks; if (2) was done
Delta skips it, and (3) gives the same marks because it looks at what was written.

Where it is behind, because it was killed again and again, it begins with the live query and does not rest: a batch must
be done before the next kill (`behind`, which the job tells as a metric and at its start).

The query runs every two minutes (`archive_every_s`), takes what there is, and ends. Big appends are what delta-spark
is good at, and the live tables must not wait for them: while it runs they have less of the processors, and a run every
ten seconds delayed one live answer in five by a second (measured on two cores). This table belongs to the JVM: on a
local disk a second engine must not commit to it, so its upkeep is done here as well, between two batches.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pyarrow as pa

from kardia.retention_setting import Keep
from kardia.tables import EVENTS, Row
from spark_jobs.archive.deduplication import Once
from spark_jobs.archive.marks import ArchivedEvents, LaneMarks, MarksFiles, advanced
from spark_jobs.archive.rows import rows_of, without_what_does_not_fit
from spark_jobs.checkpoint.checkpoint_directory import Checkpoint
from spark_jobs.errors import RowsError
from spark_jobs.lane import Record
from spark_jobs.processor import INPUT_COLUMNS
from spark_jobs.schemas import fitting, spark_schema, to_arrow
from spark_jobs.writers import Reached, nothing_happens
from spark_jobs.writers.tables import spark_path
from stores.locations import Folder

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

NAME = "archive"
TABLES = (EVENTS.name,)
UPKEEP_EVERY = 30
"""Batches between two passes of upkeep, about an hour."""

ROWS_PER_BLOCK = 2_000

REST = 4.0
"""After each block the worker rests so many times as long as the block took it: with what the JVM does with the rows
the archive then takes half a core while it runs, and the live batches beside it hardly notice."""


class Archive:
    """The sink of the query and its marks."""

    def __init__(
        self,
        spark: SparkSession,
        tables: Folder,
        checkpoint: Checkpoint,
        reached: Reached = nothing_happens,
        *,
        forgot: Callable[[int], None],
        keep_ms: int = Keep().events_ms,
        rest: float = REST,
    ) -> None:
        """Prepare the table; `reached` is the fault port, `forgot` is told how many marks a batch dropped. Events are
        kept for `keep_ms`, by the newest one's own clock: they name clients, and are for audit, not for history.
        `rest`: see `REST`; 0 where it is behind."""
        self._keep_ms = keep_ms
        self._rest = rest
        self._spark = spark
        self._tables = tables
        self._path = spark_path(tables, EVENTS.name)
        self._generation = checkpoint.generation
        self._marks = MarksFiles(checkpoint.directory / f"{checkpoint.generation.name}-marks")
        self._reached = reached
        self._forgot = forgot
        self.failure: BaseException | None = None

    def __call__(self, records: DataFrame, spark_batch_id: int) -> None:
        """Write one batch."""
        batch_id = self._generation.first_batch + spark_batch_id
        try:
            self._reached("events:before", batch_id)
            marks = self._marks.load(spark_batch_id - 1)
            lanes = self._generation.agreement.lanes
            decode = decoder(self._generation.agreement.cluster, marks, self._tables, batch_id, self._rest)
            (
                records.mapInArrow(decode, spark_schema(EVENTS))
                .write.format("delta")
                .mode("append")
                .option("txnAppId", self._generation.app_id)
                .option("txnVersion", batch_id)
                .save(self._path)
            )
            self._reached("events:written", batch_id)
            after, forgotten = advanced(marks, self._tables, batch_id, lanes)
            self._marks.save(spark_batch_id, after)
            self._forgot(forgotten)
            self._reached("marks:written", batch_id)
            if spark_batch_id % UPKEEP_EVERY == UPKEEP_EVERY - 1:
                keep(self._spark, self._path, self._keep_ms, time.time_ns() // 1_000_000)
        except BaseException as error:
            self.failure = error
            raise


def decoder(
    cluster: str, marks: LaneMarks, tables: Folder, batch_id: int, rest: float = REST
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Make the function that runs in the workers: records of one or more whole lanes to rows of `events`."""

    def decode(blocks: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows: list[Row] = []
        past = ArchivedEvents(tables)
        lanes: dict[int, Once] = {}
        began_s = time.thread_time()
        for block in blocks:
            names = INPUT_COLUMNS
            for lane, *record in zip(*(block.column(name).to_pylist() for name in names), strict=True):
                once = lanes.setdefault(lane, Once(marks.get(lane, {}), past))
                rows.extend(rows_of(cluster, lane, once, [Record(*record)]))
                if len(rows) >= ROWS_PER_BLOCK:
                    yield from _arrow(rows, batch_id)
                    rows = []
                    time.sleep(rest * (time.thread_time() - began_s))
                    began_s = time.thread_time()
        if rows:
            yield from _arrow(rows, batch_id)

    return decode


def _arrow(rows: list[Row], batch_id: int) -> Iterator[pa.RecordBatch]:
    """Rows as Arrow. One that does not fit would stop this query for ever: it is there without what does not fit."""
    try:
        found = to_arrow(EVENTS, rows, batch_id)
    except RowsError:
        fit, refused = fitting(EVENTS, rows, batch_id)
        found = to_arrow(
            EVENTS, [*fit, *(without_what_does_not_fit(tuple(row), why) for row, why in refused)], batch_id
        )
    yield from found.to_batches()


def behind(live: Checkpoint, archive: Checkpoint) -> int:
    """Records that are in the live tables and not in the archive."""
    archived = archive.read_offsets()
    return sum(max(0, offset - archived.get(partition, 0)) for partition, offset in live.read_offsets().items())


def keep(spark: SparkSession, path: str, keep_ms: int, now_ms: int) -> None:
    """Drop old events, compact small files, remove files no version of the last week needs. Where a broker's clock is
    ahead of `now_ms`, that is the newest."""
    from delta.tables import DeltaTable

    table = DeltaTable.forPath(spark, path)
    newest = table.toDF().agg({"known_at_ms": "max"}).collect()[0][0]
    if newest is not None:
        table.delete(f"known_at_ms < {min(int(newest), now_ms) - keep_ms}")
    table.optimize().executeCompaction()
    table.vacuum()


def start_archive(records: DataFrame, checkpoint: Checkpoint, archive: Archive) -> StreamingQuery:
    """Start one run of the query over records with `processor.INPUT_COLUMNS`: it takes all there is now, then ends.

    The source must keep a lane in one partition, in order.
    """
    return (
        records.coalesce(1)  # one core at most: this is the work nobody waits for
        .writeStream.queryName(NAME)
        .option("checkpointLocation", checkpoint.spark_location)
        .foreachBatch(archive)
        .trigger(availableNow=True)
        .start()
    )
