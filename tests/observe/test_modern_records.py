"""Groups that have epochs: what their records show, alone and beside requests.

Instants in ms from the start of a scene.
"""

from __future__ import annotations

import pytest

from kardia.events import Kind
from tests.support.modern_scene import (
    STABLE,
    UNRELEASED,
    UNREVOKED,
    ModernScene,
    both,
    health,
    rebalances,
)

# --- records


def test_records_alone_show_members_epochs_and_who_is_gone() -> None:
    scene = ModernScene(given_ms=-1)
    scene.record_join(1_000, "a", 1, (0, 1))
    scene.record_join(2_000, "b", 2, state=UNRELEASED)
    scene.record_current(3_000, "a", 1, UNREVOKED, (0,), (1,))
    scene.record_current(3_050, "a", 2, STABLE, (0,))
    scene.record_current(4_000, "b", 2, STABLE, (1,))
    scene.record_gone(15_000, "b", 3)
    scene._sign(Kind.TICK, 20_000, {})
    scene.events[-1] = scene.events[-1]._replace(source="offsets-topic/offsets/0")
    known = scene.known()
    assert known.ended() == {"b": (15_000, "unknown", "unknown")}
    assert rebalances(known)[:2] == [(1, 1_000, "member_joined", "a"), (2, 3_050, "member_joined", "b")]
    assert known.states() == [(1_000, "Stable"), (2_000, "Reconciling"), (4_000, "Stable"), (15_000, "Assigning")]


def test_a_tombstone_without_a_leave_is_the_end_of_a_session_whose_length_it_shows() -> None:
    scene = both()
    scene.beats(6_200, 14_000, 2, "a")
    scene.record_gone(14_101, "b", 3)
    scene.beat(14_300, "a", 2, 3)
    scene.tick(20_000)
    known = scene.known()
    assert known.ended() == {"b": (14_101, "session_expired", "inferred")}
    assert health(known, "a")["session_timeout_ms"] == 10_000
    assert rebalances(known)[-1][2:] == ("session_expired", "b")


def test_a_tombstone_with_a_leave_is_that_leave() -> None:
    scene = both()
    scene.record_gone(5_000, "b", 3)
    scene.goes(5_010, "b", since=5_000)
    scene.tick(8_000)
    assert scene.known().ended() == {"b": (5_000, "left", "exact")}


def test_the_answer_to_a_leave_may_come_long_after_its_record() -> None:
    """It waits until the record is replicated, other answers with it."""
    scene = both()
    scene.record_gone(5_000, "b", 3)
    scene.beat(6_200, "a", 2, 3, since=5_100)
    scene.goes(7_000, "b", since=4_999)
    scene.tick(9_000)
    known = scene.known()
    assert known.ended() == {"b": (5_000, "left", "exact")}
    assert rebalances(known)[-1][2:] == ("member_left", "b")


@pytest.mark.parametrize("given_ms", [-1, 10_000])
def test_where_records_are_read_silence_alone_ends_nobody(given_ms: int) -> None:
    scene = both(given_ms)
    scene.beats(6_200, 70_000, 2, "a")
    scene.tick(70_000)
    known = scene.known()
    assert known.ended() == {}
    assert health(known, "b")["status"] == "overdue"


def test_records_of_one_operation_are_one_step() -> None:
    """A new member, a new epoch, a new target: never Assigning."""
    scene = both()
    scene.tick(5_000)
    assert "Assigning" not in {state for _, state in scene.known().states()}
