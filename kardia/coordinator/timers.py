"""The coordinator's timers: what they are (a table), and the class that keeps and fires them.

A timer has a key; arming a key again replaces what ran under it. Due means deadline at or before now; equal deadlines
fire in the order they were armed. Reads no clock. Follows `DelayedHeartbeat`, `DelayedJoin` and `DelayedSync` (Scala),
`CoordinatorTimer` (Java).
"""

from __future__ import annotations

import heapq
from collections.abc import Collection
from enum import StrEnum
from typing import NamedTuple


class TimerKind(StrEnum):
    """What runs under a key. One key per member and one of each other kind per group; EXPIRE is the shard's."""

    SESSION = "session"
    JOIN = "join"
    SYNC = "sync"
    EXPIRE = "expire"


class TimerRow(NamedTuple):
    """One purpose of a timer, for people."""

    name: str
    kind: TimerKind
    duration: str
    armed_by: str
    ended_by: str
    when_it_fires: str


TIMERS: tuple[TimerRow, ...] = (
    TimerRow(
        "session of a member",
        TimerKind.SESSION,
        "the member's session timeout as stored when it is armed",
        "what renews a session (below)",
        "arming it again; removal of the member",
        "nothing while the member waits in JoinGroup or SyncGroup and is not new; else the member is removed",
    ),
    TimerRow(
        "new member",
        TimerKind.SESSION,
        "five minutes",
        "a member's first JoinGroup",
        "completion of the join phase; any arming of the session",
        "the member is removed and its JoinGroup answered 25",
    ),
    TimerRow(
        "pending id",
        TimerKind.SESSION,
        "the session timeout of the JoinGroup answered 79",
        "answer 79",
        "JoinGroup with the id; LeaveGroup of the id",
        "the id is dropped; the join phase completes if it waited only for it",
    ),
    TimerRow(
        "initial delay",
        TimerKind.JOIN,
        "group.initial.rebalance.delay.ms, again while members are added, up to the rebalance timeout",
        "rebalance of an Empty group",
        "Java only: an expiry after which everybody waits",
        "the delay is extended or the join phase completes",
    ),
    TimerRow(
        "rebalance timeout",
        TimerKind.JOIN,
        "highest rebalance timeout of the members at that instant; fixed",
        "rebalance of a Stable or Completing group; a join phase that nobody rejoined",
        "completion of the join phase",
        "dynamic members that did not rejoin are removed, the join phase completes",
    ),
    TimerRow(
        "sync timeout",
        TimerKind.SYNC,
        "highest rebalance timeout of the members at that instant; fixed",
        "completion of the join phase (from 2.8.1)",
        "SyncGroup of every member; the next rebalance",
        "members that sent none are removed and a rebalance starts",
    ),
    TimerRow(
        "expired offsets",
        TimerKind.EXPIRE,
        "offsets.retention.check.interval.ms",
        "Scala: start of the broker; Java: load; and each time it fires",
        "Java: unload",
        "offsets past their retention are removed; Empty groups without offsets die",
    ),
)
"""Every timer there is. In particular none for the leader's SyncGroup alone and none for a group that became Empty."""

Key = tuple[str, str, str]
"""Kind, group id, member id; ids that a kind lacks are empty."""


class Timer(NamedTuple):
    """An armed timer. Compared by deadline, then by the number it was armed with."""

    deadline_at_ms: int
    number: int
    key: Key
    remaining_ms: int
    """Initial delay only: how much of the rebalance timeout is left after this delay."""


class Timers:
    """Armed timers of a shard."""

    def __init__(self) -> None:
        self._armed: dict[Key, Timer] = {}
        self._queue: list[Timer] = []
        self._number = 0

    def arm(self, key: Key, now_ms: int, delay_ms: int, remaining_ms: int = 0) -> None:
        """Let `key` fire `delay_ms` after `now_ms`; what ran under the key before is void."""
        self._number += 1
        timer = Timer(now_ms + delay_ms, self._number, key, remaining_ms)
        self._armed[key] = timer
        heapq.heappush(self._queue, timer)
        # Void timers stay in the queue until their deadline; a heartbeat every 3 s under a session of 30 min would
        # keep 600 of them, so the queue is rebuilt when most of it is void.
        if len(self._queue) > 64 and len(self._queue) > 4 * len(self._armed):
            self._queue = sorted(self._armed.values())

    def cancel(self, key: Key) -> None:
        """Forget the key; nothing happens when it is not armed."""
        self._armed.pop(key, None)

    def clear(self) -> None:
        """Forget all."""
        self._armed.clear()
        self._queue.clear()

    def copy(self) -> Timers:
        """The same timers, to be gone on with apart."""
        other = Timers()
        other._armed, other._queue, other._number = dict(self._armed), list(self._queue), self._number
        return other

    def deadline(self, key: Key) -> int:
        """When the key fires, -1 when it is not armed."""
        timer = self._armed.get(key)
        return -1 if timer is None else timer.deadline_at_ms

    def next(self, kinds: Collection[str] = ()) -> Timer | None:
        """The timer that is due next, left where it is; with `kinds` the next one of these."""
        queue = self._queue
        while queue:
            timer = queue[0]
            if self._armed.get(timer.key) is timer:
                if not kinds or timer.key[0] in kinds:
                    return timer
                return min((one for one in self._armed.values() if one.key[0] in kinds), default=None)
            heapq.heappop(queue)
        return None

    def pop_due(self, to_ms: int, kinds: Collection[str] = ()) -> Timer | None:
        """Take the next timer whose deadline is at or before `to_ms`; with `kinds` the next one of these."""
        timer = self.next(kinds)
        if timer is None or timer.deadline_at_ms > to_ms:
            return None
        if self._queue[0] is timer:
            heapq.heappop(self._queue)
        del self._armed[timer.key]
        return timer


def refuse_going_back(name: str, to_ms: int, now_ms: int) -> None:
    """Raises ValueError where a caller names an instant before the last step."""
    if to_ms < now_ms:
        raise ValueError(f"{name} {to_ms}: expected {now_ms} or later, the last step; instants only grow")


def refuse_overtaking(timers: Timers, at_ms: int) -> None:
    """Raises ValueError where a timer that has not fired is due before the instant of an operation."""
    due = timers.next()
    if due is not None and due.deadline_at_ms < at_ms:
        raise ValueError(
            f"at_ms {at_ms}: a {due.key[0]} timer is due at {due.deadline_at_ms}; advance to {at_ms - 1} before"
        )
