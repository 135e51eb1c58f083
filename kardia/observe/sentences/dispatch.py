"""Which rules a group follows: those of its requests where they are read, else those of sentences and records.

Decided by broker: a request log shows the groups that its broker leads. Records of `__consumer_offsets` of a group that
no broker has spoken of follow its requests if any request log is read at all. A stream of requests that begins to be
read later takes its groups over from there on; what was said before stands. Groups of the newer protocols follow
`modern`, whose records say nearly everything.
"""

from __future__ import annotations

from kardia.events import Event
from kardia.observe.evidence import records
from kardia.observe.facts.facts import OFFSETS_BROKER, Facts
from kardia.observe.modern import operations
from kardia.observe.sentences import lines, stored
from kardia.observe.timers import expiry


def on_coordinator_line(facts: Facts, event: Event, at: float) -> None:
    """A sentence of server.log. `at`: its stamp, epoch ms."""
    group = facts.groups.get(event.group_id)
    if facts.reads_requests(facts.broker) or (group is not None and group.modern is not None):
        records.on_coordinator_line(facts, event, at)
    else:
        lines.on_line(facts, event, at)


def on_group_record(facts: Facts, event: Event, at: float) -> None:
    """A GroupMetadata record. `at`: its time stamp, epoch ms."""
    group = facts.groups.get(event.group_id)
    if facts.reads_requests(group.broker if group is not None else "") or operations.may_convert(facts, event):
        operations.on_group_record(facts, event, at)
    else:
        stored.on_group_record(facts, event, at)


def on_gap(facts: Facts, event: Event, at: float) -> None:
    """A part of a log is lost, from or up to `at`, epoch ms."""
    expiry.on_gap(facts, event, at)
    broker = "" if facts.broker == OFFSETS_BROKER else facts.broker
    if facts.reads_requests(broker):
        return
    for group in facts.groups.values():
        if group.broker == broker and group.modern is None:
            lines.lose(facts, group, at, "gap")
