"""One run at a time on a directory: an operating system lock on a file in it, released by the system when a run dies.

Two runs on one checkpoint would give one batch two contents; two writers of one table directory would interleave their
batches. The lock guards one machine; on a disk that several mount the scheduler that starts the job must do it. In a
store runs take numbers (`spark_jobs.leases.store_lease`), and the live tables have a fence
(`spark_jobs.writers.fence`).
"""

from __future__ import annotations

import json
import os
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import IO, Any

import portalocker

from spark_jobs.errors import LeaseError
from spark_jobs.leases.store_lease import StoreLease
from stores.locations import Folder, Store

FILE = ".kardia.lock"


def held(directory: Folder, role: str) -> AbstractContextManager[Lease | StoreLease]:
    """The right to use a folder while the context lasts; of a store, until a newer run begins."""
    return StoreLease(directory, role) if isinstance(directory, Store) else Lease(directory, role)


class Lease:
    """The right to use a directory, from `take` to `release` or to the end of the process."""

    def __init__(self, directory: Path, role: str) -> None:
        """Name the directory and what it is used for."""
        self.path = directory / FILE
        self.role = role
        self._file: IO[Any] | None = None

    def take(self) -> Lease:
        """Take the lease or refuse, naming the holder."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        file = self.path.open("a+", encoding="utf-8")
        try:
            portalocker.lock(file, portalocker.LockFlags.EXCLUSIVE | portalocker.LockFlags.NON_BLOCKING)
        except portalocker.exceptions.LockException:
            file.seek(0)
            holder = file.read(1000).strip() or "unknown"
            file.close()
            raise LeaseError(
                f"another run holds it: {holder}",
                str(self.path.parent),
                f"one {self.role} at a time",
                "stop the other run, or give this one a directory of its own",
            ) from None
        try:
            file.seek(0)
            file.truncate()
            file.write(json.dumps({"pid": os.getpid(), "role": self.role}))
            file.flush()
        except OSError:
            with suppress(OSError):  # it writes once more what the disk did not take
                file.close()
            raise
        self._file = file
        return self

    def release(self) -> None:
        """Give the lease back."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def __enter__(self) -> Lease:
        """Take the lease."""
        return self.take()

    def __exit__(self, *_: object) -> None:
        """Give it back."""
        self.release()
