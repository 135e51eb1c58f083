"""Laws of the observer, on recorded stories cut at any place.

However the same events are split into steps, and wherever the state is written down and read back, the same is said.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kardia.events import SILENCE_MS, Event, Kind
from kardia.kafka.states import LEGAL_MOVES, GroupState
from kardia.observe import Observer
from kardia.observe.state.group import NEVER
from tests.support.scene import SAME_IN_ANY_SPLIT
from tests.support.stories import FIRST_LIGHT, MODERN_STORIES, lanes_of, named, observe, standing
from tests.support.told import SETTINGS, run

OUTAGES = ("d01_kill_long-3.9.2", "d02_kill_short-4.4.0", "d03_stand_still-3.9.2", "d04_asleep-4.4.0")
"""Stories in which the log itself is silent."""


def ticked(events: tuple[Event, ...], every: int = 100) -> list[Event]:
    """Events of a lane with a tick after each hundred, as a collector would give them, with what it tells of the log:
    its first and last line since the tick before, and when it was silent."""
    result: list[Event] = []
    latest, lines = 0.0, Lines()
    ordered = _by_time([event for event in events if event.kind != Kind.TICK])
    for number, event in enumerate(ordered):
        result.append(event)
        latest = max(latest, event.logged_at_ms)
        if "/request/" in event.source:
            lines.add(event.logged_at_ms)
        if number % every == every - 1 or number + 1 == len(ordered):
            tick = Event(int(Kind.TICK), -1, _request_source(ordered), 0, number + 1, latest, latest, latest, latest)
            result.append(tick._replace(detail=lines.told()))
    return result


class Lines:
    """Stamps of the lines of a log since the last tick."""

    def __init__(self) -> None:
        self.first_at, self.last_at, self.silences = NEVER, NEVER, list[list[float]]()

    def add(self, at: float) -> None:
        if self.first_at < 0:
            self.first_at = at
        elif at - self.last_at >= SILENCE_MS:
            self.silences.append([self.last_at, at])
        self.last_at = max(self.last_at, at)

    def told(self) -> dict[str, Any]:
        """The detail of a tick; what comes next is counted anew."""
        detail: dict[str, Any] = {"silences": self.silences}
        if self.first_at >= 0:
            detail |= {"first_line_at_ms": self.first_at, "last_line_at_ms": self.last_at}
        self.first_at, self.silences = NEVER, []
        return detail


def _by_time(events: list[Event]) -> list[Event]:
    """Sources side by side by their stamps, each in the order of its positions, in which collectors send them."""
    reached: dict[str, float] = {}
    keys = []
    for event in events:
        reached[event.source] = max(reached.get(event.source, 0.0), event.logged_at_ms)
        keys.append(reached[event.source])
    return [events[place] for place in sorted(range(len(events)), key=keys.__getitem__)]


def _request_source(events: list[Event]) -> str:
    return next((event.source for event in events if "/request/" in event.source), "none/request/none")


def busiest(name: str, every: int = 100) -> list[Event]:
    """The lane of a story in which most happens."""
    busy = (Kind.JOIN, Kind.MODERN_HEARTBEAT)
    return ticked(max(lanes_of(name), key=lambda events: sum(event.kind in busy for event in events)), every)


@pytest.mark.parametrize("name", [*FIRST_LIGHT, *OUTAGES, *MODERN_STORIES])
@settings(max_examples=8, deadline=None)
@given(data=st.data())
def test_any_split_says_the_same(name: str, data: st.DataObject) -> None:
    events = busiest(name, data.draw(st.sampled_from((100, 10))))
    cuts = data.draw(st.lists(st.integers(0, len(events)), max_size=12).map(sorted))
    steps = [events[begin:end] for begin, end in pairwise([0, *cuts, len(events)])]
    whole, parts = run([events]), run(steps, restarts=True)
    for table in SAME_IN_ANY_SPLIT:
        assert parts[table] == whole[table], table


@pytest.mark.parametrize("name", [*FIRST_LIGHT, *OUTAGES, *MODERN_STORIES])
def test_many_small_steps_say_what_one_step_says(name: str) -> None:
    """In one step all ticks are there before the clock moves, and with them all silences of the log."""
    for lane in lanes_of(name):
        events = ticked(lane, 10)
        whole = run([events])
        parts = run([events[begin : begin + 7] for begin in range(0, len(events), 7)])
        for table in SAME_IN_ANY_SPLIT:
            assert parts[table] == whole[table], table


@pytest.mark.parametrize("name", [*FIRST_LIGHT, *MODERN_STORIES])
def test_samples_of_health_inside_a_step_change_nothing_else(name: str) -> None:
    """A replay, whose steps are long, keeps a history of health by them."""
    events = busiest(name)
    whole, often = run([events]), Observer(replace(SETTINGS, sample_within_ms=1_000.0))
    rows = often.step(events)
    for table, some in often.finish().items():
        rows[table].extend(some)
    for table in SAME_IN_ANY_SPLIT:
        assert rows[table] == whole[table], table
    assert len(rows["health"]) > len(whole["health"])


def test_a_repeat_of_everything_is_recognised() -> None:
    events = busiest("c04_mpi-3.9.2")
    once, twice = run([events]), run([events, events], restarts=True)
    for table in SAME_IN_ANY_SPLIT:
        assert twice[table] == once[table], table


@pytest.mark.parametrize("name", FIRST_LIGHT)
def test_a_group_only_makes_moves_that_the_coordinator_makes(name: str) -> None:
    rows = named("transitions", observe(lanes_of(name))["transitions"])
    seen: dict[str, list[int]] = {}
    for row in rows:
        seen.setdefault(row["group_id"], []).append(row["seq"])
        if row["entity"] == "group":
            assert GroupState(row["to_state"]) in LEGAL_MOVES[GroupState(row["from_state"])], row
    assert all(numbers == list(range(1, len(numbers) + 1)) for numbers in seen.values())


@pytest.mark.parametrize("name", FIRST_LIGHT)
def test_a_generation_is_left_once(name: str) -> None:
    """At most one standing row of `rebalances` for each generation of a group that nobody loaded or deleted."""
    left = [
        (row["group_id"], row["generation_before"])
        for row in standing("rebalances", observe(lanes_of(name))["rebalances"])
        if row["generation_before"] > 0
    ]
    assert len(left) == len(set(left))
