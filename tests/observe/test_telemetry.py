"""What a client says of its own polls: it counts where its traffic shows less, and only of itself."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kardia.events import Event, Kind
from kardia.observe import observer
from tests.observe.test_folding import said
from tests.observe.test_laws import ticked
from tests.observe.test_scenes import stable
from tests.support.scene import START, Scene
from tests.support.stories import lanes_of, named


def last(scene: Scene, member: str = "a") -> dict[str, Any]:
    """Its last health row."""
    return [row for row in named("health", scene.known().rows["health"]) if row["member_id"] == member][-1]


def evidence(scene: Scene, member: str = "a") -> tuple[int, str, int, str]:
    """(last poll, what shows it, bound of its error, polling) of its last health row."""
    row = last(scene, member)
    at = row["last_poll_at_ms"] - int(START)
    return at, row["poll_evidence"], row["poll_error_bound_ms"], row["polling"]


def test_it_is_evidence_where_nothing_is_fetched() -> None:
    """a fetches at 4 s and works off what it got: it polls on, and says so."""
    scene = stable("a", "b")
    scene.fetch(4_000, "a", data=100)
    scene.heartbeats(6_000, 30_000, "a", "b")
    for at in range(8_000, 30_000, 5_000):
        scene.telemetry(at, "a", 0.0)
    scene.tick(30_000)
    assert evidence(scene) == (28_000, "telemetry", 1_500, "polls")


def test_what_its_traffic_shows_to_the_millisecond_is_kept() -> None:
    """The same poll, told by whole seconds, is not a later one."""
    scene = stable("a", "b")
    scene.heartbeats(6_000, 21_000, "a", "b")
    scene.fetch(8_300, "a")
    for at in range(9_000, 21_000, 1_000):
        scene.telemetry(at, "a", float((at - 8_300) // 1_000))
    scene.tick(21_000)
    assert evidence(scene)[:3] == (8_300, "fetch", 0)


def test_a_zombie_that_says_so_itself_is_one_whatever_there_was_to_take() -> None:
    """It never commits, so its silence might be that of a consumer that works off what it has: by traffic unknown."""
    for pushes, polling in ((True, "stalled"), (False, "unknown")):
        scene = stable("a", "b")
        scene.fetch(9_000, "a")
        scene.heartbeats(6_000, 24_000, "a", "b")
        for at in range(10_000, 24_000, 2_000) if pushes else ():
            scene.telemetry(at, "a", float((at - 9_000) // 1_000))
        scene.tick(24_000)
        assert evidence(scene)[3] == polling


def test_a_push_that_is_old_says_nothing_of_now() -> None:
    scene = stable("a", "b")
    scene.fetch(9_000, "a")
    scene.heartbeats(6_000, 40_000, "a", "b")
    scene.telemetry(18_000, "a", 9.0)
    scene.tick(40_000)
    assert evidence(scene)[3] == "unknown"


def test_a_poll_timeout_is_predicted_from_it_and_averted_by_it() -> None:
    """The poll interval is 60 s: a polled at 5 s, half of it is over at 35 s, and at 40 s it says that it polled."""
    scene = stable("a", "b")
    scene.heartbeats(6_000, 75_000, "a", "b")
    for at in range(3_100, 75_000, 500):
        scene.fetch(at, "b")
    scene.telemetry(8_000, "a", 3.0)
    scene.telemetry(40_000, "a", 1.0)
    scene.tick(75_000)
    scene.events.sort(key=lambda event: event.logged_at_ms)
    scene.events = [event._replace(start=at * 100, end=at * 100 + 100) for at, event in enumerate(scene.events)]
    known = scene.known()
    rows = [row for row in named("predictions", known.rows["predictions"]) if row["kind"] == "poll"]
    told = [(row["outcome"], row["predicted_at_ms"] - int(START), row["deadline_at_ms"] - int(START)) for row in rows]
    assert told == [("open", 35_000, 65_000), ("averted", 35_000, 65_000), ("open", 69_000, 99_000)]
    assert {row["member_id"] for row in rows} == {"a"}


@pytest.mark.parametrize("client", ["c", "b"])
def test_nobody_speaks_for_another(client: str) -> None:
    scene = stable("a", "b")
    scene.fetch(4_000, "a")
    scene.heartbeats(6_000, 12_000, "a", "b")
    scene.telemetry(9_000, "a", 0.0, client=client)
    scene.tick(12_000)
    assert evidence(scene)[:2] == (4_000, "fetch")


def test_from_another_brokers_log_it_moves_no_group() -> None:
    """Clients push to any broker; the one that coordinates the group stays the one that answers for it."""
    scene = stable("a", "b")
    scene.heartbeats(6_000, 12_000, "a", "b")
    scene.telemetry(9_000, "a", 0.0)
    scene.tick(12_000)
    other = "10.0.0.2:9092/request/two"
    scene.events = [
        event._replace(source=other) if event.kind == Kind.TELEMETRY else event for event in scene.events
    ] + [scene.events[-1]._replace(source=other, start=0, end=0)]
    known = scene.known()
    group = known.observer.group("g")
    assert group is not None
    assert group.broker == "10.0.0.1:9092"
    assert group.members["a"].pushed_at_ms == START + 9_000
    assert [cause for _, cause in known.states()].count("Stable") == 1


def pushing(events: tuple[Event, ...], every: int) -> list[Event]:
    """Lines of a story with a push after every so many heartbeats: what it says changes with its place."""
    found: list[Event] = []
    beats = 0
    for event in events:
        found.append(event)
        if event.kind == Kind.HEARTBEAT and event.error_code == 0 and event.end - event.start > 1:
            beats += 1
            if beats % every == 0:
                detail = {"bytes": 1, "compression": 0, "client_instance_id": "i", "last_poll_s": float(beats % 9)}
                found[-1] = event._replace(end=event.end - 1)
                found.append(event._replace(kind=int(Kind.TELEMETRY), start=event.end - 1, detail=detail))
    return found


@settings(max_examples=10, deadline=None)
@given(data=st.data())
def test_folding_changes_nothing_where_clients_push(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(("c01_kill-4.1.2", "c04_mpi-3.9.2", "c18_libs-4.1.2")))
    every = data.draw(st.integers(1, 6))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(observer, "MOVE_MS", data.draw(st.sampled_from((500.0, 3_000.0, 30_000.0)), "MOVE_MS"))
        for lane in lanes_of(name):
            events = ticked(tuple(pushing(lane, every)))
            cuts = data.draw(st.lists(st.integers(0, len(events)), max_size=6).map(sorted))
            steps = [events[begin:end] for begin, end in pairwise([0, *cuts, len(events)])]
            single, folded = said(steps, folding=False), said(steps, folding=True)
            for table, rows in single.items():
                assert folded[table] == rows, table
