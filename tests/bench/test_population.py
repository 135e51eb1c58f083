"""The made-up fleet that is sent to the job: who rebalances in it, and how often."""

from __future__ import annotations

from collections import Counter

from bench.population import CALM, Population, Shape
from kardia.events import Kind

START_MS = 1_790_000_000_000.0
STEP_MS = 500.0


def generations(population: Population, seconds: float) -> Counter[str]:
    """Group -> how many generations its members have joined in so much time."""
    found: set[tuple[str, int]] = set()
    at_ms = START_MS
    while at_ms < START_MS + seconds * 1_000:
        batch, _ = population.stretch(at_ms, at_ms + STEP_MS)
        found |= {
            (event.group_id, event.generation_id)
            for events in batch.values()
            for event in events
            if event.kind == Kind.JOIN
        }
        at_ms += STEP_MS
    return Counter(group for group, _ in found)


def test_every_group_is_rolled_out_in_its_turn() -> None:
    """At a rate that is a multiple of the groups as well: the turn was taken from the events sent once, and it was the
    first group's every time."""
    found = generations(Population(100, 200.0, shape=CALM), 1_000.0)
    assert len(found) == 27
    assert set(found.values()) == {1}


def test_a_large_group_rebalances_as_often_as_is_said() -> None:
    shape = Shape(large=200, restless_every_s=10.0)
    found = generations(Population(100, 200.0, shape=shape), 100.5)
    assert found["payments-0"] == 10
