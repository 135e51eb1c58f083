"""One run: groups, their faults, the broker's log, the truth. A function of version, seed and number of groups."""

from __future__ import annotations

from dataclasses import dataclass

from tests.truth.fleet.broker import Broker
from tests.truth.fleet.faults import GroupStory
from tests.truth.fleet.truth import Truth
from tests.truth.fleet.world import START_MS, World

LASTS_MS = 90_000.0
"""Length of a run on the broker's clock."""


@dataclass
class Run:
    """What a run leaves behind."""

    version: str
    seed: int
    lines: list[tuple[float, bytes]]
    truths: dict[str, Truth]
    stories: dict[str, GroupStory]
    ended_at_ms: float


def play(version: str, seed: int, groups: int, *, reloads: bool = False, lasts_ms: float = LASTS_MS) -> Run:
    """Let `groups` groups live on one broker."""
    world = World(seed)
    names = [f"g{number}" for number in range(groups)]
    broker = Broker(world, version, names, initial_delay_ms=world.random.choice((0, 500, 3_000)))
    end_ms = START_MS + lasts_ms
    stories = {name: GroupStory(world, broker, name, end_ms - 8_000, reloads) for name in names}
    world.run(end_ms)
    broker.close()
    lines = [line for line in broker.log.lines() if line[0] <= end_ms]
    return Run(version, seed, lines, broker.truths, stories, end_ms)
