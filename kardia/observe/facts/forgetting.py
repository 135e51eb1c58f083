"""Which groups need no longer be held: those without members, when nothing that may still come could need them.

Kafka forgets an Empty group when its offsets have expired; one that was deleted is forgotten here when no session can
reach back to it. A group that comes back later is a new one: its generation is learnt from its next answer. Groups
without members have a bound as well, because every name costs a client one request; what it pushed out is counted in
`progress.forgotten`. Forgetting is part of the order of events, so a split of them into steps does not change it.
"""

from __future__ import annotations

from kardia.kafka.states import GroupState
from kardia.observe.facts.groups_of_lane import Facts
from kardia.observe.state.group import Group

DELETED_MS = 2 * 1_800_000.0
"""A deleted group is held so long: twice the longest session that brokers allow by default."""

EMPTY_MS = 7 * 86_400_000.0
"""A group without members is held so long: `offsets.retention.minutes` by default, after which Kafka has deleted it
unless somebody commits to it without being a member."""

MAX_WITHOUT_MEMBERS = 5_000
"""Groups without members that one lane holds, about 3 MB of state; deleted ones go first, then whoever was left
longest."""


def note_without_members(facts: Facts, group: Group, at: float) -> None:
    """From now on the group may be forgotten, until it has a member (`Facts.index`). `at`: epoch ms, when its last
    member went, or it was first heard of."""
    facts.empty_since.pop(group.group_id, None)
    facts.deleted_since.pop(group.group_id, None)
    kept = facts.deleted_since if group.state == GroupState.DEAD else facts.empty_since
    kept[group.group_id] = at
    while len(facts.empty_since) + len(facts.deleted_since) > MAX_WITHOUT_MEMBERS:
        forget(facts, next(iter(facts.deleted_since or facts.empty_since)))


def is_over(facts: Facts, group_id: str, now: float) -> bool:
    """Whether a group need not be held any longer at an instant of its broker."""
    empty, deleted = facts.empty_since.get(group_id), facts.deleted_since.get(group_id)
    return (empty is not None and now >= empty + EMPTY_MS) or (deleted is not None and now >= deleted + DELETED_MS)


def forget(facts: Facts, group_id: str) -> None:
    """The group is held no longer; its rows stay."""
    facts.empty_since.pop(group_id, None)
    facts.deleted_since.pop(group_id, None)
    group = facts.groups.pop(group_id)
    for member in list(group.members.values()):
        facts.forget(group, member)
    facts.forgotten += 1
    facts.has_forgotten = True


def forget_what_is_over(facts: Facts, clocks: dict[str, float]) -> None:
    """At the end of a step: groups whose time is over by the clock of their broker. Costs as many looks as it finds."""
    latest = max(clocks.values(), default=0.0)
    for kept in (facts.empty_since, facts.deleted_since):
        while kept:
            group_id = next(iter(kept))
            if not is_over(facts, group_id, clocks.get(facts.groups[group_id].broker, latest)):
                break
            forget(facts, group_id)


def first_seq(facts: Facts, at: float) -> int:
    """Where a group that is new here begins to count its transitions. If it may have been here before, at the instant
    (epoch ms): every number that it had then is lower."""
    if facts.began_at < 0:
        facts.began_at = at
    return int(at) if facts.has_forgotten or at >= facts.began_at + DELETED_MS else 0
