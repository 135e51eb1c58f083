"""The archive of a JVM's classes: loaded, parsed and verified once for a machine instead of at each start.

It lies in the cache beside the jars, under a name made of the runtime, the jars and the list of classes; every JVM that
runs on this machine alone takes it when it is there. Only starts become quicker: where a jar or the runtime is another
one than the archive was made of, the JVM sees that itself, and loads its classes as ever.
Source: class data sharing of HotSpot (JEP 310). What it saves and costs: docs/sizing.md.
"""

from __future__ import annotations

import hashlib
import importlib.util
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from spark_jobs.jvm.cache import cache_dir
from spark_jobs.jvm.errors import JvmError

LIST = Path(__file__).with_name("classes.list.gz")
"""Classes and lambdas that the job loads, as a JVM with -XX:DumpLoadedClassList writes them: by
`scripts/write_class_list.py`. A class that is not there any more is passed over."""

TIMEOUT_S = 600.0
"""Making took 50 s of one core."""


def place(files: Sequence[Path], home: Path | None) -> Path:
    """Where the archive for these jars and this runtime is, or would be."""
    spark = importlib.util.find_spec("pyspark")  # where it is: it need not be loaded for that
    parts = [str(home), str(spark.origin if spark is not None else ""), *map(str, files)]
    parts.append(hashlib.sha256(LIST.read_bytes()).hexdigest())
    return cache_dir() / "classes" / f"{hashlib.sha256(chr(0).join(parts).encode()).hexdigest()[:16]}.jsa"


def options(files: Sequence[Path], home: Path | None) -> str:
    """Options of a JVM that takes the archive; empty where there is none."""
    archive = place(files, home)
    # One that does not fit is no trouble: the JVM is not to tell of it.
    return f"-XX:SharedArchiveFile={archive} -Xshare:auto -Xlog:cds=off" if archive.is_file() else ""


def make(classes: bytes, class_path: str, runtime: Path, archive: Path) -> None:
    """Write an archive of these classes. `class_path`: as the JVM that will take it says it, in its order. `runtime`:
    the executable. It appears under its name when it is whole. Raises `JvmError`."""
    archive.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=archive.parent) as folder:
        wanted, made = Path(folder, "classes"), Path(folder, "made")
        wanted.write_bytes(classes)
        command = [str(runtime), "-Xshare:dump", f"-XX:SharedClassListFile={wanted}", f"-XX:SharedArchiveFile={made}"]
        try:
            done = subprocess.run(
                [*command, "-cp", class_path],
                capture_output=True,
                text=True,
                errors="replace",
                timeout=TIMEOUT_S,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise JvmError(_failed(archive, str(error))) from error
        if done.returncode != 0 or not made.is_file():
            raise JvmError(_failed(archive, (done.stderr or done.stdout)[-300:].strip()))
        made.replace(archive)


def _failed(archive: Path, said: str) -> str:
    return (
        f"The archive of classes {archive} cannot be made: {said}. Expected: a runtime with class data sharing, and "
        "300 MB of room there. Next: the job starts without it as well; see to the cause, and make it again."
    )
