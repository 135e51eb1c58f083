"""Fills the row of a rebalance: whom it waited for, and which rebalance before it it follows from.

Reads what `rebalance` has found out and puts it into its row; decides nothing about members.
"""

from __future__ import annotations

from math import ceil
from typing import Any

from kardia.doubts import Doubt, Doubts, stands
from kardia.observe.deadlines.phases import due_between, in_no_order
from kardia.observe.facts.groups_of_lane import Facts
from kardia.observe.state.entries import Previous
from kardia.observe.state.group import NEVER, Cause, Ended, Group, Rebalance
from kardia.tables import LEAVE_CAUSES
from kardia.tolerances import RETURN_MAX_MS, TWO_STAMPS_MS

MAX_STRAGGLERS = 50
"""Entries kept in `stragglers`; a group of thousands would otherwise write them all, each time."""


BY_JOIN = frozenset({"member_joined", "leader_rejoined", "metadata_changed"})
"""Triggers that are a JoinGroup, which waits until the join phase is over."""

_TAKEN_AWAY = frozenset({"session_expired", "poll_timeout", "rebalance_timeout", "sync_timeout"})


def remember(group: Group) -> None:
    """Keep of the rebalance that another one follows what `follows_from` asks for."""
    current = group.rebalance
    if current is not None and current.started_at_ms >= 0:
        dropped = sorted({one.client_id for one in current.removed if one.client_id})
        cause = current.cause
        if cause is not None and cause.trigger in _TAKEN_AWAY and cause.client_id and cause.client_id not in dropped:
            dropped.append(cause.client_id)
        joining_ms = max(0, ceil(current.joined_at_ms - current.started_at_ms))
        group.previous = Previous(
            current.started_at_ms, joining_ms, current.assigned_at_ms, current.generation_after, dropped
        )


def follows_from(group: Group, current: Rebalance) -> float:
    """Start of the rebalance before, if this one began because of it: it was cut short before its assignment by one of
    its own members, a client that it dropped, or whose end began it, came back, or members gave partitions up and
    joined once more."""
    cause, previous = current.cause, group.previous
    if cause is None or previous is None or previous.generation_after != current.generation_before:
        return NEVER
    cut_short = previous.assigned_at_ms < 0 and cause.trigger in ("session_expired", "sync_timeout")
    second_round = cause.reason.startswith("need to revoke partitions")
    comes_back = cause.client_id in previous.dropped_clients and _came_back(group, previous, cause)
    return previous.started_at_ms if cut_short or second_round or comes_back else NEVER


def _came_back(group: Group, previous: Previous, cause: Cause) -> bool:
    """Whether a client that was gone is back, and is not another one of several with its client.id."""
    if cause.at - max(previous.started_at_ms, previous.assigned_at_ms) > RETURN_MAX_MS:
        return False
    return not any(
        member.client_id == cause.client_id and member.member_id != cause.member_id for member in group.members.values()
    )


def stragglers(facts: Facts, group: Group, current: Rebalance) -> list[dict[str, Any]]:
    """Who was waited for, the longest first: the last to join, everybody later than a moment, those who never came."""
    entries = [_entry(*one, joined=False) for one in current.removed]
    entries += [
        _entry(*one, joined=False, pending=True)
        for one in current.blocked
        if one.waited_ms >= facts.settings.straggler_ms
    ]
    if current.joined_at_ms < 0:
        entries += [_entry(*one, joined=True) for one in current.joining]
    joined = sorted(current.joins, key=lambda join: -join.handled_at_ms)
    for place, join in enumerate(joined):
        waited_ms = int(join.handled_at_ms - current.started_at_ms)
        first_of_several = place == 0 and len(joined) > 1
        is_late = first_of_several or waited_ms >= facts.settings.straggler_ms
        if is_late and _was_in(group, current, join.member_id):
            entries.append(_entry(join.member_id, join.client_id, waited_ms, joined=True))
    return sorted(entries, key=lambda entry: (-entry["waited_ms"], entry["member_id"]))[:MAX_STRAGGLERS]


def _was_in(group: Group, current: Rebalance, member_id: str) -> bool:
    """Whether who joined was a member as the join phase ended; it may have gone since."""
    over = group.ended.get(member_id)
    return member_id in group.members or (over is not None and 0 <= current.joined_at_ms < over.ended_at_ms)


def _entry(member_id: str, client_id: str, waited_ms: int, *, joined: bool, pending: bool = False) -> dict[str, Any]:
    return {
        "member_id": member_id,
        "client_id": client_id,
        "waited_ms": waited_ms,
        "joined": joined,
        "pending": pending,
        "partitions": None,
    }


def emit(facts: Facts, group: Group, current: Rebalance) -> None:
    """Write what is known about a rebalance."""
    facts.emit_rebalance(group, current, stragglers(facts, group, current), _doubts(group, current))


def _doubts(group: Group, current: Rebalance) -> Doubts:
    """What is in doubt about the cause: of several that did the same within the width of a stamp, who came first is not
    known."""
    cause = current.cause
    if cause is None:
        return Doubt.NOT_SEEN
    if not stands(cause.doubts):
        return cause.doubts
    if current.listed is None and current.joins and current.assigned_at_ms < 0:
        return Doubt.MAY_WAIT_UNSEEN  # who is in it is not known before the leader is answered
    if cause.named:
        return cause.doubts
    if any(_is_rival(group, cause, over) for over in group.ended.values()):
        return Doubt.STAMPS_TIED
    near = (join for join in current.joins if abs(join.handled_at_ms - cause.at) <= TWO_STAMPS_MS)
    rivals = any(join.member_id != cause.member_id for join in near)
    return Doubt.STAMPS_TIED if rivals and cause.trigger in BY_JOIN else cause.doubts


def _is_rival(group: Group, cause: Cause, over: Ended) -> bool:
    """Whether somebody else ended in that instant, and may have begun it. Of one LeaveGroup the first entry did, of
    sessions the one that was due first."""
    if over.member.member_id == cause.member_id:
        return False
    apart_ms = abs(over.ended_at_ms - cause.at)
    if over.cause == cause.trigger == "session_expired":
        own, due = over.member, due_between(group, cause)
        widest_ms = max(own.deadline - own.deadline_from, due[1] - due[0])
        return apart_ms <= TWO_STAMPS_MS + widest_ms and in_no_order((own.deadline_from, own.deadline), due)
    if apart_ms > TWO_STAMPS_MS:
        return False
    return over.cause == "session_expired" or (over.cause in LEAVE_CAUSES and over.ended_at_ms != cause.at)


def withdraw(facts: Facts, group: Group, current: Rebalance) -> None:
    """There was no such rebalance: take back what was written about it, if anything was."""
    if current.row_known >= 0:
        facts.emit_rebalance(group, current, [], _doubts(group, current), withdrawn=True)


def drop(facts: Facts, group: Group) -> None:
    """No rebalance is under way any more: what was said of one while it lasted is taken back."""
    take_back(facts, group)
    group.rebalance = None


def close_unread(facts: Facts, group: Group, current: Rebalance, since: float, by: float) -> None:
    """A rebalance of which the end was not read was over between two instants, as a later generation shows."""
    current.joined_at_ms, current.over_by = max(since, current.started_at_ms), by
    current.generation_after = current.generation_before + 1
    emit(facts, group, current)


def pass_over(facts: Facts, group: Group, by: float) -> None:
    """A later generation is answered than the one that a rebalance under way began from, `by` some instant: in a hole
    of what was read its join phase ended, and nothing more is read of it. One of which nothing said why it began was
    not told before: of that it is said since when it was seen to be under way."""
    current = group.rebalance
    if current is None or current.joined_at_ms >= 0:
        return
    notified_at_ms = current.rebalance_notified_at_ms
    if current.cause is None and 0 <= notified_at_ms < group.gap_at_ms:
        current.cause = Cause(notified_at_ms, "unknown", doubts=Doubt.NOT_SEEN)
        current.started_at_ms, current.began_unseen = notified_at_ms, True
    elif current.row_known < 0 or current.cause is None:
        return
    current.unrequested = current.settled = True
    last = [current.started_at_ms + one.waited_ms for one in current.joining]
    close_unread(facts, group, current, max(notified_at_ms, *last, NEVER), by)


def take_back(facts: Facts, group: Group) -> None:
    """What was said of a rebalance while it lasted, which another one follows or none: it came to nothing."""
    current = group.rebalance
    if current is not None and current.joining and not current.settled:
        withdraw(facts, group, current)
