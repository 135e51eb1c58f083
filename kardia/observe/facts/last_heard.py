"""When each member of a group was last heard: what the end of one is compared with.

Where a whole group ends, one member after the other, each is compared with all others: then they are put into order
once (`FallingSilent`), or the end of ten thousand would be a hundred million looks.
"""

from __future__ import annotations

from collections.abc import Iterator

from kardia.kafka.states import GroupState
from kardia.observe.state.group import Group, Member

Heard = tuple[Member, float, bool]
"""(member, when it was last heard, whether it may wait for an answer since)."""


def last_heard(group: Group) -> Iterator[Heard]:
    """All members, also those that were evicted."""
    yield from _left(group)
    yield from _ended(group)


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


def _ended(group: Group) -> Iterator[Heard]:
    for over in group.ended.values():
        if over.cause == "session_expired" and over.member.session_ms >= 0:
            yield over.member, over.began_at, False


class FallingSilent:
    """Members of a group that are left while it ends, the one that was heard last first."""

    def __init__(self, group: Group) -> None:
        self._group = group
        self._phase: tuple[object, ...] = ()
        self._left: list[Heard] = []

    def later_than(self, group: Group, at: float) -> Iterator[Heard] | None:
        """Who counts: whoever was heard later, and who ended. None where others may count as well: outside of a join
        phase those who are silent may not wait, and are told from those who do."""
        current = group.rebalance
        if group is not self._group or group.state != GroupState.PREPARING or current is None:
            return None
        phase = (id(current), current.joined_at_ms, len(current.joins))
        if phase != self._phase:
            self._phase = phase
            self._left = sorted(_left(group), key=lambda one: -one[1])
        return self._later_than(group, at)

    def _later_than(self, group: Group, at: float) -> Iterator[Heard]:
        for one in self._left:
            if one[1] <= at:
                break
            if one[0].member_id in group.members:
                yield one
        yield from _ended(group)
