"""Makes the archive of classes that the JVM of a job starts with (`spark_jobs.jvm.classes`).

    python -m spark_jobs.class_archive        each start of the job on this machine is quicker then

A session is started for its class path alone, and ended.
"""

from __future__ import annotations

import gzip
import sys
from collections.abc import Sequence
from pathlib import Path

from spark_jobs.jvm import classes, jars, java
from spark_jobs.jvm.errors import JvmError
from spark_jobs.jvm.private_pyspark import java_classes
from spark_jobs.spark.session import end_session, start_session


def class_path_of_a_job(files: Sequence[Path], home: Path) -> str:
    """The class path of the JVM of a job, by itself: it is Spark's launcher that puts it together."""
    session = start_session("kardia-classes", "local[1]", files, home)
    try:
        return str(java_classes(session).java.lang.System.getProperty("java.class.path"))
    finally:
        end_session(session)


def main() -> int:
    """Make it where it is not there."""
    try:
        runtime, files = java.find(), jars.ensure("spark")
        archive = classes.place(files, runtime.home)
        if archive.is_file():
            sys.stdout.write(f"{archive} is there already.\n")
            return 0
        sys.stdout.write("Loading the classes of the job, which takes about a minute …\n")
        sys.stdout.flush()
        class_path = class_path_of_a_job(files, runtime.home)
        classes.make(gzip.decompress(classes.LIST.read_bytes()), class_path, runtime.path, archive)
    except JvmError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    sys.stdout.write(f"{archive}: {archive.stat().st_size // 1_000_000} MB. Jobs on this machine start with it.\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
