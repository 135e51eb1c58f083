"""What a tick counts is held against what came: a repeat is no loss, and a loss is none of a repeat's business.

A collector that was killed begins again at an older position, counts what it sends anew, and cuts it otherwise. What
its first tick covers has partly come before; what it counts has come since the tick before it in any case.
"""

from __future__ import annotations

import pytest

from ingest.wire.folded_batch import Batch
from kardia.events import Event
from kardia.observe import Observer, ObserverSettings
from kardia.stretches import Stretch
from kardia.tables import Row
from spark_jobs.lane import joined
from tests.support.folding import Folder
from tests.support.scene import Scene
from tests.support.stories import named

LINE = 100
"""Bytes of a line of a scene."""


def requests(count: int) -> list[Event]:
    scene = Scene()
    scene.joined(0, 1, {"a": 0.0})
    for number in range(1, count):
        scene.heartbeat(number * 100, "a")
    return scene.events


def ticked(events: list[Event], begin: int, end: int, *, sent: int | None = None) -> list[Event]:
    """Lines `begin` to `end` as a collector sends them: the events, and their tick."""
    some = events[begin:end]
    scene = Scene()
    scene.position, scene.ticked = end * LINE, begin * LINE
    scene.tick((end - 1) * 100, sent=len(some) if sent is None else sent)
    return some + scene.events


def folded(*flushes: list[Event]) -> list[Stretch]:
    """Heartbeats of some flushes as their records hold them."""
    found: list[Stretch] = []
    for events in flushes:
        folder = Folder()
        assert all(map(folder.fold, events))
        found += folder.take()
    return found


def gaps(rows: dict[str, list[Row]]) -> int:
    return sum(row["gaps"] for row in named("progress", rows["progress"]))


def stepped(*steps: list[Event]) -> int:
    observer = Observer(ObserverSettings("test"))
    return sum(gaps(observer.step(step)) for step in steps)


def test_two_ticks_in_one_step_after_a_kill_make_no_gap() -> None:
    """The first repeats what had come; the second counts what came with it."""
    events = requests(40)
    before = ticked(events, 0, 10) + ticked(events, 10, 20)
    assert stepped(before, ticked(events, 10, 25) + ticked(events, 25, 40)) == 0
    assert stepped(before, ticked(events, 10, 25), ticked(events, 25, 40)) == 0
    assert stepped(before + ticked(events, 10, 25) + ticked(events, 25, 40)) == 0


@pytest.mark.parametrize("reached", range(11))
def test_what_had_come_without_its_tick_is_no_gap_and_hides_none(reached: int) -> None:
    """The topic had so many events of a flush when the collector died. What is lost behind the next tick is told."""
    events = requests(40)
    before = ticked(events, 0, 10) + events[10 : 10 + reached]
    assert stepped(before, ticked(events, 10, 15) + ticked(events, 15, 40)) == 0
    lost = ticked(events, 15, 40)
    del lost[3]
    assert stepped(before, ticked(events, 10, 15), lost) == 1
    assert stepped(before, ticked(events, 10, 15) + lost) == 1


def test_stretches_count_for_the_tick_behind_them() -> None:
    """They are taken in before all ticks of their step."""
    events = requests(40)
    first, second = ticked(events, 0, 20)[-1], ticked(events, 20, 40)[-1]
    more = ticked(events, 20, 40, sent=21)[-1]
    for last, lost in ((second, 0), (more, 1)):
        observer = Observer(ObserverSettings("test"))
        rows = observer.step([events[0], first, last], folded(events[1:20], events[20:40]))
        assert gaps(rows) == lost


def test_a_tick_alone_shows_where_a_killed_collector_began_again() -> None:
    """A record that holds nothing but a tick, then the same lines folded from an older position on."""
    events = requests(40)
    tick = ticked(events, 20, 20)
    found, left = joined([Batch(tick, []), Batch([], folded(events[10:]))])
    assert left == []
    assert found == [*tick, *events[10:]]
    found, left = joined([Batch(tick, []), Batch([], folded(events[20:]))])
    assert found == tick
    assert len(left) == 1


def test_the_first_tick_of_a_file_is_counted() -> None:
    events = requests(40)
    assert stepped(ticked(events, 0, 10, sent=11)) == 1


def test_a_tick_that_begins_behind_all_that_was_told_leaves_a_gap() -> None:
    """What lay between was told to a topic that is no more. Where nothing was told before, reading begins there."""
    events = requests(40)
    assert stepped(ticked(events, 0, 10), ticked(events, 20, 40)) == 1
    assert stepped(ticked(events, 20, 40)) == 0
    other = [one._replace(source=one.source.replace("/one", "/two")) for one in ticked(events, 20, 40)]
    assert stepped(ticked(events, 0, 20), other) == 1
