"""The loop of a collector: what it promises when it is killed between any two steps, and what its ticks say.

Goal: nothing lost, the same line the same id, the chain of ticks without a hole, memory bounded. Method: a real tail
and real positions, a topic in memory; random histories with crashes beside one test per rule.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest.collector import MAX_IN_FLIGHT, NAMELESS_MS, SLEPT_MS
from ingest.tail.broker_log import UNNAMED_MS
from kardia.events import ALL_SHARDS, Event, Kind, lane_of
from tests.ingest.lines import CONTROLLERS, START_MS, body, fetched_by_a_controller, fetched_by_a_follower, line, stamp
from tests.ingest.world import LANES, World


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with World(tmp_path) as world:
        yield world


def ticks(world: World, lane: int = 0) -> list[Event]:
    return [event for event in world.topic.events(lane) if event.kind == Kind.TICK]


def check_chain(world: World) -> None:
    """Per lane and source: a tick begins where some tick before it ended, so the bytes are covered without a hole."""
    for lane in range(LANES):
        ends: dict[str, set[int]] = {}
        since: Counter[str] = Counter()
        for event in world.topic.events(lane):
            if event.kind == Kind.TICK:
                known = ends.setdefault(event.source, {0})
                assert event.start in known, (lane, event)
                assert event.start <= event.end
                known.add(event.end)
                assert (event.detail or {})["events"] == since[event.source]
                since[event.source] = 0
            elif event.shard != ALL_SHARDS:
                since[event.source] += 1
                assert lane_of(event.shard, LANES) == lane


def test_lines_arrive_in_their_lane_with_a_tick(world: World) -> None:
    world.write(20)
    world.step(10)
    assert sorted(world.members()) == sorted(world.expected())
    check_chain(world)
    last = ticks(world)[-1]
    assert last.end == world.path.stat().st_size
    assert last.source.startswith("10.0.0.1:9092/request/")


def test_a_tick_at_the_end_of_the_file_says_the_wall_clock_before_the_read(world: World) -> None:
    world.write(1)
    world.step(10)
    before = world.clock.wall_ms()
    world.clock.now_s += 1.5
    at = world.clock.wall_ms()
    world.step(1)
    assert ticks(world)[-1].logged_at_ms == at > before


def test_no_tick_passes_half_a_line(world: World) -> None:
    world.write(3)
    world.step(10)
    whole_at = world.clock.wall_ms()
    world.file.write(b"[2026-")
    world.step(3, each_s=1.5)
    assert START_MS + 3 < ticks(world)[-1].logged_at_ms < whole_at


def test_ticks_come_every_second_when_nothing_happens(world: World) -> None:
    world.write(1)
    world.step(10)
    before = len(ticks(world))
    world.step(50, each_s=0.2)
    assert 9 <= len(ticks(world)) - before <= 11
    assert all(event.start == event.end for event in ticks(world)[before:])


def test_no_tick_before_anything_is_known(world: World) -> None:
    world.step(20)
    assert not world.topic.records


def test_positions_move_only_after_the_acknowledgement(world: World) -> None:
    world.topic.answering = False
    world.write(5)
    world.step(10)
    assert world.topic.records
    assert all(entry.position == 0 for entry in world.collector.positions.files[str(world.path)])
    world.topic.answering = True
    world.step(10)
    assert world.collector.positions.files[str(world.path)][-1].position == world.path.stat().st_size


def test_positions_follow_the_flushes_in_order(world: World) -> None:
    """The second flush is acknowledged before the first: nothing moves until the first is."""
    world.topic.answering = False
    world.write(1)
    world.step(2)
    first = len(world.topic.records)
    world.write(1)
    world.step(2)
    waiting = world.topic._waiting
    assert 0 < first < len(waiting)
    for acknowledged in waiting[first:]:
        acknowledged()
    world.topic._waiting = waiting[:first]
    world.step(1)
    assert world.collector.positions.files[str(world.path)][-1].position == 0
    world.topic.answering = True
    world.step(1)
    assert world.collector.positions.files[str(world.path)][-1].position > 0


def test_reading_pauses_while_the_topic_is_away(world: World) -> None:
    world.topic.answering = False
    for _ in range(MAX_IN_FLIGHT):
        world.write(2)
        world.step(2)
    assert world.topic.in_flight <= MAX_IN_FLIGHT + 2 * LANES
    position = world.collector.streams[0].tail.saved()[-1].position
    assert position < world.path.stat().st_size
    world.drain()
    assert sorted(world.members()) == sorted(world.expected())
    check_chain(world)


@pytest.mark.parametrize("steps", range(14))
@pytest.mark.parametrize("answering", [True, False])
def test_killed_after_any_step(world: World, steps: int, answering: bool) -> None:
    """Read, sent, acknowledged, saved: killed between any two of them, or with the answers lost on the way."""
    world.write(4)
    world.topic.answering = answering
    world.step(steps)
    world.write(3)
    world.crash()
    world.drain()
    assert sorted(world.members()) == sorted(world.expected())
    check_chain(world)


def test_a_full_disk_stops_the_reading_and_loses_nothing(world: World) -> None:
    """A directory in the place of the file to be written: every save fails until it is gone."""
    world.step(1)
    obstacle = world.collector.store.directory / "positions.new"
    obstacle.mkdir()
    world.write(3)
    world.step(20)
    size = world.path.stat().st_size
    world.write(3)
    world.step(20)
    assert world.collector.streams[0].tail.saved()[-1].position == size
    assert len(world.said) == 1
    assert "cannot be saved" in world.said[0]
    obstacle.rmdir()
    world.drain()
    world.crash()
    world.drain()
    assert sorted(world.members()) == sorted(world.expected())
    assert "again" in world.said[1]


def test_a_restart_after_everything_was_saved_repeats_nothing(world: World) -> None:
    world.write(5)
    world.step(20)
    sent = len([event for event in world.topic.events() if event.kind == Kind.HEARTBEAT])
    world.crash()
    world.drain()
    assert len([event for event in world.topic.events() if event.kind == Kind.HEARTBEAT]) == sent == 5


ACTIONS = ("write", "write", "step", "step", "step", "rename", "crash", "mute", "answer", "wait")


@settings(max_examples=150, deadline=None)
@given(st.lists(st.sampled_from(ACTIONS), max_size=50))
def test_whatever_happens_nothing_is_lost(tmp_path_factory: pytest.TempPathFactory, actions: list[str]) -> None:
    with World(tmp_path_factory.mktemp("world")) as world:
        world.step(1)
        for action in actions:
            if action == "write":
                world.write(3)
            elif action == "step":
                world.step(2)
            elif action == "rename":
                world.rename()
            elif action == "crash":
                world.crash()
            elif action in ("mute", "answer"):
                world.topic.answering = action == "answer"
            else:
                world.clock.now_s += 2
        world.drain()
        assert sorted(world.members()) == sorted(world.expected())
        assert not [event for event in world.topic.events() if event.kind == Kind.GAP]
        check_chain(world)


def test_a_truncation_is_a_gap_in_every_lane(world: World) -> None:
    world.write(3)
    world.step(10)
    world.truncate()
    world.write(2)
    world.drain()
    for lane in range(LANES):
        gaps = [event for event in world.topic.events(lane) if event.kind == Kind.GAP]
        assert len(gaps) == 1
        detail = gaps[0].detail or {}
        assert (detail["reason"], detail["from_ms"]) == ("truncated", START_MS + 3)
        assert detail["to_ms"] > detail["from_ms"]
    assert sorted(world.members()) == sorted(world.expected())


def test_a_process_that_was_stopped_says_so(world: World) -> None:
    world.write(1)
    world.step(5)
    world.clock.now_s += SLEPT_MS / 1000 + 1
    world.write(1)
    world.step(3)
    assert len(world.said) == 1
    assert "not run for" in world.said[0]
    assert sorted(world.members()) == sorted(world.expected())


def gaps(world: World, lane: int) -> list[Event]:
    return [event for event in world.topic.events(lane) if event.kind == Kind.GAP]


@pytest.mark.parametrize(("slept_ms", "expected"), [(SLEPT_MS - 1, 0), (SLEPT_MS + 1, 1), (-10 * SLEPT_MS, 0)])
def test_a_machine_that_slept_makes_a_gap_before_any_tick_passes_it(
    world: World, slept_ms: float, expected: int
) -> None:
    """Its brokers did not run either while their stamps went on. A clock set back is no sleep."""
    world.write(3)
    world.step(10)
    before_ms = world.clock.wall_ms()
    world.clock.slept_ms += slept_ms
    world.write(3)
    world.step(3)
    for lane in range(LANES):
        found = gaps(world, lane)
        assert len(found) == expected
        for gap in found:
            detail = gap.detail or {}
            assert detail["reason"] == "collector_slept"
            assert before_ms - 1_000 <= detail["from_ms"] <= before_ms
            assert detail["to_ms"] == pytest.approx(before_ms + slept_ms)
            events = world.topic.events(lane)
            passed = [at for at, event in enumerate(events) if event.kind == Kind.TICK and event.end > gap.start]
            assert all(at > events.index(gap) for at in passed)
    assert ("slept" in " ".join(world.said)) == bool(expected)
    assert sorted(world.members()) == sorted(world.expected())


def test_a_machine_sleeps_twice_while_its_log_is_silent(world: World) -> None:
    world.write(1)
    world.step(10)
    for _ in range(2):
        world.clock.slept_ms += 60_000
        world.step(3)
    assert len(gaps(world, 0)) == 2


def fetch(client: str, number: int) -> bytes:
    return line(
        number,
        requestHeader={**body()["requestHeader"], "requestApiKey": 1, "clientId": client},
        request={"maxWaitMs": 500, "sessionEpoch": 0},
        response={"errorCode": 0, "responses": []},
    )


def test_a_fetch_goes_where_its_client_is_known_and_is_counted_where_it_is_not(world: World) -> None:
    world.file.write(fetch("stranger", 1) + b"\n" + fetch("c-1", 2) + b"\n")
    world.write(2)  # client c-1 speaks for two groups
    world.step(10)
    fetches = [event for event in world.topic.events() if event.kind == Kind.FETCH]
    groups = {event.shard for event in world.topic.events() if event.kind == Kind.HEARTBEAT}
    assert {event.shard for event in fetches} == groups
    assert {event.client_id for event in fetches} == {"c-1"}
    ignored = Counter[str]()
    for event in ticks(world):
        ignored.update((event.detail or {})["ignored"])
    assert ignored == {"unattributed_fetch": 1}
    check_chain(world)


def test_the_directory_survives_a_restart(world: World) -> None:
    world.write(1)
    world.step(10)
    world.clock.now_s += 31
    world.step(2)
    world.crash()
    world.file.write(fetch("c-1", 99) + b"\n")
    world.drain()
    assert any(event.kind == Kind.FETCH for event in world.topic.events())


def test_a_refused_line_travels_to_lane_0(world: World) -> None:
    world.file.write(line()[:300] + b"\n")
    world.write(1)
    world.step(10)
    refused = [event for event in world.topic.events(0) if event.kind == Kind.REJECTED]
    assert [(event.shard, (event.detail or {})["reason"]) for event in refused] == [(ALL_SHARDS, "bad_json")]


def test_a_server_log_waits_for_the_name_of_its_broker(tmp_path: Path) -> None:
    with World(tmp_path, server=True) as world:
        text = "[GroupCoordinator 1]: Stabilized group g generation 4 (__consumer_offsets-3) with 2 members"
        world.server_path.write_text(f"{stamp(START_MS)} INFO {text} (kafka.coordinator.group.GroupCoordinator)\n")
        world.step(10)
        assert not world.topic.records
        world.write(1)
        world.drain()
        lines = [event for event in world.topic.events() if event.kind == Kind.COORDINATOR_LINE]
        assert [event.source.rsplit("/", 1)[0] for event in lines] == ["10.0.0.1:9092/server"]


def test_a_server_log_alone_names_its_broker_by_the_node_id_in_it(tmp_path: Path) -> None:
    """Nothing has to be switched on, and nothing to be told, for the first answers of a cluster."""
    with World(tmp_path, server=True, requests=False) as world:
        server = "(kafka.server.KafkaServer)"
        begin = (
            f"{stamp(START_MS)} INFO starting {server}\n{stamp(START_MS)} INFO [KafkaServer id=7] started {server}\n"
        )
        world.server_path.write_text(begin)
        world.step(10)
        world.crash()
        text = "[GroupCoordinator 7]: Stabilized group g generation 4 (__consumer_offsets-3) with 2 members"
        with world.server_path.open("a") as log:
            log.write(f"{stamp(START_MS)} INFO {text} (kafka.coordinator.group.GroupCoordinator)\n")
        world.drain()
        lines = [event for event in world.topic.events() if event.kind == Kind.COORDINATOR_LINE]
        assert [event.source.rsplit("/", 1)[0] for event in lines] == ["broker-7/server"]
        check_chain(world)


def test_a_broker_that_is_a_controller_is_named_by_what_clients_know(world: World) -> None:
    """Its first lines are FETCHes on the listener of the controllers, which no client ever sees."""
    world.file.write(fetched_by_a_controller(1) + b"\n" + fetched_by_a_follower(2) + b"\n")
    world.step(4)
    world.write(1)
    world.drain()
    assert {event.source.split("/")[0] for event in world.topic.events()} == {"10.0.0.1:9092"}
    check_chain(world)


@pytest.mark.parametrize(
    ("lines", "name"),
    [((fetched_by_a_controller, fetched_by_a_follower), "10.0.0.1:9092"), ((fetched_by_a_controller,), CONTROLLERS)],
    ids=["followed", "alone"],
)
def test_a_broker_that_no_client_asks_is_named_after_a_while(
    world: World, lines: tuple[Callable[[int], bytes], ...], name: str
) -> None:
    world.file.write(b"".join(one(number) + b"\n" for number, one in enumerate(lines)))
    world.step(2, each_s=UNNAMED_MS / 1_000 - 1)
    assert not world.topic.records
    world.drain()
    assert {event.source.split("/")[0] for event in ticks(world)} == {name}
    world.write(1)
    world.drain()
    assert {event.source.split("/")[0] for event in ticks(world)} == {name}, "a name does not change"
    check_chain(world)


def test_a_log_that_names_no_broker_is_told_of_once(world: World) -> None:
    world.file.write(line().replace(b"-10.0.0.7:51234-0-17", b"") + b"\n")
    world.step(NAMELESS_MS // 500, each_s=0.5)
    assert not world.said
    world.step(10, each_s=0.5)
    (said,) = world.said
    assert str(world.path) in said
    assert "--broker" in said
    assert not world.topic.records
    world.write(1)
    world.drain()
    assert {event.source.split("/")[0] for event in ticks(world)} == {"10.0.0.1:9092"}
    check_chain(world)


def test_the_ledger_adds_up(world: World) -> None:
    world.write(5)
    world.file.write(b"\n" + line()[:200] + b"\n[2026-11-20 10:00:00,000] INFO x (kafka.Kafka)\n")
    world.step(10)
    metrics = world.collector.metrics.registry

    def total(name: str) -> float:
        found = [sample.value for metric in metrics.collect() for sample in metric.samples if sample.name == name]
        return sum(found)

    lines = total("kardia_collector_lines_total")
    assert lines == 8
    assert lines == (
        total("kardia_collector_events_total")
        - sum(1 for event in world.topic.events() if event.kind == Kind.REJECTED)
        + total("kardia_collector_ignored_lines_total")
        + total("kardia_collector_rejected_lines_total")
    )
