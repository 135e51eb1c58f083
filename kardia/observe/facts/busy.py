"""Whether a broker was busy at an instant: requests of several moments around it had stood long in its queue.

A young broker is slow as well, while it loads classes in the first request of each kind; what such a request asks for
happens at the end of its handling. In a broker beside others that take the processor it happens at any time meanwhile.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort

from kardia.events import Event

AROUND_MS = 5_000.0
"""So near in time others must have stood in the queue."""

ENOUGH = 3
"""So many moments. In recordings of brokers that were well it was one or two, of the first seconds."""

APART_MS = 250.0
"""What is nearer than that is one moment: a pause of the process holds everybody up at once."""

REMEMBERED = 256
"""Moments that a lane remembers of what it sees itself, the latest: a minute at least, as long as a join phase mostly
lasts."""

YOUNG_MS = 2_500.0
"""So long after the first request about a group a broker loads classes for what it is asked. In recordings of 2.8.2 and
3.9.2 what 11 of 14 slow JoinGroups asked for happened within 12 ms of the end of their handling until then; of 24 later
ones 10, and the others at any time before."""

Queued = dict[str, list[float]]
"""Broker -> when requests arrived that stood long in its queue, in this order."""


def note(queued: Queued, broker: str, event: Event) -> None:
    """Remember a request that says how long it stood in the queue, of a log whose ticks do not tell that."""
    if event.detail and "queued_ms" in event.detail:
        of_broker = queued.setdefault(broker, [])
        if not of_broker or abs(event.arrived_at_ms - of_broker[-1]) >= APART_MS:
            insort(of_broker, event.arrived_at_ms)
            del of_broker[:-REMEMBERED]


def since(moments: list[float], at: float) -> list[float]:
    """Those that are no longer ago."""
    return moments[bisect_left(moments, at) :]


def is_busy(queued: Queued, broker: str, at: float) -> bool:
    """Whether a broker was busy at an instant, as far as it was read."""
    moments = queued.get(broker, [])
    return bisect_right(moments, at + AROUND_MS) - bisect_left(moments, at - AROUND_MS) >= ENOUGH
