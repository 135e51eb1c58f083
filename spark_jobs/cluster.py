"""What a session needs beyond this machine: executors get Kardia and its libraries with the job, and nothing else.

    kardia stream --master spark://HOST:7077 --executors executors.tar.gz …

The archive (`python -m spark_jobs.pack`) is handed out by Spark and unpacked in the folder of each executor, where
Python finds it; jars go the same way. On a worker there must be Java, a Spark of this release, a Python of this minor
version on the path, and credentials for the store. An executor reads no folder of the driver.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from spark_jobs.errors import JobError

FOLDER = "kardia"
"""Where the archive is unpacked, below the folder of an executor."""

PYTHON = f"python{sys.version_info.major}.{sys.version_info.minor}"
"""Interpreter of the executors: of the driver's minor version, which PySpark demands, wherever it is on their path."""


class ExecutorsError(JobError):
    """What executors need is missing."""


def settings(jars: Sequence[Path], executors: Path | None, variables: Sequence[str]) -> dict[str, str]:
    """Settings of a session on a cluster; `variables` are set to 1 in its executors, as in the driver."""
    if executors is None or not executors.is_file():
        raise ExecutorsError(
            "there is nothing to give to the executors" if executors is None else "there is no such archive",
            "--executors" if executors is None else str(executors),
            "an archive of Kardia and its libraries, because the workers of a cluster have neither",
            "make one: python -m spark_jobs.pack executors.tar.gz; then pass --executors executors.tar.gz",
        )
    return {
        "spark.jars": ",".join(str(jar) for jar in jars),
        "spark.archives": f"{executors.resolve()}#{FOLDER}",
        "spark.executorEnv.PYTHONPATH": f"./{FOLDER}",
        **{f"spark.executorEnv.{variable}": "1" for variable in variables},
    }


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
