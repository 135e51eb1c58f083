"""When a request took effect, by the stamps of its line: the order in which events are gone through.

A broker writes a line when it has sent the answer, and cuts the instants in it to 1 ms. What was handled and what was
stored first follows from the kind of the request, and where stamps are too near to say it from what went before.
"""

from __future__ import annotations

from math import inf, nextafter
from operator import itemgetter

from kardia.events import Event, Kind
from kardia.kafka.states import ErrorCode
from kardia.observe.deadlines.handling import heard_at, taken_at
from kardia.tolerances import AT_ONCE_MS, BUSY_MS, TWO_STAMPS_MS

_HEARTBEAT, _MODERN, _COMMIT = int(Kind.HEARTBEAT), int(Kind.MODERN_HEARTBEAT), int(Kind.COMMIT)

AT = itemgetter(0)
"""The instant of what is queued with it."""

LOOKED_BACK = 100
"""Events of the log before a LeaveGroup among which the last commit of its connection is looked for."""

BY_HANDLING = frozenset({int(Kind.COMMIT), int(Kind.LEAVE), int(Kind.TXN_COMMIT)})
"""Kinds that take effect when they are handled, before the answer is known (a record is written in between)."""

_TAKEN_BEFORE = frozenset({int(ErrorCode.NONE), int(ErrorCode.REBALANCE_IN_PROGRESS)})
"""Answers to a heartbeat that wait until what was written before is stored."""


def effect_at(event: Event) -> float:
    """When a request took effect. A heartbeat that is refused is answered as soon as it is taken."""
    if event.kind == _HEARTBEAT and event.error_code in _TAKEN_BEFORE:
        return heard_at(taken_at(event), event.handled_at_ms, event.decided_at_ms)
    return event.handled_at_ms if event.kind in BY_HANDLING else event.decided_at_ms


def after_its_commit(queue: list[tuple[float, Event]], event: Event) -> float:
    """When a LeaveGroup took effect: not before a commit that its connection sent first. A broker serves a connection
    one request at a time, but their instants come from stamps cut to 1 ms."""
    at = effect_at(event)
    for before, other in queue[-LOOKED_BACK:]:
        if other.kind == _COMMIT and other.connection == event.connection and other.start < event.start:
            at = max(at, before)
    return at


def has_waited(event: Event) -> bool:
    """Whether an answer was held back for longer than a coordinator takes to write."""
    return event.decided_at_ms - event.handled_at_ms > AT_ONCE_MS


def as_handled(queue: list[tuple[float, Event]], event: Event) -> float:
    """When a heartbeat took effect that waited until what it had written was stored: answers that waited for one batch
    are sent in one instant, in whatever order, and were made in the order in which they were handled; of two that were
    handled closely a busy broker may have done the other one first."""
    at = event.decided_at_ms
    for there, other in queue[-LOOKED_BACK:]:
        if other.kind == _MODERN and other.group_id == event.group_id and abs(there - at) <= TWO_STAMPS_MS:
            apart_ms = event.handled_at_ms - other.handled_at_ms
            if apart_ms > BUSY_MS and at <= there:
                at = nextafter(there, inf)
            elif apart_ms < -BUSY_MS and at >= there:
                at = nextafter(there, -inf)
    return at


def withdraw(queue: list[tuple[float, Event]], event: Event) -> None:
    """A timer of a group that the broker held once, and does not any more, ran out: whom the sentence before this one
    says to have been removed is where the group is now what it was. A coordinator that stood still, and was none any
    more when it went on, begins a rebalance as it gives the group up. Source: `completeClassicGroupJoin`."""
    queue[:] = [
        (at, one)
        for at, one in queue
        if one.source != event.source
        or one.group_id != event.group_id
        or not event.decided_at_ms - TWO_STAMPS_MS <= at <= event.decided_at_ms
        or (one.detail or {}).get("what") != "removed_not_joined"
    ]


def _order(moment: tuple[float, str, Event]) -> tuple[float, str, int]:
    """Order in which events took effect; at one instant, their order in the log."""
    at, _, event = moment
    return at, event.source, event.start


def put_in_order(ready: list[tuple[float, str, Event]]) -> None:
    """Sort by `_order`; whole only where two are of one instant, and not in their order yet."""
    ready.sort(key=AT)
    before: tuple[float, str, Event] | None = None
    for moment in ready:
        if before is not None and moment[0] == before[0] and _order(moment) < _order(before):
            ready.sort(key=_order)
            return
        before = moment
