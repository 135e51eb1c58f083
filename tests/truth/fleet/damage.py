"""Evidence that does not reach the observer: where the log begins, what of it is lost, and whether anybody says so."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import NamedTuple

from kardia.events import Event, Kind
from tests.truth.fleet.run import Run
from tests.truth.fleet.world import START_MS


class Lost(NamedTuple):
    """A stretch of every log that no collector has read."""

    from_ms: float
    to_ms: float


@dataclass
class Damage:
    """What one run's observer is not shown. Without anything: it is shown everything."""

    begins_at_ms: float = 0.0
    told: list[Lost] = field(default_factory=list)
    thin: list[Lost] = field(default_factory=list)
    """Stretches in which some events are lost behind the collector, which has counted them."""
    chance: random.Random = field(default_factory=random.Random)

    def lost_at(self, now: float) -> Lost | None:
        """The stretch that is lost at an instant, or has just been: its gap is told at its end."""
        return next((lost for lost in self.told if lost.from_ms < now <= lost.to_ms), None)

    def thinned(self, events: list[Event], now: float) -> list[Event]:
        """Leave out a third of what is sent in a thin stretch."""
        if not any(lost.from_ms < now <= lost.to_ms for lost in self.thin):
            return events
        return [event for event in events if event.kind == Kind.GAP or self.chance.random() > 0.33]

    def dark(self, from_ms: float, to_ms: float) -> bool:
        """Whether evidence of what happened between two instants may be lost."""
        return to_ms < 0 or any(lost.from_ms <= to_ms and from_ms <= lost.to_ms for lost in (*self.told, *self.thin))


def damage_of(run: Run) -> Damage:
    """What a run's scenario takes away; whole seconds, because collectors are asked every second."""
    chance = random.Random(f"damage {run.seed}")
    damage = Damage(chance=chance)
    if run.scenario.middle:
        damage.begins_at_ms = START_MS + 1_000.0 * chance.randrange(15, 40)
    stretches = []
    at_s = 12
    while at_s < run.scenario.lasts_ms / 1_000 - 15:
        at_s += chance.randrange(5, 30)
        lasts_s = chance.choice((1, 2, 4, 8, 15))
        stretches.append(Lost(START_MS + 1_000.0 * at_s, START_MS + 1_000.0 * (at_s + lasts_s)))
        at_s += lasts_s + 1
    if run.scenario.loses == "told":
        damage.told = stretches
    elif run.scenario.loses:
        damage.thin = stretches
    return damage
