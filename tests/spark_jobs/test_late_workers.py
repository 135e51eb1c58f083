"""A query that ended because a Python worker was late is started again, not for ever, and for no other reason."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pyspark
import pytest

from spark_jobs.spark.late_workers import MARK, TIMES, LateError, LateWorkers

LATE = RuntimeError(f"Job aborted: org.apache.spark.SparkException: {MARK}.")


def test_it_is_started_again_some_times_in_a_row_and_then_given_up() -> None:
    late = LateWorkers()
    for time in range(1, TIMES + 1):
        with pytest.raises(LateError, match=rf"\({time} of {TIMES}\).*nothing was written"):
            late.look(LATE, None)
    late.look(LATE, None)  # the job ends as for any other error


def test_a_batch_in_between_begins_the_count_anew() -> None:
    late = LateWorkers()
    for _ in range(2 * TIMES):
        with pytest.raises(LateError, match=r"\(1 of "):
            late.look(LATE, None)
        late.committed()


def test_another_error_and_one_of_the_sink_are_no_late_worker() -> None:
    late = LateWorkers()
    late.look(RuntimeError("No space left on device"), None)
    late.look(LATE, OSError("disk full"))


def test_the_words_are_those_of_spark() -> None:
    """An upgrade of Spark that says it otherwise is noticed here."""
    (core,) = (Path(pyspark.__file__).parent / "jars").glob("spark-core_*.jar")
    with zipfile.ZipFile(core) as jar:
        name = "org/apache/spark/api/python/PythonWorkerFactory.class"
        assert MARK.encode() in jar.read(name)
