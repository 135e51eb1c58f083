"""The observer: decides what can be known of groups from completed requests. Events in, rows of the tables out.

A rule about an answer goes into `requests`, one about when a timer is due into `deadlines`, one about what follows when
it has passed into `timers` (a new timer is a row of `timer_kinds`), one about a rebalance into `rebalance`. `Observer`
holds everything known about the groups of one lane. It is fed events and pulled for rows; it reads no clock: the time
comes from the events and from ticks ("everything up to T has been read"). Reading order: `intake` (each event once),
`observer` (the loop), `folding` (the same for many quiet requests at a time), `state` (what is held), `facts` (all
groups, and how rows are said), `requests` (what an answer means), `deadlines` and `timers` (what silence means),
`coordinator_change` and `evidence` (what another coordinator means, a broker that was silent, a record, a line of
server.log), `rebalance` and `ledger` (how one begins and ends, and how it is told), `members` and `clients` (who they
are, whether they poll, how they end and who broke them), `modern` (groups of the consumer, share and streams protocols,
which have epochs), `output` (rows), `careful` (after a step that raised), `snapshot` (saved state). A room imports
those below it only: `pyproject.toml` has their order.
"""

from kardia.observe.observer import Observer
from kardia.observe.state.settings import ObserverSettings

__all__ = ["Observer", "ObserverSettings"]
