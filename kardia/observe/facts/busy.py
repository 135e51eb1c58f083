"""Whether a broker was busy at an instant: requests of several moments around it had stood long in its queue.

A young broker is slow as well, while it loads classes in the first request of each kind; what such a request asks for
happens at the end of its handling. In a broker beside others that take the processor it happens at any time meanwhile.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort

from kardia.events import Event
from kardia.tolerances import APART_MS, AROUND_MS

ENOUGH = 3
"""So many moments. In recordings of brokers that were well it was one or two, of the first seconds."""


REMEMBERED = 256
"""Moments that a lane remembers of what it sees itself, the latest: a minute at least, as long as a join phase mostly
lasts."""


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
