"""One folder for everything temporary of a run: what Spark's JVM unpacks and writes (native libraries of 20 MB), the
sockets to its Python workers, and the secrets of Java's clients.

A run that ends removes its folder; one that is killed cannot, so each run first removes what killed ones have left. Who
is alive holds a lock (flock) that ends with its process, however that ends. Folders of other users are left alone.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from spark_jobs.errors import RefusedError

PREFIX = "kardia-run-"
"""Short, because the path of a socket has room for a hundred characters."""

_LOCK = "lock"

YOUNG_S = 60.0
"""A folder without a lock may be one that is just being made."""

SOCKET_CHARS, SOCKET_CHARS_MAX = 42, 100
"""What Spark adds to the folder of its sockets, and how long their paths may be (104 on macOS, 108 on Linux)."""


@contextmanager
def scratch() -> Iterator[Path]:
    """A folder in TMPDIR that nobody else may read, for as long as the block lasts. Raises `RefusedError` where none
    can be made."""
    folder, lock = _made()
    try:
        with lock:
            yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _made() -> tuple[Path, IO[str]]:
    try:
        remove_left()
        folder = Path(tempfile.mkdtemp(prefix=PREFIX))
        lock = (folder / _LOCK).open("w")
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        raise RefusedError(
            f"no folder for temporary files can be made: {error.strerror or error}",
            str(error.filename or "TMPDIR"),
            "room, and the right to write",
            "make room or change the rights, or name another folder with TMPDIR",
        ) from error
    return folder, lock


def remove_left() -> None:
    """Remove the folders of runs that were killed."""
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        if _is_left(folder):
            shutil.rmtree(folder, ignore_errors=True)


def _is_left(folder: Path) -> bool:
    try:
        found = folder.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
            return False
        if time.time() - found.st_mtime < YOUNG_S:
            return False
        with (folder / _LOCK).open("r+") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except FileNotFoundError:
        return folder.is_dir()  # killed before it had the lock
    except OSError:
        return False  # its run goes on, or it is nobody's business
    return True


def of_spark(folder: Path) -> dict[str, str]:
    """Settings with which Spark on this machine keeps to the folder, beside `java_option`."""
    return {"spark.python.unix.domain.socket.dir": str(_for_sockets(folder))}


def _for_sockets(folder: Path) -> Path:
    """The first place in which the path of a socket is short enough; the last is where a JVM looks by itself."""
    places = (folder, Path(tempfile.gettempdir()), Path("/tmp"))  # noqa: S108 - each socket has a secret of its own
    return next((one for one in places if len(str(one)) + SOCKET_CHARS <= SOCKET_CHARS_MAX), folder)


def java_option(folder: Path) -> str:
    """The option of a JVM that unpacks its libraries in the folder."""
    escaped = str(folder).replace("\\", "\\\\").replace('"', '\\"')
    return f'-Djava.io.tmpdir="{escaped}"'
