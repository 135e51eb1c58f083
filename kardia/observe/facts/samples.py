"""Whom the next rows of health are about: members whose sample is due, and those about whom something has changed.

Nothing is decided here about anybody. A step costs what changed and what is due in it, however many are held: members
in good health wait in a queue of their broker, by the instant of their next sample; one in danger is looked at in every
step. What is noted too often does no harm; what is not noted is written a sample later.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from heapq import heappop, heappush

from kardia.observe.state.group import NEVER, Group, Member

Due = tuple[float, str, str]
"""(instant of the next sample, group id, member id)."""


class Samples:
    """See the head of the file. Ids are of members as they are held; who is gone is passed over."""

    __slots__ = ("_in_danger", "_noted", "_queues")

    def __init__(self) -> None:
        """Know nobody."""
        self._noted: dict[str, set[str]] = {}
        self._in_danger: set[tuple[str, str]] = set()
        self._queues: dict[str, list[Due]] = {}

    def note(self, group_id: str, member_id: str | None = None) -> None:
        """Have a member looked at, or a group whose state may have changed."""
        noted = self._noted.setdefault(group_id, set())
        if member_id is not None:
            noted.add(member_id)

    def recovered(self, group: Group, member: Member) -> bool:
        """Whether a member is out of the danger in which it was looked at last."""
        return not member.is_in_danger and (group.group_id, member.member_id) in self._in_danger

    def keep(self, group: Group, member: Member, every_ms: float) -> None:
        """After a member was looked at: it is looked at again when its next sample is due, or in the next step."""
        if member.is_in_danger:
            self._in_danger.add((group.group_id, member.member_id))
        else:
            self._in_danger.discard((group.group_id, member.member_id))
        if member.sample_due_at_ms < 0:
            member.sample_due_at_ms = member.health_at_ms + every_ms
            self.queue(group, member)

    def queue(self, group: Group, member: Member) -> None:
        """Have a member wait whose next sample is due at an instant that is known."""
        heappush(self._queues.setdefault(group.broker, []), (member.sample_due_at_ms, group.group_id, member.member_id))

    def restore(self, group: Group) -> None:
        """Take in the members of a group that was held before."""
        self.note(group.group_id)
        for member in group.members.values():
            if member.sample_due_at_ms >= 0:
                self.queue(group, member)
            else:
                self.note(group.group_id, member.member_id)
            if member.is_in_danger:
                self._in_danger.add((group.group_id, member.member_id))

    def take(
        self, groups: Mapping[str, Group], clock_of: Callable[[str], float], every_ms: float, most: float
    ) -> tuple[dict[str, dict[str, bool]], int]:
        """(Group id -> member id -> whether its sample is due, for everybody to be looked at now; how many are due).

        No more than `most` members are due at a time, the longest waiting first; the others wait on.
        """
        taken: dict[str, dict[str, bool]] = {
            group_id: dict.fromkeys(member_ids, False) for group_id, member_ids in self._noted.items()
        }
        self._noted = {}
        for group_id, member_id in list(self._in_danger):
            group = groups.get(group_id)
            if group is None or member_id not in group.members:
                self._in_danger.discard((group_id, member_id))
            else:
                taken.setdefault(group_id, {})[member_id] = False
        clocks = {broker: clock_of(broker) for broker in self._queues}
        due = 0
        while due + 1 <= most:
            waiting = [(queue[0], broker) for broker, queue in self._queues.items() if queue]
            waiting = [(first, broker) for first, broker in waiting if first[0] <= clocks[broker]]
            if not waiting:
                break
            (at, group_id, member_id), broker = min(waiting)
            heappop(self._queues[broker])
            group = groups.get(group_id)
            member = group.members.get(member_id) if group is not None else None
            if group is None or member is None or group.broker != broker or member.sample_due_at_ms != at:
                continue  # gone, or it waits anew meanwhile
            member.sample_due_at_ms = NEVER
            is_due = clocks[broker] - member.health_at_ms >= every_ms
            due += is_due
            taken.setdefault(group_id, {})[member_id] = is_due
        return taken, due
