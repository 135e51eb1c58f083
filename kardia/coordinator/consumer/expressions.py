"""Subscriptions by regular expression: when they are looked up in the cluster, and what the result changes.

A look-up is done by a thread of the broker some time after the heartbeat that calls for it: `Resolve` says when.
Follows `maybeUpdateRegularExpressions` and `handleRegularExpressionsResult`. Kafka reads RE2 syntax; the model reads
what RE2 and Python have in common and refuses the rest.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from kardia.coordinator.consumer.group import ConsumerGroup, Resolved
from kardia.coordinator.consumer.member import Member
from kardia.coordinator.consumer.operations import Resolve
from kardia.coordinator.consumer.shard import Shard, Task
from kardia.coordinator.errors import NotModelledError, RefusedError
from kardia.kafka.states import ErrorCode

_REST_MS = 10_000
"""Least time between two look-ups of a group."""
_COMMON = re.compile(r"[\w.*+?|()\[\]^$-]*", re.ASCII)
"""What is read alike by RE2 and Python, as far as it is used here."""


class Outcome(NamedTuple):
    """What a heartbeat does to the regular expressions of its group."""

    changed: bool = False
    bumps: bool = False
    """Whether that alone makes a new epoch."""
    dropped: tuple[str, ...] = ()
    """Expressions that nobody subscribes by any more."""
    wanted: tuple[str, ...] = ()
    """Expressions that are to be looked up now."""


def look(shard: Shard, group: ConsumerGroup, member: Member, updated: Member) -> Outcome:
    """What follows from the expression of a member that sends a heartbeat. Raises RefusedError for a bad one."""
    subscribed = group.expressions(group.members.values())
    old, new = member.regex, updated.regex
    changed, bumps, wanted = old != new, False, False
    dropped: tuple[str, ...] = ()
    if changed:
        if old and subscribed[old] == 1:
            dropped = (old,)
        if new:
            if subscribed[new] == 0:
                compiled(new)
                wanted = True
            else:
                bumps = new in group.regexes
        elif old:
            bumps = shard.behaviour.dropped_regex_counts
    outcome = Outcome(changed, bumps, dropped)
    if (not wanted and not subscribed) or any(task.group_id == group.group_id for task in shard.tasks):
        return outcome
    last = next(iter(group.regexes.values()), None)
    if last is not None and shard.now_ms <= last.at_ms + _REST_MS:
        return outcome
    if old:
        subscribed[old] -= 1
    if new:
        subscribed[new] += 1
    every = tuple(sorted(+subscribed))
    wanted = wanted or len(every) != len(group.regexes)
    wanted = wanted or (last.version if last is not None else 0) < shard.created_version
    if shard.behaviour.regexes_age:
        age_ms = shard.settings.group_consumer_regex_refresh_interval_ms
        wanted = wanted or last is None or shard.now_ms > last.at_ms + age_ms
    return outcome._replace(wanted=every) if wanted else outcome


def compiled(regex: str) -> re.Pattern[str]:
    """The expression. Raises RefusedError when it is none, NotModelledError when only RE2 can tell."""
    if not _COMMON.fullmatch(regex):
        raise NotModelledError(f"regular expression {regex!r}: expected one of letters, digits and .*+?|()[]^$-")
    try:
        return re.compile(regex)
    except re.error:
        raise RefusedError(ErrorCode.INVALID_REGULAR_EXPRESSION) from None


def order(shard: Shard, group: ConsumerGroup, wanted: tuple[str, ...]) -> None:
    """A look-up of a group's expressions waits from now on for a thread of the broker."""
    shard.tasks.append(Task(group.group_id, wanted))


def resolve(shard: Shard, operation: Resolve) -> None:  # noqa: ARG001
    """A thread does the oldest look-up that waits."""
    if not shard.tasks:
        return
    task = shard.tasks.pop(0)
    group = shard.groups.get(task.group_id)
    if group is None:
        return
    subscribed = group.expressions(group.members.values())
    bump = False
    for regex in task.expressions:
        if subscribed[regex]:
            pattern = compiled(regex)
            found = Resolved(
                frozenset(name for name in shard.topics if pattern.fullmatch(name)), shard.version, shard.now_ms
            )
            known = group.regexes.get(regex)
            bump = bump or found.topics != (known.topics if known is not None else frozenset())
            group.regexes[regex] = found
    counts = group.subscriptions(group.members.values())
    metadata = {name: shard.topics[name] for name in counts if name in shard.topics}
    if bump or metadata != group.metadata:
        group.group_epoch += 1
        group.metadata = metadata
        group.refreshed, group.refreshed_epoch = True, group.group_epoch
        shard.happen(group.group_id, "epoch", detail=str(group.group_epoch))
