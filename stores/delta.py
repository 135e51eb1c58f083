"""A Delta table by delta-rs, and the objects it is made of, in a folder of this machine or of a store.

In a store a commit is a conditional put: the entry of a version is created only if it is not there (If-None-Match: *),
which Amazon's S3 has had since 2024 and the stores in its likeness have as well. So two writers can never both write
one version; the second one looks again. It writes no row.
"""

from __future__ import annotations

from typing import Any

from deltalake import DeltaTable
from deltalake.fs import DeltaStorageHandler
from pyarrow.fs import FileSystem, LocalFileSystem, PyFileSystem

from stores import access
from stores.locations import Folder, Store


def opened(folder: Folder) -> DeltaTable:
    """The table in a folder as of now; whatever delta-rs raises."""
    if isinstance(folder, Store):
        return DeltaTable(str(folder), storage_options=access.delta_options())
    return DeltaTable(folder)


def is_there(folder: Folder) -> bool:
    """Whether there is a table in a folder."""
    options = access.delta_options() if isinstance(folder, Store) else None
    return bool(DeltaTable.is_deltatable(str(folder), options))


def create(folder: Folder, schema: Any, **more: Any) -> None:
    """Create an empty table, unless one is there; `more` as `DeltaTable.create` takes it."""
    if isinstance(folder, Store):
        DeltaTable.create(str(folder), schema, mode="ignore", storage_options=access.delta_options(), **more)
    else:
        folder.parent.mkdir(parents=True, exist_ok=True)
        DeltaTable.create(folder, schema, mode="ignore", **more)


def remove(folder: Store) -> None:
    """Delete every object of a table, its log first: from then on it is no table, whatever else is still there."""
    objects = DeltaStorageHandler(str(folder), access.delta_options())
    objects.delete_dir("_delta_log")
    objects.delete_dir("")


def file_system(folder: Folder) -> FileSystem:
    """Arrow's view of the files: paths are whole ones of this machine, or, in a store, relative to the folder."""
    if isinstance(folder, Store):
        return PyFileSystem(DeltaStorageHandler(str(folder), access.delta_options()))
    return LocalFileSystem()
