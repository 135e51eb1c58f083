"""A request log that is switched off while its broker lives: nobody's silence in it is evidence.

Instants in ms from the start of a scene, as in `test_dead_brokers`.
"""

from __future__ import annotations

import pytest

from kardia.events import Kind
from kardia.observe import Observer, ObserverSettings, lanes
from kardia.tolerances import LOG_OFF_MS
from tests.observe.test_dead_brokers import pair, said_of, silent_to
from tests.support.scene import START, Scene
from tests.support.stories import named

WAYS = ("known", "known_step_by_step")


def committed(scene: Scene, at: float) -> None:
    detail = {"tombstone": False, "topic": "t", "partition": 0, "offset": int(at), "commit_at_ms": int(at)}
    scene._from_topic(Kind.OFFSET_RECORD, at, detail, -1)


def off(*instants: float) -> Scene:
    """The log of `pair` ends at 9,500; the group commits on."""
    scene = pair()
    for at in instants:
        committed(scene, at)
    return silent_to(scene, 10_500, 60_000)


@pytest.mark.parametrize("way", WAYS)
def test_members_that_commit_beside_a_silent_log_are_not_evicted(way: str) -> None:
    """The record shows the broker alive; its own line is not in the log. Else a had ended at 19,000."""
    scene = off(20_000, 25_000, 40_000)
    known = getattr(scene, way)()
    assert known.alive() == {"a", "b"}
    assert [row["to_state"] for row in said_of(known, "transitions", 9_400) if not row["member_id"]] == ["Unknown"]
    assert sum(row["gaps"] for row in named("progress", known.rows["progress"])) == 1


def test_a_gap_of_a_log_that_is_off_says_from_when_to_when() -> None:
    rows = named("progress", off(20_000, 25_000, 40_000).known().rows["progress"])
    (bounds,) = [(row["gap_from_ms"] - START, row["gap_to_ms"] - START) for row in rows if row["gaps"]]
    assert bounds == (9_500, 25_000)


def test_its_bounds_are_kept_until_they_are_told() -> None:
    scene = off(20_000, 25_000)
    settings = ObserverSettings("test")
    before = Observer(settings)
    before.step([event for event in scene.events if event.logged_at_ms <= START + 25_000])
    stream = before.streams["10.0.0.1:9092/request"]
    stream.gaps, stream.gap_from, stream.gap_to = 1, START + 9_500, START + 25_000
    kept = Observer.restore(settings, 0, before.snapshot())
    found = [one.streams["10.0.0.1:9092/request"] for one in (kept, *lanes.regrouped([kept], settings, 3))]
    told = [(one.gap_from - START, one.gap_to - START) for one in found if one.gaps]
    assert told == 2 * [(9_500, 25_000)], "of the lanes after it one tells it"


@pytest.mark.parametrize("way", WAYS)
def test_a_broker_that_goes_on_writes_records_before_its_first_line(way: str) -> None:
    """It stood still; what had waited is stored at once, and logged a second later on a busy machine."""
    scene = pair()
    for at in (25_000, 25_400):
        committed(scene, at)
    scene.heartbeats(26_100, 40_000, "a", "b")
    scene.tick(40_000, silences=[[9_500, 26_100]])
    known = getattr(scene, way)()
    assert sum(row["gaps"] for row in named("progress", known.rows["progress"])) == 0
    assert known.alive() == {"a", "b"}


@pytest.mark.parametrize("record", [12_600, 9_500 + LOG_OFF_MS])
def test_a_record_whose_line_is_missing_is_no_sign_of_life(record: float) -> None:
    scene = off(record)
    scene.group_record(14_000, 2, {"a": 10_000, "b": 10_000})
    assert scene.known().alive() == {"a", "b"}


def test_a_record_of_an_expiry_is_a_sign_of_life() -> None:
    """Nobody asked for it, so no line is missing: the broker lived, and both were silent."""
    scene = pair()
    scene.empty_record(19_600, 2)
    assert silent_to(scene, 10_500, 30_000).known().alive() == set()


@pytest.mark.parametrize("way", WAYS)
def test_the_log_is_switched_on_again_and_the_group_is_known_again(way: str) -> None:
    """Also of a log that is read afterwards: then its last line is none of that time."""
    scene = off(20_000, 40_000)
    scene.heartbeats(61_000, 90_000, "a", "b")
    scene.tick(90_000, silences=[[9_500, 61_000]])
    known = getattr(scene, way)()
    assert known.alive() == {"a", "b"}
    assert not known.ended()
    state = [row["to_state"] for row in named("transitions", known.rows["transitions"]) if not row["member_id"]][-1]
    assert state == "Stable"
