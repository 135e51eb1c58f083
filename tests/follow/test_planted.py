"""A broker that does not behave as its release is named: within ten surprises, with a trace that shows it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kardia.coordinator.classic import coordinator as dispatching
from kardia.coordinator.classic import rebalances
from kardia.coordinator.classic.group import Group
from kardia.coordinator.classic.shard import Shard
from kardia.coordinator.timers import Timer, TimerKind
from kardia.follow import Surprise, SurpriseClass
from kardia.trace import play, read
from tests.truth.fleet.run import Run
from tests.truth.fleet.run import play as simulate
from tests.truth.follow.measured import events_of, follow, scenario_of

OCCURRENCES = 10
NAMED = SurpriseClass.BROKER_NOT_AS_RELEASE


def _no_session_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """The session timeout of members is not enforced."""
    as_released = dispatching.fire

    def fire(shard: Shard, timer: Timer) -> None:
        kind, group_id, member_id = timer.key
        group = shard.groups.get(group_id)
        if kind is not TimerKind.SESSION or group is None or member_id not in group.members:
            as_released(shard, timer)

    monkeypatch.setattr(dispatching, "fire", fire)


def _no_generation_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """A join phase that ends does not begin a new generation."""
    as_released: Callable[[Shard, Group], None] = rebalances.complete

    def complete(shard: Shard, group: Group) -> None:
        before = group.generation_id
        as_released(shard, group)
        group.generation_id = max(before, 1)

    monkeypatch.setattr(rebalances, "complete", complete)


def simulated(plant: Callable[[pytest.MonkeyPatch], None]) -> Run:
    with pytest.MonkeyPatch.context() as monkeypatch:
        plant(monkeypatch)
        return simulate("3.9.2", 1, 20, scenario_of("requests"))


@pytest.mark.parametrize("plant", [_no_session_ends, _no_generation_counts])
def test_a_planted_defect_is_named_within_ten_occurrences(plant: Callable[[pytest.MonkeyPatch], None]) -> None:
    measured, _ = follow("planted", "planted", "3.9.2", events_of(simulated(plant)))
    classes = [one.surprise_class for one in measured.surprises]
    assert NAMED in classes[:OCCURRENCES]
    shown = [one for one in measured.surprises if one.surprise_class is NAMED and one.trace]
    assert shown
    for one in shown[:5]:
        assert_replays(one)


def assert_replays(surprise: Surprise) -> None:
    """The trace differs from the release in its last line, and nowhere else."""
    trace = read(surprise.trace)
    differences = play(trace, trace.versions[0]).differences
    assert differences
    last = max(step.line for step in trace.steps)
    assert {_line_of(one) for one in differences} == {last}, surprise.trace


def _line_of(difference: Any) -> int:
    return int(str(difference).split(":")[1])


def test_without_a_defect_nobody_is_named() -> None:
    measured, _ = follow("well", "well", "3.9.2", events_of(simulate("3.9.2", 1, 20, scenario_of("requests"))))
    assert measured.surprises == []
