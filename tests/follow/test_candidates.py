"""Each candidate where it is what happened, and the classes of what none explains."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from kardia.coordinator.classic import operations as ops
from kardia.coordinator.classic.behaviour import behaviour_of
from kardia.coordinator.classic.coordinator import Coordinator
from kardia.coordinator.classic.operations import Operation
from kardia.coordinator.classic.settings import CoordinatorSettings
from kardia.events import Event, Kind
from kardia.follow import Following, SurpriseClass
from kardia.follow.candidates import CANDIDATES
from kardia.follow.surprises import Rules
from tests.follow.traffic import GROUP, SOURCE, START_MS, event_of

PROTOCOLS = (("range", b"\0\0\0\0\0\1\0\1a\xff\xff\xff\xff"),)


class Broker:
    """The model as a broker whose log is read."""

    def __init__(self, at_ms: int = START_MS, settings: CoordinatorSettings | None = None) -> None:
        settings = (settings or CoordinatorSettings())._replace(started_at_ms=at_ms)
        self.coordinator = Coordinator(behaviour_of("3.9.2"), settings)
        self.asked: dict[int, tuple[Operation, int]] = {}
        self.events: list[Event] = []

    def ask(self, at_ms: int, operation: Operation) -> None:
        """A request takes effect."""
        self.go_on(at_ms)
        self.asked[operation.number] = operation, at_ms
        self._answered(self.coordinator.perform(operation, at_ms))

    def go_on(self, at_ms: int) -> None:
        """Time passes."""
        self._answered(self.coordinator.advance(at_ms))

    def _answered(self, answers: Sequence[ops.Answer]) -> None:
        for answer in answers:
            operation, at_ms = self.asked[answer.number]
            who = getattr(operation, "client_id", "") or getattr(operation, "member_id", "")[:1]
            self.events.append(event_of(operation, answer, at_ms, who))


def join(number: int, name: str, member_id: str = "", session_ms: int = 10_000) -> ops.Join:
    """JoinGroup of version 3, so that nobody is asked to come again."""
    new_id = f"{name}-{number}"
    return ops.Join(
        number, 3, GROUP, member_id, None, name, "h", session_ms, 60_000, "consumer", PROTOCOLS, None, new_id
    )


def sync(number: int, member_id: str, generation_id: int, *given: str) -> ops.Sync:
    """SyncGroup."""
    return ops.Sync(number, 3, GROUP, generation_id, member_id, None, None, None, tuple((one, b"") for one in given))


def heartbeat(number: int, member_id: str, generation_id: int) -> ops.Heartbeat:
    """Heartbeat."""
    return ops.Heartbeat(number, 3, GROUP, generation_id, member_id, None)


def commit(number: int, member_id: str, generation_id: int) -> ops.Commit:
    """OffsetCommit."""
    return ops.Commit(number, 8, GROUP, generation_id, member_id, None, "t", 0, number)


def leave(number: int, member_id: str) -> ops.Leave:
    """LeaveGroup."""
    return ops.Leave(number, 5, GROUP, (ops.Leaving(member_id, None, None),))


def followed(events: Sequence[Event]) -> Following:
    """All of them, at once."""
    following = Following("3.9.2")
    following.take(events)
    following.finish()
    return following


def alone(broker: Broker, at_ms: int, first: int = 1) -> None:
    """Member a joins, syncs and heartbeats."""
    broker.ask(at_ms, join(first, "a"))
    broker.ask(at_ms + 3_010, sync(first + 1, f"a-{first}", 1, f"a-{first}"))
    broker.ask(at_ms + 6_000, heartbeat(first + 2, f"a-{first}", 1))


def explained(following: Following) -> set[str]:
    """Names of the candidates that stood, where nothing is a surprise."""
    assert following.surprises == []
    assert following.counts().predicted == following.counts().answers
    assert set(following.counts().explained) <= set(CANDIDATES)
    return set(following.counts().explained)


def test_a_group_that_died_begins_anew() -> None:
    before, after = Broker(), Broker(START_MS + 60_000)
    alone(before, START_MS + 1_000)
    before.ask(START_MS + 9_000, leave(9, "a-1"))
    alone(after, START_MS + 61_000, first=11)
    assert explained(followed([*before.events, *after.events])) == {"died"}


def test_a_group_that_lived_before_the_log_is_in_a_higher_generation() -> None:
    broker = Broker()
    alone(broker, START_MS + 1_000)
    broker.ask(START_MS + 9_000, leave(9, "a-1"))
    begins = len(broker.events)
    broker.ask(START_MS + 20_000, join(21, "b"))
    broker.ask(START_MS + 23_010, sync(22, "b-21", 3, "b-21"))
    assert explained(followed(broker.events[begins:])) == {"assumption dropped"}


@pytest.mark.parametrize("delay_ms", [0, 700, 5_000])
def test_the_initial_delay_is_found_by_the_answers(delay_ms: int) -> None:
    broker = Broker(settings=CoordinatorSettings(initial_rebalance_delay_ms=delay_ms))
    broker.ask(START_MS + 1_000, join(1, "a"))
    broker.ask(START_MS + 1_000 + delay_ms + 10, sync(2, "a-1", 1, "a-1"))
    broker.ask(START_MS + 9_000, heartbeat(3, "a-1", 1))
    following = followed(broker.events)
    assert explained(following) == {"setting"}
    assert following.broker.found() == {"group.initial.rebalance.delay.ms": delay_ms}


def test_bounds_and_sizes_are_found_by_refusals() -> None:
    broker = Broker(settings=CoordinatorSettings(group_max_size=1, group_min_session_timeout_ms=20_000))
    broker.ask(START_MS + 1_000, join(1, "a", session_ms=8_000))
    broker.ask(START_MS + 2_000, join(2, "a", session_ms=30_000))
    broker.ask(START_MS + 5_010, sync(3, "a-2", 1, "a-2"))
    broker.ask(START_MS + 6_000, join(4, "b", session_ms=30_000))
    following = followed(broker.events)
    assert explained(following) == {"setting"}
    assert following.broker.found()["group.max.size"] == 1
    assert 8_000 < following.broker.found()["group.min.session.timeout.ms"] <= 30_000


def test_a_session_timer_that_fires_late_is_held() -> None:
    broker = Broker()
    alone(broker, START_MS + 1_000)
    due_ms = START_MS + 17_000
    late = heartbeat(4, "a-1", 1)
    events = [*broker.events, event_of(late, ops.Answer(4, due_ms + 120, 0), due_ms + 120, "a")]
    assert explained(followed(events)) == {"timer late"}


def test_a_session_that_does_not_end_is_a_surprise_with_a_trace() -> None:
    broker = Broker()
    alone(broker, START_MS + 1_000)
    at_ms = START_MS + 40_000
    events = [*broker.events, event_of(heartbeat(4, "a-1", 1), ops.Answer(4, at_ms, 0), at_ms, "a")]
    following = followed(events)
    (surprise,) = following.surprises
    assert (surprise.request, surprise.predicted, surprise.seen) == ("Heartbeat", "25 UNKNOWN_MEMBER_ID", "0 NONE")
    assert surprise.trace
    assert following.counts().unexplained == 1


def test_after_a_surprise_the_next_join_phase_is_an_anchor() -> None:
    broker = Broker()
    alone(broker, START_MS + 1_000)
    at_ms = START_MS + 40_000
    strange = event_of(heartbeat(4, "a-1", 1), ops.Answer(4, at_ms, 0), at_ms, "a")
    broker.ask(START_MS + 50_000, join(11, "b"))
    broker.ask(START_MS + 53_010, sync(12, "b-11", 3, "b-11"))
    broker.ask(START_MS + 56_000, heartbeat(13, "b-11", 3))
    following = followed([*broker.events, strange])
    assert len(following.surprises) == 1
    assert following.counts().unknown == {"after a surprise": 1}  # the JoinGroup that leads to the anchor


def test_what_is_lost_is_missing_evidence() -> None:
    broker = Broker()
    alone(broker, START_MS + 1_000)
    end_ms = float(START_MS + 30_000)
    detail = {"from_ms": float(START_MS + 8_000), "to_ms": end_ms, "reason": "lost_lines"}
    gap = Event(int(Kind.GAP), -1, SOURCE, 90, 90, end_ms, end_ms, end_ms, end_ms, detail=detail)
    at_ms = START_MS + 31_000
    after = event_of(heartbeat(4, "a-1", 7), ops.Answer(4, at_ms, 0), at_ms, "a")
    following = followed([*broker.events, gap, after])
    assert [one.surprise_class for one in following.surprises] == [SurpriseClass.EVIDENCE_MISSING]


def test_a_rule_is_the_brokers_only_when_it_is_broken_more_often_than_kept() -> None:
    rules, rule = Rules(), ("session expired", "error: 25")
    rules.keeps(rule)  # before it is broken nobody counts
    assert [rules.breaks(rule) for _ in range(3)] == [False, False, True]
    for _ in range(5):
        rules.keeps(rule)
    assert not rules.breaks(rule)
