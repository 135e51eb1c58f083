"""Commits and ends of partitions, in the order of their instants, handed to the book of lag. A commit is a record of
`__consumer_offsets`; where none are read, a request.

A look at the ends waits, like a record, until everything that was committed by then has been read: so the two are
compared as of one instant, however far behind the collector was when it read either.
"""

from __future__ import annotations

from collections.abc import Iterable

from kardia.events import Event, Kind
from kardia.observe.facts.groups_of_lane import Facts


def on_offset_record(facts: Facts, event: Event, _: float) -> None:
    """A commit: where its group goes on from. Of the members it says nothing that the request does not."""
    facts.rows["lag"].extend(facts.lag.commit(event))


_COMMITS = frozenset({int(Kind.COMMIT), int(Kind.TXN_COMMIT)})
_DELETE = int(Kind.DELETE_GROUPS)


def note_requests(facts: Facts, ready: Iterable[tuple[float, str, Event]]) -> None:
    """Requests to commit among events that are due, and to delete groups with what they committed: whatever is done in
    bulk, they are all there."""
    has_records, rows = facts.reads_records(), facts.rows["lag"]
    for at, _, event in ready:
        if event[0] in _COMMITS and not event.error_code:
            try:
                rows += facts.lag.asked(event, int(at), has_records=has_records)
            except (TypeError, ValueError, LookupError):
                continue  # offsets that are none: whoever handles the event says so
        elif event[0] == _DELETE and not (event.error_code or has_records):
            rows += facts.lag.deleted(event.group_id, int(at))


def on_group_record(facts: Facts, event: Event) -> None:
    """Who has which partition."""
    facts.lag.assigned(event)


def on_ends(facts: Facts, event: Event, _: float) -> None:
    """A look at ends: what is due is written."""
    facts.rows["lag"].extend(facts.lag.look(event))
