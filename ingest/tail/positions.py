"""Positions on disk: what the topic has acknowledged, so that a restart goes on there.

One file, `positions`, written as a whole (`stores.durable`): a header with the digest of the body, then the body as
JSON. A crash between any two steps of a save leaves a readable file among `positions`, `positions.new` (the next one)
and `positions.old` (the one before).

Loading takes the valid file with the highest number of the three, so a torn or missing one falls back to the one
before. Nothing valid among files that exist is an error: never start from 0 silently. Nothing there at all is a first
start. `directory` (which client speaks for which group) is kept the same way beside it; losing it costs FETCH evidence
for a while and nothing else. `committed` (`ingest.offsets.committed`) is saved before the positions, so that it is
never behind them; without it the offsets topic is read anew.
"""

from __future__ import annotations

import os
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import portalocker

from ingest.errors import PositionsError, PositionsLockedError, PositionsUnreadableError
from ingest.offsets.committed import SavedCommitted
from ingest.tail.identity import Saved
from stores.durable import replace_file

VERSION = 1
"""Version of the body; a file of a newer one is refused."""

SAVE_MS = 2_000
"""Positions are saved at most this often; a crash repeats about so much."""

_MAGIC = b"kardia-positions"
Body = TypeVar("Body", bound=msgspec.Struct)


class Positions(msgspec.Struct):
    """Everything a collector goes on from."""

    number: int = 0
    """Grows by one with each save."""
    cluster: str = ""
    brokers: dict[str, str] = {}
    """Name of the broker by path of the log, once it is known."""
    files: dict[str, list[Saved]] = {}
    """Incarnations by path of the log."""
    offsets: dict[int, int] = {}
    """Next offset by partition of `__consumer_offsets`."""
    topic_id: str = ""
    """Id of the topic that acknowledged all this; empty where its brokers give none, or none was asked for yet."""


class SavedDirectory(msgspec.Struct):
    """The router's directory."""

    number: int = 0
    entries: list[tuple[str, str, list[int]]] = []


class Store:
    """A directory of positions, held by one collector at a time."""

    save_ms: float = SAVE_MS
    """So long after a save the next is due."""

    def __init__(self, directory: Path) -> None:
        """Create the directory if it is missing and lock it."""
        self.directory = directory
        directory.mkdir(parents=True, exist_ok=True)
        self._lock = (directory / "lock").open("a+", encoding="utf-8")
        try:
            portalocker.lock(self._lock, portalocker.LockFlags.EXCLUSIVE | portalocker.LockFlags.NON_BLOCKING)
        except portalocker.LockException:
            self._lock.seek(0)
            owner = self._lock.read(32).strip() or "unknown"
            self._lock.close()
            raise PositionsLockedError(
                f"another collector (process {owner}) uses these positions",
                str(directory / "lock"),
                "one collector per positions directory",
                "stop the other one, or give this one its own --positions directory",
            ) from None
        self._lock.truncate(0)
        self._lock.write(f"{os.getpid()}\n")
        self._lock.flush()
        self.notes: list[str] = []
        """Sentences about what had to be repaired at loading."""

    def close(self) -> None:
        """Release the directory."""
        self._lock.close()

    def load(self) -> Positions:
        """Saved positions, or empty ones at a first start."""
        return self._load("positions", Positions) or Positions()

    def load_directory(self) -> SavedDirectory:
        """The saved directory; an unreadable one is started anew, and said."""
        try:
            return self._load("directory", SavedDirectory) or SavedDirectory()
        except PositionsUnreadableError as error:
            self.notes.append(str(error))
            return SavedDirectory()

    def load_committed(self) -> SavedCommitted | None:
        """The saved partitions that groups have commits for; None where there are none that can be read: the offsets
        topic is then to be read from its beginning."""
        try:
            return self._load("committed", SavedCommitted)
        except PositionsUnreadableError as error:
            self.notes.append(str(error))
            return None

    def save_committed(self, committed: SavedCommitted, number: int) -> None:
        """Save them, before the positions of the records that they were learned from."""
        committed.number = number
        self._save("committed", committed)

    def forget_committed(self) -> None:
        """Forget them: the offsets topic is then read from its beginning."""
        for suffix in ("", ".new", ".old"):
            (self.directory / f"committed{suffix}").unlink(missing_ok=True)

    def save(self, positions: Positions) -> None:
        """Save positions, durably when this returns. The number grows."""
        positions.number += 1
        self._save("positions", positions)

    def save_directory(self, directory: SavedDirectory) -> None:
        """Save the directory."""
        directory.number += 1
        self._save("directory", directory)

    def _save(self, name: str, body: msgspec.Struct) -> None:
        target = self.directory / name
        replace_file(target, sealed(msgspec.json.encode(body)), old=target.with_suffix(".old"), mode=0o600)

    def _load(self, name: str, shape: type[Body]) -> Body | None:
        target = self.directory / name
        found: list[tuple[int, Path, Body]] = []
        broken: list[str] = []
        for path in (target, target.with_suffix(".new"), target.with_suffix(".old")):
            try:
                data = path.read_bytes()
            except FileNotFoundError:
                continue
            try:
                body = msgspec.json.decode(unsealed(data, path), type=shape)
                found.append((body.number, path, body))  # type: ignore[attr-defined]
            except (ValueError, msgspec.DecodeError):
                broken.append(path.name)
        if not found:
            if not broken:
                return None
            raise PositionsUnreadableError(
                f"none of {', '.join(broken)} can be read",
                str(self.directory),
                "the file as this program wrote it",
                "restore the directory from a backup, or delete it to read the logs from their beginning again",
            )
        number, path, body = max(found, key=lambda one: one[0])
        if path != target:
            self.notes.append(f"{name}: {path.name} (number {number}) is used, a save was interrupted")
        if target.name in broken:
            self.notes.append(f"{name}: the last save is torn, went back to number {number}")
        return body


def sealed(body: bytes) -> bytes:
    """A body with its header: magic, version, digest."""
    return b"%s %d %s\n" % (_MAGIC, VERSION, sha256(body).hexdigest().encode("ascii")) + body


def unsealed(data: bytes, path: Path) -> bytes:
    """The body of a file; `ValueError` when it is torn, `PositionsError` when it is from a newer version."""
    header, _, body = data.partition(b"\n")
    parts = header.split(b" ")
    if len(parts) != 3 or parts[0] != _MAGIC or not parts[1].isdigit():
        raise ValueError("not a file of positions")
    if int(parts[1]) > VERSION:
        raise PositionsError(
            f"the saved positions have version {int(parts[1])}",
            str(path),
            f"version {VERSION} or older",
            "start the newer program that wrote them, or delete the directory to read the logs again",
        )
    if sha256(body).hexdigest().encode("ascii") != parts[2]:
        raise ValueError("torn")
    return body


def describe(positions: Positions) -> dict[str, Any]:
    """Positions for people: bytes by path."""
    return {
        path: sum(entry.position for entry in entries if not entry.done) for path, entries in positions.files.items()
    }
