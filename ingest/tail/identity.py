"""Which file is it: device, inode, and what its bytes say.

An inode comes back after a file is deleted, a name moves at every rotation, a copy has the same bytes. So a file
incarnation is recognised by a digest of its head, which grows with the file up to `HEAD_BYTES`, and by a digest of the
bytes before the position (`MARK_BYTES`), which tells a file that was emptied and filled again. Device and inode tell
two files with the same head apart while both exist.
"""

from __future__ import annotations

import os
from hashlib import blake2b

import msgspec

HEAD_BYTES = 1_024
"""Bytes of the head that are compared: as many as Filebeat's fingerprint, which learned to grow, too."""

MARK_BYTES = 64
"""Bytes before the position that are compared: Fluent Bit takes 32; a stamp and the first ids are within 64."""


class Saved(msgspec.Struct, omit_defaults=True):
    """What is remembered of one incarnation of a file, also over a restart."""

    name: str
    """Last part of `Event.source`, empty until the first line is complete."""
    device: int
    inode: int
    head_bytes: int
    head_digest: str
    position: int
    mark_bytes: int
    mark_digest: str
    modified_ns: int = 0
    last_at_ms: float = 0.0
    """Highest stamp read."""
    tick_end: int = 0
    """Where the last tick ended."""
    done: bool = False
    """Read to its end and closed; kept so that it is not read again."""


def digest(data: bytes) -> str:
    """Digest as it is kept in positions."""
    return blake2b(data, digest_size=16).hexdigest()


def continues(descriptor: int, saved: Saved) -> bool:
    """Whether an open file is the remembered incarnation: same head, and the same bytes before the position."""
    if os.fstat(descriptor).st_size < saved.position:
        return False
    head = os.pread(descriptor, saved.head_bytes, 0)
    if len(head) != saved.head_bytes or digest(head) != saved.head_digest:
        return False
    mark = os.pread(descriptor, saved.mark_bytes, saved.position - saved.mark_bytes)
    return len(mark) == saved.mark_bytes and digest(mark) == saved.mark_digest


def same_file(stat: os.stat_result, saved: Saved) -> bool:
    """Whether device and inode are the remembered ones."""
    return (stat.st_dev, stat.st_ino) == (saved.device, saved.inode)
