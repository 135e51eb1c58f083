"""The compact form of what is held: nothing is lost in it, and what has another shape is refused.

It follows from the types, so the types are what is tested: of recorded and simulated stories, what is read back is the
same to the name of every type.
"""

from __future__ import annotations

import msgspec
import pytest

from kardia.kafka.states import GroupState, MemberState, ModernState
from kardia.observe import Observer, ObserverSettings
from kardia.observe.snapshot import KEPT
from kardia.observe.state.group import Group, Member
from tests.support.restored import restored
from tests.support.stories import lanes_of, read_live
from tests.truth.fleet.run import play
from tests.truth.fleet.scenarios import SCENARIOS
from tests.truth.fleet.seen import observe

SETTINGS = ObserverSettings("test")

NOT_KEPT = {
    "over": "said again by each tick",
    "settings": "given anew",
    "lane": "given anew",
    "clients": "an index over the members",
    "broker": "of the event that is applied",
    "evidence": "of the event that is applied",
    "rows": "given back by each step",
    "files_forgotten": "of one step",
    "_told": "noted by the end of the step that took it in",
    "_seen": "of one step",
    "_waiting": "of one move of the clocks",
    "records_to": "of one move of the clocks",
    "_sampled_to": "of a replay, which keeps no state",
    "falling_silent": "of one concluded end of a group",
}
"""Attribute of an observer that a snapshot leaves out -> why."""

IN_THEIR_OWN_WAY = {
    "groups",
    "disagreed",
    "lag",
    "samples",
    "sources",
    "streams",
    "slow",
    "queues",
    "held",
    "_now",
    "awaiting",
}


@pytest.mark.parametrize("kind", [Group, Member])
@pytest.mark.parametrize("count", [0, 1, 200])
def test_another_number_of_values_is_refused(kind: type, count: int) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.msgpack.decode(msgspec.msgpack.encode([""] * count), type=kind)


def test_no_name_of_a_field_is_stored() -> None:
    assert b"member_id" not in msgspec.msgpack.encode(Member("one", 1.0))


@pytest.mark.parametrize(
    "name", ["c04_mpi-4.1.2", "c06_static-3.9.2", "m01_coordinator_kill-4.1.2", "k11_migration-4.1.2"]
)
def test_groups_of_a_story_come_back_to_the_name_of_every_type(name: str) -> None:
    for events in lanes_of(name, server_log=True):
        observer = Observer(SETTINGS)
        for step in read_live(events, 1_000):
            observer.step(step)
            same(restored(observer), observer)


@pytest.mark.parametrize("scenario", ["requests", "server log", "odd clients", "outages"])
def test_groups_of_a_simulated_story_come_back_to_the_name_of_every_type(scenario: str) -> None:
    def compared(observer: Observer) -> Observer:
        same(restored(observer), observer)
        return observer

    observe(play("4.4.0", 5, 8, SCENARIOS[scenario]), between_steps=compared)


def same(one: Observer, other: Observer) -> None:
    """Both hold the same, in values of the same types."""
    for name in ("groups", *KEPT):
        assert repr(getattr(one, name)).replace("'", "") == plainly(repr(getattr(other, name)))


def plainly(text: str) -> str:
    """A text in which states of groups are the words that they are stored as."""
    for state in (*GroupState, *ModernState, *MemberState):
        text = text.replace(repr(state), str(state))
    return text.replace("'", "")


def test_each_attribute_of_an_observer_is_kept_or_has_a_reason() -> None:
    held = set(vars(Observer(SETTINGS)))
    assert held == KEPT.keys() | IN_THEIR_OWN_WAY | NOT_KEPT.keys()
    assert not (KEPT.keys() | IN_THEIR_OWN_WAY) & NOT_KEPT.keys()
