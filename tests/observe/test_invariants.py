"""What holds of a group is asked after every step of the tests, and a group that is held otherwise is named."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kardia.kafka.states import GroupState
from kardia.observe import Observer, ObserverSettings
from kardia.observe.state.group import Ended, Group, Member, Rebalance
from kardia.observe.state.invariants import broken
from kardia.story.surprises import text
from kardia.tables import SURPRISES
from tests.support.invariants import BrokenError, ask


def stable() -> Group:
    """A group of two members, one of them static, and one life that is over."""
    group = Group("g", 0, state=GroupState.STABLE, generation=3)
    for member_id, instance_id in (("a", ""), ("b", "seat")):
        member = Member(member_id, 1_000.0, instance_id=instance_id, session_ms=10_000, session_renewed_at_ms=5_000.0)
        group.members[member_id] = member
    group.instances["seat"] = "b"
    gone = Member("c", 1_000.0, session_ms=10_000, session_renewed_at_ms=2_000.0)
    group.ended["c"] = Ended(gone, 12_000.0, "session_expired", "", 0)
    return group


def _another_id(group: Group) -> None:
    group.members["x"] = group.members.pop("a")


def _imminent(group: Group) -> None:
    group.members["a"].imminent = True


def _seat_of_nobody(group: Group) -> None:
    group.instances["other"] = "c"


def _prepares(group: Group) -> None:
    group.state = GroupState.PREPARING


def _completes(group: Group) -> None:
    group.state, group.rebalance = GroupState.COMPLETING, Rebalance(2, 1_000.0)


def _before_it_joined(group: Group) -> None:
    group.ended["c"].ended_at_ms, group.ended["c"].cause = 500.0, "left"


def _later_than_it_can(group: Group) -> None:
    group.ended["c"].by = 11_000.0


def _before_its_session(group: Group) -> None:
    group.ended["c"].ended_at_ms = 11_000.0


def _backwards(group: Group) -> None:
    group.rebalance = Rebalance(2, 3_000.0, joined_at_ms=2_000.0, generation_after=3)


def _unassigned(group: Group) -> None:
    group.rebalance = Rebalance(2, 1_000.0, joined_at_ms=2_000.0, assigned_at_ms=1_500.0, generation_after=3)


def _same_generation(group: Group) -> None:
    group.rebalance = Rebalance(3, 1_000.0, joined_at_ms=2_000.0, generation_after=3)


BREAKS: dict[str, Callable[[Group], None]] = {
    "is held as": _another_id,
    "nothing is foretold": _imminent,
    "who is no member": _seat_of_nobody,
    "it prepares": _prepares,
    "it waits for an assignment": _completes,
    "ended before it joined": _before_it_joined,
    "later than the latest": _later_than_it_can,
    "before it was over": _before_its_session,
    "ended before it began": _backwards,
    "came before its join phase": _unassigned,
    "generation 3 follows 3": _same_generation,
}


@pytest.mark.parametrize("words", BREAKS)
def test_a_group_that_cannot_be_is_named(words: str) -> None:
    group = stable()
    assert list(broken(group)) == []
    BREAKS[words](group)
    (sentence,) = broken(group)
    assert words in sentence
    with pytest.raises(BrokenError, match="group 'g'"):
        ask([group])


def test_what_cannot_be_is_a_row_of_surprises_when_the_state_changes() -> None:
    observer, group = Observer(ObserverSettings("test", "3.9.2")), stable()
    _prepares(group)
    observer._sample_group(group, {}, 20_000.0)
    observer._sample_group(group, {}, 21_000.0)
    [row] = [dict(zip(SURPRISES.names, one, strict=True)) for one in observer.rows["surprises"]]
    assert (row["surprise_class"], row["seen"]) == ("own_mistake", "it prepares, and no join phase is open")
    assert text(row).startswith("Kardia could not follow the group: it prepares, and no join phase is open")
