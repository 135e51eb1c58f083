"""Courses that stand: each gives all answers of the log since the last anchor, by assumptions of its own.

Which of them happened nothing shows yet; so each further clue is put to all of them. They are told apart by what they
say of the group, and at an anchor by what a leader's list cannot show.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace

from kardia.follow.clues import Clue, Heard, Lost
from kardia.follow.course import Contradiction, Course, Item
from kardia.follow.model import Model
from kardia.follow.plan import Plan


@dataclass
class Standing:
    """One course since an anchor, with all that it takes to go through it again."""

    base: Course
    """The group as it was at the anchor."""
    course: Course
    plan: Plan
    taken: frozenset[int] = frozenset()
    """Numbers of clues that took effect in it before their turn."""
    found: Contradiction | None = None
    """Where it parted from the log, if it has."""

    def step(self, item: Item) -> Contradiction | None:
        """Take an item, unless it was taken before its turn."""
        if isinstance(item, Clue) and item.number in self.taken:
            self.taken -= {item.number}
            return None
        found = self.course.step(item)
        self.plan = self.plan.adding(item)
        if found is not None:
            self.found = found._replace(at_ms=max(found.at_ms, item.at_ms))
        return self.found

    def following(self, waiting: Iterable[object]) -> tuple[Clue, ...]:
        """Clues that come next, of those that are held back."""
        return tuple(one for one in waiting if isinstance(one, Clue) and one.number not in self.taken)

    def gone_on(self, course: Course, plan: Plan, waiting: Iterable[object]) -> Standing:
        """The same window gone through with another plan, which may have taken clues before their turn."""
        numbers = {one.number for one in plan.items if isinstance(one, Clue)}
        ahead = {one.number for one in waiting if isinstance(one, Clue) and one.number in numbers}
        return Standing(self.base, course, plan, frozenset(ahead))

    def rest(self) -> None:
        """The window begins here."""
        self.course.listed = False
        self.course.model.ends.clear()
        self.base, self.plan = self.course.copy(), Plan()


def apart(standing: Sequence[Standing], *, at_anchor: bool) -> list[Standing]:
    """Those that differ. At an anchor the instants of timers are let pass: all of them begin when the phase ends."""
    if len(standing) < 2:
        return list(standing)
    found: dict[Hashable, Standing] = {}
    for one in standing:
        found.setdefault((one.taken, _state_of(one.course, at_anchor=at_anchor)), one)
    return list(found.values())


def _state_of(course: Course, *, at_anchor: bool) -> Hashable:
    model = course.model
    state = _group_of(model)
    if at_anchor:
        return state
    ids = () if model.group is None else (*model.group.ids, *sorted(model.group.pending))
    deadlines = tuple(model.session_deadline_at_ms(one) for one in ids)
    timers = (deadlines, model.join_deadline_at_ms(), model.sync_deadline_at_ms(), len(course.acts))
    return (state, timers, tuple(model.ends), frozenset(course.open))


def _group_of(model: Model) -> Hashable:
    group = model.group
    if group is None:
        return (model.shard.loaded, None)
    members = tuple(
        (one.member_id, one.group_instance_id, one.waiting_join, one.waiting_sync, one.is_new)
        for one in map(group.members.__getitem__, group.ids)
    )
    sets = (frozenset(group.pending), frozenset(group.pending_sync))
    flags = (group.from_empty, model.shard.loaded, model.knows_record)
    return (group.state, group.generation_id, group.leader, group.protocol_name, members, sets, flags)


RENEWS = frozenset({0, 27})
"""Answers of requests that have renewed the session of who asked."""


def renewed(items: Sequence[Item], member_id: str, by_ms: int) -> tuple[int, int] | None:
    """Between which instants a member was heard last by an instant, in a window; None where it was not. Where lines are
    lost it may have been heard."""
    lost_ms = -1
    for item in reversed(items):
        if item.at_ms > by_ms:
            continue
        if isinstance(item, Lost):
            lost_ms = max(lost_ms, item.at_ms)
        elif isinstance(item, Heard):
            own = next((one for one in item.heard if one[0] == member_id), None)
            if own is not None:
                return own[2], max(own[1], lost_ms)
        elif isinstance(item, Clue) and item.member_id == member_id and item.error_code in RENEWS:
            return item.arrived_at_ms, max(item.at_ms, lost_ms)
    return None if lost_ms < 0 else (items[0].at_ms, lost_ms)


def without(plan: Plan, key: tuple[str, str, str]) -> Plan:
    """A plan in which a timer fires when it is due."""
    return replace(plan, holds={held: to_ms for held, to_ms in plan.holds.items() if held[0] != key})
