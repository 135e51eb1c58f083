"""Errors of a disk (full, read-only, no right to write) as sentences that name the directory.

Python, delta-rs and the JVM each say it in their own way, and Spark around it with a page of Java; the words of the
operating system are in all of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from deltalake.exceptions import DeltaError

from spark_jobs.errors import TablesError

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


@contextmanager
def disk_named(directory: Path) -> Iterator[None]:
    """Say of a disk that refuses which it is and what to do; input files have sentences of their own."""
    try:
        yield
    except ConnectionError:
        raise  # of the JVM, which is no disk
    except (OSError, DeltaError) as error:
        said = (error.strerror or str(error)) if isinstance(error, OSError) else str(error)
        plain = " ".join(_COLOURS.sub("", said).split())
        raise disk_error(refusal(plain) or plain[:300], str(directory)) from error
