"""Health is written when there is something to say, at a cost that follows that and not how many are held.

Goal: the rows are those of an observer that looks at everybody in every step; and where there are more members in good
health than samples may be written, each is written in its turn, evenly, and whoever is in danger all the same. Method:
every recorded and simulated story beside such an observer; then crowds.
"""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from random import Random

import pytest

from kardia.observe import Observer, ObserverSettings
from kardia.observe.facts.samples import Samples
from kardia.observe.output.status import GroupAt
from kardia.tables import HEALTH, LIVE_TABLES, Row
from tests.corpora.test_outages import OF_THREE, OUTAGES
from tests.observe.test_restart import add
from tests.support.restored import restored
from tests.support.scene import START, Scene
from tests.support.stories import OLD_STORIES, STORIES, lanes_of, read_live, stamps_of
from tests.truth.fleet.run import play
from tests.truth.fleet.scenarios import SCENARIOS, Scenario
from tests.truth.fleet.seen import observe

SETTINGS = ObserverSettings("test")
AT, MEMBER, STATUS = (HEALTH.names.index(name) for name in ("at_ms", "member_id", "status"))


class Thorough(Observer):
    """Looks at everybody in every step."""

    def _sample(self, now: float) -> None:
        every = self.settings.health_sample_ms
        for group in self.groups.values():
            if not group.members:
                continue
            clock = self._now.get(group.broker, now)
            changed = group.state != group.sampled_state
            group.sampled_state = group.state
            for member in group.members.values():
                urgent = changed or member.is_in_danger or self.samples.recovered(group, member)
                if (urgent and clock > member.health_at_ms) or clock - member.health_at_ms >= every:
                    self._write_health(GroupAt(group, clock), member)
                self.samples.keep(group, member, every)


def said(
    observer: Observer, name: str, lane: int, *, server_log: bool = False, offsets: bool = True
) -> list[list[str]]:
    """Rows of health of each step, in an order of their own."""
    events = lanes_of(name, server_log=server_log, offsets=offsets)[lane]
    steps = [observer.step(step) for step in read_live(events, 500, stamps_of(name))] + [observer.finish()]
    return [sorted(map(repr, rows["health"])) for rows in steps]


@pytest.mark.parametrize("name", [*STORIES, *OLD_STORIES])
def test_of_a_recorded_story_it_says_what_a_look_at_everybody_says(name: str) -> None:
    for lane in range(6):
        assert said(Observer(SETTINGS), name, lane) == said(Thorough(SETTINGS), name, lane)


@pytest.mark.parametrize("name", [*OUTAGES, *OF_THREE])
def test_of_an_outage_it_says_what_a_look_at_everybody_says(name: str) -> None:
    for lane in range(6):
        ways = (said(kind(SETTINGS), name, lane, server_log=True, offsets=False) for kind in (Observer, Thorough))
        assert next(ways) == next(ways)


TAKES_LONG = "huge"
"""Half a minute: groups of 500, looked at whole in every step by the slow way."""


@pytest.mark.parametrize(
    "scenario",
    [
        pytest.param(one, id=one.name, marks=[pytest.mark.long] if one.name == TAKES_LONG else [])
        for one in SCENARIOS.values()
        if one.takes_its_turn
    ],
)
def test_of_a_simulated_story_it_says_what_a_look_at_everybody_says(
    monkeypatch: pytest.MonkeyPatch, scenario: Scenario
) -> None:
    run = play("4.4.0", 72, 4, scenario)
    quick = observe(run).rows["health"]
    monkeypatch.setattr(Observer, "_sample", Thorough._sample)
    assert sorted(map(repr, observe(run).rows["health"])) == sorted(map(repr, quick))


# --- crowds


def crowd(members: int, seconds: int) -> Scene:
    """A group that lives well: so many members, each of which is heard every 3 s."""
    scene = Scene()
    names = [f"m-{number:05}" for number in range(members)]
    scene.joined(1_000, 1, dict.fromkeys(names, 900.0), session_ms=45_000)
    scene.synced(1_100, *names)
    for second in range(2, seconds):
        for number in range(second % 3, members, 3):
            scene.heartbeat(second * 1_000.0, names[number])
        scene.tick(second * 1_000.0 + 500)
    return scene


def steps_of(scene: Scene) -> list[list[object]]:
    """What came between two ticks."""
    steps: list[list[object]] = [[]]
    for event in scene.events:
        steps[-1].append(event)
        if event.kind >= 90:
            steps.append([])
    return steps


def health(scene: Scene, settings: ObserverSettings, restarts: Random | None = None) -> list[Row]:
    observer, rows = Observer(settings), {name: list[Row]() for name in LIVE_TABLES}
    for step in steps_of(scene):
        add(rows, observer.step(step))  # type: ignore[arg-type]
        if restarts is not None and restarts.random() < 0.5:
            observer = restored(observer)
    return rows["health"]


def gaps_s(rows: list[Row]) -> Counter[int]:
    """How many seconds lie between two samples of one member, over the later half of the time."""
    by_member: dict[str, list[int]] = {}
    for row in rows:
        if row[AT] > START + 60_000:
            by_member.setdefault(row[MEMBER], []).append(row[AT])
    return Counter(round((two - one) / 1_000) for at in by_member.values() for one, two in pairwise(at))


def test_as_many_as_may_be_written_are_written_every_five_seconds() -> None:
    rows = health(crowd(100, 120), ObserverSettings("test", samples_per_s=20.0))
    assert set(gaps_s(rows)) == {5}


def test_more_are_written_in_their_turn_evenly() -> None:
    settings = ObserverSettings("test", samples_per_s=10.0)
    rows = health(crowd(100, 160), settings)
    assert set(gaps_s(rows)) == {10}
    per_s = Counter(round(row[AT] / 1_000) for row in rows if row[AT] > START + 60_000)
    assert set(per_s.values()) == {10}


def test_whose_turn_it_is_outlives_a_restart() -> None:
    settings = ObserverSettings("test", samples_per_s=7.0)
    scene = crowd(60, 90)
    assert health(scene, settings, Random(3)) == health(scene, settings)


def test_who_is_in_danger_waits_for_no_turn() -> None:
    scene = crowd(100, 60)
    silent = "m-00007"
    scene.events = [
        event for event in scene.events if event.member_id != silent or event.decided_at_ms < START + 10_000
    ]
    rows = health(scene, ObserverSettings("test", samples_per_s=0.1))
    assert sum(row[MEMBER] == silent and row[STATUS] == "imminent" for row in rows) >= 15


@pytest.mark.parametrize("restarts", [False, True])
def test_who_is_out_of_danger_waits_for_no_turn_either(restarts: bool) -> None:
    """It was heard; its next sample is due in five seconds, and would be in minutes in a crowd."""
    scene = crowd(100, 60)
    back, heard_s = "m-00007", 46
    scene.events = [
        event
        for event in scene.events
        if event.member_id != back or not START + 10_000 <= event.decided_at_ms < START + heard_s * 1_000
    ]
    rows = health(scene, ObserverSettings("test", samples_per_s=0.1), Random(4) if restarts else None)
    statuses = [((row[AT] - START) // 1_000, row[STATUS]) for row in rows if row[MEMBER] == back]
    assert statuses[-2:] == [(heard_s - 1, "imminent"), (heard_s, "ok")], "once, in the step in which it was heard"


def test_who_is_looked_at_does_not_grow_with_who_is_held(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a second in which nothing is heard and no sample is due nobody is."""
    looked_at = 0

    def keep(samples: Samples, *given: object) -> None:
        nonlocal looked_at
        looked_at += 1
        real(samples, *given)  # type: ignore[arg-type]

    real = Samples.keep
    monkeypatch.setattr(Samples, "keep", keep)
    scene = crowd(300, 10)
    observer = Observer(SETTINGS)
    observer.step(scene.events)
    looked_at = 0
    before = len(scene.events)
    scene.tick(10_000)
    observer.step(scene.events[before:])
    assert looked_at == 0
    before = len(scene.events)
    scene.tick(16_000)
    assert len(observer.step(scene.events[before:])["health"]) == looked_at == 300
