"""Why a group falls behind, from a closed list, and lag in sentences. Pure; reads no clock.

A reason is only given to a partition that has something to read and does not come nearer to its end. Reasons are asked
in the order of `REASONS`: whoever is no member cannot be stuck, and whoever may not read cannot be slow.
"""

from __future__ import annotations

from typing import NamedTuple

from kardia.lag.commits import STALL, STOP, WARN
from kardia.story import words

NOBODY, REBALANCE, UNHELD, STUCK, SLOW, UNKNOWN = "nobody", "rebalance", "unheld", "stuck", "slow", "unknown"

REASONS = {
    NOBODY: "nobody is a member of the group",
    REBALANCE: "a rebalance lasts, and nobody reads meanwhile",
    UNHELD: "the group has members, and none of them has the partition",
    STUCK: "the member that has it, or one that may, sends heartbeats and does not poll",
    SLOW: "more records come than the group commits",
    UNKNOWN: "nothing that is read shows why",
}
"""Why a partition falls behind; the one place where the words are defined."""

NO_ENDS = (
    "Lag is not known: no end of a partition has been seen. No log and no capture has one; "
    "`kardia collect --bootstrap-server` asks for those of partitions that a group has committed offsets for."
)
"""Said where ends were never looked at, as of whatever is replayed from files, and before the first commit."""

LASTING_MS = 10_000
"""A rebalance that lasts so long is a reason: commits are made every five seconds by default."""


class Stuck(NamedTuple):
    """A member of which is known that it does not poll."""

    member_id: str
    client_id: str
    since_ms: int | None
    """Its last poll, as far as is known."""


class Behind(NamedTuple):
    """What is known of one partition that has something to read."""

    topic: str
    partition: int
    status: str
    """Burrow's word."""
    held: str | None
    member_id: str | None
    waited_ms: int | None
    """How long at least something has waited there."""
    window_ms: int | None
    """How long its last commits, and the time since, are."""
    produced: int | None
    read: int | None

    @property
    def grows(self) -> bool:
        """Whether it does not come nearer to the end: by Burrow's rules, or because more came than it read in the time
        of its last commits, and what it has to read is older than they are."""
        if self.status in (WARN, STOP, STALL):
            return True
        if self.produced is None or self.read is None or self.waited_ms is None or self.window_ms is None:
            return False
        return self.produced > self.read and self.waited_ms >= self.window_ms  # else it had read all meanwhile


class Around(NamedTuple):
    """What is known of its group."""

    members: int | None
    """None: not known."""
    rebalancing_ms: int | None
    """How long a rebalance has lasted; None if there is none."""
    stuck: tuple[Stuck, ...]


def why(behind: Behind, around: Around) -> str | None:
    """The reason, one of `REASONS`; None where it does not fall behind."""
    if not behind.grows:
        return None
    if around.members == 0:
        return NOBODY
    if around.rebalancing_ms is not None and around.rebalancing_ms >= LASTING_MS:
        return REBALANCE
    if around.members and behind.held == "nobody":
        return UNHELD
    if _stuck(behind, around) is not None:
        return STUCK
    is_moving = behind.produced is not None and behind.read is not None and behind.produced > behind.read > 0
    return SLOW if is_moving and behind.status not in (STOP, STALL) else UNKNOWN


def _stuck(behind: Behind, around: Around) -> Stuck | None:
    if behind.member_id is None:
        return around.stuck[0] if around.stuck else None
    return next((one for one in around.stuck if one.member_id == behind.member_id), None)


def sentence(reason: str, partitions: list[Behind], around: Around) -> str:
    """Why some partitions of a group fall behind, in one sentence; `partitions`: those of one reason, the farthest
    behind first."""
    first = partitions[0]
    which = f"{words.name(first.topic)}-{first.partition}"
    if len(partitions) > 1:
        which = f"{words.count(len(partitions), 'partition')}, {which} the farthest"
    if reason == NOBODY:
        return f"Nobody is a member of the group, so nobody reads {which}."
    if reason == REBALANCE:
        lasts = "goes on" if around.rebalancing_ms is None else f"has lasted for {words.took(around.rebalancing_ms)}"
        return f"A rebalance {lasts}, and nobody reads {which}."
    if reason == UNHELD:
        many = "members" if around.members is None else words.count(around.members, "member")
        return f"The group has {many}, and none of them has {which}."
    if reason == STUCK:
        stuck = _stuck(first, around) or around.stuck[0]
        since = "" if stuck.since_ms is None else f" since {words.instant(stuck.since_ms)}"
        role = "which has" if first.member_id else "which may have"
        who = words.name(stuck.client_id or stuck.member_id)
        return f"{who}, {role} {which}, sends heartbeats and does not poll{since}."
    if reason == SLOW:
        if first.produced is None or first.window_ms is None or first.read is None:
            raise ValueError(f"{which} falls behind by counts that are not known: {first}")
        came, span = words.count(first.produced, "record"), words.took(first.window_ms)
        others = f" The same of {words.count(len(partitions) - 1, 'other')}." if len(partitions) > 1 else ""
        return (
            f"More comes than is read: in the last {span} {came} came to {words.name(first.topic)}-{first.partition}, "
            f"and the group committed {first.read}.{others}"
        )
    return f"Nothing that is read shows why {which} " + ("falls" if len(partitions) == 1 else "fall") + " behind."


def time_lag(least_ms: int | None, at_ms: int | None, most_ms: int | None) -> str:
    """A time lag as it is known: a number with its bounds is said as that, a bound as a bound."""
    if at_ms is not None:
        return words.took(at_ms)
    if least_ms is not None and most_ms is not None:
        return f"{words.took(least_ms)} to {words.took(most_ms)}"
    if least_ms is not None:
        return f"at least {words.took(least_ms)}"
    return "unknown" if most_ms is None else f"at most {words.took(most_ms)}"
