"""How often a member is heard: its longest usual silence, which decays slowly.

What a broker that stood still, or was down, kept from being heard is no habit of its clients: after such a stop all of
them would seem to send seldom, and the next stop would look like a time in which no client had to send.
"""

from __future__ import annotations

from kardia.observe.facts.groups_of_lane import Facts
from kardia.observe.state.group import Member

ON_TIME = 1.5
"""A member heard so many times its habit later was on time."""

FORGETS = 0.97
"""With each renewal so much of a habit is left, unless the silence before it was longer."""

USUAL = 0.7
"""A silence of that share of a session or more is no habit: the member was nearly evicted."""


def after(facts: Facts, broker: str, member: Member, usual_gap_max_ms: float, last: float, at: float) -> float:
    """The habit of a member, in ms, when its session is renewed at `at` after the renewal at `last`."""
    gap_ms = at - last
    if gap_ms >= USUAL * member.session_ms:
        return usual_gap_max_ms
    if usual_gap_max_ms > 0 and gap_ms > ON_TIME * usual_gap_max_ms and facts.was_silent(broker, last, at):
        return usual_gap_max_ms
    return max(usual_gap_max_ms * FORGETS, gap_ms)
