"""The short way of requests of members that are well changes nothing: the same rows of every table, and the same state,
as when each of them goes the long way; and most requests of a story go it."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kardia.events import Event, Kind
from kardia.observe import Observer, ObserverSettings
from tests.observe.test_laws import ticked
from tests.support.stories import FIRST_LIGHT, MODERN_STORIES, lanes_of

SETTINGS = ObserverSettings("test")


class Long(Observer):
    """An observer that knows no short way."""

    def _at_once(self, event: Event, at: float) -> bool:  # noqa: ARG002
        return False

    def _accept_all(self, events: object) -> None:
        for event in events:  # type: ignore[attr-defined]
            self._accept(event)


class Counting(Observer):
    """Counts what goes the short way, by kind."""

    short: dict[int, int]

    def _at_once(self, event: Event, at: float) -> bool:
        taken = super()._at_once(event, at)
        if taken:
            self.short[event.kind] = self.short.get(event.kind, 0) + 1
        return taken


@pytest.mark.parametrize("name", [*FIRST_LIGHT, *MODERN_STORIES])
@settings(max_examples=6, deadline=None)
@given(data=st.data())
def test_the_short_way_says_and_keeps_the_same(name: str, data: st.DataObject) -> None:
    for events in map(ticked, lanes_of(name)):
        cuts = data.draw(st.lists(st.integers(0, len(events)), max_size=12).map(sorted))
        one, other = Observer(SETTINGS), Long(SETTINGS)
        for begin, end in pairwise([0, *cuts, len(events)]):
            assert one.step(events[begin:end]) == other.step(events[begin:end])
            assert one.snapshot() == other.snapshot()
        assert one.finish() == other.finish()


def test_nearly_all_requests_of_a_story_go_it() -> None:
    said = dict.fromkeys((int(Kind.HEARTBEAT), int(Kind.FETCH)), 0)
    short: dict[int, int] = {}
    for events in map(ticked, lanes_of("c04_mpi-4.1.2")):
        watching = Counting(SETTINGS)
        watching.short = short
        watching.step(events)
        for event in events:
            if event.kind in said and event.error_code == 0:
                said[event.kind] += 1
    for kind, count in said.items():
        assert short[kind] > 0.6 * count, kind
