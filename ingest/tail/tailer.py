"""Follow one log file through rename rotation, copytruncate, deletion and restarts.

Three things are kept apart: *identity* (`ingest.tail.identity`), *position* (what was handed out) and *acknowledgement*
(`ingest.collector` saves a position only when the topic has it). Old incarnations are read to their end before a newer
one is begun, so lines come in the order they were written. What may be lost is said: a `Loss`, which becomes a GAP.

What happens when the name leads to another file (a rotation): the open file is read on until it has been at its end
for `rotate_wait_s`, then closed; files that were rotated away unseen in between are found beside it by their name and
age and read first. When the bytes before the position are no longer there (copytruncate): a new incarnation begins at
0; if the copy is found beside it, the rest of the old one is read from the copy.

Compressed siblings are never read. Reads no wall clock; the monotonic clock is an argument.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from ingest.blocks import Cut
from ingest.tail.identity import Saved, continues, digest, same_file
from ingest.tail.incarnation import Incarnation, TruncatedError

READ_BYTES = 1024 * 1024
"""Bytes read at once."""

ROTATE_WAIT_S = 5.0
"""How long a rotated file must have been quiet before it is closed; Fluent Bit's `rotate_wait` is 5 s as well."""

MAX_OPEN = 64
"""Incarnations of one file that may be open at once: more rotations than that between two looks are a broken set-up,
the oldest are then closed unread and reported as a loss."""

MAX_REMEMBERED = 64
"""Finished incarnations that are remembered, so that they are not read again under their new names."""

RETRY_S = 1.0
"""Pause after a file could not be opened."""

COMPRESSED = (".gz", ".zip", ".bz2", ".xz", ".zst", ".lz4", ".tmp")
"""Ends of names that are passed over; the kubelet compresses into a `.tmp`."""


class Read(NamedTuple):
    """Lines of an incarnation. `rest` is the incomplete last line of a file that has ended."""

    incarnation: Incarnation
    cut: Cut
    rest: bytes = b""


class Loss(NamedTuple):
    """Lines that may be lost: which incarnation, from where, and why (one of `kardia.events.GAP_REASONS`).

    What is lost lies behind `from_ms` and what `copied` ends with, and before what `following` begins with: the stamps
    in them say how long that was.
    """

    name: str
    position: int
    from_ms: float
    reason: str
    copied: bytes = b""
    """The end of a copy in which reading goes on."""
    following: bytes = b""
    """The begin of what was written next, as far as that is there."""


class Tail:
    """One file by its name."""

    def __init__(
        self,
        path: Path,
        saved: Sequence[Saved] = (),
        *,
        monotonic_s: Callable[[], float],
        rotate_wait_s: float = ROTATE_WAIT_S,
        shared: bool = False,
    ) -> None:
        """Follow `path`, going on where `saved` says; without it from the beginning of the present file. `shared`:
        several logs stand in it.

        The file is looked for at once, so that it can be remembered (`saved`) before anything of it is sent: a crash
        and a rotation right after the first start then lose nothing.
        """
        self.path = path
        self.trouble = ""
        """Why the file cannot be read at present: gone, unreadable, or empty when it can."""
        self._monotonic_s = monotonic_s
        self._rotate_wait_s = rotate_wait_s
        self._shared = shared
        self._open: list[Incarnation] = []
        """Oldest first; the last one is the present file unless `_current` is None."""
        self._current: Incarnation | None = None
        self._finished: list[Saved] = [entry for entry in saved if entry.done]
        self._losses: list[Loss] = []
        self._retry_at_s = 0.0
        self._newest_ns = max((entry.modified_ns for entry in saved), default=0)
        before, was_emptied = self._resume([entry for entry in saved if not entry.done])
        self._look()
        if was_emptied:
            before += self._lose_between({(entry.device, entry.inode) for entry in saved})
        for number, place in enumerate(before):
            if place < len(self._open):
                self._losses[number] = self._losses[number]._replace(following=self._open[place].head())

    # --- what the collector asks -------------------------------------------------------------------------------------

    def read(self) -> Iterator[Read]:
        """What there is to read now, oldest first; a newer file only when the older ones are at their end."""
        self._look()
        for incarnation in tuple(self._open):
            try:
                cut = incarnation.read(READ_BYTES)
            except TruncatedError:
                self._begin_again(incarnation)
                return
            if cut is not None:
                self._name_apart(incarnation)
                incarnation.quiet_since_s = None
                yield Read(incarnation, cut)
            if not incarnation.at_end:
                return
            if incarnation is not self._current:
                yield from self._perhaps_close(incarnation)

    def losses(self) -> list[Loss]:
        """Losses met since the last call."""
        losses, self._losses = self._losses, []
        return losses

    @property
    def current(self) -> Incarnation | None:
        """The present file, None while there is none."""
        return self._current

    @property
    def at_end(self) -> bool:
        """Whether everything that is in the files now has been handed out as whole lines."""
        return (
            self._current is not None
            and not self._losses
            and all(incarnation.at_end and not incarnation.unfinished for incarnation in self._open)
        )

    @property
    def lag_bytes(self) -> int:
        """Bytes that are in the files and have not been handed out."""
        return sum(max(incarnation.size() - incarnation.position, 0) for incarnation in self._open)

    def saved(self) -> list[Saved]:
        """What is to be remembered of this file."""
        return self._finished[-MAX_REMEMBERED:] + [incarnation.saved() for incarnation in self._open]

    def close(self) -> None:
        """Close all files."""
        for incarnation in self._open:
            incarnation.close()
        self._open, self._current = [], None

    # --- rotation ----------------------------------------------------------------------------------------------------

    def _look(self) -> None:
        """See which file the name leads to now."""
        try:
            stat = self.path.stat()
        except FileNotFoundError:
            self._trouble("gone")
            self._current = None
            return
        except OSError:
            self._trouble("unreadable")
            return
        current = self._current
        if current is not None and (stat.st_dev, stat.st_ino) == (current.device, current.inode):
            self.trouble = ""
            return
        if self.trouble == "unreadable" and self._monotonic_s() < self._retry_at_s:
            return
        self._current = None
        between = self._between()
        returned = [one for one in self._open if (one.device, one.inode) == (stat.st_dev, stat.st_ino)]
        opened = returned[0] if returned else self._opened(self.path)
        if opened is None:
            return
        self.trouble = ""
        if returned:
            self._open.remove(opened)
        self._open += [one for path in between if (one := self._opened(path)) is not None]
        self._open.append(opened)
        self._current = opened
        while len(self._open) > MAX_OPEN:
            oldest = self._open.pop(0)
            self._lose(oldest, "lost_lines")
            oldest.close()

    def _opened(self, path: Path) -> Incarnation | None:
        try:
            opened = Incarnation(path, shared=self._shared)
        except FileNotFoundError:
            self._trouble("gone")
            return None
        except OSError:
            self._trouble("unreadable")
            return None
        return opened

    def _trouble(self, what: str) -> None:
        self.trouble = what
        self._retry_at_s = self._monotonic_s() + RETRY_S

    def _perhaps_close(self, incarnation: Incarnation) -> Iterator[Read]:
        now_s = self._monotonic_s()
        if incarnation.quiet_since_s is None:
            incarnation.quiet_since_s = now_s
        if now_s - incarnation.quiet_since_s < self._rotate_wait_s:
            return
        rest, cut = incarnation.finish()
        self._name_apart(incarnation)
        if rest or cut.lines or cut.long_end >= 0:
            yield Read(incarnation, cut, rest)
        self._finished.append(incarnation.saved(done=True))
        self._newest_ns = max(self._newest_ns, self._finished[-1].modified_ns)
        del self._finished[:-MAX_REMEMBERED]
        incarnation.close()
        self._open.remove(incarnation)

    def _siblings(self) -> list[tuple[int, Path, os.stat_result]]:
        """Rotated files beside this one, oldest first: names that continue its name, not compressed."""
        found: list[tuple[int, Path, os.stat_result]] = []
        with suppress(OSError):
            for entry in os.scandir(self.path.parent):
                name = entry.name
                if name.startswith((self.path.name + ".", self.path.name + "-")) and not name.endswith(COMPRESSED):
                    with suppress(OSError):
                        if entry.is_file():
                            stat = entry.stat()
                            found.append((stat.st_mtime_ns, Path(entry.path), stat))
        return sorted(found, key=lambda one: (one[0], one[1].name))

    def _between(self, apart: Incarnation | None = None) -> list[Path]:
        """Files that were begun and rotated away since the last look: never seen, and younger than what was read.

        Without anything read before (a first start) there are none: history is the business of a replay. `apart`: a
        file of which nothing was read, so that its age says nothing: it may have been emptied since.
        """
        known = self._finished + [one.saved() for one in self._open if one is not apart]
        if not known and not self._newest_ns:
            return []
        oldest_ns = max([self._newest_ns] + [entry.modified_ns for entry in known])
        unseen: list[Path] = []
        for modified_ns, path, stat in self._siblings():
            if modified_ns < oldest_ns or any(
                (one.device, one.inode) == (stat.st_dev, stat.st_ino) for one in self._open
            ):
                continue
            # A finished file that was emptied and filled anew has the same inode and is another incarnation.
            if any(same_file(stat, entry) and _continues_quietly(path, entry) for entry in self._finished):
                continue
            if any(_is_copy(path, entry) for entry in known):
                continue
            unseen.append(path)
        return unseen

    def _name_apart(self, incarnation: Incarnation) -> None:
        """A file that begins with the same line as another one, but is another one, gets a number behind its name."""
        if incarnation.named_apart:
            return
        incarnation.named_apart = True
        others = [entry.name for entry in self._finished]
        others += [one.name for one in self._open if one is not incarnation and one.named_apart]
        same = [name for name in others if name.partition("-")[0] == incarnation.name]
        if same:
            number = max(int(name.partition("-")[2] or 1) for name in same) + 1
            incarnation.name = f"{incarnation.name}-{number}"

    # --- truncation --------------------------------------------------------------------------------------------------

    def _begin_again(self, incarnation: Incarnation) -> None:
        """The bytes that were read are gone: look for a copy of them, and start at 0."""
        old = incarnation.saved()
        at = self._open.index(incarnation)
        replacements = [incarnation.again()]
        if incarnation is self._current:
            self._current = replacements[0]
        incarnation.close()
        copy = self._copy_of(old)
        self._lose(incarnation, "truncated", b"" if copy is None else copy.last(), replacements[0].head())
        if copy is not None:
            replacements.insert(0, copy)
        else:
            self._finished.append(replace(old, done=True))
        self._open[at : at + 1] = replacements

    def _copy_of(self, old: Saved) -> Incarnation | None:
        """A file beside this one that continues the old incarnation: the copy that copytruncate made."""
        for _, path, stat in reversed(self._siblings()):
            if any((one.device, one.inode) == (stat.st_dev, stat.st_ino) for one in self._open):
                continue
            with suppress(OSError):
                if old.position and _continues(path, old):
                    return Incarnation(path, old, shared=self._shared)
        return None

    def _lose(self, incarnation: Incarnation, reason: str, copied: bytes = b"", following: bytes = b"") -> None:
        where = incarnation.name, incarnation.position, incarnation.last_at_ms
        self._losses.append(Loss(*where, reason, copied, following))

    # --- restart -----------------------------------------------------------------------------------------------------

    def _resume(self, saved: list[Saved]) -> tuple[list[int], bool]:
        """Find the remembered incarnations among the files there are, by what they say, not by their names. Gives for
        each loss how many of the open ones were written before it, and whether the log was copied and emptied since."""
        before: list[int] = []
        was_emptied = False
        with suppress(OSError):
            candidates = [path for _, path, _ in self._siblings()] + [self.path]
            for entry in saved:
                path = self._place_of(entry, candidates)
                if path is None:
                    self._lost_while_away(entry)
                    before.append(len(self._open))
                    continue
                opened = Incarnation(path, entry, shared=self._shared)
                self._open.append(opened)
                if path == self.path:
                    self._current = opened
                elif not same_file(path.stat(), entry):  # a copy: what was written since it was made is lost
                    self._lose(opened, "truncated", opened.last())
                    before.append(len(self._open))
                    was_emptied = True
            if self._current is not None and self._current.position == 0:
                unseen = self._between(apart=self._current)
                self._open[-1:-1] = [one for path in unseen if (one := self._opened(path)) is not None]
                # Its name leads to the same file as before: whatever lies beside it was copied from it.
                was_emptied |= bool(unseen)
        return before, was_emptied

    def _lose_between(self, saved: set[tuple[int, int]]) -> list[int]:
        """A log that was emptied once may have been so again and again while nobody looked: at the end of each copy
        that is there lines may be lost. Not behind a file that was `saved`: it has moved with all that was in it."""
        before: list[int] = []
        for place, one in enumerate(self._open[:-1]):
            if not one.name and (one.device, one.inode) not in saved:
                self._losses.append(Loss(one.first_name(), 0, 0.0, "truncated", one.last()))
                before.append(place + 1)
        return before

    @staticmethod
    def _place_of(entry: Saved, candidates: list[Path]) -> Path | None:
        matching: list[tuple[bool, Path]] = []
        for path in candidates:
            with suppress(OSError):
                same = same_file(path.stat(), entry)
                # An empty head fits everything, so there the inode must be the same.
                if (same or entry.head_bytes) and _continues(path, entry):
                    matching.append((same, path))
        return max(matching, key=lambda one: one[0])[1] if matching else None

    def _lost_while_away(self, entry: Saved) -> None:
        same = False
        with suppress(OSError):
            same = same_file(self.path.stat(), entry)
        reason = "truncated" if same else "file_vanished"
        self._losses.append(Loss(entry.name, entry.position, entry.last_at_ms, reason))
        self._finished.append(replace(entry, done=True))


def _continues(path: Path, entry: Saved) -> bool:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return continues(descriptor, entry)
    finally:
        os.close(descriptor)


def _continues_quietly(path: Path, entry: Saved) -> bool:
    try:
        return _continues(path, entry)
    except OSError:
        return True  # gone again: not to be opened either


def _is_copy(path: Path, entry: Saved) -> bool:
    """Whether a file begins with the same bytes as one that is known."""
    if not entry.head_bytes:
        return False
    try:
        with path.open("rb") as opened:
            return digest(opened.read(entry.head_bytes)) == entry.head_digest
    except OSError:
        return True  # gone again: not to be opened either
