"""Waits until a followed log has something new, as the operating system tells it; else looks again after a while.

Linux tells of writes to a directory (inotify). What it tells is not read, only that it told: a look costs less than to
understand it. Some file systems tell nothing (of another host, of some containers): where a look finds what nobody
told of, looks are made at fixed distances from then on, as on other systems.
"""

from __future__ import annotations

import os
import select
import sys
import time
from collections.abc import Iterable
from pathlib import Path

if sys.platform == "linux":
    from inotify_simple import INotify, flags

GATHER_S, GATHER_FEW_S = 0.02, 0.2
"""So long lines are let come together after the first was told of, at least and at most: a round costs a millisecond
and a half, whatever it reads, and one for each line would cost more than all else."""

GATHER_BYTES = 6 * 1024
"""What is let come together between the two, by how much came last: some eight lines."""

TOLD_BYTES = 64 * 1024
"""What is taken of what was told at once: a queue of the system holds a quarter of it, or a little more."""


def gather_s(bytes_of_a_second: float) -> float:
    """How long lines are let come together where so many bytes come in a second."""
    return max(GATHER_BYTES / max(bytes_of_a_second, GATHER_BYTES / GATHER_FEW_S), GATHER_S)


class Notices:
    """What the system tells of directories."""

    def __init__(self, poll_s: float) -> None:
        """Tell of nothing yet. `poll_s`: seconds between two looks where the system tells nothing."""
        self._poll_s = poll_s
        self._known: set[Path] = set()
        self._was_told = True
        self._is_hurried = False
        self._told: INotify | None = None
        self._poller = select.poll()
        if sys.platform == "linux":
            try:
                self._told = INotify(nonblocking=True)
                self._poller.register(self._told.fileno(), select.POLLIN)
            except OSError:  # no more of them for this user
                self._told = None

    @property
    def are_told(self) -> bool:
        """Whether the system tells of writes, as far as is known."""
        return self._told is not None

    def follow(self, paths: Iterable[Path]) -> None:
        """Hear of these files, and of the ones that their names lead to."""
        for path in paths:
            for folder in {path.parent, path.resolve().parent} - self._known:
                self._known.add(folder)
                self._watch(folder)

    def wait(self, timeout_s: float, gather_s: float = GATHER_S) -> None:
        """Wait until something was written and a little more, `gather_s`, had time to come; or for `timeout_s`."""
        if self._told is None:
            time.sleep(min(timeout_s, self._poll_s))
            return
        told = self._told_within(0.0 if self._is_hurried else timeout_s, gather_s)
        # After a pause that is no longer than a look is due anyway it makes no difference.
        self._was_told = told or self._is_hurried or timeout_s <= self._poll_s
        self._is_hurried = False

    def looked(self, *, found: bool) -> bool:
        """A look was made; `found`: there were new lines. Nobody told of them: it is not done here, from now on looks
        are made. Whether that is so since this look."""
        if self._told is None or not found or self._was_told:
            return False
        self._was_told = self._take()  # written since the pause
        if not self._was_told:
            self.close()
        return not self._was_told

    def hurry(self) -> None:
        """The next pause is none: there is a file that was written before anybody heard of it."""
        self._is_hurried = True

    def close(self) -> None:
        """Hear nothing more."""
        if self._told is not None:
            self._told.close()
            self._told = None

    def _watch(self, folder: Path) -> None:
        if sys.platform == "linux" and self._told is not None:
            try:
                self._told.add_watch(folder, flags.MODIFY | flags.CREATE | flags.MOVED_TO | flags.DELETE)
            except OSError:  # gone, not to be read, or one more than a user may have
                self.close()

    def _told_within(self, timeout_s: float, gather_s: float) -> bool:
        if self._told is None or not self._poller.poll(timeout_s * 1000):
            return False
        time.sleep(gather_s)
        return self._take()

    def _take(self) -> bool:
        """Whether something was told since the last time."""
        try:
            return self._told is not None and bool(os.read(self._told.fileno(), TOLD_BYTES))
        except BlockingIOError:
            return False
