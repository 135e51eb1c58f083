"""Every private name of PySpark that Kardia uses, and what for; nothing else of the project names one.

Checked on `CHECKED_ON`; tests/spark_jobs/test_private_names.py says which of them an upgrade has broken.
"""

from __future__ import annotations

from subprocess import Popen
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from socketserver import BaseServer

    from pyspark.sql import SparkSession

CHECKED_ON = "4.2.0"
"""Version of the package pyspark."""


OF_CONTEXT = ("_gateway", "_jvm", "_active_spark_context")
OF_SESSION = ("_instantiatedSession", "_activeSession")
"""What the classes of PySpark keep of a JVM and its session."""


def jvm_process(spark: SparkSession) -> Popen[bytes] | None:
    """The JVM that this process has started; None if it was there before, as under spark-submit.

    `SparkContext.stop` asks the JVM to end in order and has no bound for it; only the process can be killed.
    """
    process: Popen[bytes] | None = getattr(spark.sparkContext._gateway, "proc", None)
    return process


def forget_jvm() -> None:
    """Let the next session of this process start a JVM of its own. PySpark goes on with the one it has started once,
    although that was ended."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    for holder, names in ((SparkContext, OF_CONTEXT), (SparkSession, OF_SESSION)):
        for name in names:
            setattr(holder, name, None)


def accumulator_server(spark: SparkSession) -> BaseServer | None:
    """The server in this process to which Spark's tasks send their counts; it prints a trace if the JVM goes."""
    server: BaseServer | None = spark.sparkContext._accumulatorServer
    return server


def java_classes(spark: SparkSession) -> Any:
    """Packages of the JVM, for classes that have no Python side."""
    return spark._jvm


def java_session(spark: SparkSession) -> Any:
    """The session as Java knows it, an argument of such classes."""
    return spark._jsparkSession
