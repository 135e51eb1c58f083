"""A restart changes no row: every recorded and simulated story, written down and read back between any two steps.

The same steps are taken by an observer that lives through all of them and by one that is made anew from its snapshot
again and again. All tables must agree, `health` and `progress` too, because the steps are the same; and what is kept
beside the snapshot, the index of members by their clients, must be what a restart makes of it.
"""

from __future__ import annotations

from collections.abc import Iterable
from random import Random

import pytest

from kardia.events import Event
from kardia.observe import Observer, ObserverSettings
from kardia.tables import LIVE_TABLES, Row
from tests.corpora.test_outages import OF_THREE, OUTAGES
from tests.support.restored import restored
from tests.support.scene import Scene
from tests.support.stories import STORIES, lanes_of, named, read_live, stamps_of
from tests.truth.fleet.run import play
from tests.truth.fleet.scenarios import SCENARIOS, Scenario
from tests.truth.fleet.seen import observe

SETTINGS = ObserverSettings("test")


def said(steps: Iterable[list[Event]], restarts_in: Random | None) -> dict[str, list[Row]]:
    """Rows of all steps. `restarts_in`: restarts in one step of three, drawn from it; None: never."""
    observer, rows = Observer(SETTINGS), {name: list[Row]() for name in LIVE_TABLES}
    for step in steps:
        add(rows, observer.step(step))
        assert clients_of(observer) == clients_of(restored(observer))
        if restarts_in is not None and restarts_in.random() < 1 / 3:
            observer = restored(observer)
    add(rows, observer.finish())
    return rows


def add(rows: dict[str, list[Row]], more: dict[str, list[Row]]) -> None:
    """Append what a step said."""
    for table, some in more.items():
        rows[table].extend(some)


def clients_of(observer: Observer) -> dict[tuple[int, str, str], set[tuple[str, str]]]:
    """The index of members by what a FETCH tells, by names."""
    return {
        client: {(group.group_id, member.member_id) for group, member in found.values()}
        for client, found in observer.clients.items()
    }


@pytest.mark.parametrize("name", STORIES)
def test_a_recorded_story_is_told_the_same_with_restarts(name: str) -> None:
    for lane, events in enumerate(lanes_of(name)):
        steps = list(read_live(events, 1_000))
        assert said(steps, Random(lane)) == said(steps, None)


@pytest.mark.parametrize("server_log", [False, True])
@pytest.mark.parametrize("name", [*OUTAGES, *OF_THREE])
def test_a_recorded_outage_is_told_the_same_with_restarts(name: str, server_log: bool) -> None:
    """What a silence of the log is taken for rests on much that is remembered between two steps."""
    for lane, events in enumerate(lanes_of(name, server_log=server_log, offsets=False)):
        steps = list(read_live(events, 1_000, stamps_of(name)))
        assert said(steps, Random(lane)) == said(steps, None)


@pytest.mark.parametrize(
    ("version", "scenario"),
    [
        # The largest takes longer than all others together: in a long run.
        pytest.param(version, one, marks=[pytest.mark.long] if one.name == "huge" else [])
        for version in ("3.9.2", "4.4.0")
        for one in SCENARIOS.values()
        if one.takes_its_turn and one.is_played_by(version)
    ],
    ids=lambda one: getattr(one, "name", one),
)
def test_a_simulated_story_is_told_the_same_with_restarts(version: str, scenario: Scenario) -> None:
    run = play(version, 71, 4, scenario)
    assert observe(run, between_steps=restored).rows == observe(run).rows


@pytest.mark.parametrize(("seed", "scenario"), [(88001, "consumer, gaps"), (93001, "migration")])
def test_what_waits_for_records_is_told_the_same_with_restarts(seed: int, scenario: str) -> None:
    """It is taken where nothing else came before it in a step, and its group may have become a classic one since."""
    run = play("4.1.2", seed, 5, SCENARIOS[scenario])
    assert observe(run, between_steps=restored).rows == observe(run).rows


def moved_house(*, leaves: bool) -> Scene:
    """A member joins from one address and, when the group rebalances, from another one; later it may leave."""
    scene = Scene()
    scene.joined(1_000, 1, {"a": 0, "b": 0})
    scene.synced(1_010, "a", "b")
    scene.fetch(1_100, "a")
    scene.hosts["a"] = "10.0.0.77"
    scene.joined(5_000, 2, {"a": 4_900, "b": 4_900})
    scene.synced(5_010, "a", "b")
    if leaves:
        scene.leave(6_000, "a")
    scene.hosts["a"] = "10.0.0.9"
    scene.fetch(7_000, "a", data=500)
    scene.hosts["a"] = "10.0.0.77"
    scene.heartbeats(8_000, 11_000, *("b" if leaves else "ab"))
    return scene


@pytest.mark.parametrize("leaves", [False, True])
def test_who_comes_from_another_address_is_not_found_at_the_old_one(leaves: bool) -> None:
    """What is fetched from there is no poll of it any more: somebody else may have the address by then."""
    scene = moved_house(leaves=leaves)
    scene.tick(12_000)
    steps = [[event] for event in scene.events]
    assert said(steps, Random(1)) == said(steps, None)
    evidence = {row["member_id"]: row["poll_evidence"] for row in named("health", said(steps, None)["health"])}
    assert evidence["a"] == "sync"
