"""Errors of a disk (full, read-only, no right to write) or of a store as sentences that name the folder.

Python, delta-rs and the JVM each say it in their own way, and Spark around it with a page of Java; the words of the
operating system are in all of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from deltalake.exceptions import DeltaError

from spark_jobs.errors import TablesError
from stores import store_errors
from stores.locations import Folder, Store

_SAID = re.compile(
    "No space left on device|Read-only file system|Permission denied|Disk quota exceeded|File too large|"
    "Input/output error|Not a directory|File exists"
)
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")


def refusal(text: str) -> str | None:
    """What the disk said, if a text of an error has it."""
    found = _SAID.search(text)
    return None if found is None else found[0]


def disk_error(what: str, where: str) -> TablesError:
    """The sentence."""
    return TablesError(
        f"the tables cannot be written: {what}",
        where,
        "a directory, room in it, and the right to write",
        "make room or change the rights; then start the job again, it goes on where it was, or replay with --overwrite",
    )


def store_error(error: BaseException, store: Store) -> TablesError:
    """The sentence for what a store has refused. Nothing of the error itself is in it: it may hold keys."""
    why = store_errors.of(error)
    return TablesError(
        f"the tables cannot be written: {why.what}",
        str(store),
        "a bucket of a store that speaks S3, with conditional writes, and the right to list, read, write and delete",
        f"{why.next_step}; then start again",
    )


@contextmanager
def store_named(directory: Folder) -> Iterator[None]:
    """Say of a store that refuses which it is; a disk is left to others."""
    try:
        yield
    except (OSError, DeltaError) as error:
        if not isinstance(directory, Store):
            raise
        raise store_error(error, directory) from None


@contextmanager
def disk_named(directory: Folder) -> Iterator[None]:
    """Say of a disk that refuses which it is and what to do; input files have sentences of their own."""
    try:
        yield
    except ConnectionError:
        raise  # of the JVM, which is no disk
    except (OSError, DeltaError) as error:
        if isinstance(directory, Store):
            raise store_error(error, directory) from None
        said = (error.strerror or str(error)) if isinstance(error, OSError) else str(error)
        plain = " ".join(_COLOURS.sub("", said).split())
        raise disk_error(refusal(plain) or plain[:300], str(directory)) from error
