"""Replay with Spark: pieces are parsed by its tasks, portions go through the live query, the same tables come out.

For logs that one machine is too small for: everything that costs time runs in executors, and a portion is the bound of
memory. On one machine the process pool is two to three times as fast (no JVM, no copies between it and Python), which
is why it is the default. The spill lies beside the tables, which every executor must therefore reach.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from ingest.archives.missing_files import after_holes
from ingest.archives.ranges import FileRange
from ingest.router import Directory
from spark_jobs import stream
from spark_jobs.checkpoint.checkpoint_directory import Agreement, open_checkpoint
from spark_jobs.jvm import jars, java
from spark_jobs.lane_model import ModelFactory
from spark_jobs.leases.disk_lease import held
from spark_jobs.replay.feeding import unattributed
from spark_jobs.replay.files_source import NAME, FilesSource, save_portion
from spark_jobs.replay.inputs import captured_pieces, groups_of, size_of
from spark_jobs.replay.portions import Portion, Portions
from spark_jobs.replay.run import PARSED_SHARE, Inputs, Opened, Told, prepare_tables, scratch_folder
from spark_jobs.replay.summary import Summary, count_tables
from spark_jobs.replay.worker import Parsed, Worker
from spark_jobs.spark import scratch
from spark_jobs.spark.session import LANE_TASKS, start_session
from spark_jobs.storage_errors import disk_named
from spark_jobs.writers.delta_rs import DeltaRsWriter
from stores.locations import Folder

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

LOOK_S = 0.2


def replay_on_spark(
    inputs: Inputs,
    tables: Folder,
    factory: ModelFactory,
    *,
    master: str = "local[2]",
    append: bool = False,
    overwrite: bool = False,
    told: Told | None = None,
) -> Summary:
    """Replay files into tables with the live query."""
    told = told or Told()
    inputs.given()
    with ExitStack() as stack:
        stack.enter_context(_explained(tables))
        stack.enter_context(disk_named(tables))
        stack.enter_context(held(tables, "writer of these tables"))
        spilled = scratch_folder(stack, tables)
        (spilled / "unwrapped").mkdir()
        opened = inputs.opened(spilled / "unwrapped")
        ranges = opened.ranges
        first_batch = prepare_tables(tables, append=append, overwrite=overwrite)
        temporary = stack.enter_context(scratch.scratch())
        spark = start_session("kardia-replay", master, jars.ensure("spark"), java.find().home, temporary=temporary)
        stack.callback(spark.stop)
        summary = Summary()
        told.total_bytes(sum(map(size_of, ranges)))
        parse = _parser(factory, str(spilled), inputs.lanes)
        numbered = list(enumerate(ranges))
        found = spark.sparkContext.parallelize(numbered, max(1, len(numbered))).mapPartitions(parse).collect()
        portions = _form(opened, inputs.lanes, dict(found), spilled, summary, told)
        per_line = sum(map(size_of, ranges)) / max(1, summary.lines)

        checkpoint = open_checkpoint(
            spilled / "checkpoint",
            tables,
            Agreement("replay", "replay", "files", inputs.lanes),
            (),
        )
        writer = DeltaRsWriter(tables, checkpoint.generation.app_id)
        stack.callback(writer.close)
        writer.prepare()
        done = threading.Event()

        def committed(batch: stream.Committed) -> None:
            portion = portions[batch.batch_id - first_batch]
            for piece in portion.pieces:
                told.advanced(piece.lines * per_line * (1 - PARSED_SHARE), piece.lines)
            summary.portions += 1
            if portion.last:
                done.set()

        sink = stream.Sink(writer, first_batch, committed)
        spark.dataSource.register(FilesSource)
        records = (
            spark.readStream.format(NAME)
            .option("directory", str(spilled))
            .option("portions", len(portions))
            .option("lanes", inputs.lanes)
            .load()
        )
        query = stream.start_query([records], factory, checkpoint, sink, finishing=True, tasks=LANE_TASKS)
        stack.callback(query.stop)
        _await(query, done, sink)
    summary.archives = opened.archives
    return count_tables(summary, tables, first_batch)


@contextmanager
def _explained(tables: Folder) -> Iterator[None]:
    """What Spark and the bridge to it raise, as a sentence: its tasks meet the disk and the files first."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JError) as error:
        raise stream.explain(None, error, str(tables)) from error


def _await(query: StreamingQuery, done: threading.Event, sink: stream.Sink) -> None:
    from pyspark.errors import StreamingQueryException

    while not done.wait(LOOK_S):
        if not query.isActive:
            try:
                query.awaitTermination()
            except StreamingQueryException as error:
                raise stream.explain(sink.failure, error, "replay") from error
            return
    query.processAllAvailable()  # lets Spark commit the last batch before it is stopped


Numbered = tuple[int, FileRange]


def _parser(
    factory: ModelFactory, directory: str, lanes: int
) -> Callable[[Iterable[Numbered]], Iterable[tuple[int, Parsed]]]:
    """Make the function that parses ranges in an executor."""

    def parse(numbered: Iterable[Numbered]) -> Iterable[tuple[int, Parsed]]:
        for number, piece in numbered:
            yield number, Worker(factory, Path(directory), f"range-{number}", [], lanes, fold=False).parse(piece)

    return parse


def _form(
    opened: Opened, lanes: int, parsed: dict[int, Parsed], scratch: Path, summary: Summary, told: Told
) -> list[Portion]:
    """Make the portions that the pool would make of the same files, and save them."""
    ranges = opened.ranges
    portions = Portions(after_holes=after_holes(opened.ranges))
    portions.add(*captured_pieces(opened.offsets, opened.samples, lanes, scratch))
    formed: list[Portion] = []
    groups = groups_of(ranges)
    for number, group in enumerate(groups):
        for one in group:
            portions.add(parsed[one].pieces, parsed[one].learned)
            told.advanced(size_of(ranges[one]) * PARSED_SHARE, 0)
        coming = itertools.chain.from_iterable(groups[number + 1 :])
        formed.extend(portions.ready([(ranges[one].source, ranges[one].first_at_ms) for one in coming]))
    clients = Directory()
    for portion in formed:
        save_portion(scratch, portion)
        clients.merge(portion.learned)
        for piece in portion.pieces:
            summary.lines += piece.lines
            summary.events += piece.events
            summary.ignored += sum(piece.ignored.values())
            summary.rejected += sum(piece.rejected.values())
            summary.unattributed += unattributed(piece, clients)
    return formed
