"""The live query: records of `kardia.events` through the lanes into the live tables, each batch exactly once.

    Kafka source -> coalesce -> groupBy(lane) -> LaneProcessor -,
    Kafka source -> coalesce -> groupBy(lane) -> LaneProcessor -+-> foreachBatch: toArrow once -> TableWriter

Steps of a batch: (1) Spark writes the planned offsets, (2) the lanes are stepped and the state is written, (3) the
writer's steps (`spark_jobs.writers`), `progress` last, (4) Spark commits the batch, after a rest
(`spark_jobs.batch_pacing`). A repeat after any crash starts at (1) with the same offsets and the state before them. The
action on the frame runs in every repeat, also when all tables have the batch already, because the state of the batch is
written by it.

It must not know what an event means.
"""

from __future__ import annotations

import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import reduce
from typing import TYPE_CHECKING

from kardia.observe.careful import REASON as NOT_APPLIED
from kardia.tables import PROGRESS
from spark_jobs.batch_pacing import Pace
from spark_jobs.checkpoint.checkpoint_directory import Checkpoint
from spark_jobs.checkpoint.journal import MIN_BYTES
from spark_jobs.checkpoint.state_codec import damaged
from spark_jobs.errors import (
    DamagedError,
    InputFileError,
    JobError,
    RefusedError,
    StateError,
    StoppedError,
    TablesError,
    TopicLossError,
)
from spark_jobs.lane import FOREIGN
from spark_jobs.lane_model import ModelFactory
from spark_jobs.outputs import EVENTS_TAKEN, FILES_FORGOTTEN, LANES_READ, merge, take_counts, take_spent
from spark_jobs.processor import LaneProcessor, stepped
from spark_jobs.schemas import to_arrow, to_tables
from spark_jobs.stage_times import Laps, Spent, add, rows_of
from spark_jobs.storage_errors import disk_error, refusal
from spark_jobs.writers import TableWriter

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

NAME = "live"
"""Name of the query, part of the app_id of its transactions."""

LOSS_MARKS = ("Some data may have been lost", "OffsetOutOfRangeException", "KAFKA_DATA_LOSS")
"""What Spark's error contains when the topic no longer has offsets that were to be read."""


@dataclass(frozen=True)
class Committed:
    """What is known of a batch when it is in the tables."""

    batch_id: int
    rows: int
    seconds: float
    foreign: int = 0
    """Records refused because they are of another cluster."""
    not_applied: int = 0
    """Events and rows left out because the observer raised at them, or their table refused them."""
    files_forgotten: int = 0
    """Files of rotated logs whose positions are remembered no longer."""
    lanes_read: int = 0
    """Lanes that were read back from the store: each once after a start, and after a worker has died."""
    events: int = 0
    """Events that the lanes took, repeats included."""
    spent: Spent = field(default_factory=dict)
    """What each stage took, all lanes together."""


class Sink:
    """The end of the query: one call per batch, in the driver."""

    def __init__(
        self,
        writer: TableWriter,
        first_batch: int,
        committed: Callable[[Committed], None] | None = None,
        pace: Pace | None = None,
    ) -> None:
        """Write with `writer`; `first_batch` is what the generation adds to Spark's numbers. No `pace`: no rests."""
        self._writer = writer
        self._first_batch = first_batch
        self._committed = committed
        self._pace = pace
        self.failure: BaseException | None = None
        """What stopped the query in here, before Spark wrapped it in Java text."""

    def __call__(self, outputs: DataFrame, spark_batch_id: int) -> None:
        """Write one batch."""
        batch_id = self._first_batch + spark_batch_id
        laps = Laps(time.process_time)
        started = time.monotonic()
        try:
            found = outputs.toArrow()  # the one action: steps the lanes and writes their state
            laps.end("wait")
            rows = merge(zip(*(found.column(name).to_pylist() for name in ("lane", "table", "blob")), strict=True))
            counts, spent = take_counts(rows), take_spent(rows)
            laps.end("merge")
            tables = to_tables(rows, batch_id)
            # A batch of no records, as the first one is of a topic that has none yet, is to be found in the tables too.
            tables.setdefault(PROGRESS.name, to_arrow(PROGRESS, (), batch_id))
            laps.end("rows")
            self._writer.write(batch_id, tables)
            laps.end("write")
        except BaseException as error:
            self.failure = error
            raise
        if self._committed is not None:
            reasons = Counter(tables["rejected"]["reason"].to_pylist()) if "rejected" in tables else Counter[str]()
            written = sum(map(len, tables.values()))
            seconds = time.monotonic() - started
            forgotten, read = counts[FILES_FORGOTTEN], counts[LANES_READ]
            add(spent, rows_of(laps.spent))
            self._committed(
                Committed(
                    *(batch_id, written, seconds, reasons[FOREIGN], reasons[NOT_APPLIED], forgotten, read),
                    *(counts[EVENTS_TAKEN], spent),
                )
            )
        if self._pace is not None:
            self._pace.rest(tables)


def start_query(
    parts: Sequence[DataFrame],
    factory: ModelFactory,
    checkpoint: Checkpoint,
    sink: Sink,
    *,
    trigger_ms: int = 0,
    finishing: bool = False,
    until_available: bool = False,
    journal_bytes: int = MIN_BYTES,
    tasks: int = 1,
) -> StreamingQuery:
    """Start the query over records with `processor.INPUT_COLUMNS`; `until_available` stops it when all are read.

    `parts` are the records of some lanes each, at the same places in every run of a checkpoint. A part has Python
    workers of its own, for Spark gives a task any worker that is idle, and a lane that comes to another worker is read
    back from the store. `tasks` of the stateful stage of each part count for a new checkpoint; one that was begun
    keeps its number.
    """
    spark = parts[0].sparkSession
    spark.conf.set("spark.sql.shuffle.partitions", str(tasks))
    for name, value in INTERPRETED.items():
        spark.conf.set(name, value)
    agreement = checkpoint.generation.agreement
    processor = LaneProcessor(
        factory,
        agreement.topic,
        agreement.lanes,
        checkpoint.generation.name,
        cluster="" if finishing else agreement.cluster,
        finishing=finishing,
        journal_bytes=journal_bytes,
        begun_with=checkpoint.seeds,
    )
    steps = [
        _of_own_workers(number, lambda part=part: stepped(part.coalesce(tasks), processor))  # type: ignore[misc]
        for number, part in enumerate(parts)
    ]
    writer = (
        reduce(lambda one, other: one.union(other), steps)
        .writeStream.queryName(NAME)
        .outputMode("update")
        .option("checkpointLocation", checkpoint.spark_location)
        .foreachBatch(sink)
    )
    trigger = {"availableNow": True} if until_available else {"processingTime": f"{trigger_ms} milliseconds"}
    try:
        return writer.trigger(**trigger).start()
    finally:
        for name in INTERPRETED:  # the query has its own copy; others go on with code
            spark.conf.unset(name)


INTERPRETED = {"spark.sql.codegen.factoryMode": "NO_CODEGEN", "spark.sql.codegen.wholeStage": "false"}
"""Settings of this query alone: its rows are records, a few dozen in a batch, and each task would write Java code for
them anew (one eighth of the JVM's CPU, whether the code is compiled already or not)."""

PART = "KARDIA_LANES_PART"
"""Environment variable of Python workers, for nothing but that Spark keeps those with different ones apart."""


def _of_own_workers(number: int, made: Callable[[], DataFrame]) -> DataFrame:
    """A frame whose Python function gets workers that no other part gets."""
    from pyspark import SparkContext

    environment = SparkContext.getOrCreate().environment
    environment[PART] = str(number)
    try:
        return made()
    finally:
        del environment[PART]


def records(query: StreamingQuery) -> int:
    """How many records the last batch that is over had; none before the first."""
    progress = query.lastProgress
    return 0 if progress is None else int(progress["numInputRows"])


def durations(query: StreamingQuery) -> dict[str, float]:
    """How long the steps of the last batch took as Spark says, in milliseconds; none before the first."""
    progress = query.lastProgress
    return {} if progress is None else dict(progress["durationMs"])


STOP_S = 2.0
"""How long a stop waits for a query: what a batch in flight needs to notice it. Then the JVM is ended around it."""


def stop_all(queries: Iterable[StreamingQuery]) -> None:
    """Stop the queries side by side; a batch in flight is repeated at the next start."""
    threads = [threading.Thread(target=_stop, args=(query,), daemon=True) for query in queries]
    for thread in threads:
        thread.start()
    end_s = time.monotonic() + STOP_S
    for thread in threads:
        thread.join(max(0.0, end_s - time.monotonic()))


def _stop(query: StreamingQuery) -> None:
    with suppress(Exception):  # however it ends, the JVM goes next, and the next start repeats the batch
        query.stop()


_OURS = re.compile(r"spark_jobs\.errors\.(?P<kind>StateError|DamagedError): (?P<sentence>[^\n]+)")
_STATE_LOST = re.compile(
    r"CANNOT_LOAD_STATE_STORE\.(?!\w*OUT_OF_MEMORY|UNRELEASED_THREAD_ERROR|FAILED_TO_GET_CHANGELOG_WRITER)(?P<why>\w+)"
)
"""Files of Spark's state that are not as it wrote them; not where it had no memory or no file to write."""
_OF_TASK = re.compile(
    r"spark_jobs\.errors\.(?P<kind>InputFileError|TablesError): "
    r"(?P<what>[^\n]+) \((?P<where>[^\n]+?)\)\. Expected: (?P<expected>[^\n]+)\. Next: (?P<next>[^\n]+)\."
)
"""An error of ours that a task raised, in Spark's text."""


_BY_BROKERS = {
    "TopicAuthorizationException": ("the topic may not be read by this principal", "READ on it", "grant it"),
    "GroupAuthorizationException": ("a group may not be used by this principal", "READ on it", "grant it"),
    "SaslAuthenticationException": (
        "the brokers refuse the login of Spark's Kafka client",
        "the credentials of --client-config to be valid",
        "correct or renew them",
    ),
    "SslAuthenticationException": (
        "TLS between Spark's Kafka client and the brokers does not come about",
        "certificates that each side trusts and that have not expired",
        "renew what has expired, and name the authorities in --client-config",
    ),
}
"""What Kafka's Java client raises when brokers refuse it: what, what was expected, what to do."""


def _refused_by_brokers(text: str, where: str) -> RefusedError | None:
    for name, (what, expected, next_step) in _BY_BROKERS.items():
        if f"org.apache.kafka.common.errors.{name}" in text:
            step = f"{next_step} (`kardia doctor` says what is missing), and start again: nothing is lost"
            return RefusedError(what, where, expected, step)
    return None


OUT_OF_MEMORY = 52
"""Exit status of a JVM of Spark that had no memory left."""


def explain(failure: BaseException | None, error: BaseException, where: str, jvm_status: int | None = None) -> JobError:
    """Make of what ended a query the sentence a person needs, with Spark's own text as its cause. `jvm_status`: exit
    status of the JVM, if that has gone."""
    if isinstance(failure, JobError):
        return failure
    if jvm_status is not None:
        why = "it had no memory left" if jvm_status == OUT_OF_MEMORY else "its own words are above"
        return StoppedError(
            f"Spark's JVM has ended with status {jvm_status}: {why}",
            where,
            "a JVM that has the memory of a batch",
            "start again: the batch is repeated, nothing is lost. If it ends so once more, with fewer records in a "
            "batch (KARDIA_STREAM_MAX_RECORDS=100) or more memory (--conf spark.driver.memory=2g)",
        )
    text = str(error)
    ours = _OURS.search(text)
    if ours:
        kind_of_state = DamagedError if ours["kind"] == DamagedError.__name__ else StateError
        return kind_of_state(
            f"a lane's saved state was refused: {ours['sentence']}",
            where,
            "state of this version",
            "follow the sentence",
        )
    task = _OF_TASK.search(text)
    if task:
        kind = InputFileError if task["kind"] == "InputFileError" else TablesError
        return kind(task["what"], task["where"], task["expected"], task["next"])
    disk = refusal(f"{failure or ''} {text}")
    if disk is not None:
        return disk_error(disk, where)
    refused = _refused_by_brokers(text, where)
    if refused is not None:
        return refused
    torn = _STATE_LOST.search(text)
    if torn:
        return damaged(f"Spark cannot load it ({torn['why'].lower()})", where)
    if any(mark in text for mark in LOSS_MARKS):
        return TopicLossError(
            "the topic no longer has records that were not read yet: retention or a deletion removed them",
            where,
            "every record from the last committed offset on",
            "raise retention.ms of the topic; then pass --accept-loss once: it reads on from the first record there is "
            "and marks every group of the lane unknown across the gap",
        )
    reason = next(
        (line.strip() for line in reversed(text.splitlines()) if "Error" in line or "Exception" in line), text
    )
    return StoppedError(
        f"the query ended by an error: {reason[:500]}",
        where,
        "a query that runs until it is stopped",
        "read the error above it, correct the cause and start again: the batch is repeated, nothing is lost",
    )
