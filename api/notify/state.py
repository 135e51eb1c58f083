"""The notifier's memory on disk: alerts, and what no target has acknowledged. One writer, replaced as a whole.

A crash leaves the old file or the new one (`stores.durable`). A second notifier on the same folder is refused: both
would tell everything.
"""

from __future__ import annotations

from pathlib import Path

import msgspec
import portalocker

from api.notify.lifecycle import Alert, Notice
from stores.durable import replace_file

VERSION = 1


class StateError(Exception):
    """The state cannot be used; says what to do."""


class Memory(msgspec.Struct):
    """What is remembered between two runs."""

    version: int = VERSION
    alerts: list[Alert] = []
    outboxes: dict[str, list[Notice]] = {}
    """Target -> notices."""


class StateFile:
    """`notify.json` in a folder that belongs to one notifier."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._path = folder / "notify.json"
        self._lock = (folder / "notify.lock").open("a")
        try:
            portalocker.lock(self._lock, portalocker.LockFlags.EXCLUSIVE | portalocker.LockFlags.NON_BLOCKING)
        except portalocker.LockException:
            self._lock.close()
            raise StateError(
                f"{folder} is in use by another notifier; expected a folder of its own; stop the other one, or give "
                "another --state"
            ) from None

    def load(self) -> Memory:
        """What was saved last; empty at the first start."""
        try:
            memory = msgspec.json.decode(self._path.read_bytes(), type=Memory)
        except FileNotFoundError:
            return Memory()
        except msgspec.DecodeError as error:
            raise StateError(
                f"{self._path} cannot be read ({error}); expected what this version of Kardia wrote; move it away to "
                "start anew: what is wrong at present is then told again"
            ) from None
        if memory.version != VERSION:
            raise StateError(
                f"{self._path} has version {memory.version}; expected {VERSION}; move it away to start anew"
            )
        return memory

    def save(self, memory: Memory) -> None:
        """Replace what was saved."""
        replace_file(self._path, msgspec.json.encode(memory))

    def close(self) -> None:
        """Let another notifier have it."""
        self._lock.close()
