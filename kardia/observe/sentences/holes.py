"""Where sentences of the coordinator are missing: a generation that does not follow from the one before shows it.

An excerpt, a log that lost lines, or one that was rotated away tells of generation 63 and then of 70. What lay between
is not read: it is neither under way still nor known to have failed, and who was a member before need not be one.
"""

from __future__ import annotations

from kardia.doubts import Doubt
from kardia.kafka.states import GroupState
from kardia.observe.facts.groups_of_lane import Facts
from kardia.observe.ledger import costs
from kardia.observe.ledger.causes import BY_LEAVE
from kardia.observe.ledger.rebalance_row import close_unread
from kardia.observe.sentences import naming, reasons
from kardia.observe.state.group import NEVER, Cause, Group, Member, Rebalance

NOT_READ = "not read"
"""Cause of the change to Unknown where a hole begins."""


def last_state_at(group: Group, at: float) -> float:
    """When its state was last told before an instant; NEVER if nothing has told it, or a load was since."""
    since = group.said.state_at_ms
    return since if 0 <= since < at and group.loaded_at_ms <= since else NEVER


def note(facts: Facts, group: Group, generation: int, at: float) -> None:
    """A sentence of `at` says that the group was in a generation: if what was read does not lead there, it has a
    hole since its state was told before."""
    current = group.rebalance
    is_open = current is not None and group.state == GroupState.PREPARING and current.joined_at_ms < 0
    expected = current.generation_before if current is not None and is_open else group.generation
    if group.generation < 0 or generation == expected:
        return
    facts.divergences += 1
    since = last_state_at(group, at)
    if current is not None and is_open and generation > current.generation_before and since >= 0:
        close_unread(facts, group, current, since, at)
    group.membership_complete, group.generation = False, -1
    costs.forget_assignment(group)
    # Of the one before nothing is known but that it was over: nothing follows from it.
    group.rebalance = Rebalance(generation - 1, NEVER, joined_at_ms=since, generation_after=generation)
    if group.state != GroupState.UNKNOWN:
        facts.set_state(group, since if since >= 0 else at, GroupState.UNKNOWN, NOT_READ, Doubt.NOT_SEEN, at)
    group.generation = generation
    for member in group.members.values():
        _doubt(facts, group, member, at)


def _doubt(facts: Facts, group: Group, member: Member, at: float) -> None:
    """Whether somebody is a member still is not known."""
    if member.unknown_since_at_ms < 0:
        member.unknown_since_at_ms = at
        facts.emit_member(group, member, member.joined_at_ms, Doubt.NOT_SEEN)


def prove(facts: Facts, group: Group, member_id: str) -> None:
    """A sentence names somebody as a member, of whom that was not known any more."""
    member = group.members.get(member_id)
    if member is not None and member.unknown_since_at_ms >= 0:
        member.unknown_since_at_ms = NEVER
        facts.emit_member(group, member, member.joined_at_ms, Doubt.SEEN_LATER)


def count(facts: Facts, group: Group, current: Rebalance, at: float) -> None:
    """The number of members that a sentence tells of a new generation: if it is that of those who surely are in it, its
    leader and who joined in it, nobody else is, of whom a hole has made that unknown."""
    sure = {one.member_id for one in group.members.values() if one.generation_first == current.generation_after}
    sure |= {current.leader} & group.members.keys()
    if len(sure) != current.size:
        return
    for member in list(group.members.values()):
        if member.member_id not in sure and member.unknown_since_at_ms >= 0:
            naming.end_unseen(facts, group, member, at)


def end_evicted(facts: Facts, group: Group, cause: Cause) -> None:
    """Whose session is over by the reason of a rebalance is gone. Its own sentence stands just before that one, and is
    lost where it is not known."""
    if cause.trigger == "session_expired" and cause.member_id and cause.member_id not in group.ended:
        naming.end(facts, group, cause.member_id, cause.at, "session_expired", cause.doubts)


def end_left(facts: Facts, group: Group, current: Rebalance) -> None:
    """Who left by the reason of a rebalance is gone when that is over at the latest: up to 3.9 its own sentence comes
    after the begin, and is lost if it has not come by then."""
    cause = current.cause
    if cause is not None and cause.trigger in BY_LEAVE and cause.member_id in group.members:
        why, doubts, words = reasons.why_it_left(cause.reason)
        naming.end(facts, group, cause.member_id, cause.at, why, doubts, words, told=False)
