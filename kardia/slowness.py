"""How slow a broker was: for each window of its clock the request that took longest, without what waits by design.

A request log says of each request how long it stood in the queue, how long a handler thread worked on it and how long
its answer was waited for. A collector keeps of that what is slow, in windows of the broker's own clock, so that the
same lines give the same windows however they are read. A JoinGroup, a SyncGroup and a FETCH wait by design: of them
only queue and handler count.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

SLOW_MS = 500.0
"""A request that takes that long is slow. A broker that is well takes a few ms, one that is starved 25; the shortest
session that brokers allow by default is 6 s."""

WINDOW_MS = 1_000.0
"""Length of a window. Shorter ones would be many in a bad hour, longer ones would say less of when it was."""

FROM, TAKEN, QUEUE, LOCAL, REMOTE = range(5)
"""Places in a window: its begin (epoch ms), the longest time a request took, and the parts of that time."""

Windows = dict[float, list[float]]
"""Begin of a window -> the window."""


def note(windows: Windows, entry: Sequence[float]) -> None:
    """Add a request, or a window of another reader: the longest counts."""
    found = [float(value) for value in entry]
    windows[found[FROM]] = max(found, windows.get(found[FROM], found))


def between(windows: Iterable[Sequence[float]], begin: float, end: float) -> list[float] | None:
    """The worst of the windows that lie before `end` and reach behind `begin`; None where there is none.

    A window that is not over at `end` does not count: more of it may become known later.
    """
    worst: Windows = {}
    for window in windows:
        if begin < window[FROM] + WINDOW_MS <= end:
            note(worst, (0.0, *window[TAKEN:]))
    return worst.get(0.0)
