"""Where the files of one table are: on a disk of this machine, or in a store. One interface, two bodies.

A look at a disk costs microseconds, one at a store some milliseconds and a fraction of a cent; so whoever looks asks
`is_near` before it asks more than it needs. In a store every object is asked for by its name, nothing is listed.
"""

from __future__ import annotations

import json
import zlib
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import pyarrow as pa
from deltalake import DeltaTable
from pyarrow.fs import FileSystem

from stores import delta, store_errors
from stores.locations import Folder, Store

Mark = tuple[int, int]
"""What tells a log entry from one of another table with the same version number."""


class Entry(NamedTuple):
    """A log entry."""

    content: bytes
    mark: Mark


class TableFolder(Protocol):
    """The files of a table."""

    is_near: bool
    """Whether a look costs nothing to speak of."""

    @property
    def file_system(self) -> FileSystem:
        """Arrow's view of them."""

    def path_of(self, name: str) -> str:
        """A file, as that view names it."""

    def opened(self) -> DeltaTable:
        """The table as of now."""

    def has_entry(self, version: int) -> bool:
        """Whether the log has the entry of a version."""

    def entry(self, version: int) -> Entry | None:
        """The entry of a version, None if it is not there."""

    def mark_of(self, version: int) -> Mark | None:
        """Its mark, None if it is not there."""

    def checkpointed(self) -> int:
        """Version of the last checkpoint of the log, -1 before the first."""

    def source(self, name: str) -> Any:
        """A data file, as `ParquetFile` takes it. FileNotFoundError if it is gone."""

    def why(self, error: BaseException) -> tuple[str, BaseException | None]:
        """An error of reading, for a log: a word, and the error itself unless it may hold secrets."""


def folder_of(folder: Folder) -> TableFolder:
    """The files of the table in a folder."""
    return StoredFolder(folder) if isinstance(folder, Store) else DiskFolder(folder)


class DiskFolder:
    """On a disk."""

    is_near = True

    def __init__(self, path: Path) -> None:
        """Look at nothing yet."""
        self._path = path
        self._log = path / "_delta_log"

    @cached_property
    def file_system(self) -> FileSystem:
        """The local one."""
        return delta.file_system(self._path)

    def path_of(self, name: str) -> str:
        """The whole path."""
        return str(self._path / name)

    def opened(self) -> DeltaTable:
        """Open it."""
        return delta.opened(self._path)

    def has_entry(self, version: int) -> bool:
        """Ask for the name."""
        return self._entry_of(version).exists()

    def entry(self, version: int) -> Entry | None:
        """Read it."""
        try:
            mark = self.mark_of(version)
            return None if mark is None else Entry(self._entry_of(version).read_bytes(), mark)
        except FileNotFoundError:
            return None

    def mark_of(self, version: int) -> Mark | None:
        """Number and instant of the file."""
        try:
            entry = self._entry_of(version).stat()
        except FileNotFoundError:
            return None
        return entry.st_ino, entry.st_mtime_ns

    def checkpointed(self) -> int:
        """As its own file says."""
        try:
            return _checkpointed((self._log / "_last_checkpoint").read_bytes())
        except OSError:
            return -1

    def source(self, name: str) -> Path:
        """Its path."""
        return self._path / name

    def why(self, error: BaseException) -> tuple[str, BaseException | None]:
        """All of it."""
        return type(error).__name__, error

    def _entry_of(self, version: int) -> Path:
        return self._log / _entry_name(version)


class StoredFolder:
    """In a store."""

    is_near = False

    def __init__(self, store: Store) -> None:
        """Look at nothing yet."""
        self._store = store

    @cached_property
    def file_system(self) -> FileSystem:
        """The one that delta-rs has."""
        return delta.file_system(self._store)

    def path_of(self, name: str) -> str:
        """Relative to the table."""
        return name

    def opened(self) -> DeltaTable:
        """Open it."""
        return delta.opened(self._store)

    def has_entry(self, version: int) -> bool:
        """One request."""
        try:
            with self.file_system.open_input_file(f"_delta_log/{_entry_name(version)}"):
                return True
        except FileNotFoundError:
            return False

    def entry(self, version: int) -> Entry | None:
        """Two requests, one if it is not there."""
        try:
            content = self._read(f"_delta_log/{_entry_name(version)}")
        except FileNotFoundError:
            return None
        return Entry(content, (len(content), zlib.crc32(content)))

    def mark_of(self, version: int) -> Mark | None:
        """Length and checksum: an entry names files by random ids, so two tables have none in common."""
        found = self.entry(version)
        return None if found is None else found.mark

    def checkpointed(self) -> int:
        """As its own object says."""
        try:
            return _checkpointed(self._read("_delta_log/_last_checkpoint"))
        except FileNotFoundError:
            return -1

    def source(self, name: str) -> pa.BufferReader:
        """The whole object: who asks for it reads all of it, and so it is two requests instead of one per column."""
        return pa.BufferReader(self._read(name))

    def why(self, error: BaseException) -> tuple[str, BaseException | None]:
        """A word of ours: what a store answers may hold keys."""
        return store_errors.of(error).what, None

    def _read(self, name: str) -> bytes:
        with self.file_system.open_input_file(name) as file:
            content: bytes = file.read()
            return content


def _entry_name(version: int) -> str:
    return f"{version:020d}.json"


def _checkpointed(content: bytes) -> int:
    try:
        return int(json.loads(content)["version"])
    except (ValueError, LookupError, TypeError):
        return -1
