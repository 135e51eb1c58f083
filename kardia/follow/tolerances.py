"""How far a candidate of the follower may reach, and how much of a log is kept for it, in whole ms as the model counts.

Those of the observer, and what both share, are in `kardia.tolerances`; what must hold between them is a test there.
"""

from __future__ import annotations

from kardia.tolerances import LATE_MS as LATE_MS

ORDER_MS = 3
"""Two requests of different connections so near may have taken effect the other way round: stamps are cut to 1 ms, and
a handler thread may lose the processor between the group and its line."""

WRITTEN_MS = 1_000
"""So long after an answer its line is written at the latest, on a starved machine as well (191 ms were seen)."""

LOOK_MS = 250
"""So much further is read before a contradiction is explained: the line of a request that took effect before may have
been written so late (a busy broker, the first request of its kind in a process)."""

INSTANT_MS = 60
"""An answer that waited is given so near to the instant that the model says. Java's coordinator stores a batch before
(`group.coordinator.append.linger.ms`, 5 to 10 ms), and a busy broker takes tens of ms."""

LONG_AGO_MS = 300
"""A JoinGroup or SyncGroup answered at once is logged within that, the first of a process too; what waits longer has
been parked."""

HELD_MS = 660_000.0
"""So long requests wait for a JoinGroup before them whose line comes when it is answered, where nothing shows that
nobody waits: as long as most brokers let one wait (twice `max.poll.interval.ms` of the Java client), and a minute."""

COMPARED_EVERY_MS = 500.0
"""Time of the log between two comparisons of a lane."""

COUNTED_EVERY_MS = 10_000.0
"""Time of the log between two counts of a lane, which look at each group that is followed."""

HELD_MAX = 100_000
"""Requests that wait, of all groups of a lane; the group with the most is left out."""

GROUPS_MAX = 500
"""Groups of a lane that are followed at a time, of a log that goes on for ever: a member is kept twice."""

KNOWN_MAX = 10_000
"""Groups, and files of logs, of which a word is remembered though nobody follows them: clients choose ids."""

SURPRISES_MAX = 50
"""A group of which so many answers were surprises is left out: each costs replays, and one more says no more."""

CANDIDATES_MAX = 16
"""Replays that one contradiction may cost."""

STANDING_MAX = 5
"""Courses that are kept side by side; each costs as much as one."""

SPAN_REPLAYS_MAX = 2
"""Replays by which the last possible instant of one end is found; fewer leave it wider, never narrower."""

LOAD_REPLAYS_MAX = 6
"""The same for the first one, where a load stands at more than one instant."""

WINDOW_MAX = 2_000
"""Clues since an anchor that are kept. The oldest half goes, and what began there is no longer put in question."""

GATHERED_MAX = 2_000
"""Requests that are kept while a group is unknown."""

TRACES_MAX = 20
"""Surprises of one broker that are written as a trace; each costs up to half a second, for what can be left out."""

REPEATED = 3
"""So often a rule of the release must be broken, and more often than kept, before it is the broker that is named."""
