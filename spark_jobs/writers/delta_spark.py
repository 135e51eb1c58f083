"""The writer of the live tables for executors on several machines: delta-spark inside foreachBatch.

Steps and promises: `spark_jobs.writers`; the transaction is Delta's `txnAppId`/`txnVersion`. The directory must be
mounted on the driver and on every executor under one path. A batch costs 110 times the CPU time of delta-rs, so use it
with a trigger of 5 s or more, and run OPTIMIZE and VACUUM yourself: `spark_jobs.upkeep.maintenance` is for delta-rs
only. Both writers must never write one directory at the same time: on a local disk delta-spark's commits are not safe
against a second process (docs/adr/0003-two-writers-one-interface.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pyarrow as pa

from kardia.tables import LIVE_TABLES, TABLES
from spark_jobs.jvm.private_delta import last_transaction
from spark_jobs.schemas import TABLE_VERSION, VERSION_PROPERTY, spark_schema
from spark_jobs.writers import BODY_TABLES, Reached, nothing_happens
from spark_jobs.writers.tables import (
    PROPERTIES,
    clear_torn,
    has_all_columns,
    is_there,
    never_null_before,
    open_table,
    says_version,
    spark_path,
)
from stores.locations import Folder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

THREADS = 4


class DeltaSparkWriter:
    """Body of `TableWriter` on delta-spark."""

    def __init__(self, spark: SparkSession, directory: Folder, app_id: str, reached: Reached = nothing_happens) -> None:
        """Remember where and as whom to write; `prepare` creates."""
        self.directory = directory
        self.app_id = app_id
        self._spark = spark
        self._reached = reached
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="delta-spark")

    def prepare(self) -> None:
        """Create missing tables; refuse a table of another shape."""
        for name in LIVE_TABLES:
            create_or_check(self._spark, self.directory, name)

    def written(self) -> int | None:
        """Give the last complete batch of this app_id."""
        return self._version("progress")

    def write(self, batch_id: int, tables: Mapping[str, pa.Table]) -> None:
        """Run steps 1 and 2 for one batch."""
        self._reached("batch:before", batch_id)
        body = [name for name in BODY_TABLES if name in tables]
        for done in [self._threads.submit(self._append, name, batch_id, tables[name]) for name in body]:
            done.result()
        if "progress" in tables:
            self._append("progress", batch_id, tables["progress"])
        self._reached("batch:written", batch_id)

    def close(self) -> None:
        """Let the threads go."""
        self._threads.shutdown()

    def _append(self, name: str, batch_id: int, rows: pa.Table) -> None:
        done = self._version(name)
        if done is not None and done >= batch_id:
            return
        self._reached(f"{name}:before", batch_id)
        (
            self._spark.createDataFrame(rows, spark_schema(TABLES[name]))
            .coalesce(1)
            .write.format("delta")
            .mode("append")
            .option("txnAppId", self.app_id)
            .option("txnVersion", batch_id)
            .save(spark_path(self.directory, name))
        )
        self._reached(f"{name}:written", batch_id)

    def _version(self, name: str) -> int | None:
        return last_transaction(self._spark, spark_path(self.directory, name), self.app_id)


def create_or_check(spark: SparkSession, directory: Folder, name: str) -> None:
    """Create a table if it is missing; else check its columns, and add those that have come since it was made. It is
    looked at with delta-rs, which takes some milliseconds for it."""
    from delta.tables import DeltaTable

    path = spark_path(directory, name)
    schema = spark_schema(TABLES[name])
    if not is_there(directory, name):  # not `isDeltaTable`: that takes a folder for its log for a table
        clear_torn(directory, name)
        builder = DeltaTable.createIfNotExists(spark).location(path).addColumns(schema).comment(TABLES[name].meaning)
        for key, value in PROPERTIES.items():
            builder = builder.property(key, value)
        builder.execute()
    table = open_table(directory, name)
    for column in never_null_before(table, name):
        spark.sql(f"ALTER TABLE delta.`{path}` ALTER COLUMN {column} DROP NOT NULL")
    if not has_all_columns(table, name):
        spark.createDataFrame([], schema).write.format("delta").mode("append").option("mergeSchema", "true").save(path)
    if not says_version(table):
        spark.sql(f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES ('{VERSION_PROPERTY}' = '{TABLE_VERSION}')")
