"""What a group costs grows with its members and not with their square.

Goal: a group of ten thousand rebalances like ten groups of a thousand. Method: the work of the model is counted, not
timed: every line of it that runs, and every comparison of two member ids, at two sizes one of which is four times the
other. Work that grows with the members is then four times as much (a little more where ids are sorted), work that grows
with their square sixteen times. Not held to this: static members that restart one by one in a Stable group, because
Kafka writes the whole group anew for each of them, and so does the model.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import kardia.coordinator
from kardia.coordinator.classic.joins import _has_room
from tests.coordinator.context import GROUP, OTHER, Context
from tests.support.work import Lines

FEW, MANY = 60, 240
GROWTH_MAX = 6.0
"""Between the four of what grows with the members, or little more than they, and the sixteen of their square."""


class Work(Lines):
    """Counts, inside `with`, the lines of kardia/coordinator that run and the comparisons of ids."""

    def __init__(self) -> None:
        super().__init__(Path(kardia.coordinator.__file__).parent)

    def __enter__(self) -> Work:
        Id.compared = 0
        super().__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        super().__exit__()
        self.done += Id.compared


class Id(str):
    """A member id that counts how often it is asked which of two comes first, which sorting and searching do."""

    __slots__ = ()
    compared = 0

    def __lt__(self, other: str) -> bool:
        Id.compared += 1
        return str.__lt__(self, other)


def joined(version: str, members: int, group_max_size: int = 2**31 - 1) -> Context:
    """A new group whose members have all joined, in the order of nothing, and of which the first leads."""
    group = Context(version, group_max_size=group_max_size)
    for number in range(members):
        group.join(Id(f"m{number * 7919 % members:05}"), version=3)
    while (view := group.coordinator.view(GROUP)) is not None and view.state != "CompletingRebalance":
        group.at(view.join_deadline_at_ms)
    return group


def join(version: str, members: int) -> Work:
    with Work() as work:
        joined(version, members)
    return work


def join_up_to_a_bound(version: str, members: int) -> Work:
    with Work() as work:
        joined(version, members, group_max_size=members)
    return work


def rebalance(version: str, members: int) -> Work:
    """Everybody syncs, rejoins, and syncs again."""
    group = joined(version, members)
    with Work() as work:
        group.sync_all(1)
        for member_id in group.members:
            group.rejoin(Id(member_id), protocols=OTHER)
        group.sync_all(2)
    return work


def leave(version: str, members: int) -> Work:
    group = joined(version, members)
    ids = group.members
    with Work() as work:
        for member_id in ids:
            group.leave(Id(member_id))
    assert group.state == "Empty"
    return work


def expire(version: str, members: int) -> Work:
    """All fall silent at one instant; each that goes led the group."""
    group = joined(version, members)
    group.sync_all(1)
    with Work() as work:
        group.sleep(10_000)
    assert group.state == "Empty"
    return work


@pytest.mark.parametrize("version", ["2.4.1", "3.9.2", "4.4.0"])
@pytest.mark.parametrize("what", [join, join_up_to_a_bound, rebalance, leave, expire])
def test_four_times_the_members_are_not_sixteen_times_the_work(version: str, what: Callable[[str, int], Work]) -> None:
    few, many = what(version, FEW).done, what(version, MANY).done
    assert few > FEW
    assert many / few < GROWTH_MAX


def test_a_square_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The canary: room is looked for member by member again."""

    def looks_at_all(shard: Any, group: Any, member_id: str) -> bool:
        with_lines = sum(_has_room(shard, group, one) for one in group.members)
        return with_lines >= 0

    monkeypatch.setattr("kardia.coordinator.classic.joins._has_room", looks_at_all)
    assert join("4.4.0", MANY).done / join("4.4.0", FEW).done > 1.5 * GROWTH_MAX
