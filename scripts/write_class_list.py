"""Writes `spark_jobs/jvm/classes.list.gz`: the classes that the job's JVM loads while the demo runs (3 min).

    python -m scripts.write_class_list

To be run when Spark or the jars are others. A class that is missing in the list is loaded as ever.
"""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from spark_jobs.jvm.classes import LIST

OF_THE_JOB = b"org/apache/spark/sql/kafka010/KafkaMicroBatchStream"
"""Loaded by the job's JVM alone, of all that the demo starts."""


def of_the_job(lists: list[bytes]) -> bytes:
    """What the job's JVM has written, without its comments."""
    [found] = [text for text in lists if OF_THE_JOB in text]
    return b"".join(line for line in found.splitlines(keepends=True) if not line.startswith(b"#"))


def main() -> int:
    """Run the demo, and keep the list of one of its JVMs."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "JAVA_TOOL_OPTIONS": f"-Xshare:auto -XX:DumpLoadedClassList={folder}/%p"}
        subprocess.run([sys.executable, "-m", "cli.main", "demo"], env=environment, check=True)
        classes = of_the_job([path.read_bytes() for path in sorted(Path(folder).iterdir())])
    LIST.write_bytes(gzip.compress(classes, 9, mtime=0))
    sys.stdout.write(f"{LIST}: {len(classes.splitlines()):,} lines\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
