"""The few files of a checkpoint that Kardia reads and writes itself, on a disk or in a store.

On a disk a file is replaced durably (`stores.durable`); in a store an object is whole when it is there. It knows no
content.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from deltalake.exceptions import DeltaError
from pyarrow.fs import FileSelector

from spark_jobs.errors import CheckpointError
from stores import delta, store_errors
from stores.durable import replace_file
from stores.locations import Folder, Store

BUFFER_BYTES = 1 << 20


@contextmanager
def _named(folder: Folder) -> Iterator[None]:
    """Say of a store that refuses which it is, without its words."""
    try:
        yield
    except FileNotFoundError:
        raise
    except (OSError, DeltaError) as error:
        if not isinstance(folder, Store):
            raise
        why = store_errors.of(error)
        raise CheckpointError(
            f"the checkpoint cannot be used: {why.what}",
            str(folder),
            "a bucket that can be listed, read, written and deleted from",
            why.next_step,
        ) from None


def read(folder: Folder, name: str) -> bytes:
    """Content of a file. FileNotFoundError if it is not there."""
    with _named(folder):
        if not isinstance(folder, Store):
            return (folder / name).read_bytes()
        with delta.file_system(folder).open_input_file(name) as file:
            content: bytes = file.read()
            return content


def write(folder: Folder, name: str, content: bytes) -> None:
    """Put a file in the place of another."""
    with _named(folder):
        if isinstance(folder, Store):
            # Buffered: else Arrow hands delta-rs its own kind of bytes, which that refuses.
            with delta.file_system(folder).open_output_stream(name, buffer_size=BUFFER_BYTES) as file:
                file.write(content)
        else:
            folder.mkdir(parents=True, exist_ok=True)
            replace_file(folder / name, content)


def remove(folder: Folder, name: str) -> None:
    """Delete a file, if it is there."""
    with _named(folder):
        if not isinstance(folder, Store):
            (folder / name).unlink(missing_ok=True)
            return
        try:
            delta.file_system(folder).delete_file(name)
        except FileNotFoundError:
            return


def names(folder: Folder) -> list[str]:
    """Names of the files in a folder; none if it is not there."""
    with _named(folder):
        if isinstance(folder, Path):
            return [path.name for path in folder.glob("*")]
        found = delta.file_system(folder).get_file_info(FileSelector("", allow_not_found=True))
        return [info.base_name for info in found if info.is_file]
