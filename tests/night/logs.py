"""Logs of brokers that are copied and emptied, as logrotate's `copytruncate` does it, and what was in them.

What is written after the copy and before the emptying is in no file that Kardia could read: it is kept apart, for the
judge. Reads and writes files; knows nothing of what the lines say.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path


class CopyTruncate:
    """Rotations of the logs of one broker, and a folder for what they lost."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def copy_and_empty(self, log: Path, between_s: float) -> None:
        """Rotate a log; `between_s` lie between copy and emptying.

        The name of the copy is that of logrotate's `dateext`, as log4j numbers its own. A line that is written within
        the last microseconds before the emptying is not kept here either.
        """
        self._folder.mkdir(parents=True, exist_ok=True)
        stamp = datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
        copy = log.with_name(f"{log.name}-{stamp}")
        shutil.copyfile(log, copy)
        time.sleep(between_s)
        copied = copy.stat().st_size
        with log.open("rb") as written, (self._folder / copy.name).open("wb") as kept:
            written.seek(copied)
            kept.write(written.read())
            os.truncate(log, 0)

    def lost(self, log: Path) -> Iterator[tuple[Path, bytes]]:
        """(copy, what was written after it and before the emptying) of each time a log was emptied."""
        for kept in sorted(self._folder.glob(f"{log.name}-*")):
            yield log.with_name(kept.name), kept.read_bytes()

    def pieces(self, log: Path) -> list[bytes]:
        """All that was ever in a log: what it was copied into, what was lost then, the files that it went on from, and
        what it is now. Pieces are whole lines; they are not in the order of time."""
        found = [copy.read_bytes() + lost for copy, lost in self.lost(log)]
        turned = log.parent.glob(f"{log.name}.*[0-9]")
        return [*found, *(path.read_bytes() for path in (*turned, log) if path.exists())]
