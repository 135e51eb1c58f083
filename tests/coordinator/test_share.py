"""Share groups: members are told what they have in one step, partitions are given out when they have a state.

Goal: the rules that differ from consumer groups, each in a few heartbeats. Method: as `test_consumer_rules`; what
Kafka's classes do in the same histories is seen by `tests/truth`.
"""

from __future__ import annotations

from typing import Any

import pytest

from kardia.coordinator.consumer.operations import BeatAnswer, Topics
from kardia.coordinator.operations import Load, Unload
from kardia.coordinator.share.assignor import Subscriber, broken_law
from kardia.coordinator.share.behaviour import share_behaviour_of
from kardia.coordinator.share.coordinator import ShareCoordinator
from kardia.coordinator.share.operations import ShareBeat, ShareOperation, ShareView
from kardia.coordinator.share.settings import ShareSettings
from tests.coordinator.consumer_context import ORDERS, orders

SETTINGS = ShareSettings(group_share_assignment_interval_ms=0)
ALL = orders(0, 1, 2, 3)


class Sharing:
    """One group "g" of one coordinator in a cluster with the topic `orders` of four partitions."""

    def __init__(self, version: str, settings: ShareSettings = SETTINGS) -> None:
        """Nobody is in it."""
        self.coordinator = ShareCoordinator(share_behaviour_of(version), settings)
        self._number = 0
        self.do(0.0, Topics(0, (ORDERS,)))

    def do(self, at_s: float, operation: ShareOperation) -> list[BeatAnswer]:
        """Timers that are due fire first."""
        at_ms = round(at_s * 1000)
        self.coordinator.advance(at_ms)
        return self.coordinator.perform(operation, at_ms)

    def beat(self, at_s: float, member_id: str, epoch: int, **given: Any) -> BeatAnswer:
        """A heartbeat; epoch 0 subscribes to `orders`."""
        self._number += 1
        names = ("orders",) if epoch == 0 else None
        beat = ShareBeat(self._number, "g", member_id, epoch, None, names, "c", "/10.0.0.1")
        (answer,) = self.do(at_s, beat._replace(**given))
        return answer

    @property
    def view(self) -> ShareView:
        """The group, which must exist."""
        view = self.coordinator.view("g")
        assert view is not None
        return view


def test_partitions_are_given_out_when_they_have_a_state_which_takes_an_epoch_of_its_own() -> None:
    group = Sharing("4.1.2")
    joined = group.beat(0.0, "m", 0)
    assert (joined.member_epoch, joined.assignment) == (1, ())
    assert group.view.initializing == ALL
    group.coordinator.advance(400)
    assert (group.view.group_epoch, group.view.initializing, group.view.initialized) == (1, (), ALL)
    told = group.beat(5.0, "m", 1)
    assert (told.member_epoch, told.assignment) == (2, ALL)
    assert group.beat(10.0, "m", 2).assignment is None


def test_in_4_0_partitions_are_given_out_at_once() -> None:
    group = Sharing("4.0.2")
    assert group.beat(0.0, "m", 0).assignment == ALL


def test_a_member_that_is_silent_for_a_session_is_fenced_and_the_others_get_a_new_epoch() -> None:
    group = Sharing("4.4.0")
    group.beat(0.0, "m", 0)
    group.beat(1.0, "n", 0)
    epoch = group.view.group_epoch
    group.beat(30.0, "n", group.view.members[1].epoch)
    group.coordinator.advance(44_999)
    assert len(group.view.members) == 2
    before = group.view.group_epoch
    assert before >= epoch
    group.coordinator.advance(45_000)
    assert [one.member_id for one in group.view.members] == ["n"]
    assert group.view.group_epoch == before + 1


@pytest.mark.parametrize(("version", "left"), [("4.0.2", 1), ("4.1.2", 0)])
def test_a_member_that_is_dead_at_a_load_of_4_0_stays_for_ever(version: str, left: int) -> None:
    group = Sharing(version)
    group.beat(0.0, "m", 0)
    group.do(1.0, Unload(0))
    group.do(2.0, Load(0))
    group.coordinator.advance(10_000_000)
    assert len(group.view.members) == left


@pytest.mark.parametrize(
    ("version", "epoch", "code"),
    [("4.1.2", 0, 110), ("4.2.1", 0, 0), ("4.4.0", 1, 0), ("4.4.0", 9, 110)],
)
def test_who_may_send_which_epoch(version: str, epoch: int, code: int) -> None:
    group = Sharing(version)
    group.beat(0.0, "m", 0)
    for second in (1.0, 2.0, 3.0):
        group.beat(second, "m", group.view.members[0].epoch)
    if epoch == 1:
        epoch = group.view.members[0].previous_epoch
    assert group.beat(4.0, "m", epoch).error_code == code


@pytest.mark.parametrize(("version", "code"), [("4.0.2", -1), ("4.4.0", 69)])
def test_a_group_that_there_is_not(version: str, code: int) -> None:
    assert Sharing(version).beat(0.0, "m", 3).error_code == code


def test_a_full_group_and_impossible_requests() -> None:
    group = Sharing("4.4.0", SETTINGS._replace(group_share_max_size=1))
    group.beat(0.0, "m", 0)
    assert group.beat(1.0, "n", 0).error_code == 81
    assert group.beat(1.0, "n", -1).error_code == 25
    assert group.beat(1.0, "n", -2).error_code == 42
    assert group.beat(1.0, "n", 0, names=()).error_code == 42


def test_laws_of_the_assignor_are_told() -> None:
    one = Subscriber("m", frozenset(ALL), frozenset())
    assert broken_law([one], {"m": frozenset(ALL)}, gives_every=True) == ""
    assert "are given of" in broken_law([one], {"m": frozenset(ALL[:2])}, gives_every=True)
    assert broken_law([one], {"m": frozenset(ALL[:2])}, gives_every=False) == ""
    assert "gets nothing" in broken_law([one, one._replace(member_id="n")], {"m": frozenset(ALL)}, gives_every=True)
    other = Subscriber("n", frozenset(), frozenset())
    target = {"m": frozenset(ALL), "n": frozenset(ALL[:1])}
    assert "not open to it" in broken_law([one, other], target, gives_every=True)
    kept = other._replace(had=frozenset(ALL[:1]))
    assert broken_law([one, kept], target, gives_every=True) == ""
