"""A log file as a broker and its operators treat it: append, rename, copytruncate, delete; and its reader restarted."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

from ingest.tail.identity import Saved
from ingest.tail.incarnation import Incarnation
from ingest.tail.tailer import Loss, Tail

ROTATE_WAIT_S = 5.0


class Reader:
    """A tail and everything it handed out: (incarnation, position, line)."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.now_s = 0.0
        self.lines: list[tuple[str, int, bytes]] = []
        self.rests: list[bytes] = []
        self.losses: list[Loss] = []
        self.tail = self._tail(())

    def _tail(self, saved: tuple[Saved, ...]) -> Tail:
        return Tail(self.path, saved, monotonic_s=lambda: self.now_s, rotate_wait_s=ROTATE_WAIT_S)

    def read(self, rounds: int = 8) -> None:
        """Read until nothing more comes."""
        for _ in range(rounds):
            for read in self.tail.read():
                at = read.cut.start
                for line in read.cut.block.splitlines(keepends=True):
                    self.lines.append((read.incarnation.name, at, line))
                    at += len(line)
                if read.rest:
                    self.rests.append(read.rest)
            self.losses += self.tail.losses()
            self.now_s += 0.05

    def wait(self, seconds: float = ROTATE_WAIT_S + 1) -> None:
        """Let time pass, reading before and after."""
        self.read(2)
        self.now_s += seconds
        self.read()

    def restart(self, saved: list[Saved] | None = None) -> None:
        """Stop, and start again from the positions (or from older ones: a crash)."""
        kept = self.tail.saved() if saved is None else saved
        self.tail.close()
        self.tail = self._tail(tuple(kept))

    @property
    def texts(self) -> list[bytes]:
        """Lines in the order they came, without their ends."""
        return [line.rstrip(b"\n") for _, _, line in self.lines]

    def ids(self) -> Iterator[tuple[str, int]]:
        """What an event's identity is made of."""
        for name, at, _ in self.lines:
            yield name, at


class Writer:
    """The log file's other side."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.number = 0
        self.rotations = 0
        self.file = path.open("ab", buffering=0)

    def line(self) -> bytes:
        """The next line, different from all others."""
        self.number += 1
        return b"line %06d" % self.number

    def append(self, count: int = 1) -> list[bytes]:
        lines = [self.line() for _ in range(count)]
        self.file.write(b"".join(line + b"\n" for line in lines))
        return lines

    def rename(self) -> Path:
        """Rotate by renaming, as log4j does; the writer goes on in a new file."""
        self.rotations += 1
        target = self.path.with_name(f"{self.path.name}.{self.rotations:04d}")
        self.path.rename(target)
        self.file.close()
        self.file = self.path.open("ab", buffering=0)
        return target

    def copytruncate(self, *, keep_copy: bool = True) -> Path:
        self.rotations += 1
        target = self.path.with_name(f"{self.path.name}.{self.rotations:04d}")
        if keep_copy:
            shutil.copyfile(self.path, target)
        self.file.truncate(0)
        return target


__all__ = ["Incarnation", "Reader", "Writer"]
