"""Spark's daemon of Python workers, which says nothing when the JVM goes while a worker writes.

    python -m spark_jobs.spark.daemon pyspark.worker     what the JVM starts; forks a worker for each part of the lanes

Spark's own prints a trace for each worker then: of no use at a stop, and what is wrong with a JVM it says itself.
"""

from __future__ import annotations

from collections.abc import Callable
from socket import socket

from pyspark import daemon

Worker = Callable[[socket, bool], int]


def quiet(worker: Worker) -> Worker:
    """A worker that ends when nobody reads what it writes, as one that has failed."""

    def run(connection: socket, authenticated: bool) -> int:
        try:
            return worker(connection, authenticated)
        except BrokenPipeError:
            return 1

    return run


if __name__ == "__main__":
    daemon.worker = quiet(daemon.worker)  # type: ignore[assignment]
    daemon.manager()
