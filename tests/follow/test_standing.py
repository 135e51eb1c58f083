"""Several courses stand: each further clue is put to all, what they share is said, and what they do not is not."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from kardia.coordinator.classic.operations import Answer
from kardia.coordinator.operations import Load, Unload
from kardia.events import Event, Kind
from kardia.follow import Following, explaining
from tests.follow.test_candidates import Broker, explained, followed, heartbeat, join, leave, sync
from tests.follow.traffic import SOURCE, START_MS, event_of

A, B, C, D = "a-1", "b-2", "c-3", "d-4"
JOINED_MS = START_MS + 7_000
"""Somebody joined while the initial delay ran, so it ran twice."""


def together(*last_heard_ms: int) -> Broker:
    """Members a, b, ... in generation 1, each heard last so long after its phase ended."""
    broker, names = Broker(), "abcd"[: len(last_heard_ms)]
    for number, name in enumerate(names, 1):
        broker.ask(START_MS + 999 + number, join(number, name))
    ids = [f"{name}-{number}" for number, name in enumerate(names, 1)]
    for number, member_id in enumerate(ids, 1):
        given = ids if member_id == A else []
        broker.ask(JOINED_MS + 100 + number, sync(10 + number, member_id, 1, *given))
    for at_ms, member_id in sorted(zip(last_heard_ms, ids, strict=True)):
        broker.ask(JOINED_MS + at_ms, heartbeat(20 + len(broker.events), member_id, 1))
    return broker


def ended(following: Following) -> dict[str, tuple[int, int]]:
    """Member -> between which instants its session ended, counted from when all had joined."""
    return {one.member_id: (one.from_ms - JOINED_MS, one.to_ms - JOINED_MS) for one in following.ends}


def told(events: Sequence[Event]) -> Following:
    """All of them, with who went."""
    following = Following("3.9.2", keeps_ends=True)
    following.take(events)
    following.finish()
    return following


def test_what_all_share_is_said_and_what_only_some_have_is_not() -> None:
    """Nobody sees who began the rebalance: that a went, that b went, or somebody else. In all of them d is evicted."""
    broker = together(1_000, 2_000, 4_000, 3_000)
    broker.ask(JOINED_MS + 5_000, leave(40, A))
    unseen = broker.events.pop()
    assert unseen.member_id == A or unseen.detail
    broker.ask(JOINED_MS + 5_500, heartbeat(41, C, 1))
    broker.ask(JOINED_MS + 5_600, join(42, "c", C))
    broker.go_on(JOINED_MS + 13_000)
    broker.ask(JOINED_MS + 13_050, sync(43, C, 2, C))
    broker.ask(JOINED_MS + 16_000, heartbeat(44, C, 2))
    following = told(broker.events)
    assert explained(following) == {"rebalance begun unseen"}
    assert ended(following) == {D: (13_000, 13_000)}
    assert {one.member_id for one in following.possible} == {A, B}
    assert {one.kind for one in following.possible} == {"session_expired"}


def test_an_end_is_said_from_when_it_was_due_until_something_shows_it() -> None:
    broker = together(9_000, 2_000)
    broker.ask(JOINED_MS + 12_300, heartbeat(40, A, 1))
    broker.ask(JOINED_MS + 12_310, join(41, "a", A))
    broker.ask(JOINED_MS + 12_320, sync(42, A, 2, A))
    broker.ask(JOINED_MS + 14_000, heartbeat(43, A, 2))
    following = told(broker.events)
    assert following.counts().explained == {}
    assert ended(following) == {B: (12_000, 12_300)}
    assert following.possible == []


def test_an_end_that_came_late_is_not_said_before_what_shows_that_it_had_not_come() -> None:
    broker = together(9_000, 2_000)
    late_ms = JOINED_MS + 12_080
    before = [event_of(heartbeat(40, A, 1), Answer(40, late_ms, 0), late_ms, "a")]
    broker.ask(JOINED_MS + 12_300, heartbeat(41, A, 1))
    broker.ask(JOINED_MS + 12_310, join(42, "a", A))
    broker.ask(JOINED_MS + 12_320, sync(43, A, 2, A))
    broker.ask(JOINED_MS + 14_000, heartbeat(44, A, 2))
    following = told([*broker.events, *before])
    assert explained(following) == {"timer late"}
    assert ended(following) == {B: (12_080, 12_300)}


def both_due(*later: Event) -> Following:
    """The session of b or that of c has just ended when a is told of it; both are due 2 ms later."""
    broker = together(9_000, 2_000, 2_000)
    at_ms = JOINED_MS + 11_998
    told_ms = event_of(heartbeat(40, A, 1), Answer(40, at_ms, 27), at_ms, "a")
    return followed([*broker.events, told_ms, *later])


def test_a_course_that_contradicts_goes_while_another_stands() -> None:
    at_ms = JOINED_MS + 11_999
    first, later = both_due(), both_due(event_of(heartbeat(41, B, 1), Answer(41, at_ms, 27), at_ms, "b"))
    assert explained(first) == explained(later) == {"order"}
    assert first.counts().explained.total() == later.counts().explained.total() == 1
    (before,), (after,) = first.followers.values(), later.followers.values()
    assert len(before._standing) > len(after._standing) > 0


def test_courses_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    for bound in (1, 2, 3):
        monkeypatch.setattr(explaining, "STANDING_MAX", bound)
        (follower,) = both_due().followers.values()
        assert len(follower._standing) <= bound


def test_at_an_anchor_they_are_one_again() -> None:
    broker = together(9_000, 2_000, 2_000)
    broker.ask(JOINED_MS + 12_000, heartbeat(40, A, 1))
    early_ms = JOINED_MS + 11_998
    events = [*broker.events[:-1], event_of(heartbeat(40, A, 1), Answer(40, early_ms, 27), early_ms, "a")]
    seen = len(broker.events)
    broker.ask(JOINED_MS + 12_100, join(41, "a", A))
    broker.ask(JOINED_MS + 12_110, sync(42, A, 2, A))
    broker.ask(JOINED_MS + 14_000, heartbeat(43, A, 2))
    following = told([*events, *broker.events[seen:]])
    assert explained(following) == {"order"}
    (follower,) = following.followers.values()
    assert len(follower._standing) == 1
    said = ended(following)
    assert set(said) == {B, C}
    assert all(from_ms <= 12_000 <= to_ms for from_ms, to_ms in said.values())


def test_sessions_of_a_group_that_was_loaded_end_by_the_load_that_answers_show() -> None:
    """Both members died with the broker. When it was back is not in the log; that a join phase waited for them is."""
    broker, loaded_ms = together(2_000, 3_000), JOINED_MS + 20_000
    down_ms = JOINED_MS + 5_000
    broker.go_on(down_ms)
    broker.coordinator.perform(Unload(-1), down_ms)
    broker.go_on(loaded_ms)
    broker.coordinator.perform(Load(-2), loaded_ms)
    broker.ask(loaded_ms + 4_000, join(40, "c"))
    broker.go_on(loaded_ms + 10_000)
    broker.ask(loaded_ms + 10_010, sync(41, "c-40", 2, "c-40"))
    broker.ask(loaded_ms + 12_000, heartbeat(42, "c-40", 2))
    at_ms = float(loaded_ms + 4_000)
    detail = {"processes": {"restarts": [[float(down_ms)]]}}
    tick = Event(int(Kind.TICK), -1, SOURCE, 90, 90, at_ms, at_ms, at_ms, at_ms, detail=detail)
    following = told([*broker.events, tick])
    assert explained(following) == {"loaded"}
    said = ended(following)
    assert set(said) == {A, B}
    assert all(from_ms <= 30_000 <= to_ms for from_ms, to_ms in said.values())
    assert all(to_ms - from_ms < 1_000 for from_ms, to_ms in said.values())
