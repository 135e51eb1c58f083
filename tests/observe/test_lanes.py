"""History played with six lanes up to anywhere, and from there on with another number: the tables are the same.

Goal: every row of every table that does not name its lane, as of an undisturbed run. Method: recorded stories as
collectors send them, stopped between two looks at the logs, their state through its saved form into fewer and more
lanes, there and back; then lanes that are not at one point, and a gap instead.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cache
from typing import Any

import pytest

from ingest.archives.ranges import tick
from kardia.events import ALL_SHARDS, Event, Kind, broker_of, lane_of
from kardia.lag import lanes as lag_lanes
from kardia.observe import Observer, ObserverSettings
from kardia.observe.lanes import UnevenError, regrouped
from kardia.tables import LIVE_TABLES
from tests.support.restored import restored
from tests.support.stories import lanes_of

SETTINGS = ObserverSettings("test")
LANES = 6
STORIES = ("c04_mpi-4.1.2", "c06_static-3.9.2", "m01_coordinator_kill-4.1.2", "k01_kill-4.1.2", "t01_streams-4.4.0")
TABLES = tuple(name for name in LIVE_TABLES if name not in ("progress", "lag"))
EVERY_MS = 1_000.0

Rows = dict[str, Counter[str]]
Look = list[list[Event]]
"""What one look at the logs brings, by lane."""


@cache
def _events(name: str) -> tuple[Event, ...]:
    """All events of a story but ticks, once, as they were logged."""
    found = {
        (event.source, event.start, event.end, event.shard, event.kind): event
        for lane in lanes_of(name, server_log=True)
        for event in lane
        if event.kind != Kind.TICK
    }
    return tuple(sorted(found.values(), key=lambda event: (event.logged_at_ms, event.source, event.start)))


def looks(name: str, lanes: int) -> list[Look]:
    """A story in looks of a second, each with a tick of each log in every lane."""
    events = _events(name)
    sources = sorted({event.source for event in events})
    found: list[Look] = []
    at, now = 0, events[0].logged_at_ms
    while at < len(events):
        now += EVERY_MS
        look: Look = [[] for _ in range(lanes)]
        begin = at
        while at < len(events) and events[at].logged_at_ms <= now:
            event = events[at]
            for lane in range(lanes) if event.shard == ALL_SHARDS else (lane_of(event.shard, lanes),):
                look[lane].append(event)
            at += 1
        for part in look:
            sent = Counter(event.source for event in part)
            part += [tick(source, begin, at, now, sent[source], sent[source], {}, now) for source in sources]
        found.append(look)
    return found


def step(observers: Sequence[Observer], given: Sequence[Look], rows: Rows) -> None:
    for look in given:
        for observer, events in zip(observers, look, strict=True):
            _count(observer.step(events), rows)


def finish(observers: Sequence[Observer], rows: Rows) -> Rows:
    for observer in observers:
        _count(observer.finish(), rows)
    return rows


def _count(given: dict[str, list[Any]], rows: Rows) -> None:
    for name in TABLES:
        rows.setdefault(name, Counter()).update(repr(row) for row in given.get(name, ()))


def saved(observers: Sequence[Observer]) -> list[Observer]:
    """Observers as another process reads them."""
    return [restored(one) for one in observers]


def begun(lanes: int) -> list[Observer]:
    return [Observer(SETTINGS, lane) for lane in range(lanes)]


@cache
def undisturbed(name: str) -> Rows:
    rows: Rows = {}
    observers = begun(LANES)
    step(observers, looks(name, LANES), rows)
    return finish(observers, rows)


def changed(name: str, at: int, lanes: int, back_at: int | None = None) -> Rows:
    """With six lanes up to one look, then with `lanes`, perhaps with six again."""
    rows: Rows = {}
    observers = begun(LANES)
    step(observers, looks(name, LANES)[:at], rows)
    observers = saved(regrouped(saved(observers), SETTINGS, lanes))
    step(observers, looks(name, lanes)[at:back_at], rows)
    if back_at is not None:
        observers = saved(regrouped(saved(observers), SETTINGS, LANES))
        step(observers, looks(name, LANES)[back_at:], rows)
    return finish(observers, rows)


@pytest.mark.parametrize("lanes", [4, 12, 1])
@pytest.mark.parametrize("name", STORIES)
def test_the_rest_is_told_as_if_nothing_had_happened(name: str, lanes: int) -> None:
    count = len(looks(name, LANES))
    expected = undisturbed(name)
    assert expected["transitions"]
    for part in (0.25, 0.5, 0.75):
        found = changed(name, int(count * part), lanes)
        for table in TABLES:
            assert found[table] == expected[table], (table, part)


def test_there_and_back() -> None:
    name = STORIES[0]
    count = len(looks(name, LANES))
    assert changed(name, count // 3, 12, 2 * count // 3) == undisturbed(name)


def test_lanes_that_have_not_read_the_same_are_refused_and_named() -> None:
    observers = begun(LANES)
    step(observers, looks(STORIES[0], LANES)[:20], {})
    ahead = looks(STORIES[0], LANES)[20]
    for lane in (0, 1, 2, 4, 5):  # a collector that was killed before it had sent the last lane but two its part
        observers[lane].step(ahead[lane])
    with pytest.raises(UnevenError, match=r"127\.0\.0\.1:\d+/request is read to .*Z, in lane 3 to .*Z"):
        regrouped(observers, SETTINGS, 4)


def test_where_it_is_accepted_the_difference_is_a_gap_in_every_lane() -> None:
    observers = begun(LANES)
    given = looks(STORIES[0], LANES)
    step(observers, given[:20], {})
    for lane in (0, 1, 2, 4, 5):
        observers[lane].step(given[20][lane])
    made = saved(regrouped(observers, SETTINGS, 4, accept_loss=True))
    broker = next(broker for broker in made[0].queues if broker.startswith("127."))
    for observer, events in zip(made, looks(STORIES[0], 4)[21], strict=True):
        observer.step(events)
        assert observer.blind_to[broker] == given[20][0][-1].logged_at_ms
    groups = [group for observer in made for group in observer.groups.values()]
    assert groups
    assert sum(observer.streams[f"{broker}/request"].gaps for observer in made) == 0, "told"


def test_a_silence_that_may_be_that_of_a_restart_is_waited_for() -> None:
    name = "m01_coordinator_kill-4.1.2"
    observers = begun(LANES)
    given = looks(name, LANES)
    log = next(event.source for event in _events(name) if "/request/" in event.source)
    step(observers, given[:10], {})
    at = given[9][0][-1].logged_at_ms
    silence = {"silences": [[at + 1, at + 5_000]], "first_line_at_ms": at + 5_000, "last_line_at_ms": at + 6_000}
    for number, observer in enumerate(observers):
        sources = {event.source: event for event in given[9][number] if event.kind == Kind.TICK}
        told = [
            tick(source, one.end, one.end + 1, at + 6_000, 0, 0, {}, at, silence if source == log else None)
            for source, one in sources.items()
        ]
        observer.step(told)
    with pytest.raises(UnevenError, match=rf"the log of {broker_of(log)} was silent until"):
        regrouped(saved(observers), SETTINGS, 4)
    assert regrouped(saved(observers), SETTINGS, 4, accept_loss=True)


def test_what_was_sent_before_is_known_in_the_new_lanes() -> None:
    """A collector whose positions were not saved sends the end of what it has sent once more, to the new topic."""
    given, again = looks(STORIES[0], LANES), looks(STORIES[0], 4)
    observers, rows = begun(LANES), Rows()
    step(observers, given[:20], rows)
    observers = saved(regrouped(observers, SETTINGS, 4))
    repeated: Rows = {}
    step(observers, again[17:20], repeated)
    assert not any(repeated[name] for name in TABLES if name != "health")
    step(observers, again[20:], rows)
    found = finish(observers, rows)
    expected = undisturbed(STORIES[0])
    for table in ("transitions", "rebalances", "members", "predictions"):
        assert found[table] == expected[table], table


def test_lag_goes_with_its_group_and_an_end_is_taken_from_whom_has_followed_it_longest() -> None:
    commits = [["orders", 0, 7, 1_000, 900, "known", -1, [1_000, 7, 3], ["", "", -1, -1]]]
    first = [
        [["a", 0, commits]],
        [["orders", 0, 0, 1, 4, [10, 500, 900]]],
        [["ends/run.0", 4, 8, 900]],
        [4, 10.0, 900],
        [[5_000, "a", "orders", 0]],
        [["a", "orders", 0, 400]],
        [["a", "orders", 0]],
        [["orders", 0, ["a"]]],
        [["a", [["orders", 0, "m", "c"]]], ["unseen", []]],
    ]
    second = [
        [["b", 1, [["orders", 0, 6, 1_000, 800, "known", -1, [1_000, 6, 4], ["", "", -1, -1]]]]],
        [["orders", 0, 0, 1, 2, [10, 400, 900]]],
        [["ends/run.1", 2, 8, 900]],
        [2, 5.0, 800],
        [],
        [],
        [["b", "orders", 0]],
        [["orders", 0, ["b"]]],
        [],
    ]
    [joined] = lag_lanes.regrouped([first, second], 1)
    groups, ends, feeds, counts, checks, dirty, by_told, readers, holders, asked = joined
    assert [one[0] for one in groups] == ["a", "b"]
    assert ends == [["orders", 0, 0, 1, 2, [10, 400, 900]]], "followed since 400, by the chain that is number 2 now"
    assert feeds == [["ends/run.0", 1, 8, 900], ["ends/run.1", 2, 8, 900]]
    assert counts == [2, 5.0, 900, -1], "nobody has waited for a look"
    assert asked == []
    assert (checks, dirty, readers) == (
        [[5_000, "a", "orders", 0]],
        [["a", "orders", 0, 400]],
        [["orders", 0, ["a", "b"]]],
    )
    assert by_told == [["b", "orders", 0], ["a", "orders", 0]], "the one told longest ago first"
    assert [one[0] for one in holders] == ["a", "unseen"]
    apart = lag_lanes.regrouped([joined], 2)
    assert [[one[0] for one in book[0]] for book in apart] == [["a"], ["b"]]
    assert [book[6] for book in apart] == [[["a", "orders", 0]], [["b", "orders", 0]]]
    for number, book in enumerate(apart):
        observer = Observer(SETTINGS, number)
        observer.lag.restore(book)
        assert observer.lag.snapshot() == book
