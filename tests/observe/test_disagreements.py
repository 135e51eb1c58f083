"""Where server.log says otherwise than was concluded: counted, and never where all is well.

Goal: a healthy run counts none, an outage neither, and each kind is counted once per line. Method: every recorded story
with the server.log of its broker, as it is and with one line changed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest

from kardia.events import Event, Kind
from kardia.observe import Observer, ObserverSettings, disagreements
from kardia.tables import PROGRESS
from tests.support.stories import CORPORA, lanes_of

Lanes = tuple[tuple[Event, ...], ...]
WITH_SERVER_LOG = sorted({path.parent.name for path in CORPORA.glob("*/server*.log.gz")})
DIVERGENCES = PROGRESS.names.index("divergences")


def what(event: Event) -> str:
    return str((event.detail or {}).get("what", "")) if event.kind == Kind.COORDINATOR_LINE else ""


def divergences(lanes: Lanes) -> int:
    """As the rows of `progress` tell them."""
    found = 0
    for lane, events in enumerate(lanes):
        observer = Observer(ObserverSettings("test"), lane)
        for rows in (observer.step(events), observer.finish()):
            found += sum(row[DIVERGENCES] for row in rows["progress"])
    return found


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


@pytest.fixture
def kinds(monkeypatch: pytest.MonkeyPatch) -> Counter[str | None]:
    """What is decided about each line."""
    found: Counter[str | None] = Counter()
    of_eviction, of_generation = disagreements.of_eviction, disagreements.of_generation

    def eviction(*given: object) -> str | None:
        kind = of_eviction(*given)  # type: ignore[arg-type]
        found[kind] += 1
        return kind

    def generation(*given: object) -> str | None:
        kind = of_generation(*given)  # type: ignore[arg-type]
        found[kind] += 1
        return kind

    monkeypatch.setattr(disagreements, "of_eviction", eviction)
    monkeypatch.setattr(disagreements, "of_generation", generation)
    return found


@pytest.mark.parametrize("name", WITH_SERVER_LOG)
def test_a_recorded_story_has_none(name: str, kinds: Counter[str | None]) -> None:
    """Neither a healthy one nor one with an outage: what the broker did is what is concluded of it."""
    divergences(lanes_of(name, server_log=True))
    assert set(kinds) == {None}
    assert kinds[None] >= 3, "there were lines to look at"


@pytest.mark.parametrize("by_ms", [-3_000.0, 4_000.0])
def test_an_eviction_at_another_instant(by_ms: float, kinds: Counter[str | None]) -> None:
    name = "c01_kill-4.1.2"
    before = divergences(lanes_of(name, server_log=True))
    lanes = changed(name, lambda event: moved(event, by_ms) if what(event) == "member_failed" else None)
    assert divergences(lanes) > before  # what follows from it may differ as well
    assert kinds["another_instant"] == 1


@pytest.mark.parametrize("by_ms", [-10.0, 150.0])
def test_a_timer_that_fires_late_and_stamps_of_a_millisecond_are_no_disagreement(
    by_ms: float, kinds: Counter[str | None]
) -> None:
    lanes = changed("c01_kill-4.1.2", lambda event: moved(event, by_ms) if what(event) == "member_failed" else None)
    divergences(lanes)
    assert set(kinds) == {None}


def test_an_eviction_of_somebody_who_had_left(kinds: Counter[str | None]) -> None:
    name = "c05_leave-3.9.2"
    before = divergences(lanes_of(name, server_log=True))

    def failed(event: Event) -> Event | None:
        if what(event) != "member_left":
            return None
        return moved(event, 1_000)._replace(detail={"what": "member_failed", "reason": "", "members": []})

    assert divergences(changed(name, failed)) == before + 1
    assert kinds["another_cause"] == 1


def test_an_assignment_for_another_generation(kinds: Counter[str | None]) -> None:
    name = "c01_kill-4.1.2"
    before = divergences(lanes_of(name, server_log=True))

    def other(event: Event) -> Event | None:
        return event._replace(generation_id=event.generation_id + 1) if what(event) == "assignment_received" else None

    assert divergences(changed(name, other)) == before + 1
    assert kinds["another_generation"] == 1


def test_kinds_are_a_closed_list(kinds: Counter[str | None]) -> None:
    lanes = changed("c01_kill-4.1.2", lambda event: moved(event, -3_000) if what(event) == "member_failed" else None)
    divergences(lanes)
    assert set(kinds) - {None} <= set(disagreements.KINDS)
