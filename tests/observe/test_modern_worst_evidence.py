"""Recorded stories of groups with epochs whose evidence is damaged: nobody is evicted who was not, and what is called
exact is true.

Goal: the worst evidence makes answers fewer or less sure, never wrong. Method: each story is damaged by a seed (records
lost or late, a gap, everything twice), fed in steps of some size with the state written down and read back between
them, with and without the session timeout, and its ends are held against the truth.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from kardia.events import ALL_SHARDS, Event, Kind
from kardia.observe import Observer, ObserverSettings
from kardia.tables import Row
from tests.observe.test_laws import ticked
from tests.support.restored import restored
from tests.support.stories import MODERN_STORIES, NOISE_GROUPS, Story, lanes_of, standing

WITHIN_MS = 12
"""Stamps, and what a timer is late."""

STORIES = (*MODERN_STORIES, "m01_coordinator_kill-4.1.2")

Damage = Callable[[list[Event], random.Random], list[Event]]


def is_record(event: Event) -> bool:
    return event.source.startswith("offsets-topic")


def records_lost(events: list[Event], chance: random.Random) -> list[Event]:
    return [event for event in events if not is_record(event) or chance.random() > 0.3]


def records_late(events: list[Event], chance: random.Random) -> list[Event]:
    late_ms = chance.choice((500, 3_000, 20_000))
    return sorted(events, key=lambda event: event.logged_at_ms + late_ms * is_record(event))


def everything_twice(events: list[Event], _: random.Random) -> list[Event]:
    return events + events[:-1]


def a_gap(events: list[Event], chance: random.Random) -> list[Event]:
    """Some lines of the request log are lost, and the collector says so."""
    source = next((event.source for event in events if "/request/" in event.source), None)
    if source is None or len(events) < 60:
        return events
    begin = chance.randrange(10, len(events) - 20)
    end = min(len(events) - 5, begin + chance.randrange(5, 200))
    from_ms, to_ms = events[begin].logged_at_ms, events[end].logged_at_ms
    detail = {"from_ms": from_ms, "to_ms": to_ms, "reason": "lost_lines"}
    gap = Event(int(Kind.GAP), ALL_SHARDS, source, 0, 0, to_ms, to_ms, to_ms, to_ms, detail=detail)
    lost = [event for event in events[begin:end] if "/request/" in event.source and event.kind != Kind.TICK]
    gone = set(map(id, lost))
    return [*(one for one in events[:begin]), gap, *(one for one in events[begin:] if id(one) not in gone)]


def said(events: list[Event], given_ms: int, lane: int, step: int, chance: random.Random) -> dict[str, list[Row]]:
    settings = ObserverSettings(
        "test", consumer_session_ms=given_ms, share_session_ms=given_ms, streams_session_ms=given_ms
    )
    observer, rows = Observer(settings, lane), dict[str, list[Row]]()
    for begin in range(0, len(events), step):
        for table, some in observer.step(events[begin : begin + step]).items():
            rows.setdefault(table, []).extend(some)
        if chance.random() < 0.3:
            observer = restored(observer)
    for table, some in observer.finish().items():
        rows.setdefault(table, []).extend(some)
    return rows


def hold_against_truth(name: str, rows: list[dict[str, Any]]) -> None:
    items = [item for item in Story(name).expect["evictions"] if not item.get("not_an_eviction_by_time")]
    true = {(item["group"], item["member_id"]): item["t"] for item in items}
    for row in rows:
        key = (row["group_id"], row["member_id"])
        if row["end_cause"] not in ("session_expired", "rebalance_timeout") or row["protocol"] == "classic":
            continue
        assert key in true, row
        if row["certainty"] == "exact" and row["at_bound_ms"] is not None:
            last_ms = row["ended_at_ms"] + row["at_bound_ms"]
            assert row["ended_at_ms"] - WITHIN_MS <= true[key] <= last_ms + WITHIN_MS, row


def damaged(name: str, damage: Damage, given_ms: int, seed: int) -> None:
    chance = random.Random(seed)
    for lane, events in enumerate(lanes_of(name)):
        quiet = [event for event in events if event.kind != Kind.TICK]
        if quiet:
            hurt = damage(ticked(tuple(quiet), chance.choice((10, 50))), chance)
            rows = said(hurt, given_ms, lane, chance.choice((7, 50, 100_000)), chance)
            lives = [row for row in standing("members", rows["members"]) if row["group_id"] not in NOISE_GROUPS]
            hold_against_truth(name, lives)


@pytest.mark.parametrize("damage", [records_lost, records_late, everything_twice, a_gap])
@pytest.mark.parametrize("name", STORIES)
def test_nobody_is_evicted_who_was_not_and_what_is_exact_is_true(name: str, damage: Damage) -> None:
    damaged(name, damage, -1, 1)
    damaged(name, damage, 10_000, 2)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("damage", [records_lost, records_late, a_gap])
@pytest.mark.parametrize("name", STORIES)
def test_the_same_with_many_seeds(name: str, damage: Damage, seed: int) -> None:
    damaged(name, damage, -1 if seed % 2 else 10_000, seed)
