"""A process that writes one file of a checkpoint twice, as a repeated batch does, and prints what is there then.

    python -m tests.stores.written_twice FOLDER

FOLDER is a URL as Hadoop has it. A process of its own: the JVM of another test lacks the files that speak to a store.
"""

from __future__ import annotations

import json
import sys

from spark_jobs.jvm import jars, java
from spark_jobs.jvm.private_pyspark import java_classes, java_session
from spark_jobs.spark import s3a
from spark_jobs.spark.session import end_session, start_session

MANAGER = "org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager"


def main() -> None:
    """Write, read, list."""
    files = jars.ensure("spark") + jars.ensure(s3a.JARS)
    spark = start_session("checkpoints", "local[1]", files, java.find().home, s3a.settings())
    try:
        jvm, conf = java_classes(spark), java_session(spark).sessionState().newHadoopConf()
        path = jvm.org.apache.hadoop.fs.Path(f"{sys.argv[1]}/13.changelog")
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
        sys.stdout.write(
            json.dumps([read.decode(), [one.getPath().getName() for one in manager.list(path.getParent())]]) + "\n"
        )
    finally:
        end_session(spark)


if __name__ == "__main__":
    main()
