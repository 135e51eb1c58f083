"""The coordinator's sentences tell at once that a JoinGroup has begun a rebalance, whose, and who else joins in it.

The request log shows a JoinGroup when it is answered, at the end of the join phase. Until then the sentences of
server.log are all that is known of it: the group prepares since their stamp, by whom they name. They decide nothing
about members: who joins is one when its answer says so. What begins a rebalance without waiting, an end or a leave, is
known by its own.
"""

from __future__ import annotations

from kardia.events import Event
from kardia.kafka.states import GroupState
from kardia.observe.coordinator_change import new_coordinator
from kardia.observe.facts.groups_of_lane import Facts
from kardia.observe.ledger.rebalance_row import BY_JOIN, MAX_STRAGGLERS, emit
from kardia.observe.rebalance.begin_and_settle import begin, explain
from kardia.observe.sentences import reasons
from kardia.observe.state.entries import Waited
from kardia.observe.state.group import NEVER, Group, Rebalance


def on_line(facts: Facts, event: Event, at: float) -> None:
    """A sentence about a classic group whose requests are read. `at`: its stamp."""
    what, group = (event.detail or {}).get("what"), facts.groups.get(event.group_id)
    if group is None or group.modern is not None or new_coordinator.is_overtaken(facts, group):
        return
    if what == "preparing_rebalance":
        on_preparing(facts, group, event, at)
    elif what == "member_added":
        on_added(facts, group, event, at)


def on_preparing(facts: Facts, group: Group, event: Event, at: float) -> None:
    """The sentence that a group prepares a rebalance, with the generation before it. `at`: its stamp."""
    why, current = reasons.cause_of(group, event, at), group.rebalance
    if why.trigger not in BY_JOIN or event.generation_id != max(group.generation, 0):
        return
    if group.state == GroupState.PREPARING and current is not None:
        if current.cause is not None or current.joined_at_ms >= 0:
            return
        explain(facts, group, current, why)
    elif group.state in (GroupState.STABLE, GroupState.EMPTY) and (current is None or current.settled):
        begin(facts, group, why, NEVER, len(group.members))
    else:
        return
    _note(facts, group, group.rebalance, why.member_id, why.client_id, at)


def on_added(facts: Facts, group: Group, event: Event, at: float) -> None:
    """The sentence that somebody joins while the group prepares."""
    current = group.rebalance
    if group.state == GroupState.PREPARING and current is not None and current.cause is not None:
        client_id = "" if event.group_instance_id else reasons.client_id_of(event.member_id)
        _note(facts, group, current, event.member_id, client_id, at)


def _note(facts: Facts, group: Group, current: Rebalance | None, member_id: str, client_id: str, at: float) -> None:
    if current is None or current.joined_at_ms >= 0 or len(current.joining) >= MAX_STRAGGLERS:
        return
    if member_id and all(one.member_id != member_id for one in current.joining):
        current.joining.append(Waited(member_id, client_id, int(at - current.started_at_ms)))
    emit(facts, group, current)
