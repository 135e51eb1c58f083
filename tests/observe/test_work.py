"""What the end of a join phase costs grows with the members and not with their square.

Goal: a group of thousands in which half is missing is settled like a small one. Method: lines of the observer that run
are counted, never timed, at two sizes one of which is four times the other. Not held to this: `faults`, which looks for
each member that was evicted at everybody else, to say who else was silent.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import kardia.observe
from kardia.observe import Observer, ObserverSettings
from tests.support.scene import Scene
from tests.support.stories import standing
from tests.support.work import Lines

FEW, MANY = 60, 240
GROWTH_MAX = 5.0
"""Between the four of what grows with the members, or little more than they, and the sixteen of their square."""


def without_half(members: int, *, synced: bool, static: bool) -> Scene:
    """Half of the members is heard no more, or has not even synced; the others rejoin when they are told."""
    scene = Scene()
    everybody = {f"m{number:05}": 100.0 for number in range(members)}
    instances = {member: f"i-{member}" for member in everybody} if static else {}
    scene.joined(3_100, 1, everybody, instances=instances, rebalance_ms=12_000)
    ids = list(everybody)
    stay = ids[: members // 2]
    scene.synced(3_110, *(ids if synced else stay))
    scene.heartbeats(6_000, 15_500, *stay)
    scene.heartbeats(16_000, 16_050, *stay, error=27)
    scene.tick(16_100)
    scene.joined(16_500, 2, dict.fromkeys(stay, 16_200.0), instances=instances, rebalance_ms=12_000)
    scene.synced(16_510, *stay)
    scene.tick(20_000)
    return scene


def work(members: int, *, synced: bool, static: bool) -> int:
    scene = without_half(members, synced=synced, static=static)
    observer = Observer(ObserverSettings("test"))
    with Lines(Path(kardia.observe.__file__).parent, besides=("who_broke.py",)) as lines:
        rows = observer.step(scene.events)
    gone = [row for row in standing("members", rows["members"]) if row["ended_at_ms"] is not None]
    assert len(gone) == members // 2
    return lines.done


@pytest.mark.parametrize("static", [False, True])
@pytest.mark.parametrize("synced", [False, True])
def test_four_times_the_members_are_not_sixteen_times_the_work(synced: bool, static: bool) -> None:
    few, many = work(FEW, synced=synced, static=static), work(MANY, synced=synced, static=static)
    assert few > FEW
    assert many / few < GROWTH_MAX
