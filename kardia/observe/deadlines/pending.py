"""Member ids that were handed out and that nobody joins with: a join phase waits for them as for members.

A first JoinGroup is answered with an id and an error (79); the client is to join again with that id. If it never does,
the id stays pending for the session timeout of that request, and no rebalance ends early meanwhile: `GroupMetadata`
(Scala) and `ClassicGroup` (Java) ask in `hasAllMembersJoined` for an empty set of them. A rebalance of an empty group
ends by its delay alone and waits for nobody. Whoever waits in a JoinGroup with its id is not seen before it is
answered; so an id is told of when its phase is over, or if it was not used while the group was steady.
"""

from __future__ import annotations

from typing import Any

from kardia.events import Event
from kardia.observe.deadlines.phases import join_deadline
from kardia.observe.state.entries import HandedOut, NeverUsed, Waited
from kardia.observe.state.group import NEVER, Group, Rebalance
from kardia.tolerances import USED_WITHIN_MS

MAX_OVER = 64
"""Ids that are over and still remembered per group, until the rebalance that waited for them is told."""

MAX_TOLD = 10
"""Ids that are named in a row of `health`; `pending_members` counts them all."""


def is_over(group: Group, member_id: str, at: float) -> bool:
    """An id is pending no more, at `at`, and was never used; False if it was none."""
    found = group.pending.pop(member_id, None)
    if found is None:
        return False
    group.pending_over.append(NeverUsed(member_id, found.client_id, found.handed_out_at_ms, at))
    del group.pending_over[:-MAX_OVER]
    return True


def was_over_before(group: Group, member_id: str, at: float) -> bool:
    """Whether the time of an id was over well before `at`, and no answer has shown that anybody used it: whoever did
    waits in a JoinGroup."""
    return any(over.member_id == member_id and over.ended_at_ms < at - USED_WITHIN_MS for over in group.pending_over)


def last_over_at_ms(group: Group) -> float:
    """When the time of the last id was over that no answer has shown to be used; NEVER without one. Whoever used one
    waits until then, or longer: that nobody does shows only after it."""
    return max((over.ended_at_ms for over in group.pending_over), default=NEVER)


def used(group: Group, member_id: str, event: Event) -> float:
    """A JoinGroup with an id was answered: it blocked nothing, also if the member had left meanwhile. Returns since
    when another one with that id may have waited: since the id was handed out, if by another connection, or if its time
    was over meanwhile, as then only somebody who waited can use it; else NEVER."""
    found = group.pending.pop(member_id, None)
    late = next((over for over in group.pending_over if over.member_id == member_id), None)
    group.pending_over = [over for over in group.pending_over if over.member_id != member_id]
    if late is not None and event.handled_at_ms > late.ended_at_ms:
        return late.handed_out_at_ms
    return NEVER if found is None or found.connection == event.connection else found.handed_out_at_ms


def blocked(group: Group, current: Rebalance) -> list[Waited]:
    """Take for whom the join phase that is over waited among the ids.

    An id whose end lies in a gap of the log, or that was handed out before one, may have been used.
    """
    began, joined_at_ms = current.started_at_ms, current.joined_at_ms
    over = [one for one in group.pending_over if one.ended_at_ms <= joined_at_ms]
    group.pending_over = [one for one in group.pending_over if one.ended_at_ms > joined_at_ms]
    over += [
        NeverUsed(member_id, one.client_id, one.handed_out_at_ms, joined_at_ms)
        for member_id, one in group.pending.items()
        if member_id not in (current.listed or ())  # it has joined, and the line of its answer is still to come
    ]
    if began < 0 or current.members_before <= 0 or current.generation_before == 0:
        return []
    found = []
    for one in over:
        waited_ms = int(min(one.ended_at_ms, joined_at_ms) - max(began, one.handed_out_at_ms))
        if waited_ms > 0 and one.handed_out_at_ms > group.gap_at_ms:
            found.append(Waited(one.member_id, one.client_id, waited_ms))
    return found


def may_have_joined(group: Group, at: float) -> bool:
    """Whether somebody may have used an id by an instant, unseen: it was handed out since the group was last seen to be
    Stable, and its JoinGroup is answered when the join phase ends that it began."""
    return any(
        group.steady_at_ms < one.handed_out_at_ms + USED_WITHIN_MS and one.handed_out_at_ms <= at
        for one in group.pending.values()
    )


def abandoned(group: Group) -> dict[str, HandedOut]:
    """Ids that nobody joins with. Whoever joins makes a Stable group prepare a rebalance at once, so an id is abandoned
    if the group was still steady a while later. An id handed out in a rebalance may belong to a JoinGroup that waits
    unseen, and is not among them."""
    return {
        member_id: one
        for member_id, one in group.pending.items()
        if group.steady_at_ms > one.handed_out_at_ms + USED_WITHIN_MS
    }


def told(group: Group) -> list[dict[str, Any]] | None:
    """Entries of `health.pending`, those that last longest first; None where there are none."""
    if not group.pending:
        return None
    ends_at = join_deadline(group)
    entries: list[dict[str, Any]] = [
        {
            "member_id": member_id,
            "client_id": one.client_id,
            "since_at_ms": int(one.handed_out_at_ms + 0.5),
            "until_at_ms": int((min(one.until_at_ms, ends_at) if ends_at != NEVER else one.until_at_ms) + 0.5),
        }
        for member_id, one in abandoned(group).items()
    ]
    entries.sort(key=lambda entry: (-entry["until_at_ms"], entry["member_id"]))
    return entries[:MAX_TOLD] or None
