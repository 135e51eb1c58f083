"""Folding changes nothing: the same rows of every table, whether quiet stretches are folded or read one by one."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kardia.events import Event, Kind
from kardia.observe import Observer, ObserverSettings, observer
from kardia.observe.facts.groups_of_lane import Facts
from kardia.observe.folding import quiet
from kardia.observe.folding.folded import Quiet, apply_one
from kardia.observe.state.group import Group
from kardia.tables import Row
from tests.observe.test_laws import ticked
from tests.support.folding import Folder
from tests.support.stories import FIRST_LIGHT, MODERN_STORIES, lanes_of

SETTINGS = ObserverSettings("test")


def said(steps: list[list[Event]], folding: bool) -> dict[str, list[Row]]:
    """What an observer says of these steps."""
    watching = Observer(SETTINGS)
    rows: dict[str, list[Row]] = {}
    for step in steps:
        folder = Folder()
        rest = [event for event in step if not (folding and folder.fold(event))]
        for table, some in watching.step(rest, folder.take()).items():
            rows.setdefault(table, []).extend(some)
    for table, some in watching.finish().items():
        rows.setdefault(table, []).extend(some)
    return rows


@pytest.mark.parametrize("name", [*FIRST_LIGHT, *MODERN_STORIES])
@settings(max_examples=8, deadline=None)
@given(data=st.data())
def test_folding_changes_nothing(name: str, data: st.DataObject) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(observer, "MOVE_MS", data.draw(st.sampled_from((500.0, 3_000.0, 30_000.0)), "MOVE_MS"))
        _compare(name, data)


def _compare(name: str, data: st.DataObject) -> None:
    for events in map(ticked, lanes_of(name)):
        cuts = data.draw(st.lists(st.integers(0, len(events)), max_size=12).map(sorted))
        steps = [events[begin:end] for begin, end in pairwise([0, *cuts, len(events)])]
        single, folded = said(steps, folding=False), said(steps, folding=True)
        for table, rows in single.items():
            assert folded[table] == rows, table


def test_most_of_a_story_is_quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[int] = []
    apply = apply_one

    def counting(facts: Facts, group: Group, found: Quiet) -> None:
        taken.append(sum(map(len, found.heartbeats)))
        apply(facts, group, found)

    monkeypatch.setattr(quiet, "apply_one", counting)
    monkeypatch.setattr(observer, "MOVE_MS", 500.0)
    heartbeats = 0
    for events in map(ticked, lanes_of("c04_mpi-4.1.2")):
        heartbeats += sum(event.kind == Kind.HEARTBEAT and event.error_code == 0 for event in events)
        said([events], folding=True)
    assert sum(taken) > heartbeats / 2


@pytest.mark.parametrize("name", FIRST_LIGHT)
def test_what_was_folded_comes_back(name: str) -> None:
    for events in lanes_of(name):
        folder = Folder()
        rest = [event for event in events if not folder.fold(event)]
        back = [event for stretch in folder.take() for event in stretch.events()]
        assert all(event.kind in (Kind.HEARTBEAT, Kind.FETCH) and event.error_code == 0 for event in back)
        assert sorted(map(_comparable, rest + back)) == sorted(map(_comparable, events))


def _comparable(event: Event) -> tuple[object, ...]:
    detail = {"bytes": (event.detail or {}).get("bytes", 0)} if event.kind == Kind.FETCH else event.detail
    return (*event[:-1], repr(detail))
