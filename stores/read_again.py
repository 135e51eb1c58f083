"""When to read a table again: which errors mean that upkeep (`spark_jobs.upkeep.maintenance`) removed a file meanwhile.
Pure: it knows no table.

Upkeep compacts data files, checkpoints the log, and removes what both have made superfluous. Who has looked before
still holds names of files that are gone: a log entry that a checkpoint has replaced, a data file whose rows have moved.
Nothing is lost then; who looks again finds the same rows. So every reader of a table, the writer's own look at its
transactions included, looks again (a law in `tests/spark_jobs/test_read_again.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

Found = TypeVar("Found")

LOOKS = 4
"""Looks before a file counts as lost. Upkeep removes nothing that a look of this very moment names, so the second one
finds everything, unless another pass of upkeep, a minute later, falls into it as well."""

_GONE = ("not found", "No such file")
_VERSION = "Invalid table version"
"""What a commit says that looks for the commits it must not collide with, when a checkpoint has replaced them."""

_FILES = ("_delta_log", ".parquet", ".json")


def is_gone(error: BaseException) -> bool:
    """Whether an error says that a file of a table is not there. delta-rs says it in four ways, DuckDB in another."""
    text = str(error)
    return (
        isinstance(error, FileNotFoundError)
        or _VERSION in text
        or (any(word in text for word in _GONE) and any(name in text for name in _FILES))
    )


def surviving(look: Callable[[], Found], lost: Callable[[], None] = lambda: None) -> Found:
    """What `look` finds; it is called again, from the start, if a file was removed while it looked.

    `lost` is called before each further look, to let go of what the last one held. Raises what the last look raised.
    """
    for _ in range(LOOKS - 1):
        try:
            return look()
        except Exception as error:
            if not is_gone(error):
                raise
        lost()
    return look()
