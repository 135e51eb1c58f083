"""Records that take time: who waits for them, and what is undone when they could not be stored.

Goal: the rules of `kardia/coordinator/classic/stores.py` at a glance; that they are Kafka's is shown by `tests/truth`.
"""

from __future__ import annotations

import pytest

from tests.coordinator.context import Context, S

VERSIONS = pytest.mark.parametrize("version", ["3.9.2", "4.4.0"])
NOT_AVAILABLE, REBALANCING = 15, 27


def seated(version: str) -> Context:
    """Two static members, Stable in generation 1, whose broker's records take time from now on."""
    group = Context(version).stable("A", "B", instances=True)
    group.reconfigure(appends_take_time=True)
    return group


@VERSIONS
def test_a_seat_that_is_taken_is_told_when_it_is_stored(version: str) -> None:
    group = seated(version)
    taken = group.join("B2", instance="b")
    assert taken.waits
    assert group.members == ["A", "B2"]
    group.sleep(2_000)
    group.heartbeat("A", 1)
    group.store(taken)
    assert (taken.answer.generation_id, taken.answer.member_id, group.state) == (1, "B2", "Stable")


@VERSIONS
def test_a_seat_that_could_not_be_stored_is_given_back(version: str) -> None:
    group = seated(version)
    taken = group.join("B2", instance="b", session=2 * S)
    group.sleep(5_000)
    group.store(taken, error=NOT_AVAILABLE)
    assert (taken.error, group.members, group.state) == (NOT_AVAILABLE, ["A", "B"], "Stable")
    assert group.deadline("B") == group.now_ms + S
    assert group.heartbeat("B", 1, "b") == 0
    assert group.heartbeat("B2", 1, "b") == 82


@VERSIONS
def test_a_group_completes_until_its_assignments_are_stored(version: str) -> None:
    group = seated(version)
    joined = [group.rejoin(one, instance=one.lower()) for one in ("A", "B")]
    leads, follows = group.sync("A", 2, {"A": b"a", "B": b"b"}, "a"), group.sync("B", 2, instance="b")
    assert [one.error for one in joined] == [0, 0]
    assert (group.state, leads.waits, follows.waits) == ("CompletingRebalance", True, True)
    group.store(leads)
    assert (group.state, leads.answer.assignment, follows.answer.assignment) == ("Stable", b"a", b"b")


@VERSIONS
def test_a_group_prepares_again_when_its_assignments_could_not_be_stored(version: str) -> None:
    group = seated(version)
    for one in ("A", "B"):
        group.rejoin(one, instance=one.lower())
    leads, follows = group.sync("A", 2, {"A": b"a"}, "a"), group.sync("B", 2, instance="b")
    group.store(leads, error=REBALANCING)
    assert (group.state, leads.error, follows.error) == ("PreparingRebalance", REBALANCING, REBALANCING)
    group.store(leads)  # it is stored after all, which changes nothing
    assert group.state == "PreparingRebalance"


def test_who_made_a_group_that_could_not_be_stored_is_told_so_and_goes_on_waiting_for_it() -> None:
    group = Context("4.4.0", initial_rebalance_delay_ms=8_000, appends_take_time=True)
    joined = group.join("A", instance="a")
    group.at(5_000)
    group.store(joined, error=NOT_AVAILABLE)
    assert (joined.error, group.member("A").waits_for_join) == (NOT_AVAILABLE, True)
    group.at(16_000)
    assert (group.state, group.generation) == ("CompletingRebalance", 1)


def test_who_is_told_that_what_was_written_before_is_not_stored_is_told_once() -> None:
    """The context refuses a second answer."""
    group = seated("4.4.0")
    for one in ("A", "B"):
        group.rejoin(one, instance=one.lower())
    follows = group.sync("B", 2, instance="b")
    leads = group.sync("A", 2, {"A": b"a", "B": b"b"}, "a")
    group.store(follows, error=NOT_AVAILABLE)
    assert (follows.error, leads.waits) == (NOT_AVAILABLE, True)
    group.store(leads, error=NOT_AVAILABLE)
    assert (leads.error, group.state) == (NOT_AVAILABLE, "PreparingRebalance")
