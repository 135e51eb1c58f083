"""Members that are missing when a join phase ends: what is the same for all of them is computed once.

In a group of thousands half may be missing. Each of them is judged beside all the others (`dropped.how_dropped`), and
looking at them anew for each would cost the square of the members. Arithmetic only; made anew for each look.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from functools import cached_property
from heapq import nsmallest
from operator import attrgetter
from typing import NamedTuple

from kardia.observe.deadlines.late import fired_from
from kardia.observe.deadlines.phases import longest_when_begun_ms
from kardia.observe.state.group import NEVER, Group, Join, Member, Rebalance
from kardia.tolerances import LATE_MS, TWO_STAMPS_MS


class Due(NamedTuple):
    """Who is missing, and when its session was over."""

    at_ms: float
    member: Member


_AT = attrgetter("at_ms")


class Missing:
    """Everybody who is missing from a generation."""

    def __init__(self, group: Group, current: Rebalance) -> None:
        """Look at all members and all JoinGroups once."""
        self._group, self._current = group, current
        handled = [join.handled_at_ms for join in current.joins]
        signs = [
            current.started_at_ms,
            current.rebalance_notified_at_ms,
            *handled,
            *(join.handled_at_ms for join in current.refused),
        ]
        self._seen_at = _first_known(signs)
        self.last_asked_at = max(handled, default=0.0)
        """When the last JoinGroup was handled; 0 if none was seen."""
        self._broken_since = _first_known(join.since for join in current.joins)
        self._newcomers: dict[str, list[float]] = defaultdict(list)
        for join in current.joins:
            if join.instance_id and not join.asked_id:
                self._newcomers[join.instance_id].append(join.handled_at_ms)
        self._sure, self._unsure = self._sessions()
        self._longest: dict[tuple[float, str], int] = {}

    def _sessions(self) -> tuple[list[Due], list[Due]]:
        """The two that were over first of those of which it is known when they ended, and of the others. Two, because
        each is judged beside the others and not beside itself."""
        group, joined_at_ms = self._group, self._current.joined_at_ms
        listed = self._current.listed or {}
        proven_from = max(group.unsure_to, group.gap_at_ms)
        sure: list[Due] = []
        unsure: list[Due] = []
        for member in group.members.values():
            armed = member.renewed_before_join_at_ms
            not_timed = member.unknown_since_at_ms > group.gap_at_ms
            if member.member_id in listed or armed < 0 or member.session_ms < 0 or not_timed:
                continue
            deadline = armed + member.session_ms
            if armed <= proven_from or member.is_unsure(armed):
                unsure.append(Due(deadline, member))
            elif group.steady_at_ms <= (over_at := fired_from(group, deadline)) <= joined_at_ms:
                sure.append(Due(over_at, member))
        return nsmallest(2, sure, key=_AT), nsmallest(2, unsure, key=_AT)

    def began(self, member: Member) -> tuple[float, str]:
        """(when the rebalance began, as far as its requests and the sessions of others show; whose session began it).
        Whoever is missing beside `member`, and whose session was over before anything else was seen, began it."""
        other = _beside(self._sure, member)
        if other is not None and (self._seen_at < 0 or other.at_ms < self._seen_at):
            return other.at_ms, other.member.member_id
        return self._seen_at, ""

    @cached_property
    def joined_before_sync_was_over(self) -> bool:
        """Whether a JoinGroup may have begun the rebalance before the time for SyncGroup was over, a moment before."""
        due, rebalance_notified_at_ms = self._current.sync_over_at_ms, self._current.rebalance_notified_at_ms
        return any(
            due - TWO_STAMPS_MS <= join.handled_at_ms <= due + LATE_MS
            and (rebalance_notified_at_ms < 0 or join.handled_at_ms <= rebalance_notified_at_ms)
            and could_begin(self._group, join)
            for join in self._current.joins
        )

    def longest_ms(self, began: float, first: str) -> int:
        """Highest rebalance timeout of those who were there when it began; see `longest_when_begun_ms`."""
        key = began, first
        if key not in self._longest:
            self._longest[key] = longest_when_begun_ms(self._group, self._current, began, first)
        return self._longest[key]

    def may_have_begun_before(self, member: Member, at: float) -> bool:
        """Whether the rebalance may have begun by an instant, about, by something of which it is not known when it was:
        the session of somebody else that is missing, or a JoinGroup by a connection that broke."""
        other = _beside(self._unsure, member)
        return 0 <= self._broken_since <= at + LATE_MS or (other is not None and other.at_ms <= at + LATE_MS)

    def taken_over(self, member: Member, deadline: float) -> bool:
        """Whether a process took the place of a static member while the timer of its session may have been late: it was
        replaced or evicted, and which of the two looks the same."""
        handled = self._newcomers.get(member.instance_id, ()) if member.instance_id else ()
        return any(0 <= at - deadline <= LATE_MS for at in handled)


def could_begin(group: Group, join: Join) -> bool:
    """Whether a JoinGroup may have begun a rebalance: whoever was told of one before asking did not begin it. A broker
    handles what comes by a connection in its order, so that stamps of one ms are no doubt."""
    member = group.members.get(join.asked_id)
    if member is None or member.rebalance_notified_at_ms <= group.stable_at_ms:
        return True
    return not 0 <= member.rebalance_notified_at_ms <= join.handled_at_ms + TWO_STAMPS_MS


def _first_known(instants: Iterable[float]) -> float:
    return min((at for at in instants if at >= 0), default=NEVER)


def _beside(first_two: list[Due], member: Member) -> Due | None:
    return next((one for one in first_two if one.member is not member), None)
