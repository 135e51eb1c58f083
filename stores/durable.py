"""A file that is replaced as a whole, and still there after the power failed. The one place that does this.

Steps: (1) the new content beside it, under the suffix `.new`, (2) sync, (3) if the old one is to be kept, rename it,
(4) rename the new one, (5) sync the folder: without it a rename may be undone by a power failure. Killed between any
two steps, `path`, its `.new` or its old one holds a whole content.

Everything that Kardia keeps in a file of its own on this machine is written by it. It knows no content.
"""

from __future__ import annotations

import os
from pathlib import Path


def replace_file(path: Path, data: bytes, *, old: Path | None = None, mode: int = 0o644) -> None:
    """Put `data` in the place of a file, durably when this returns; what was there is kept as `old` if named.

    `mode`: who may read and write it, before the umask. Raises `OSError` (a full disk, no right to write): `path` is
    then as it was, or its content is in `old`.
    """
    fresh = path.with_suffix(".new")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, mode)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(descriptor)
    if old is not None and path.exists():
        path.replace(old)
    fresh.replace(path)
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
