"""The verdict on groups with epochs: when an epoch began and why, who held its partitions back, and conversions.

The broker says when a group epoch began, and in the line before it what happened to which member; it has no line for
the moment at which every member has come to it. Who gave partitions up, and when, the clients say themselves.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from demo import server_log
from demo.evidence import (
    Evidence,
    GivenUp,
    Line,
    allowed_ms,
    facts_of,
    has_epochs,
    invented,
    is_forming,
    line_of,
    nearest,
)
from demo.server_log import Fact
from demo.tables import Record

HELD_BACK_FROM_MS = 2_000
"""Who gave partitions up so long after an epoch began was waited for, and must be named."""

HELD_BACK_WITHIN_MS = 1_500
"""It is over with the client's next heartbeat, or with that of whoever gets them."""

TRIGGERS = {
    server_log.MEMBER_ADDED: ("member_joined", "static_replaced"),
    server_log.MEMBER_FAILED: ("session_expired",),
    server_log.MEMBER_LEFT: ("member_left", "poll_timeout"),
    server_log.NOT_MOVED_ON: ("rebalance_timeout",),
}
"""What the broker said just before an epoch began -> triggers that agree with it."""

ENDS = (server_log.MEMBER_FAILED, server_log.MEMBER_LEFT, server_log.NOT_MOVED_ON)


def is_of_epoch(row: Record) -> bool:
    """Whether a row of `rebalances` is one of a group with epochs."""
    return row.get("protocol") not in (None, "classic")


def left_by_its_last_member(evidence: Evidence, empty: Record) -> bool:
    """Whether a group with epochs is told to be Empty when a member ended: the broker has no line for that."""
    within_ms = allowed_ms(evidence, empty["group_id"], empty["at_ms"])
    return has_epochs(evidence, empty["group_id"]) and any(
        fact.group_id == empty["group_id"] and fact.what in ENDS and abs(fact.at_ms - empty["at_ms"]) <= within_ms
        for fact in evidence.facts
    )


def lines(evidence: Evidence, names: Mapping[str, str]) -> Iterable[Line]:
    """All lines about epochs; `names`: member id to the name of its client."""
    yield from _epochs(evidence)
    yield from _held_back(evidence, names)
    yield from _conversions(evidence)


def _epochs(evidence: Evidence) -> Iterable[Line]:
    rows = {(row["group_id"], row["generation_after"]): row for row in evidence.rebalances if is_of_epoch(row)}
    found = set()
    for fact in facts_of(evidence, server_log.EPOCH_BEGAN):
        at = (fact.group_id, fact.generation)
        found.add(at)
        row = rows.get(at)
        said = "nothing" if row is None else f"{row['trigger']} ({row['trigger_client_id'] or 'nobody'})"
        yield line_of(
            evidence,
            fact,
            f"group {fact.group_id}",
            said,
            None if row is None else _told_at(row, "started_at_ms", fact),
            None,
            "" if row is None else _trigger_fault(evidence, fact, row),
            is_forming(evidence, fact),
            f"began epoch {fact.generation}",
        )
    for at, row in rows.items():
        if at not in found:
            yield invented(row["started_at_ms"], row["group_id"], f"group {row['group_id']}", f"epoch {at[1]}")


def _told_at(row: Record, column: str, fact: Fact) -> int:
    """The instant that a row tells: the broker's own where that lies between it and its bound. The first operation of
    a young broker is known by the request that made it and by its record, between which classes are loaded."""
    at_ms, bound_ms = int(row[column]), int(row["at_bound_ms"] or 0)
    return min(max(at_ms, fact.at_ms), at_ms + bound_ms)


def _trigger_fault(evidence: Evidence, epoch: Fact, row: Record) -> str:
    """What is wrong with the cause of an epoch: the broker tells of a member just before it."""
    before = [fact for fact in evidence.facts[: evidence.facts.index(epoch)] if fact.group_id == epoch.group_id]
    cause = next((fact for fact in reversed(before) if fact.what in TRIGGERS), None)
    if cause is None or cause is not before[-1]:
        return ""
    if row["trigger"] not in TRIGGERS[cause.what]:
        return f"Kardia says {row['trigger']}, the broker: {cause.what}"
    return "" if row["trigger_member_id"] == cause.member_id else f"the broker names {cause.member_id}"


def _held_back(evidence: Evidence, names: Mapping[str, str]) -> Iterable[Line]:
    """Who gave partitions up late must be the one that the group is said to have waited for, and for about so long."""
    groups = {names[row["member_id"]]: row["group_id"] for row in evidence.members}
    epochs = facts_of(evidence, server_log.EPOCH_BEGAN)
    for word in evidence.given_up:
        group_id = groups.get(word.client_id, "")
        before = [fact for fact in epochs if fact.group_id == group_id and fact.at_ms <= word.at_ms]
        if before and word.at_ms - before[-1].at_ms >= HELD_BACK_FROM_MS and _is_asked(evidence, word, before[-1]):
            yield _straggler(evidence, word, before[-1])


def _is_asked(evidence: Evidence, word: GivenUp, epoch: Fact) -> bool:
    """Whether it was a member when the epoch began, and did not leave: who leaves gives everything up."""
    return any(
        row["group_id"] == epoch.group_id
        and row["client_id"] == word.client_id
        and row["joined_at_ms"] < epoch.at_ms
        and (row["ended_at_ms"] or word.at_ms + HELD_BACK_WITHIN_MS + 1) > word.at_ms + HELD_BACK_WITHIN_MS
        for row in evidence.members
    )


def _straggler(evidence: Evidence, word: GivenUp, epoch: Fact) -> Line:
    row = next(
        (
            row
            for row in evidence.rebalances
            if is_of_epoch(row) and (row["group_id"], row["generation_after"]) == (epoch.group_id, epoch.generation)
        ),
        None,
    )
    held_ms = word.at_ms - epoch.at_ms
    waits = {wait["client_id"]: wait["waited_ms"] for wait in (row["stragglers"] if row else None) or ()}
    waited_ms = waits.get(word.client_id)
    said = "nothing" if waited_ms is None else f"waited {waited_ms / 1000:.1f} s for {word.client_id}"
    wrong = waited_ms is None or not -HELD_BACK_WITHIN_MS <= waited_ms - held_ms <= HELD_BACK_WITHIN_MS
    done = f"gave partitions up {held_ms / 1000:.1f} s after epoch {epoch.generation} began"
    fault = f"the client says {held_ms / 1000:.1f} s" if wrong else ""
    return Line(word.at_ms, epoch.group_id, word.client_id, done, said, None, None, fault)


def _conversions(evidence: Evidence) -> Iterable[Line]:
    """A classic group that becomes a consumer group, and back."""
    rows = [row for row in evidence.transitions if row["entity"] == "group"]
    for what in (server_log.UPGRADED, server_log.DOWNGRADED):
        told = [row for row in rows if row["cause"] == what]
        facts = facts_of(evidence, what)
        for fact in facts:
            row = nearest(told, "group_id", fact.group_id, fact.at_ms)
            said, at_ms = ("nothing", None) if row is None else (f"{row['cause']}", _told_at(row, "at_ms", fact))
            yield line_of(evidence, fact, f"group {fact.group_id}", said, at_ms)
        for row in told[len(facts) :]:
            yield invented(row["at_ms"], row["group_id"], f"group {row['group_id']}", what)
