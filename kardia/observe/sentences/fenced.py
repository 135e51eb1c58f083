"""Somebody was refused because another member has its static id (FENCED_INSTANCE_ID), as the coordinator says.

Up to 3.9, and of classic groups from 4.0 on, the sentence names no group: it is that in which one of the two is known.
Nobody's membership changes by it. Sources: `GroupMetadata.maybeThrowFencedIdException` and its Java successors.
"""

from __future__ import annotations

from kardia.doubts import SURE
from kardia.events import Event
from kardia.observe.facts.groups_of_lane import Facts
from kardia.observe.state.group import Group
from kardia.tables import REFUSALS_MAX


def on_line(facts: Facts, event: Event, at: float) -> None:
    """A sentence that names no group. `at`: its stamp. Ids of members end in a UUID: they are in one group."""
    names = (event.member_id, _owner_id(event))
    for group in facts.groups.values():
        if group.broker == facts.broker and any(one in group.members or one in group.ended for one in names):
            tell(facts, group, event, at)


def tell(facts: Facts, group: Group, event: Event, at: float) -> None:
    """Who was refused, in its group: up to `REFUSALS_MAX` times for each member that has the static id, or had it."""
    over = group.ended.get(event.member_id)
    owner = group.members.get(_owner_id(event)) or group.members.get(event.member_id)
    counted = owner if owner is not None else over.member if over is not None else None
    if counted is None or counted.refusals >= REFUSALS_MAX:
        return
    counted.refusals += 1
    word = "Member" if event.member_id in group.members else "Absent"
    facts.emit_transition(group, at, event.member_id, word, word, "fenced", SURE)


def _owner_id(event: Event) -> str:
    return next(iter((event.detail or {}).get("members") or ()), "")
