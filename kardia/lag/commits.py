"""One group's commits to one partition: the last ten, with the lag of each, and what Burrow's rules say of them.

The rules are facts of linkedin/Burrow at ced55ba90f, `core/internal/evaluator/caching.go`, `calculatePartitionStatus`
and the checks that it calls, in that order; `core/internal/storage/inmemory.go` for what is kept of a commit. They
judge a window of commits by its own width in time, so there is no threshold of lag in them. One of them, STOP, begins
to hold by the passing of time alone: `stops_ms` says when.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

WINDOW = 10
"""Commits kept, Burrow's `intervals`."""

MERGED_MS = 1_000
"""A commit so soon after the one before takes its place, as Burrow's `min-distance` does."""

RECENT_MS = 100_000
"""Whoever had read everything within that time has not stopped yet: ten looks at the ends as Burrow takes them, ten
seconds apart."""

OK, WARN, ERR, STOP, STALL, REWIND = "OK", "WARN", "ERR", "STOP", "STALL", "REWIND"

VERDICTS = {
    OK: "it has read everything, or had at some time in the window of its last commits, or its lag fell there",
    WARN: "its commits go forward, and its lag never fell in the window",
    STALL: "it commits the same offset again and again, with records behind it",
    REWIND: "it committed a lower offset than before, and has not come to the old one again",
    STOP: "it has not committed for longer than its last commits took, and something has waited for a while",
}
"""Statuses of a partition, in Burrow's words; ERR is a group's."""

OFFSET, AT, LAG = 0, 1, 2
"""Places in an entry of a window: offset, instant of the commit, lag at that time or -1 where it was not known."""

Entry = Sequence[int]


class By(NamedTuple):
    """Whose request it was."""

    member_id: str
    """Empty for whoever is no member of its group."""
    client_id: str


NOBODY = By("", "")


@dataclass(slots=True)
class Commits:
    """Commits of one group to one partition."""

    offset: int
    at_ms: int
    """When the last one was stored, by the broker's clock."""
    window: list[list[int]] = field(default_factory=list)
    told_at_ms: int = -1
    """Instant of the last row about it, -1 before the first."""
    told: str = ""
    """What that row said that must not wait, if it changes: state and verdict."""
    checked_at_ms: int = -1
    """When it is looked at again although nothing has changed, because STOP may hold by then, or the commit may turn
    out to be beyond the end; -1: not."""
    by: By = NOBODY
    """Who asked last to commit, as far as a request log shows it."""
    by_offset: int = -1
    """And which offset; who committed `offset` is known where it is the same."""
    by_at_ms: int = -1
    """And when: requests are not taken in in their order."""

    def take(self, offset: int, at_ms: int, lag: int) -> None:
        """Take a commit in; `lag` -1: not known."""
        self.offset, self.at_ms = offset, at_ms
        window = self.window
        if window and at_ms - window[-1][AT] < MERGED_MS:
            # It keeps the instant: whoever commits ten times a second would else never come to a second entry.
            window[-1][OFFSET], window[-1][LAG] = offset, lag
            return
        window.append([offset, at_ms, lag])
        if len(window) > WINDOW:
            del window[0]


def verdict(window: Sequence[Entry]) -> str:
    """What a window of commits shows, of a partition that has lag: REWIND, STALL, WARN or OK, in Burrow's order."""
    if _rewound(window):
        return REWIND
    lags = [entry[LAG] for entry in window if entry[LAG] >= 0]
    if not window or 0 in lags:
        return OK
    if all(entry[OFFSET] == window[0][OFFSET] for entry in window):
        # Burrow finds even one commit alone stalled; one commit repeats nothing.
        return STALL if len(window) > 1 else OK
    fell = any(after < before for before, after in pairwise(lags))
    return OK if fell or len(lags) < 2 else WARN


def _rewound(window: Sequence[Entry]) -> bool:
    """Whether the first step back in the window was not made good in it."""
    for place in range(1, len(window)):
        before = window[place - 1][OFFSET]
        if window[place][OFFSET] < before:
            return all(entry[OFFSET] < before for entry in window[place:])
    return False


def status(window: Sequence[Entry], lag: int, committed_at_ms: int, behind_from_ms: int | None, now_ms: int) -> str:
    """Burrow's status of a partition at an instant. `behind_from_ms`: since then at the earliest there is something
    that it has not read, None where that is not known."""
    if lag <= 0:
        return OK
    return STOP if now_ms > stops_ms(window, committed_at_ms, behind_from_ms) else verdict(window)


def stops_ms(window: Sequence[Entry], committed_at_ms: int, behind_from_ms: int | None) -> int:
    """Until when a group that commits no more, and has something to read, has not stopped."""
    until_ms = 2 * committed_at_ms - window[0][AT]
    return until_ms if behind_from_ms is None else max(until_ms, behind_from_ms + RECENT_MS)
