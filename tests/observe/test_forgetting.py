"""Groups that came and went leave nothing behind: how long one is held without members, the bound, and what follows."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import pytest

from kardia.events import Event, Kind, shard_of
from kardia.observe import Observer, ObserverSettings
from kardia.observe.facts import forgetting
from kardia.observe.intake import each_once
from kardia.tables import LIVE_TABLES, Row
from tests.support.scene import JAVA_CONNECTION, START, Scene
from tests.support.stories import named

SETTINGS = ObserverSettings("test")
HOUR_MS = 3_600_000.0
REQUEST_LOG = "10.0.0.1:9092/request/one"


def scene_of_one(group: str, at: float, *, deleted: bool) -> Scene:
    """Somebody joins, leaves 1 s later, and the group may be deleted 1 s after that."""
    scene = Scene(group)
    scene.joined(at, 1, {f"{group}-a": at - 10})
    scene.synced(at + 10, f"{group}-a")
    scene.leave(at + 1_000, f"{group}-a")
    if deleted:
        scene.deleted(at + 2_000)
    return scene


def many(count: int, every_ms: float, *, deleted: bool) -> Iterator[list[Event]]:
    """Steps of a thousand groups that come and go one after the other."""
    position = number = 0
    while number < count:
        step: list[Event] = []
        for _ in range(min(1_000, count - number)):
            for event in scene_of_one(f"g{number}", number * every_ms, deleted=deleted).events:
                step.append(event._replace(start=position, end=position + 100))
                position += 100
            number += 1
        step.sort(key=lambda event: event.logged_at_ms)
        step = [event._replace(start=n, end=n + 1) for n, event in enumerate(step, position)]
        position += len(step)
        at = step[-1].logged_at_ms
        step.append(Event(int(Kind.TICK), -1, REQUEST_LOG, position, position, at, at, at, at))
        yield step


def size_of(observer: Observer) -> int:
    """Bytes of what is written of it in every batch."""
    return len(msgspec.msgpack.encode(observer.snapshot()))


def come_and_go(count: int, every_ms: float, *, deleted: bool) -> tuple[Observer, list[int], int]:
    """(observer, its size after each step, groups said to be forgotten)."""
    observer, sizes, forgotten = Observer(SETTINGS), [], 0
    for step in many(count, every_ms, deleted=deleted):
        rows = observer.step(step)
        forgotten += sum(row["forgotten"] for row in named("progress", rows["progress"]))
        sizes.append(size_of(observer))
    observer.finish()
    return observer, sizes, forgotten


@pytest.mark.parametrize("deleted", [False, True])
@pytest.mark.parametrize("count", [7_000, pytest.param(1_000_000, marks=pytest.mark.long)])
def test_groups_that_came_and_went_take_no_more_than_their_bound(count: int, deleted: bool) -> None:
    observer, sizes, forgotten = come_and_go(count, 50.0, deleted=deleted)
    assert len(observer.groups) == forgetting.MAX_WITHOUT_MEMBERS
    assert count - 10 - len(observer.groups) <= forgotten <= count - len(observer.groups)
    assert not observer.clients
    full = sizes[forgetting.MAX_WITHOUT_MEMBERS // 1_000]
    assert max(sizes) < 1.05 * full < 5_000_000


def test_a_deleted_group_is_held_for_an_hour() -> None:
    observer, _, forgotten = come_and_go(3_000, 3.0 * HOUR_MS / 3_000, deleted=True)
    assert 990 <= len(observer.groups) <= 1_010
    assert forgotten >= 1_980


def test_an_empty_group_is_held_for_a_week() -> None:
    observer, _, forgotten = come_and_go(3_000, 21 * 24 * HOUR_MS / 3_000, deleted=False)
    assert 990 <= len(observer.groups) <= 1_010
    assert forgotten >= 1_980


def test_members_are_never_forgotten_however_long_they_are_quiet() -> None:
    scene = Scene("kept")
    scene.joined(1_000, 1, {"a": 990}, session_ms=1_800_000)
    scene.synced(1_010, "a")
    observer = Observer(SETTINGS)
    observer.step(scene.events)
    for step in many(forgetting.MAX_WITHOUT_MEMBERS + 1_000, 50.0, deleted=False):
        observer.step([event._replace(source="10.0.0.1:9092/request/two") for event in step])
    assert "kept" in observer.groups


def again(*, steps: int) -> list[Row]:
    """Transitions of a group that is deleted and comes back two hours later; other groups go on meanwhile."""
    events = scene_of_one("g", 0.0, deleted=True).events
    later = scene_of_one("g", 2 * HOUR_MS, deleted=False).events
    between = scene_of_one("other", HOUR_MS + 60_000, deleted=False).events
    everything = [event._replace(start=n, end=n + 1) for n, event in enumerate([*events, *between, *later])]
    observer, rows = Observer(SETTINGS), {name: list[Row]() for name in LIVE_TABLES}
    size = -(-len(everything) // steps)
    for begin in range(0, len(everything), size):
        step = everything[begin : begin + size]
        at = step[-1].logged_at_ms
        tick = Event(int(Kind.TICK), -1, REQUEST_LOG, begin, begin + size, at, at, at, at)
        for table, some in observer.step([*step, tick]).items():
            rows[table].extend(some)
    for table, some in observer.finish().items():
        rows[table].extend(some)
    return rows["transitions"]


def test_a_group_that_comes_back_counts_on_from_an_instant() -> None:
    numbers = [row["seq"] for row in named("transitions", again(steps=1)) if row["group_id"] == "g"]
    first = [number for number in numbers if number < START]
    assert first == list(range(1, len(first) + 1))
    second = numbers[len(first) :]
    assert second[0] == int(START + 2 * HOUR_MS - 10) + 1
    assert second == list(range(second[0], second[0] + len(second)))


@pytest.mark.parametrize("steps", [2, 3, 8, 100])
def test_forgetting_is_part_of_the_order_of_events(steps: int) -> None:
    assert again(steps=steps) == again(steps=1)


@pytest.mark.parametrize("count", [each_once.MAX_SOURCES - 1, each_once.MAX_SOURCES, each_once.MAX_SOURCES + 1])
def test_the_files_of_a_log_have_a_bound(count: int) -> None:
    observer, forgotten = Observer(SETTINGS), 0
    shard = shard_of("g")
    for number in range(count):
        at = START + number
        observer.step(
            [
                Event(
                    int(Kind.HEARTBEAT),
                    shard,
                    f"10.0.0.1:9092/request/{number:06}",
                    0,
                    100,
                    *(at, at, at, at),
                    group_id="g",
                    member_id="a",
                    connection=JAVA_CONNECTION,
                )
            ]
        )
        forgotten += observer.files_forgotten
    assert len(observer.sources) == min(count, each_once.MAX_SOURCES)
    assert forgotten == count - len(observer.sources)
    assert f"10.0.0.1:9092/request/{count - 1:06}" in observer.sources
