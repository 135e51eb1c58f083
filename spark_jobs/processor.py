"""The stateful operator: Spark's side of a lane. State comes in, records of the lane come in, rows go out.

The key of the state is the lane (partition of `kardia.events`), not the shard: a lane costs Spark about a
millisecond per batch, so 6 keys are 50 ms faster than 50, and a record already is a batch of events of one lane.

State of a lane is a base and a journal (`checkpoint.journal`), in Spark's store: a batch writes a step of the journal
and a mark with a new token, seldom a new base. The lane itself stays in the worker, and the token says whether it is
the one the store has: after a failed task, a restart or a move to another worker the tokens differ, and base and
journal are read.

Truth for the interface: pyspark 4.2 `StatefulProcessor`; output mode update, time mode None (no Spark timers: time is
data).
"""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

from kardia.events import DEFAULT_LANES
from spark_jobs.checkpoint import initial_lanes, journal
from spark_jobs.checkpoint.journal import Kept, Mark
from spark_jobs.lane import Lane, Record
from spark_jobs.lane_model import ModelFactory
from spark_jobs.outputs import EVENTS_TAKEN, FILES_FORGOTTEN, LANES_READ, OUTPUT_DDL, encode_spent, encode_step
from spark_jobs.stage_times import Laps
from stores.locations import Folder

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

INPUT_COLUMNS = ("lane", "offset", "at_ms", "format", "value", "cluster")
"""Columns the operator takes: int, bigint, bigint, binary, binary, binary."""

TOKEN_BYTES = 16
COLLECT_EVERY = 128
"""Steps between two runs of Python's garbage collector, which is off otherwise: it looks at every living event of a
batch again and again (doubles the cost of decoding) and what the model builds has no cycles. What it has looked at once
is left out from then on."""

FRESH = 20_000
"""Objects that may have come since then. PySpark's daemon runs the collector after each task, whatever we do, and what
is not left out it walks through, in every batch: the members of all lanes of a worker."""

ALL_EVERY = 64
"""Runs of it from one walk through everything to the next: what a task of Spark leaves in cycles may have been left
out while it lived. Three quarters of an hour of one batch per second; more lanes are more steps of a batch."""

_cache: dict[tuple[str, int], tuple[bytes, Kept]] = {}
_steps = 0
_fresh = 0
_counted = 0, -1
_last_base_in = -(1 << 30)


class LaneProcessor(StatefulProcessor):
    """Runs the lanes of one task."""

    def __init__(
        self,
        factory: ModelFactory,
        topic: str,
        lanes: int,
        run: str,
        *,
        cluster: str = "",
        finishing: bool = False,
        journal_bytes: int = journal.MIN_BYTES,
        begun_with: Folder | None = None,
    ) -> None:
        """Take what every lane needs; `run` keeps the caches of two queries in one worker apart. `journal_bytes`: what
        a journal may hold, however small its base. `begun_with`: where the lanes are that this run began with."""
        self._begun_with = begun_with
        self._journal_bytes = journal_bytes
        self._cluster = cluster
        self._factory = factory
        self._topic = topic
        self._lanes = lanes
        self._run = run
        self._finishing = finishing

    def init(self, handle: Any) -> None:
        """Open the state; called once per task."""
        self._store = SparkStore(handle)

    def handleInputRows(  # noqa: N802  the name is Spark's
        self,
        key: Any,
        rows: Iterator[Any],
        timer_values: Any,  # noqa: ARG002
    ) -> Iterator[pd.DataFrame]:
        """Step one lane with the records of one batch."""
        lane_number = int(key[0])
        gc.disable()
        laps = Laps()
        records = [
            Record(*fields)
            for frame in rows
            for fields in zip(
                frame["offset"].tolist(),
                frame["at_ms"].tolist(),
                frame["format"].tolist(),
                frame["value"].tolist(),
                frame["cluster"].tolist(),
                strict=True,
            )
        ]
        laps.end("receive")
        held = self._held(lane_number)
        kept = held or self._read(lane_number)
        laps.end("back")
        batches, finished = kept.lane.take(records)
        laps.end("decode")
        given = kept.lane.apply(batches, finished=finished, before=lambda: self._read(lane_number).lane.save())
        laps.end("observe")
        self._write(lane_number, kept, records)
        _tidy(self._lanes)
        laps.end("keep")
        counts = {
            FILES_FORGOTTEN: kept.lane.model.files_forgotten,
            LANES_READ: int(held is None),
            EVENTS_TAKEN: sum(batch.size() for batch in batches),
        }
        filled = encode_step(given, counts)
        laps.end("encode")
        filled.append(encode_spent(laps.spent))
        yield pd.DataFrame(
            {
                "lane": pd.Series([lane_number] * len(filled), dtype="int32"),
                "table": pd.Series([table for table, _ in filled], dtype="object"),
                "blob": pd.Series([blob for _, blob in filled], dtype="object"),
            }
        )

    def close(self) -> None:
        """Nothing to close: the cache outlives the task on purpose."""

    def _held(self, number: int) -> Kept | None:
        """The lane, if this worker has it as the store has it."""
        mark = self._store.mark()
        cached = _cache.pop((self._run, number), None)  # a step that fails must not leave a half-stepped lane behind
        return cached[1] if mark is not None and cached is not None and mark.token == cached[0] else None

    def _read(self, number: int) -> Kept:
        def begin() -> Lane:
            lane = Lane(
                self._factory, self._topic, number, self._lanes, cluster=self._cluster, finishing=self._finishing
            )
            if self._begun_with is not None:
                lane.load(initial_lanes.read(self._begun_with, number))
            return lane

        return journal.read(self._store, begin)

    def _write(self, number: int, kept: Kept, records: list[Record]) -> None:
        global _last_base_in
        token = os.urandom(TOKEN_BYTES)
        # A worker steps half of the lanes at most: one base of it in a batch, not all of them.
        turn = _steps - _last_base_in > self._lanes // 2
        if journal.write(self._store, kept, records, token, self._journal_bytes, turn=turn):
            _last_base_in = _steps
        _cache[(self._run, number)] = (token, kept)


class SparkStore:
    """Spark's state of the key at hand, one key being a lane."""

    def __init__(self, handle: Any) -> None:
        """Open it; once per task. Maps and not lists: Spark gives a list in one message, a map value by value."""
        self._mark = handle.getValueState("mark", "version int, token binary, pieces int, steps int")
        self._base = handle.getMapState("base", "number int", "piece binary")
        self._journal = handle.getMapState("journal", "number int", "step binary")

    def mark(self) -> Mark | None:
        """Give the mark; None if the lane is new."""
        found = self._mark.get()
        return None if found is None else Mark(found[0], bytes(found[1]), found[2], found[3])

    def piece(self, number: int) -> bytes | None:
        """Give a piece of the base."""
        return _bytes(self._base.getValue((number,)))

    def step(self, number: int) -> bytes | None:
        """Give a step of the journal."""
        return _bytes(self._journal.getValue((number,)))

    def put_base(self, pieces: Sequence[bytes]) -> None:
        """Put a base in the place of all pieces and steps there are."""
        self._base.clear()
        for number, piece in enumerate(pieces):
            self._base.updateValue((number,), (piece,))
        self._journal.clear()

    def put_step(self, number: int, step: bytes) -> None:
        """Put a step at the end of the journal."""
        self._journal.updateValue((number,), (step,))

    def put_mark(self, mark: Mark) -> None:
        """Put the mark."""
        self._mark.update(tuple(mark))


def _bytes(found: Any) -> bytes | None:
    return None if found is None else bytes(found[0])


def _tidy(lanes: int) -> None:
    global _steps, _fresh, _counted
    _steps += 1
    count, run = gc.get_count()[0], gc.get_stats()[2]["collections"]  # the first is since the last run, of whomever
    _fresh += count - _counted[0] if run == _counted[1] else count
    _counted = count, run
    if _steps % (COLLECT_EVERY * ALL_EVERY * max(1, lanes // DEFAULT_LANES)) == 0:
        gc.unfreeze()
    elif _steps % COLLECT_EVERY and _fresh <= FRESH:
        return
    gc.collect()
    gc.freeze()
    _fresh = 0


def stepped(records: DataFrame, processor: LaneProcessor) -> DataFrame:
    """Outputs of a stream of records with `INPUT_COLUMNS`."""
    return records.groupBy("lane").transformWithStateInPandas(
        statefulProcessor=processor, outputStructType=OUTPUT_DDL, outputMode="update", timeMode="None"
    )
