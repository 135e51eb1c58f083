"""Opens a log, whatever it is compressed with. The first bytes decide, never the name.

Positions in a compressed log are those of the decompressed bytes. A decompressor holds its window only: at most 128 MiB
with zstd, which refuses larger ones by itself (ZSTD_WINDOWLOG_LIMIT_DEFAULT).
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, NamedTuple, cast

from ingest.errors import LogFileError

UNREADABLE = (OSError, EOFError, zlib.error, lzma.LZMAError)
"""What reading a damaged archive raises."""

_TAR_AT = 257
"""Byte at which a tar archive says so (POSIX ustar)."""


class Packing(NamedTuple):
    """A form of compression."""

    magic: bytes
    open: Callable[[Path], BinaryIO]
    check: str
    """Command that tells whether a file is whole."""


def _open_gzip(path: Path) -> BinaryIO:
    return cast(BinaryIO, gzip.open(path, "rb"))


def _open_zstd(path: Path) -> BinaryIO:
    import pyarrow as pa  # 0.1 s of start, for this form alone

    return cast(BinaryIO, io.BufferedReader(pa.CompressedInputStream(pa.OSFile(str(path), "rb"), "zstd"), 1 << 20))


def _open_xz(path: Path) -> BinaryIO:
    return cast(BinaryIO, lzma.open(path, "rb"))


def _open_bzip2(path: Path) -> BinaryIO:
    return cast(BinaryIO, bz2.open(path, "rb"))


PACKINGS = (
    Packing(b"\x1f\x8b", _open_gzip, "gzip -t"),
    Packing(b"\x28\xb5\x2f\xfd", _open_zstd, "zstd -t"),
    Packing(b"\xfd7zXZ\x00", _open_xz, "xz -t"),
    Packing(b"BZh", _open_bzip2, "bzip2 -t"),
)

_SEVERAL = ((b"PK\x03\x04", "a zip archive"), (b"7z\xbc\xaf\x27\x1c", "a 7z archive"))


def packing_of(path: Path) -> Packing | None:
    """How a file is compressed; None for a plain one. Raises OSError."""
    with path.open("rb") as plain:
        head = plain.read(8)
    return next((one for one in PACKINGS if head.startswith(one.magic)), None)


def open_log(path: Path) -> BinaryIO:
    """Open for reading, decompressed. Raises `UNREADABLE`, also while it is read."""
    packing = packing_of(path)
    return path.open("rb") if packing is None else packing.open(path)


def unreadable(path: Path | str, error: Exception) -> LogFileError:
    """What is said of a file whose reading raised one of `UNREADABLE`."""
    return LogFileError(
        f"the file cannot be read to its end: {error}",
        str(path),
        "a log that is complete and readable, plain or compressed with gzip, zstd, xz or bzip2",
        "check the file (`gzip -t` for .gz, `zstd -t` for .zst) and its permissions, or leave it out",
    )


def head_of(path: Path, size: int) -> bytes:
    """The first bytes of a log, decompressed. Raises `LogFileError`, also for archives of several files."""
    try:
        with open_log(path) as opened:
            head = opened.read(size)
    except UNREADABLE as error:
        raise unreadable(path, error) from error
    several = next((what for magic, what in _SEVERAL if head.startswith(magic)), "")
    if several or head[_TAR_AT : _TAR_AT + 5] == b"ustar":
        raise LogFileError(
            f"it is {several or 'a tar archive'}, which holds several files",
            str(path),
            "logs, plain or each compressed by itself",
            "unpack it into a folder and give that",
        )
    return head
