"""Why a member left, as sure as the evidence about its polls was whole: `leaves` says it of a log without holes.

Remembers nothing. A poll that was not seen is a sign only where it would have been seen: not while lines were lost or a
broker logged nothing at all, and not in a rebalance, in which whoever waits polls and commits nothing.
"""

from __future__ import annotations

from kardia.doubts import Doubt, certainty_of
from kardia.events import Event
from kardia.kafka.states import GroupState
from kardia.observe.clients import leaves
from kardia.observe.clients.leaves import Verdict
from kardia.observe.facts.groups_of_lane import Facts
from kardia.observe.state.group import Group, Member


def why(facts: Facts, group: Group, member: Member, event: Event, asked_id: str, reason: str) -> Verdict:
    """Cause of an accepted LeaveGroup entry for `member`, asked while the group was as it is held."""
    verdict = leaves.why(member, event, asked_id, reason)
    in_rebalance = group.modern is None and group.state != GroupState.STABLE
    if certainty_of(verdict.doubts) == "inferred" and in_rebalance:
        return verdict._replace(doubts=Doubt.POLLS_UNSEEN)
    return weakened(facts, member, verdict, event.arrived_at_ms)


def weakened(facts: Facts, member: Member, verdict: Verdict, at: float) -> Verdict:
    """A verdict that rests on polls that were not seen, where some may not have been seen because nothing was. `at`:
    when the member asked to leave."""
    concluded = verdict.cause == "poll_timeout" and certainty_of(verdict.doubts) == "inferred"
    if concluded and facts.is_blind(member.last_poll_at_ms, at):
        return verdict._replace(doubts=Doubt.POLLS_UNSEEN)
    return verdict
