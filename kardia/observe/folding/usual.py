"""The short way of a request of a member that is well: a heartbeat, a commit or a FETCH from which nothing follows.

Nineteen of twenty events of a living fleet are that, and on the long way (`Observer._handle`) each asks anew whether
its group moves, loads, rebalances or waits for records, whether its broker was silent, whether its client is another
one. Here that is asked at once, of what is held, and what is left is arithmetic: when it was heard, how often, when it
polled. Whatever is not as usual goes the long way, untouched; a law in the tests compares both. A condition names the
step of the long way that would do something.
"""

from __future__ import annotations

from kardia.events import Event, Kind
from kardia.kafka.libraries import LIBRARIES
from kardia.kafka.states import GroupState
from kardia.observe.deadlines import member_deadlines
from kardia.observe.deadlines.handling import heard_late, is_late
from kardia.observe.facts.groups_of_lane import Facts
from kardia.observe.members import habits, polls
from kardia.observe.state.group import NEVER, Group, Member
from kardia.tolerances import ABSENT_MS, STAMP_MS

_HEARTBEAT, _COMMIT, _FETCH = int(Kind.HEARTBEAT), int(Kind.COMMIT), int(Kind.FETCH)
_STABLE = GroupState.STABLE


def take(facts: Facts, event: Event, at: float) -> bool:
    """Apply an event of `facts.broker` that took effect at `at`; False if it has to go the long way."""
    if facts.unjudged.get(facts.broker) or facts.broker in facts.doubted:
        return False  # `restarts` looks at each request
    kind = event.kind
    if kind == _FETCH:
        return _take_fetch(facts, event)
    if (kind != _HEARTBEAT and kind != _COMMIT) or event.error_code != 0:
        return False
    arrived_at_ms, handled_at_ms, decided_at_ms = event.arrived_at_ms, event.handled_at_ms, event.decided_at_ms
    if is_late(arrived_at_ms, handled_at_ms, decided_at_ms if kind == _HEARTBEAT else handled_at_ms):
        return False  # when it renews is in doubt
    group = facts.groups.get(event.group_id)
    if group is None or not _at_rest(facts, group, handled_at_ms):
        return False
    member = group.members.get(event.member_id)
    if member is None or not _is_well(facts, group, member, at):
        return False
    if kind == _HEARTBEAT:
        if (
            event.generation_id != group.generation
            or group.state != _STABLE
            or event.connection != member.heard_on  # `restarts.note_connection`
            or event.detail is not None  # `who_broke.heard`
            or member.throttled_ms != 0.0
            or event.member_id in group.ended  # `went_since`
        ):
            return False
        if at > group.steady_at_ms:
            group.steady_at_ms = at
        if decided_at_ms - handled_at_ms > STAMP_MS or member.heard_late is not None:
            member.heard_late = heard_late(arrived_at_ms, handled_at_ms, decided_at_ms)
    _renew(facts, group, member, at, handled_at_ms)
    if kind == _COMMIT:
        polls.on_commit(facts, group, member, event)
    return True


def _at_rest(facts: Facts, group: Group, at: float) -> bool:
    """Whether nothing is under way in a group of the broker at hand, nor anything waits of it. `at`: when that handled
    a request of the group."""
    current, heard_at_ms = group.rebalance, max(group.heard_at_ms, group.steady_at_ms)
    return (
        not 0 <= heard_at_ms < at - ABSENT_MS  # `loads.note_heard`
        and group.modern is None
        and group.broker == facts.broker != ""  # another one: `coordinator_change`
        and (current is None or current.settled)  # else `watches.in_burst`
        and not group.operation
        and not group.deferred
        and group.moved_at_ms < 0
        and group.loading_since_at_ms < 0
        and group.group_id not in facts.empty_since  # `forgetting.is_over`
        and group.group_id not in facts.deleted_since
    )


def _is_well(facts: Facts, group: Group, member: Member, at: float) -> bool:
    """Whether a renewal at `at` changes nothing but when the session runs out, and how often the member is heard."""
    gap_ms = at - member.session_renewed_at_ms
    return (
        gap_ms > 0 <= member.session_renewed_at_ms
        and member.timer_at_ms >= 0  # else it is watched anew
        and member.session_prediction_at_ms < 0  # else it is averted
        and member.poll_prediction_at_ms < 0
        and member.library != "unknown"  # else the request may tell it
        and at > group.gap_at_ms
        and (gap_ms <= habits.ON_TIME * member.usual_gap_max_ms or not facts.silences.get(facts.broker))  # `habits`
    )


def _renew(facts: Facts, group: Group, member: Member, at: float, handled_at_ms: float) -> None:
    """`loads.note_heard` and `requests.renew`; the same arithmetic without the calls."""
    if handled_at_ms > group.heard_at_ms:
        group.heard_at_ms = handled_at_ms
    gap_ms, habit = at - member.session_renewed_at_ms, member.usual_gap_max_ms
    if gap_ms < habits.USUAL * member.session_ms:
        habit *= habits.FORGETS
        member.usual_gap_max_ms = habit = gap_ms if gap_ms > habit else habit
    member.session_renewed_at_ms = at
    member.heard_at_ms = member.unknown_since_at_ms = NEVER
    member.overdue = False
    if member_deadlines.by_habit(facts.settings, member):
        facts.watch(group, member)


def _take_fetch(facts: Facts, event: Event) -> bool:
    """`requests.on_fetch`; without the calls where the client is of one member that polls inside it."""
    if event.group_id in facts.groups:
        return False  # a group that has no name: nothing is usual about it
    found = facts.clients.get((event.shard, event.client_id, event.client_host))
    if found is None:
        return True  # of nobody that is held
    if len(found) > 1:
        for group, member in facts.members_of(event.shard, event.client_id, event.client_host):
            polls.on_fetch(facts, group, member, event)
        return True
    ((group, member),) = found.values()
    arrived_at_ms = event.arrived_at_ms
    if (
        "fetch" in LIBRARIES[member.library].polled_by
        and member.poll_evidence == "fetch"
        and member.poll_error_ms == 0.0
        and member.polled_at_ms < arrived_at_ms
        and member.timer_at_ms >= 0 > member.poll_prediction_at_ms
    ):
        member.polled_at_ms = arrived_at_ms
        if arrived_at_ms > member.fetched_at_ms:
            member.fetched_at_ms = arrived_at_ms
    else:
        polls.on_fetch(facts, group, member, event)
    return True
