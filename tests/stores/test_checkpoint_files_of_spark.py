"""Files of Spark's checkpoint in a real object store: the second attempt at a file takes the place of the first.

A batch that is repeated after a crash writes the changes of its state once more, under the same name. What the first
attempt left must not stay: what is remembered of the second goes on from there.
"""

from __future__ import annotations

import pytest

from demo.object_store import ObjectStore
from kardia.locations import Store
from spark_jobs import s3a
from spark_jobs.jvm import jars, java
from spark_jobs.jvm.private_pyspark import java_classes, java_session
from spark_jobs.session import end_session, start_session

pytestmark = [pytest.mark.slow]

MANAGER = "org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager"


def test_a_file_that_is_written_again_is_the_second_one(place: Store, in_environment: ObjectStore) -> None:
    files = jars.ensure("spark") + jars.ensure(s3a.JARS)
    spark = start_session("checkpoints", "local[1]", files, java.find().home, s3a.settings())
    try:
        jvm, conf = java_classes(spark), java_session(spark).sessionState().newHadoopConf()
        path = jvm.org.apache.hadoop.fs.Path(f"{place.hadoop}/state/13.changelog")
        manager = getattr(jvm, MANAGER).create(path.getParent(), conf)
        manager.mkdirs(path.getParent())
        for content in (b"first", b"second"):
            stream = manager.createAtomic(path, True)
            stream.write(bytearray(content))
            stream.close()
        found = manager.open(path)
        read = bytearray()
        while (byte := found.read()) >= 0:
            read.append(byte)
        found.close()
        assert bytes(read) == b"second"
        assert [one.getPath().getName() for one in manager.list(path.getParent())] == ["13.changelog"]
    finally:
        end_session(spark)
