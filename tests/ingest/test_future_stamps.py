"""A stamp beyond the wall clock: the line is refused, and all others go on as if it were not there.

Goal: one line ahead of time must not carry completeness, the silence of everybody else or a deadline with it. Method: a
collector that follows a growing file, with and without such a line, and an observer that reads what it sends.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ingest.blocks import AHEAD_MS, HELD_AHEAD_MS
from ingest.offsets.records import record_event
from kardia.events import Event, Kind
from kardia.observe import Observer, ObserverSettings
from tests.ingest.lines import START_MS, body, line
from tests.ingest.world import ManualClock, World

HOUR_MS = 3_600_000
BEAT_MS = 1_000


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with World(tmp_path, lanes=1, clock=ManualClock(START_MS)) as world:
        yield world


def now_ms(world: World) -> int:
    return int(world.clock.wall_ms())


def beat(world: World, **changes: Any) -> None:
    """A heartbeat of this moment, and what the collector makes of it until the next one."""
    world.number += 1
    world.file.write(line(world.number, at_ms=now_ms(world), **changes) + b"\n")
    world.step(5, BEAT_MS / 5_000)


def ahead(world: World, by_ms: int, **changes: Any) -> None:
    world.file.write(line(1_000_000, at_ms=now_ms(world) + by_ms, **changes) + b"\n")


def of(world: World, kind: Kind) -> list[Event]:
    return [event for event in world.topic.events() if event.kind == kind]


def joined(world: World) -> None:
    """A member joins and syncs: from then on its session runs."""
    names = {"groupId": "g-1", "memberId": "m-1", "groupInstanceId": None}
    member = {"memberId": "m-1", "groupInstanceId": None, "metadata": ""}
    head = body()["requestHeader"]
    beat(
        world,
        requestHeader={**head, "requestApiKey": 11, "requestApiVersion": 9, "requestApiKeyName": "JOIN_GROUP"},
        request={
            **names,
            "sessionTimeoutMs": 6_000,
            "rebalanceTimeoutMs": 300_000,
            "protocolType": "consumer",
            "protocols": [{"name": "range", "metadata": ""}],
            "reason": "",
        },
        response={
            "throttleTimeMs": 0,
            "errorCode": 0,
            "generationId": 5,
            "protocolType": "consumer",
            "protocolName": "range",
            "leader": "m-1",
            "skipAssignment": False,
            "memberId": "m-1",
            "members": [member],
        },
    )
    beat(
        world,
        requestHeader={**head, "requestApiKey": 14, "requestApiVersion": 5, "requestApiKeyName": "SYNC_GROUP"},
        request={
            **names,
            "generationId": 5,
            "protocolType": "consumer",
            "protocolName": "range",
            "assignments": [{"memberId": "m-1", "assignment": ""}],
        },
        response={
            "throttleTimeMs": 0,
            "errorCode": 0,
            "protocolType": "consumer",
            "protocolName": "range",
            "assignment": "",
        },
    )


def observed(world: World) -> dict[str, list[Any]]:
    """Rows of an observer that takes what was sent, record by record."""
    observer = Observer(ObserverSettings(cluster_id="c"))
    rows: dict[str, list[Any]] = {}
    for event in world.topic.events(0):
        for table, found in observer.step([event]).items():
            rows.setdefault(table, []).extend(found)
    return rows


@pytest.mark.parametrize("api", [12, 0], ids=["of a group", "of another API"])
def test_completeness_stays_with_the_clock(world: World, api: int) -> None:
    header = {**body()["requestHeader"], "requestApiKey": api}
    for number in range(20):
        if number == 10:
            ahead(world, HOUR_MS, requestHeader=header)
        beat(world)
        assert world.topic.events(0)[-1].logged_at_ms <= now_ms(world)
    last = of(world, Kind.TICK)[-1]
    assert now_ms(world) - last.logged_at_ms <= 2 * BEAT_MS
    assert all((tick.detail or {})["last_line_at_ms"] <= now_ms(world) for tick in of(world, Kind.TICK))
    assert len(of(world, Kind.HEARTBEAT)) == 20
    assert len(of(world, Kind.REJECTED)) == (api == 12)


def test_it_is_refused_counted_and_told_once_a_minute(world: World) -> None:
    for _ in range(5):
        beat(world)
        ahead(world, HOUR_MS)
    beat(world)
    refused = of(world, Kind.REJECTED)
    assert [(event.detail or {})["reason"] for event in refused] == ["future_timestamp"] * 5
    assert all(event.logged_at_ms <= now_ms(world) for event in refused)
    counter = world.collector.metrics.rejected.labels("future_timestamp")
    assert counter._value.get() == 5
    (said,) = [text for text in world.said if "ahead of" in text]
    assert "3600 s" in said
    assert "Next:" in said
    world.clock.now_s += 9  # below what counts as a sleep of the machine
    for _ in range(60):
        beat(world)
    ahead(world, HOUR_MS)
    beat(world)
    assert len([text for text in world.said if "ahead of" in text]) == 2


def test_nobody_is_overdue_for_it(world: World) -> None:
    joined(world)
    for number in range(30):
        if number == 10:
            ahead(world, HOUR_MS)
        beat(world)
    rows = observed(world)
    assert len(rows["rejected"]) == 1
    assert not rows["predictions"]
    (last,) = rows["progress"][-1:]
    assert last[3] <= now_ms(world)
    assert {row[5] for row in rows["members"]} <= {"exact", "provisional", "inferred"}


@pytest.mark.parametrize(
    ("by_ms", "waits", "refused"),
    [
        (AHEAD_MS - 1, False, 0),
        (AHEAD_MS, False, 0),
        (AHEAD_MS + 1, True, 0),
        (AHEAD_MS + HELD_AHEAD_MS, True, 0),
        (AHEAD_MS + HELD_AHEAD_MS + 1, False, 1),
    ],
)
def test_the_allowance(world: World, by_ms: float, waits: bool, refused: int) -> None:
    beat(world)
    ahead(world, int(by_ms))
    world.step(1, 0.0)
    assert (world.collector.streams[0].tail.lag_bytes > 0) == waits
    world.step(5)
    assert len(of(world, Kind.REJECTED)) == refused


@pytest.mark.parametrize("behind_s", [6, 30, 59])
@pytest.mark.parametrize("fold", [False, True])
def test_a_clock_that_is_behind_loses_no_line(tmp_path: Path, behind_s: int, fold: bool) -> None:
    """It is held back, read again and again, and sent when the clock has come to it: once, and in its place."""
    with World(tmp_path, lanes=1, clock=ManualClock(START_MS), fold=fold) as world:
        for number in range(1, 121):
            world.number = number
            world.file.write(line(number, at_ms=now_ms(world) + behind_s * 1_000) + b"\n")
            world.step(2, 0.5)
            if number % 40 == 0:
                world.crash()
            for tick in of(world, Kind.TICK)[-1:]:
                assert tick.logged_at_ms <= now_ms(world) + AHEAD_MS
        world.step(2 * behind_s, 0.5)
        assert not of(world, Kind.REJECTED)
        starts = [event.start for event in of(world, Kind.HEARTBEAT)]
        assert len(set(starts)) == 120
        told = [text for text in world.said if "waits until the clock" in text]
        assert 3 <= len(told) <= 6, "once a minute, and after each start"


def test_a_line_that_others_follow_is_refused_and_holds_nobody(world: World) -> None:
    ahead(world, 30_000)
    for _ in range(5):
        beat(world)
    assert len(of(world, Kind.HEARTBEAT)) == 5
    assert len(of(world, Kind.REJECTED)) == 1


def test_a_position_that_was_saved_with_such_a_stamp_does_no_harm(world: World) -> None:
    beat(world)
    world.collector.streams[0].tail.current.last_at_ms = now_ms(world) + HOUR_MS  # type: ignore[union-attr]
    for _ in range(5):
        beat(world)
    assert max(event.logged_at_ms for event in of(world, Kind.TICK)) <= now_ms(world)


class Topic:
    """Records of the offsets topic that have come."""

    bootstrapped, complete_to_ms, position = True, 0.0, 2

    def __init__(self, *events: Event) -> None:
        self.events = list(events)

    def poll(self, wall_ms: float) -> list[Event]:  # noqa: ARG002
        events, self.events = self.events, []
        return events

    def positions(self) -> dict[int, int]:
        return {3: 2}

    def distrust(self, wall_ms: float) -> None:
        pass


def test_a_record_of_the_future_is_refused_as_well(world: World) -> None:
    source = "offsets-topic/offsets/3"
    records = [
        record_event(3, offset, now_ms(world) + by_ms, b"\x00\x02\x00\x03g-1", None)
        for offset, by_ms in enumerate((0, HOUR_MS))
    ]
    world.collector.records = Topic(*(event for event in records if event is not None))
    beat(world)
    (kept,) = of(world, Kind.GROUP_RECORD)
    (refused,) = (event for event in of(world, Kind.REJECTED) if event.source == source)
    assert (kept.start, refused.start, refused.end) == (0, 1, 2)
    assert (refused.detail or {})["reason"] == "future_timestamp"
    assert refused.logged_at_ms <= now_ms(world)
    assert len([text for text in world.said if "ahead of" in text]) == 1


def test_a_record_that_is_a_little_ahead_waits_with_those_behind_it(world: World) -> None:
    records = [
        record_event(3, offset, now_ms(world) + by_ms, b"\x00\x02\x00\x03g-1", None)
        for offset, by_ms in enumerate((0, 9_000, 0))
    ]
    topic = Topic(*(event for event in records if event is not None))
    topic.complete_to_ms = float(now_ms(world))
    world.collector.records = topic
    beat(world)
    assert [event.start for event in of(world, Kind.GROUP_RECORD)] == [0]
    assert world.collector.positions.offsets == {}
    assert not [tick for tick in of(world, Kind.TICK) if tick.source.startswith("offsets")]
    for _ in range(6):
        beat(world)
    assert [event.start for event in of(world, Kind.GROUP_RECORD)] == [0, 1, 2]
    assert world.collector.positions.offsets == {3: 2}
    assert not of(world, Kind.REJECTED)


def test_a_stop_between_the_clock_and_the_read_refuses_nothing(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    beat(world)
    tail = world.collector.streams[0].tail
    read = tail.read

    def stopped() -> Any:
        world.clock.now_s += 60
        world.file.write(line(77, at_ms=now_ms(world)) + b"\n")
        return read()

    monkeypatch.setattr(type(tail), "read", lambda _: stopped())
    world.step(1)
    monkeypatch.undo()
    world.step(10)
    assert not of(world, Kind.REJECTED)
