"""Where the broker's server.log says otherwise than was concluded from its request log. Writes such a line down and
believes it.

The line is the broker's own word and is believed. That the conclusion was another one is worth knowing all the same: a
rule of ours is wrong for this broker, lines are missing, or somebody wrote a line that looks like the coordinator's.
What was never said to be sure is no disagreement, nor what a broker did that stood still.
"""

from __future__ import annotations

from typing import NamedTuple

from kardia.doubts import SURE, Doubts, certainty_of, stands
from kardia.events import Event
from kardia.observe.facts.groups_of_lane import Facts
from kardia.observe.output import rows
from kardia.observe.state.group import NEVER, Group
from kardia.tolerances import LATE_MS, TWO_STAMPS_MS

EXPIRED = "session_expired"
"""What the line says of which a member has failed: in a classic group no other end has a line of its own."""


class Disagreement(NamedTuple):
    """What the line says, and what had been concluded. `concluded_at`: NEVER where it is about no instant."""

    kind: str
    told: str
    concluded: str
    concluded_at: float
    concluded_doubts: Doubts
    member_id: str = ""
    client_id: str = ""


def of_eviction(facts: Facts, group: Group, member_id: str, at: float) -> Disagreement | None:
    """How the line that says, at `at`, that a member has failed differs from what was concluded; None if it does not.

    An instant differs beyond the bounds of what was concluded, a cause where it had gone otherwise.
    """
    member = group.members.get(member_id)
    if member is not None:
        known = member.deadline >= 0 and member.unknown_since_at_ms < 0 and group.membership_complete
        if (
            not known
            or member.is_unsure(member.session_renewed_at_ms)
            or member.session_renewed_at_ms <= group.unsure_to
        ):
            return None
        if abs(at - member.session_renewed_at_ms) <= TWO_STAMPS_MS:
            return None  # renewed in that very instant, by the join phase that its end completed
        about = Disagreement("", EXPIRED, "member", member.deadline, SURE, member_id, member.client_id)
        return _beside(facts, group, about, at)
    over = group.ended.get(member_id)
    if over is None or not stands(over.doubts) or certainty_of(over.doubts) == "unknown":
        return None
    client_id = over.member.client_id
    # What counts as its deadline, not the earliest that it may have been.
    ended_at_ms = over.member.deadline if over.ended_at_ms == over.member.deadline_from else over.ended_at_ms
    about = Disagreement("", EXPIRED, over.cause, ended_at_ms, over.doubts, member_id, client_id)
    if over.cause not in (EXPIRED, "unknown"):
        return about._replace(kind="another_cause")
    return _beside(facts, group, about, at) if over.doubts == SURE and not over.told else None


def of_fencing(facts: Facts, group: Group, member_id: str, cause: str, at: float) -> Disagreement | None:
    """The same of a group that has epochs, whose lines name every cause: how one that says at `at` that a member was
    fenced by `cause` differs from what was concluded."""
    member, over = group.members.get(member_id), group.ended.get(member_id)
    if member is not None:
        known = cause == EXPIRED and group.is_session_known(member) and member.unknown_since_at_ms < 0
        if not known or member.deadline < 0 or member.session_renewed_at_ms <= max(group.unsure_to, group.gap_at_ms):
            return None
        about = Disagreement("", cause, "member", member.deadline, SURE, member_id, member.client_id)
        return _beside(facts, group, about, at)
    if over is None or not stands(over.doubts) or over.cause == "unknown":
        return None
    about = Disagreement("", cause, over.cause, over.ended_at_ms, over.doubts, member_id, over.member.client_id)
    if over.cause != cause:
        return about._replace(kind="another_cause")
    return _beside(facts, group, about, at) if over.doubts == SURE else None


def of_generation(group: Group, generation_id: int) -> Disagreement | None:
    """The same of the line that says that the leader's assignment for a generation has come."""
    if not group.membership_complete or group.generation < 0 or generation_id < 0 or group.generation == generation_id:
        return None
    return Disagreement("another_generation", str(generation_id), str(group.generation), NEVER, SURE)


def of_coordinator(group: Group, member_id: str, told: str = EXPIRED) -> Disagreement:
    """The same of the line that a member has failed, by a broker that another one has replaced. `told`: of what."""
    member = group.members.get(member_id)
    client_id = "" if member is None else member.client_id
    return Disagreement("another_coordinator", told, group.broker, NEVER, SURE, member_id, client_id)


def tell(facts: Facts, group: Group, found: Disagreement | None, event: Event, at: float) -> None:
    """Count what was found, if anything was, and write which line says what."""
    if found is None:
        return
    facts.divergences += 1
    facts.disagreed[found.kind] += 1
    facts.rows["disagreements"].append(
        (
            *(facts.settings.cluster_id, group.group_id, group.shard),
            *(rows.instant(at), facts.known_at_ms(group), "exact"),
            *(found.kind, found.member_id or None, found.client_id or None),
            *(found.told, found.concluded, rows.known(found.concluded_at), certainty_of(found.concluded_doubts)),
            *(event.source, event.start, event.end),
        )
    )


def _beside(facts: Facts, group: Group, about: Disagreement, at: float) -> Disagreement | None:
    tolerance_ms, concluded_at = facts.settings.tolerance_ms, about.concluded_at
    if concluded_at - tolerance_ms <= at <= concluded_at + LATE_MS + tolerance_ms:
        return None
    # A broker that was down or stood still fires its timers whenever it wakes.
    broken = facts.is_broken(group.broker, min(concluded_at, at), max(concluded_at, at))
    return None if broken else about._replace(kind="another_instant")
