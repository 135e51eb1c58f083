"""What a session needs beyond this machine: executors get Kardia and its libraries with the job, and nothing else.

    kardia stream --master spark://HOST:7077 --executors executors.tar.gz …

The archive (`python -m spark_jobs.executor_archive`) is handed out by Spark and unpacked in the folder of each
executor, where Python finds it; jars go the same way. On a worker there must be Java, a Spark of this release, a Python
of this minor version on the path, and credentials for the store. An executor reads no folder of the driver.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from spark_jobs.errors import JobError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FOLDER = "kardia-executors"
"""Where the archive is unpacked, below the folder of an executor. No name of a package: the driver starts a Python
worker of its own with the same search path, from whatever folder it is in."""

PYTHON = f"python{sys.version_info.major}.{sys.version_info.minor}"
"""Interpreter of the workers: of the driver's minor version, which PySpark demands, wherever it is on their path. The
driver's own path begins with the folder of its interpreter (`spark_jobs.spark.session`)."""


EXECUTORS_WITHIN_S = 300.0
"""How long the first executor may take: a JVM, 36 jars and the archive, which has 185 MB, on a machine that is busy."""

LOOK_S = 0.5


class ExecutorsError(JobError):
    """What executors need is missing."""


def check(master: str, executors: Path | None) -> None:
    """Refuse a cluster without an archive for its executors; asked before anything is started."""
    if not is_local(master):
        _archive(executors)


def is_local(master: str) -> bool:
    """Whether driver and executors are one process."""
    return master.startswith("local")


def settings(jars: Sequence[Path], executors: Path | None, variables: Sequence[str]) -> dict[str, str]:
    """Settings of a session on a cluster; `variables` are set to 1 in its executors, as in the driver."""
    return {
        "spark.jars": ",".join(str(jar) for jar in jars),
        "spark.archives": f"{_archive(executors).resolve()}#{FOLDER}",
        "spark.executorEnv.PYTHONPATH": f"./{FOLDER}",
        **{f"spark.executorEnv.{variable}": "1" for variable in variables},
    }


def _archive(executors: Path | None) -> Path:
    if executors is None or not executors.is_file():
        raise ExecutorsError(
            "there is nothing to give to the executors" if executors is None else "there is no such archive",
            "--executors" if executors is None else str(executors),
            "an archive of Kardia and its libraries, because the workers of a cluster have neither",
            "make one: python -m spark_jobs.executor_archive executors.tar.gz; then pass --executors executors.tar.gz",
        )
    return executors


def given(pairs: Sequence[str]) -> dict[str, str]:
    """Settings of Spark as people give them, `spark.executor.memory=2g`."""
    found = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name.startswith("spark."):
            raise ExecutorsError(
                f"{pair[:200]!r} is no setting of Spark",
                "--conf",
                "spark.NAME=VALUE",
                "write for instance --conf spark.executor.memory=2g",
            )
        found[name] = value
    return found


def await_executors(spark: SparkSession, stop: Callable[[], bool]) -> None:
    """Return when an executor has run something of ours, or when asked to stop; refuse when none can.

    Without it a cluster that has no room, or workers that lack a Python, would look like a topic without records.
    """
    seen: list[str] = []
    failed: list[BaseException] = []

    def ask() -> None:
        try:
            seen.extend(spark.sparkContext.parallelize([0], 1).mapPartitions(_here).collect())
        except Exception as error:
            failed.append(error)

    threading.Thread(target=ask, daemon=True).start()
    end_s = time.monotonic() + EXECUTORS_WITHIN_S
    while not (seen or failed or stop()):
        if time.monotonic() >= end_s:
            raise ExecutorsError(
                f"no executor has begun within {EXECUTORS_WITHIN_S:.0f} s",
                str(spark.sparkContext.master),
                "a worker with a free core and the memory of an executor",
                "look at the page of the master; ask for less with --conf spark.executor.memory=1g",
            )
        time.sleep(LOOK_S)
    if failed:
        raise ExecutorsError(
            f"an executor cannot run what it was given: {str(failed[0]).strip().splitlines()[-1][:300]}",
            str(spark.sparkContext.master),
            f"{PYTHON} on the path of the workers, and an archive that was packed on a machine of their kind",
            "read the executor's stderr on its worker",
        ) from failed[0]


def _here(_rows: Iterable[int]) -> Iterable[str]:
    """Where an executor has found Kardia and what a lane needs."""
    import spark_jobs.processor

    yield spark_jobs.processor.__file__
