"""Where the broker's server.log says otherwise than was concluded from its request log. Counted, never argued with.

The line is the broker's own word and is believed. That the conclusion was another one is worth knowing all the same: a
rule of ours is wrong for this broker, lines are missing, or somebody wrote a line that looks like the coordinator's.
What was never said to be sure is no disagreement, nor what a broker did that stood still.
"""

from __future__ import annotations

from kardia.certainty import stands
from kardia.observe.facts import Facts
from kardia.observe.group import Group
from kardia.observe.late import LATE_MS

KINDS = ("another_instant", "another_cause", "another_generation")
"""Closed list: an eviction at an instant beyond the bounds of what was concluded; of somebody who had gone otherwise;
an assignment for another generation than the one that was seen."""


def of_eviction(facts: Facts, group: Group, member_id: str, at: float) -> str | None:
    """What kind of disagreement the line is that says, at `at`, that a member has failed; None for none."""
    member = group.members.get(member_id)
    if member is not None:
        known = member.deadline >= 0 and member.unknown_since < 0 and group.whole
        if not known or member.is_unsure(member.armed_at) or member.armed_at <= group.unsure_to:
            return None
        return _beside(facts, group, member.deadline, at)
    over = group.ended.get(member_id)
    if over is None or not stands(over.certainty) or over.certainty == "unknown":
        return None
    if over.cause not in ("session_expired", "unknown"):
        return "another_cause"
    return _beside(facts, group, over.ended_at, at) if over.certainty == "exact" and not over.told else None


def of_generation(group: Group, generation_id: int) -> str | None:
    """The same of the line that says that the leader's assignment for a generation has come."""
    known = group.whole and group.generation >= 0 and generation_id >= 0
    return "another_generation" if known and group.generation != generation_id else None


def _beside(facts: Facts, group: Group, concluded_at: float, at: float) -> str | None:
    tolerance_ms = facts.settings.tolerance_ms
    if concluded_at - tolerance_ms <= at <= concluded_at + LATE_MS + tolerance_ms:
        return None
    # A broker that was down or stood still fires its timers whenever it wakes.
    return None if facts.is_broken(group.broker, min(concluded_at, at), max(concluded_at, at)) else "another_instant"
