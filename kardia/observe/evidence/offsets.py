"""Commits and ends of partitions, in the order of their instants, handed to the book of lag.

A look at the ends waits, like a record, until everything that was committed by then has been read: so the two are
compared as of one instant, however far behind the collector was when it read either.
"""

from __future__ import annotations

from kardia.events import Event
from kardia.observe.facts.facts import Facts


def on_offset_record(observer: Facts, event: Event, _: float) -> None:
    """A commit: where its group goes on from. Of the members it says nothing that the request does not."""
    observer.rows["lag"].extend(observer.lag.commit(event))


def on_group_record(observer: Facts, event: Event) -> None:
    """Who has which partition."""
    observer.lag.assigned(event)


def on_ends(observer: Facts, event: Event, _: float) -> None:
    """A look at ends: what is due is written."""
    observer.rows["lag"].extend(observer.lag.look(event))
