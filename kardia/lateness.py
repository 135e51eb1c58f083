"""How much later than its deadline something may happen and still follow from it: one value each, for the observer and
the story.

The observer concludes by these numbers (`observe.deadlines.late`, `observe.members.who_broke`) and the story words what
it has concluded (`kardia.story.lives`); with two values a story would tell of another cause than the row that it tells
of.
"""

from __future__ import annotations

LATE_MS = 1_000
"""No conclusion rests on a timer that is less late than that; what happens later than that after a deadline does not
follow from it alone: the timer was begun anew, or the broker stood still. Seen on real brokers: up to 3 ms mostly, 30
to 150 ms beside a neighbour that takes the processor. Longer makes every eviction that only silence shows known later.
"""

BUSY_MS = 150.0
"""So late a timer fires, or a thread of a broker goes on, beside a neighbour that takes the processor. Seen on real
brokers."""

STOPPED_WITHIN_MS = 5_000
"""A static Java member whose poll interval ran out says nothing and stops its heartbeats: its last one is that close to
the end of the interval. Java's default interval between heartbeats is 3 s; a stalled client is seen a little later."""
