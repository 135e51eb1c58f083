"""Values that a client chooses (timeouts, counts) do not decide how much work the observer has."""

from __future__ import annotations

from typing import Any

import pytest

from kardia.observe import Observer, ObserverSettings
from kardia.observe.state.group import Group
from tests.support.scene import Scene


class Counting(Observer):
    """Counts the timers that fire."""

    fired = 0

    def _fire_one(self, group: Group, kind: str, key: str, due: float) -> None:
        self.fired += 1
        super()._fire_one(group, kind, key, due)


def fired(rebalance_ms: int, session_ms: int, **settings: Any) -> int:
    """Timers of a group of three that rebalances for a minute, two of which are not heard any more."""
    scene = Scene()
    members = ("m-1", "m-2", "m-3")
    scene.joined(1_000, 1, dict.fromkeys(members, 900.0), rebalance_ms=rebalance_ms, session_ms=session_ms)
    scene.synced(1_100, *members)
    scene.heartbeats(2_000, 20_000, *members, every=1_000)
    for number, member in enumerate(members):
        scene.fetch(20_500.0 + number, member)
    scene.heartbeats(20_000, 80_000, "m-3", every=500, error=27)
    scene.tick(80_000)
    observer = Counting(ObserverSettings("test", **settings))
    observer.step(scene.events)
    observer.finish()
    return observer.fired


@pytest.mark.parametrize("session_ms", [1, 10_000, 1_800_000])
@pytest.mark.parametrize("rebalance_ms", [1, 2, 60_000, 2**31 - 1])
def test_no_timeout_makes_timers_spin(rebalance_ms: int, session_ms: int) -> None:
    """20 a second for each member are enough; a rebalance timeout of 1 ms made 10,000."""
    assert fired(rebalance_ms, session_ms) <= 20 * 3 * 60
