"""One file from its creation to its end, open for reading while it grows.

Hands out complete lines once, in order. Notices that the bytes it has read are no longer there (`TruncatedError`):
before every read its head and the bytes before the position are compared with what was read. Knows nothing of brokers,
dialects or clocks.
"""

from __future__ import annotations

import os
from hashlib import blake2b
from pathlib import Path

from ingest.blocks import Cut, Splitter
from ingest.tail.identity import HEAD_BYTES, MARK_BYTES, Saved, digest
from ingest.tail.wrapped import LOOKED_AT_BYTES, EntrySplitter, splitter_of


class TruncatedError(Exception):
    """The file no longer holds what was read from it."""


class Incarnation:
    """An open file, its position and what identifies it."""

    def __init__(
        self, path: Path, saved: Saved | None = None, descriptor: int | None = None, *, shared: bool = False
    ) -> None:
        """Open `path`, or take over an open file; with `saved` go on there (the caller knows it is the same file).
        `shared`: several logs stand in it."""
        self.path = path
        self._shared = shared
        self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC) if descriptor is None else descriptor
        stat = os.fstat(self._descriptor)
        self.device, self.inode = stat.st_dev, stat.st_ino
        self.name = saved.name if saved else ""
        self.named_apart = bool(self.name)
        """Whether the name has been compared with those of the other incarnations."""
        self.last_at_ms = saved.last_at_ms if saved else 0.0
        self.tick_end = saved.tick_end if saved else 0
        position = saved.position if saved else 0
        self._splitter_of = splitter_of(self.head(), shared=shared)
        """None until the first line is whole: it says whether the lines are wrapped."""
        self._splitter: Splitter | EntrySplitter = (self._splitter_of or Splitter)(position)
        self._head = os.pread(self._descriptor, min(HEAD_BYTES, position), 0)
        self._before = os.pread(self._descriptor, min(MARK_BYTES, position), max(position - MARK_BYTES, 0))
        self.at_end = False
        """Whether the last read found nothing more."""
        self.nul_bytes = 0
        """NUL bytes skipped: a writer kept its offset over a truncate."""
        self.quiet_since_s: float | None = None
        """Monotonic instant since which a rotated file has been at its end."""

    @property
    def position(self) -> int:
        """First byte that has not been handed out."""
        return self._splitter.position

    @property
    def unfinished(self) -> bool:
        """Whether a line has begun that is not complete."""
        return self._splitter.read_to > self._splitter.position

    def size(self) -> int:
        """Bytes of the file now."""
        return os.fstat(self._descriptor).st_size

    def read(self, limit: int) -> Cut | None:
        """Complete lines from at most `limit` more bytes; None when there are none. Raises `TruncatedError`."""
        if self._splitter_of is None:
            self._splitter_of = splitter_of(self.head(), shared=self._shared)
            if self._splitter_of not in (None, Splitter):
                self.give_back(self.position)
        expected = self._before
        read_to = self._splitter.read_to
        fresh = os.pread(self._descriptor, limit, read_to)
        # Looked at after the read: where that still stands there, these bytes were written behind it. At the head as
        # well: lines of one length may end alike, and their stamps are at their begin.
        if expected and os.pread(self._descriptor, len(expected), read_to - len(expected)) != expected:
            raise TruncatedError
        if os.pread(self._descriptor, len(self._head), 0) != self._head:
            raise TruncatedError
        self.at_end = len(fresh) < limit
        if not fresh:
            return None
        self._before = fresh[-MARK_BYTES:] if len(fresh) >= MARK_BYTES else (expected + fresh)[-MARK_BYTES:]
        if read_to < HEAD_BYTES:
            self._head = (self._head + fresh)[:HEAD_BYTES]
        if fresh[0] == 0 and read_to == self._splitter.position:
            bare = fresh.lstrip(b"\0")
            self.nul_bytes += len(fresh) - len(bare)
            self._splitter.position += len(fresh) - len(bare)
            fresh = bare
        cut = self._splitter.feed(fresh)
        if not self.name:
            self._name(cut)
        return cut if cut.block or cut.long_end >= 0 else None

    def head(self) -> bytes:
        """The first bytes that are in the file now."""
        return os.pread(self._descriptor, LOOKED_AT_BYTES, 0)

    def last(self) -> bytes:
        """The last bytes that are in the file now."""
        return os.pread(self._descriptor, LOOKED_AT_BYTES, max(self.size() - LOOKED_AT_BYTES, 0))

    def give_back(self, position: int) -> None:
        """What was handed out from `position` on is handed out again by the next read."""
        self._splitter = (self._splitter_of or Splitter)(position)
        self._head = self._head[:position]
        self._before = os.pread(self._descriptor, min(MARK_BYTES, position), max(position - MARK_BYTES, 0))
        self.at_end = False

    def _name(self, cut: Cut) -> None:
        """The first complete line names the incarnation: it stays as it is while the file grows."""
        if cut.lines:
            self.name = self.first_name()
        elif cut.long_end >= 0:
            self.name = name_of(cut.long_head)
        elif cut.block:
            self.name = name_of(cut.block)

    def first_name(self) -> str:
        """Name by the first entry as it stands in the file; of a wrapped line the begin may stand in another one."""
        return name_of(self.head().lstrip(b"\0"))

    def finish(self) -> tuple[bytes, Cut]:
        """Give out what is left at the end of a file that will not grow."""
        line, cut = self._splitter.finish()
        if not self.name:
            self.name = self.first_name() if cut.ended else name_of(line or cut.long_head)
        return line, cut

    def saved(self, *, done: bool = False) -> Saved:
        """What is to be remembered. The mark is taken at the position, before the incomplete line."""
        stat = os.fstat(self._descriptor)
        position = self._splitter.position
        mark_bytes = min(MARK_BYTES, position)
        mark = self._before[-mark_bytes:] if mark_bytes else b""
        if self.unfinished:
            mark = os.pread(self._descriptor, mark_bytes, position - mark_bytes)
        head = self._head[: max(position, 0)]
        return Saved(
            self.name,
            self.device,
            self.inode,
            len(head),
            digest(head),
            position,
            mark_bytes,
            digest(mark),
            stat.st_mtime_ns,
            self.last_at_ms,
            self.tick_end,
            done,
        )

    def again(self) -> Incarnation:
        """The same file, emptied and filled anew, from its beginning; by descriptor, for its name may have moved."""
        return Incarnation(self.path, descriptor=os.dup(self._descriptor), shared=self._shared)

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)


def name_of(head: bytes) -> str:
    """Name of an incarnation: a digest of its first line. Nothing else of a growing file stays as it is."""
    return blake2b(head.partition(b"\n")[0], digest_size=8).hexdigest()
