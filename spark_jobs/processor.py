"""The stateful operator: Spark's side of a lane. State comes in, records of the lane come in, rows go out.

The key of the state is the lane (partition of `kardia.events`), not the shard: a lane costs Spark about a
millisecond per batch, so 6 keys are 50 ms faster than 50, and a record already is a batch of events of one lane.

State of a lane is two values: `mark` (version, token) and `blob` (the encoded lane). The decoded lane stays in the
worker, and the token says whether it is the one the state store means: every update draws a new token, so after a
failed task, a restart or a move to another worker the tokens differ and the blob is read. The blob is written in every
batch.

Truth for the interface: pyspark 4.2 `StatefulProcessor`; output mode update, time mode None (no Spark timers: time is
data).
"""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pandas as pd
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

from spark_jobs.lane import Lane, Record
from spark_jobs.lane_model import ModelFactory
from spark_jobs.outputs import OUTPUT_DDL, encode_step

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

INPUT_COLUMNS = ("lane", "offset", "at_ms", "format", "value", "cluster")
"""Columns the operator takes: int, bigint, bigint, binary, binary, binary."""

TOKEN_BYTES = 16
COLLECT_EVERY = 128
"""Steps between two runs of Python's garbage collector, which is off otherwise: it looks at every living event of a
batch again and again (doubles the cost of decoding) and what the model builds has no cycles."""

_cache: dict[tuple[str, int], tuple[bytes, Lane]] = {}
_steps = 0


class LaneProcessor(StatefulProcessor):
    """Runs the lanes of one task."""

    def __init__(
        self, factory: ModelFactory, topic: str, lanes: int, run: str, *, cluster: str = "", finishing: bool = False
    ) -> None:
        """Take what every lane needs; `run` keeps the caches of two queries in one worker apart."""
        self._cluster = cluster
        self._factory = factory
        self._topic = topic
        self._lanes = lanes
        self._run = run
        self._finishing = finishing

    def init(self, handle: Any) -> None:
        """Open the state; called once per task."""
        self._mark = handle.getValueState("mark", "ver int, token binary")
        self._blob = handle.getValueState("blob", "blob binary")

    def handleInputRows(  # noqa: N802  the name is Spark's
        self,
        key: Any,
        rows: Iterator[Any],
        timer_values: Any,  # noqa: ARG002
    ) -> Iterator[pd.DataFrame]:
        """Step one lane with the records of one batch."""
        lane_number = int(key[0])
        gc.disable()
        lane = self._lane(lane_number)
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
        given = lane.step(records, self._before)
        self._save(lane_number, lane)
        _tidy()
        filled = encode_step(given, lane.model.files_forgotten)
        yield pd.DataFrame(
            {
                "lane": pd.Series([lane_number] * len(filled), dtype="int32"),
                "table": pd.Series([table for table, _ in filled], dtype="object"),
                "blob": pd.Series([blob for _, blob in filled], dtype="object"),
            }
        )

    def close(self) -> None:
        """Nothing to close: the cache outlives the task on purpose."""

    def _lane(self, number: int) -> Lane:
        mark = self._mark.get()
        cached = _cache.pop((self._run, number), None)  # a step that fails must not leave a half-stepped lane behind
        if mark is not None and cached is not None and bytes(mark[1]) == cached[0]:
            return cached[1]
        lane = Lane(self._factory, self._topic, number, self._lanes, cluster=self._cluster, finishing=self._finishing)
        if mark is not None:
            lane.load(self._factory, bytes(self._blob.get()[0]))
        return lane

    def _before(self) -> bytes:
        blob = self._blob.get()
        return b"" if blob is None else bytes(blob[0])

    def _save(self, number: int, lane: Lane) -> None:
        token = os.urandom(TOKEN_BYTES)
        blob = lane.save()
        self._blob.update((blob,))
        self._mark.update((blob[0], token))
        _cache[(self._run, number)] = (token, lane)


def _tidy() -> None:
    global _steps
    _steps += 1
    if _steps % COLLECT_EVERY == 0:
        gc.collect()
        gc.freeze()


def stepped(records: DataFrame, processor: LaneProcessor) -> DataFrame:
    """Outputs of a stream of records with `INPUT_COLUMNS`."""
    return records.groupBy("lane").transformWithStateInPandas(
        statefulProcessor=processor, outputStructType=OUTPUT_DDL, outputMode="update", timeMode="None"
    )
