"""When each member of a group was last heard: what the end of one is compared with.

Where a whole group ends, one member after the other, each is compared with all others: then they are put into order
once and counted (`FallingSilent`), or the end of ten thousand would be a hundred million looks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import inf
from typing import NamedTuple

from kardia.kafka.states import GroupState
from kardia.observe.facts.counting_above import CountingAbove
from kardia.observe.state.group import Group, Member

Heard = tuple[Member, float, bool]
"""(member, when it was last heard, whether it may wait for an answer since)."""


def last_heard(group: Group) -> Iterator[Heard]:
    """All members, also those that were evicted."""
    yield from _left(group)
    yield from ended(group)


def _left(group: Group) -> Iterator[Heard]:
    current = group.rebalance
    asked = {} if current is None else {join.member_id: join.handled_at_ms for join in current.joins}
    for member in group.members.values():
        if (
            current is not None and 0 <= current.joined_at_ms == member.session_renewed_at_ms
        ):  # armed by the end of the join phase
            yield member, asked.get(member.member_id, member.renewed_before_join_at_ms), True
        else:
            yield member, member.session_renewed_at_ms, group.state not in (GroupState.STABLE, GroupState.UNKNOWN)


def ended(group: Group) -> Iterator[Heard]:
    """Those whose session ended lately."""
    for over in group.ended.values():
        if over.cause == "session_expired" and over.member.session_ms >= 0:
            yield over.member, over.began_at, False


class _Place(NamedTuple):
    """Where a member is: its point, and its places among all and among those of its host."""

    point: tuple[float, float]
    host: str
    among_all: int
    among_host: int


class FallingSilent:
    """Members of a group that are left while it ends: how many were heard later, counted without a look at each.

    `within` is how much later another member has to have been heard, by its own rhythm.
    """

    def __init__(self, group: Group, within: Callable[[Member], float]) -> None:
        self._group = group
        self._within = within
        self._phase: tuple[object, ...] = ()
        self._places: dict[str, _Place] = {}
        self._all = CountingAbove([])
        self._hosts: dict[str, CountingAbove] = {}
        self._asked: set[str] = set()

    def later(self, group: Group, member: Member, heard_at_ms: float, own_ms: float) -> tuple[int, int] | None:
        """Others that were heard later than a member, by more than its own rhythm and theirs: (at its address,
        elsewhere). None where others may count as well: outside of a join phase those who are silent may not wait, and
        are told from those who do."""
        current = group.rebalance
        if group is not self._group or group.state != GroupState.PREPARING or current is None:
            return None
        phase = (id(current), current.joined_at_ms, len(current.joins))
        self._asked.add(member.member_id)
        self._drop(group)
        if phase != self._phase or len(self._places) != len(group.members):
            self._phase = phase
            self._order(group)
        bounds = heard_at_ms + own_ms, heard_at_ms
        everywhere = self._all.above(*bounds)
        host = self._hosts.get(member.client_host)
        here = host.above(*bounds) if host is not None and member.client_host else 0
        itself = self._places.get(member.member_id)
        if itself is not None and itself.point[0] > bounds[0] and itself.point[1] > bounds[1]:
            everywhere, here = everywhere - 1, here - bool(member.client_host)
        return here, everywhere - here

    def _drop(self, group: Group) -> None:
        """Take out who was asked about and has ended since."""
        for member_id in [one for one in self._asked if one not in group.members]:
            self._asked.remove(member_id)
            found = self._places.pop(member_id, None)
            if found is not None:
                self._all.remove(found.among_all)
                self._hosts[found.host].remove(found.among_host)

    def _order(self, group: Group) -> None:
        points: list[tuple[float, float]] = []
        of_hosts: dict[str, list[tuple[float, float]]] = {}
        self._places = {}
        for member, last, _ in _left(group):
            # Who was never heard lies below every bound.
            point = (last, last - self._within(member)) if last >= 0 else (-inf, -inf)
            there = of_hosts.setdefault(member.client_host, [])
            self._places[member.member_id] = _Place(point, member.client_host, len(points), len(there))
            points.append(point)
            there.append(point)
        self._all = CountingAbove(points)
        self._hosts = {host: CountingAbove(some) for host, some in of_hosts.items()}
