"""Where server.log says otherwise than was concluded: counted and told, and never where all is well.

Goal: a healthy run has none, an outage neither, and of each line that differs one row says what both sources say.
Method: every recorded story with the server.log of its broker, as it is and with one line changed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kardia.events import Event, Kind
from kardia.observe import Observer, ObserverSettings
from kardia.tables import DISAGREEMENTS
from tests.support.restored import restored
from tests.support.scene import Scene
from tests.support.stories import CORPORA, MODERN_STORIES, lanes_of, named

Lanes = tuple[tuple[Event, ...], ...]
Row = dict[str, Any]
WITH_SERVER_LOG = sorted(
    {path.parent.name for path in CORPORA.glob("*/server*.log.gz")} - {"c15_assign-4.1.2", *MODERN_STORIES}
    | {"k11_migration-4.1.2"}
)
"""But for the one in which nobody is a member, and those of groups that are never classic ones: the coordinator says
nothing in them that could disagree."""
FOREIGN = "another_coordinator"


def what(event: Event) -> str:
    return str((event.detail or {}).get("what", "")) if event.kind == Kind.COORDINATOR_LINE else ""


def told(lanes: Lanes) -> list[Row]:
    """Rows of `disagreements`; `progress` counts the same of each kind, and all of them among the divergences."""
    rows: list[Row] = []
    counted = dict.fromkeys(DISAGREEMENTS, 0)
    divergences = 0
    for lane, events in enumerate(lanes):
        observer = Observer(ObserverSettings("test"), lane)
        for found in (observer.step(events), observer.finish()):
            rows += named("disagreements", found["disagreements"])
            for batch in named("progress", found["progress"]):
                divergences += batch["divergences"]
                for kind in DISAGREEMENTS:
                    counted[kind] += batch[kind]
    assert counted == {kind: sum(row["kind"] == kind for row in rows) for kind in DISAGREEMENTS}
    assert divergences >= len(rows)
    return rows


def changed(name: str, change: Callable[[Event], Event | None]) -> Lanes:
    """A story with the first line changed that can be."""
    done = False
    lanes = []
    for lane in lanes_of(name, server_log=True):
        events = list(lane)
        for at, event in enumerate(events):
            other = None if done else change(event)
            if other is not None:
                events[at], done = other, True
        lanes.append(tuple(events))
    assert done
    return tuple(lanes)


def moved(event: Event, by_ms: float) -> Event:
    at = event.logged_at_ms + by_ms
    return event._replace(logged_at_ms=at, arrived_at_ms=at, handled_at_ms=at, decided_at_ms=at)


def line_of(lanes: Lanes, row: Row) -> Event:
    """The line that a row names."""
    (event,) = (one for lane in lanes for one in lane if (one.source, one.start) == (row["source"], row["start"]))
    return event


def is_failed(event: Event) -> bool:
    return what(event) == "member_failed"


@pytest.mark.parametrize("name", WITH_SERVER_LOG)
def test_a_recorded_story_has_none(name: str) -> None:
    """Neither a healthy one nor one with an outage: what the broker did is what is concluded of it. What a broker says
    that woke after another one had taken over is no such thing, and is told apart."""
    lanes = lanes_of(name, server_log=True)
    words = ("member_failed", "assignment_received", "epoch_raised")
    looked_at = [one for lane in lanes for one in lane if what(one) in words]
    assert len(looked_at) >= (1 if name.startswith("o26_") else 3), "there were lines to look at"
    assert [row for row in told(lanes) if row["kind"] != FOREIGN] == []


def test_a_broker_that_woke_after_another_one_had_taken_over() -> None:
    lanes = lanes_of("d05_three_stand_still-3.9.2", server_log=True)
    rows = told(lanes)
    assert rows, "the recording has such lines"
    for row in rows:
        line = line_of(lanes, row)
        assert is_failed(line)
        assert (row["kind"], row["told"], row["concluded_at_ms"]) == (FOREIGN, "session_expired", None)
        assert row["concluded"] not in ("", line.source.partition("/")[0]), "another broker led it"


@pytest.mark.parametrize("by_ms", [-3_000.0, 4_000.0])
def test_an_eviction_at_another_instant(by_ms: float) -> None:
    story = lanes_of("c01_kill-4.1.2", server_log=True)
    said = next(one for lane in story for one in lane if is_failed(one))
    lanes = changed("c01_kill-4.1.2", lambda event: moved(event, by_ms) if is_failed(event) else None)
    (row,) = told(lanes)
    assert row["kind"] == "another_instant"
    assert (row["group_id"], row["member_id"]) == (said.group_id, said.member_id)
    assert row["client_id"]
    assert row["member_id"].startswith(row["client_id"])
    assert (row["told"], row["at_ms"]) == ("session_expired", round(said.logged_at_ms + by_ms))
    assert row["concluded"] == ("member" if by_ms < 0 else "session_expired")
    assert abs(row["concluded_at_ms"] - said.logged_at_ms) <= 10, "when it was so before the line was changed"
    assert row["concluded_certainty"] == "exact"
    assert line_of(lanes, row).member_id == said.member_id


@pytest.mark.parametrize("by_ms", [-10.0, 150.0])
def test_a_timer_that_fires_late_and_stamps_of_a_millisecond_are_no_disagreement(by_ms: float) -> None:
    assert told(changed("c01_kill-4.1.2", lambda event: moved(event, by_ms) if is_failed(event) else None)) == []


def test_an_eviction_of_somebody_who_had_left() -> None:
    def failed(event: Event) -> Event | None:
        if what(event) != "member_left":
            return None
        return moved(event, 1_000)._replace(detail={"what": "member_failed", "reason": "", "members": []})

    lanes = changed("c05_leave-3.9.2", failed)
    (row,) = told(lanes)
    line = line_of(lanes, row)
    assert is_failed(line)
    assert (row["kind"], row["told"], row["concluded"]) == ("another_cause", "session_expired", "left")
    assert row["at_ms"] == round(line.logged_at_ms)
    assert row["member_id"] == line.member_id
    assert abs(row["at_ms"] - 1_000 - row["concluded_at_ms"]) <= 10, "when it left"


def test_who_fails_in_the_ms_in_which_the_join_phase_renews_it_is_no_disagreement() -> None:
    """The answers of a join phase may be stamped just before the line about the member whose end completed it."""
    scene = Scene()
    scene.joined(3_000, 1, {"a": 0.0, "b": 1.0}, first=("a", "b"))
    scene.synced(3_010, "a", "b")
    scene.leave(10_000, "c")
    scene.joined(12_000, 2, {"a": 10_500.0}, absent=("b",), instances={"b": "two"})
    scene.failed(12_001, "b")
    scene.failed(19_000, "a")
    scene.tick(20_000)
    rows = named("disagreements", scene.known().rows["disagreements"])
    assert {row["member_id"] for row in rows} == {"a"}, "whose session had 3 s left"


def test_an_assignment_for_another_generation() -> None:
    def other(event: Event) -> Event | None:
        return event._replace(generation_id=event.generation_id + 1) if what(event) == "assignment_received" else None

    lanes = changed("c01_kill-4.1.2", other)
    (row,) = told(lanes)
    line = line_of(lanes, row)
    assert (row["kind"], row["group_id"], row["member_id"]) == ("another_generation", line.group_id, None)
    assert (row["told"], row["concluded"]) == (str(line.generation_id), str(line.generation_id - 1))
    assert (row["at_ms"], row["concluded_at_ms"]) == (round(line.logged_at_ms), None)


def test_what_was_not_told_yet_survives_a_restart() -> None:
    """Counts are told with the next row about a source; a state in between carries them."""
    (lane,) = (
        lane
        for lane in changed("c01_kill-4.1.2", lambda event: moved(event, -3_000) if is_failed(event) else None)
        if any(is_failed(event) for event in lane)
    )
    observer = Observer(ObserverSettings("test"), 0)
    observer.disagreed["another_cause"] = 2
    again = restored(observer)
    found = named("progress", again.step(lane)["progress"]) + named("progress", again.finish()["progress"])
    assert [sum(row[kind] for row in found) for kind in DISAGREEMENTS] == [1, 2, 0, 0]
