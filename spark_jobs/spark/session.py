"""The Spark session of every job, with the settings that were measured; each that is not obvious says what it buys.

It must not resolve packages: it names jar files that were fetched once and checked by hash. Environment
variables are set before the JVM starts, because Python workers inherit them from it.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import kardia
from spark_jobs.errors import StoppedError
from spark_jobs.jvm import classes
from spark_jobs.jvm.private_pyspark import accumulator_server, forget_jvm, jvm_process
from spark_jobs.spark import cluster, scratch

if TYPE_CHECKING:
    from socketserver import BaseServer

    from pyspark.sql import SparkSession

THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "ARROW_NUM_THREADS",
    "ARROW_IO_THREADS",
    "OPENBLAS_NUM_THREADS",
    "RAYON_NUM_THREADS",
)

MALLOC_ARENAS = "2"
"""Arenas of the C library's allocator, in the JVM and in the Python workers. By default eight for each core, of which
each keeps what its threads have freed: with two the JVM of a night of seven minutes has 817 MB instead of 892."""

LOCAL_CHECKPOINTS = "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
"""State commit on a local disk in 7 ms instead of 202: rename in the file system itself."""

LOCAL_FILES = "com.globalmentor.apache.hadoop.fs.BareLocalFileSystem"
"""Local files by Java's own calls. Hadoop starts a process `chmod` for each file it writes: five in every batch, many
more in a commit of delta-spark (measured: 195 ms for a batch instead of 230)."""

ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"

SETTINGS: dict[str, str] = {
    "spark.driver.memory": "1g",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # Spark remembers jobs, tasks and plans for its page also where there is none: a thousand plans and 100,000 tasks by
    # default, 100 MB of the heap after an hour of batches.
    "spark.ui.retainedJobs": "20",
    "spark.ui.retainedStages": "20",
    "spark.ui.retainedTasks": "200",
    "spark.sql.ui.retainedExecutions": "10",
    # What a batch leaves behind (a broadcast of Hadoop's settings, 100 kB, and its counters) goes when a collection of
    # the old generation has found that nobody refers to it, and its memory with the next one. Left to itself the JVM
    # collects it later and later: 300 MB of heap after an hour instead of 200.
    "spark.cleaner.periodicGC.interval": "2min",
    # What the archive has fetched ahead it reads two minutes later: until then it would be held on the heap. It is
    # fetched again.
    "spark.kafka.consumer.fetchedData.cache.timeout": "30s",
    "spark.kafka.consumer.fetchedData.cache.evictorThreadRunInterval": "15s",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.adaptive.enabled": "false",
    "spark.python.unix.domain.socket.enabled": "true",  # a Python stage in 10 ms instead of 48
    "spark.sql.streaming.checkpointFileManagerClass": LOCAL_CHECKPOINTS,
    "spark.sql.streaming.stateStore.providerClass": ROCKSDB,  # transformWithState has no other
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    # Else each write of a key first reads what it had, to count the keys.
    "spark.sql.streaming.stateStore.rocksdb.trackTotalNumberOfRows": "false",
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    "spark.sql.streaming.minBatchesToRetain": "20",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "50000",
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.databricks.delta.properties.defaults.checkpointInterval": "100",
    "spark.databricks.delta.writeChecksumFile.enabled": "false",  # with the next: a quarter of a commit's CPU time
    "spark.databricks.delta.history.metricsEnabled": "false",
}

QUICK_JVM = (
    "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=128m "
    "-XX:InitialHeapSize=128m -XX:MaxHeapFreeRatio=50"
)
"""Options of a JVM on one machine: 13 seconds of CPU from start to the first batch instead of 29 (measured on two
cores, replay of one recorded story), because the optimising compiler stays off. The JVM only moves records here; on a
cluster, where it also writes Parquet, leave it on. Without that compiler only 48 MB are kept for compiled code by
default: they were full after a minute, and a third of the JVM's time went into throwing code out and compiling it
again. The heap begins small and goes back to twice what is in use: by default it begins with a 64th of the machine's
memory, and keeps more than two thirds of it free."""

JAVA_OPTIONS = "spark.driver.extraJavaOptions"

LANE_TASKS = 2
"""Parts of the lanes that are stepped at a time on two or three cores."""


def lane_tasks(cores: int, lanes: int) -> int:
    """Parts in which lanes are stepped: one for each core but that of the archive, and no more than there are lanes. A
    new checkpoint takes the number and keeps to it from then on, whatever is asked for later."""
    return min(lanes, max(LANE_TASKS, cores - 1))


def idle_cores(cores: int, lanes: int) -> str:
    """A sentence about cores that have nothing to do, empty if there are none: a lane is stepped by one core."""
    most = lanes + 1
    if cores <= most:
        return ""
    return (
        f"{cores} cores for {lanes} lanes: {cores - most} of them have nothing to do. Expected: at most {most}, one "
        f"for each lane and one for the archive. Next: give this job {most} cores, or change the number of lanes "
        "(docs/sizing.md)"
    )


def start_session(
    name: str,
    master: str,
    jars: Sequence[Path],
    java_home: Path | None,
    more: Mapping[str, str] | None = None,
    executors: Path | None = None,
    temporary: Path | None = None,
) -> SparkSession:
    """Start the JVM and give its session. `more` overrides single settings; `executors` is what a cluster's get;
    `temporary`: where the JVM puts what is temporary (`scratch`), else in a folder of the system."""
    local = cluster.is_local(master)
    where = _on_this_machine(jars, java_home) if local else cluster.settings(jars, executors, THREAD_VARIABLES)
    if local and temporary is not None:
        where |= scratch.of_spark(temporary)
    root = str(Path(kardia.__file__).resolve().parent.parent)
    paths = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    os.environ["PYTHONPATH"] = os.pathsep.join([root, *(path for path in paths if path != root)])
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ["PYSPARK_PYTHON"] = sys.executable if local else cluster.PYTHON
    if not local:
        os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    for variable in THREAD_VARIABLES:
        os.environ.setdefault(variable, "1")
    os.environ.setdefault("MALLOC_ARENA_MAX", MALLOC_ARENAS)
    if local:
        # Without it Spark asks the resolver for this machine's name, which a laptop off its network cannot answer.
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    if java_home is not None:
        os.environ["JAVA_HOME"] = str(java_home)

    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName(name).master(master)
    settings = {
        **SETTINGS,
        "spark.sql.shuffle.partitions": str(LANE_TASKS),
        **where,
        **(more or {}),
    }
    if temporary is not None:
        options = settings.get(JAVA_OPTIONS, "")
        settings[JAVA_OPTIONS] = f"{options} {scratch.java_option(temporary)}".strip()
    for key, value in settings.items():
        builder = builder.config(key, value)
    try:
        session = builder.getOrCreate()
        session.sparkContext.setLogLevel("ERROR")
    except (PySparkException, Py4JError, OSError) as error:
        said = (str(error).splitlines() or [type(error).__name__])[0]
        raise StoppedError(
            f"Spark's JVM has ended before it was ready: {said[:300]}",
            f"Java in {java_home}" if java_home is not None else "the Java on the path",
            "a JVM that starts, and has the memory that it asks for",
            "its own words are above: correct what they name (--conf spark.driver.memory=1g asks for less memory), and "
            "start again; nothing is lost",
        ) from error
    return session


ENDING_S = 1.0
"""How long a JVM that refuses connections may take until it is gone."""

STOP_S = 1.0
"""How long a JVM is given to end in order. It holds nothing that a kill could harm: the tables and the checkpoint go on
after a kill at any step."""


def end_session(spark: SparkSession) -> None:
    """End the JVM: in order if it is quick, else at once. When this returns nothing of it writes any more, and another
    session may be started."""
    jvm = jvm_process(spark)
    stopping = threading.Thread(target=_stop, args=(spark,), daemon=True)
    stopping.start()
    stopping.join(STOP_S)
    if jvm is not None:
        jvm.kill()
        jvm.wait()
        stopping.join(STOP_S)  # what it waited for has gone
        forget_jvm()


def ended_by_itself(spark: SparkSession) -> int | None:
    """Exit status of a JVM that has gone, or goes within `ENDING_S`; None if it lives, or is not ours."""
    jvm = jvm_process(spark)
    try:
        return None if jvm is None else jvm.wait(ENDING_S)
    except subprocess.TimeoutExpired:
        return None


def quieten_accumulators(spark: SparkSession) -> None:
    """Let nothing in this process print a trace of a JVM that goes while it sends its counts, of no use by then."""
    quieten(accumulator_server(spark))


def quieten(server: BaseServer | None) -> None:
    """Let the server of accumulators print no trace of a connection that ends within a message."""
    if server is not None:
        server.handle_error = _no_trace  # type: ignore[method-assign, assignment]


def _no_trace(_request: object, _address: object) -> None:
    """Say nothing of a connection that ended within a message."""


def _stop(spark: SparkSession) -> None:
    with suppress(Exception):
        spark.stop()


def _on_this_machine(jars: Sequence[Path], java_home: Path | None) -> dict[str, str]:
    """Settings where driver and executors are one process: the class of local files is needed before `spark.jars`."""
    return {
        "spark.driver.extraClassPath": os.pathsep.join(str(jar) for jar in jars),
        JAVA_OPTIONS: f"{QUICK_JVM} {classes.options(jars, java_home)}".strip(),
        "spark.python.daemon.module": "spark_jobs.spark.daemon",
        "spark.hadoop.fs.file.impl": LOCAL_FILES,
    }
