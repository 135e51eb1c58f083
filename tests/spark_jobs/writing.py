"""A process that writes numbered batches into the live tables and may be killed between any two steps of one.

    python -m tests.spark_jobs.writing delta-rs DIRECTORY BATCHES

Batches have rows in some of the tables, always in `progress`, so that every kind of batch is met. With KARDIA_FAULT it
dies at that step. It begins where the tables say, like a query that repeats its last batch.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from kardia.table_types import Table
from kardia.tables import LIVE_TABLES, TABLES, Row
from spark_jobs.schemas import to_tables
from spark_jobs.writers import faults
from spark_jobs.writers.delta_rs import DeltaRsWriter
from spark_jobs.writers.delta_spark import DeltaSparkWriter

APP_ID = "kardia-test/1"

VALUES: dict[str, Any] = {
    "string": "x",
    "double": 1.5,
    "bool": True,
    "strings": ["a"],
    "stragglers": [("m", "c", 3, True, False, None)],
    "pending": [("m", "c", 3, 4)],
    "moving": [("orders", 3, "m", None)],
}


def row_of(table: Table, number: int) -> Row:
    """A row that is recognised by its number."""
    return tuple(VALUES.get(column.type, number) for column in table.columns)


def batch(batch_id: int) -> dict[str, list[Row]]:
    """Rows of a batch: two in each table it concerns."""
    names = [name for at, name in enumerate(LIVE_TABLES) if name == "progress" or (batch_id + at) % 3]
    return {name: [row_of(TABLES[name], 10 * batch_id + number) for number in (1, 2)] for name in names}


def write(writer: DeltaRsWriter | DeltaSparkWriter, batches: int) -> None:
    """Write all batches from the one before the last complete one: a repeat must change nothing."""
    writer.prepare()
    done = writer.written()
    for batch_id in range(max(0, -1 if done is None else done), batches):
        writer.write(batch_id, to_tables(batch(batch_id), batch_id))
    writer.close()


def main() -> None:
    """Write as the command line says."""
    kind, directory, batches = sys.argv[1:]
    reached = faults.from_environment(os.environ)
    if kind == "delta-rs":
        write(DeltaRsWriter(Path(directory), APP_ID, reached), int(batches))
        return
    from spark_jobs.jvm import jars, java
    from spark_jobs.spark.session import start_session

    spark = start_session("writing", "local[1]", jars.ensure("spark"), java.find().home)
    try:
        write(DeltaSparkWriter(spark, Path(directory), APP_ID, reached), int(batches))
    finally:
        spark.stop()


if __name__ == "__main__":
    main()
