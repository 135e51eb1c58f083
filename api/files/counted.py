"""What a question reads of files, counted where it reads: footers, row groups, and their bytes.

A question about the past runs in one thread from its beginning to its end, so what a thread reads belongs to the
question that it is at. Counted is what is asked of the disk or the store; what the machine has in memory of it, and
what it reads ahead, is not known here.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass
class Read:
    """What was read."""

    bytes: int = 0
    footers: int = 0
    row_groups: int = 0


_thread = threading.local()


@contextmanager
def counting() -> Iterator[Read]:
    """Count what this thread reads from here on."""
    before, read = getattr(_thread, "read", None), Read()
    _thread.read = read
    try:
        yield read
    finally:
        _thread.read = before


def footer(size_bytes: int) -> None:
    """A footer was read."""
    read: Read | None = getattr(_thread, "read", None)
    if read is not None:
        read.bytes += size_bytes
        read.footers += 1


def row_groups(count: int, size_bytes: int) -> None:
    """Row groups were read, or with a count of 0 only a column of one."""
    read: Read | None = getattr(_thread, "read", None)
    if read is not None:
        read.bytes += size_bytes
        read.row_groups += count
