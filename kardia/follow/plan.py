"""A plan: what a window of a group is replayed with. The clues in an order, and the edits that were found so far."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from kardia.coordinator.classic.settings import CoordinatorSettings
from kardia.coordinator.timers import Key
from kardia.follow.clues import Clue
from kardia.follow.course import Act, Contradiction, Course, Item


@dataclass(frozen=True)
class Plan:
    """Edits are only added; each is a value of its own kind, so that a plan can be gone on with from any candidate."""

    items: tuple[Item, ...] = ()
    holds: dict[tuple[Key, int], int] = field(default_factory=dict)
    """Timer and deadline -> when it fires instead."""
    origins: dict[tuple[Key, int], int] = field(default_factory=dict)
    """Timer and the instant it is held to -> its own deadline."""
    acts: tuple[tuple[int, Act], ...] = ()
    """By instant."""
    before: dict[int, tuple[Act, ...]] = field(default_factory=dict)
    """By the number of the clue that they come before."""
    settings: CoordinatorSettings | None = None
    """Of the broker, where another value than the one assumed is tried."""
    shift: int = 0
    """By how much the generation is higher than was assumed at the anchor."""

    def held(self, key: Key, deadline_ms: int, to_ms: int) -> Plan:
        """With a timer held to a later instant."""
        origin_ms = self.origins.get((key, deadline_ms), deadline_ms)
        return replace(
            self,
            holds={**self.holds, (key, deadline_ms): to_ms},
            origins={**self.origins, (key, to_ms): origin_ms},
        )

    def origin_ms(self, key: Key, deadline_ms: int) -> int:
        """When a timer was due before it was held."""
        return self.origins.get((key, deadline_ms), deadline_ms)

    def acting(self, at_ms: int, act: Act) -> Plan:
        """With an act at an instant."""
        return replace(self, acts=(*self.acts, (at_ms, act)))

    def acting_before(self, number: int, act: Act) -> Plan:
        """With an act just before a clue."""
        return replace(self, before={**self.before, number: (*self.before.get(number, ()), act)})

    def adding(self, item: Item) -> Plan:
        """With one more item."""
        return replace(self, items=(*self.items, item))


def replayed(base: Course, plan: Plan) -> tuple[Course, Contradiction | None, int]:
    """Go through a window with a plan: how it ends, the first contradiction, and at which item."""
    course = base.copy()
    model = course.model
    model.holds.update(plan.holds)
    if plan.settings is not None:
        model.shard.settings = plan.settings
    group = model.group
    if plan.shift and group is None:
        model.put_empty(plan.shift)
    elif group is not None:
        group.generation_id += plan.shift
    course.act_later(plan.acts)
    for place, item in enumerate(plan.items):
        before = plan.before.get(item.number, ()) if isinstance(item, Clue) else ()
        found = course.step(item, before)
        if found is not None:
            return course, found, place
    return course, None, len(plan.items)
