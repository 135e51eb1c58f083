"""Long times without a line cost no work: between two archives a month or a year apart, or where a client, a wrong
clock or a forgotten file put much time between two lines."""

from __future__ import annotations

import pytest

from kardia.events import Event
from kardia.observe import Observer, ObserverSettings
from kardia.observe.observer import IDLE_SAMPLES
from kardia.observe.state.group import Group
from tests.support.folding import Folder
from tests.support.scene import Scene

MINUTE_MS = 60_000.0
DAY_MS = 86_400_000.0
EVERY_MS = 5_000.0


class Counting(Observer):
    """Counts how often the clocks are moved."""

    moved = 0

    def _move_to(self, limits: dict[str, float]) -> None:
        self.moved += 1
        super()._move_to(limits)


def two_archives(apart_ms: float) -> list[Event]:
    """Two members for half a minute, and once more so much later; nothing says what was between."""
    scene = Scene()
    for begin in (0.0, apart_ms):
        scene.joined(begin + 1_000, 1, {"m-1": begin + 900, "m-2": begin + 900})
        scene.synced(begin + 1_100, "m-1", "m-2")
        scene.heartbeats(begin + 2_000, begin + 30_000, "m-1", "m-2")
        scene.tick(begin + 30_000)
    return scene.events


def watched(events: list[Event], *, folding: bool) -> tuple[int, int]:
    """(moves of the clocks, rows of all tables) of one step."""
    observer = Counting(ObserverSettings("test", sample_within_ms=EVERY_MS))
    folder = Folder()
    rest = [event for event in events if not (folding and folder.fold(event))]
    told = sum(map(len, observer.step(rest, folder.take()).values()))
    return observer.moved, told + sum(map(len, observer.finish().values()))


@pytest.mark.parametrize("folding", [False, True])
def test_a_year_between_two_lines_costs_what_a_month_costs(folding: bool) -> None:
    month, year = (watched(two_archives(days * DAY_MS), folding=folding) for days in (30, 365))
    assert year == month
    minutes = watched(two_archives(2 * MINUTE_MS), folding=folding)
    assert year[0] <= minutes[0] + 4 * IDLE_SAMPLES  # by each timer that is due in it: once more


def test_a_short_silence_is_sampled_as_before() -> None:
    moved, _ = watched(two_archives(MINUTE_MS), folding=False)
    assert moved >= 85_000 // EVERY_MS


class CountingTimers(Observer):
    """Counts the timers that fire."""

    fired = 0

    def _fire_one(self, group: Group, kind: str, key: str, due: float) -> None:
        self.fired += 1
        super()._fire_one(group, kind, key, due)


@pytest.mark.parametrize("rebalance_ms", [1_000, 300_000])
def test_a_member_that_may_be_waiting_for_ever_is_looked_at_less_and_less(rebalance_ms: int) -> None:
    """In a group whose state is not known it may sit in a JoinGroup: a timer that came back at a tenth of its poll
    interval came back for as long as the log went on, a million times in a day for one second."""

    def fired(days: float) -> int:
        scene = Scene()
        scene.joined(1_000, 1, {"m-1": 900.0, "m-2": 900.0}, rebalance_ms=rebalance_ms)
        scene.synced(1_100, "m-1", "m-2")
        for at in range(2_000, 8_000, 500):
            scene.commit(at, "m-1", at)
            scene.commit(at, "m-2", at)
        scene.gap(8_000, 8_200)
        scene.tick(days * DAY_MS, last_line=days * DAY_MS)
        observer = CountingTimers(ObserverSettings("test"))
        observer.step(scene.events)
        return observer.fired

    assert fired(1.0) < 300
    assert fired(100.0) < 450
