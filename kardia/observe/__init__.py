"""What can be known from completed requests: events in, rows of the tables out.

`Observer` holds everything known about the groups of one lane. It is fed events and pulled for rows; it reads no clock:
the time comes from the events and from ticks ("everything up to T has been read"). Reading order: `intake` (each event
once), `observer` (the loop), `quiet` with `held` and `folded` (the same for many at a time), `group` (what is held),
`facts` (memory and mouth), `requests` and `joins` (what an answer means), `expiry`, `deadlines` (what silence means),
`moves`, `restarts` and `loads` (what another coordinator means or a broker that was silent, and what is loaded),
`rebalance` with `generations`, `emptied`, `causes`, `phases`, `watches`, `timeouts`, `refusals` and `gone` (how one
begins and ends), `ledger`, `costs`, `pending` and `waiting` (how it is told), `lives`, `faults` (who broke one),
`leaves`, `polls`, `application` and `identity` (what a client's behaviour means, and whose it is), `records` (what the
offsets topic and server.log add) with `disagreements`, `rows`, `forgetting` (what need not be held any more),
`careful` (after a step that raised).
"""

from kardia.observe.observer import Observer
from kardia.observe.settings import ObserverSettings

__all__ = ["Observer", "ObserverSettings"]
