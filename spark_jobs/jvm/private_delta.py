"""The internals of delta-spark that Kardia asks through the JVM, and what for; nothing else of the project names one.

delta-rs (the package deltalake) tells the last transaction of an application by a public method; delta-spark has none.
Checked on `CHECKED_ON`; tests/spark_jobs/test_private_names.py says which of them an upgrade has broken.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from spark_jobs.jvm.private_pyspark import java_classes, java_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CHECKED_ON = "4.4.0"
"""Version of the package delta-spark and of its jar."""


def last_transaction(spark: SparkSession, path: str, app_id: str) -> int | None:
    """Number of the last transaction of an application in a table, as of now; None if there is none.

    `DeltaLog.forTable` and `update` are classes of Delta's own commits: the log as it is, without a job of Spark.
    """
    jvm = java_classes(spark)
    log = jvm.org.apache.spark.sql.delta.DeltaLog.forTable(java_session(spark), path)
    transactions = log.update(False, jvm.scala.Option.empty(), jvm.scala.Option.empty()).transactions()
    return int(transactions.apply(app_id)) if transactions.contains(app_id) else None
