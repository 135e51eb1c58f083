"""Who broke a membership that was taken away: the client, its connection, its application, the broker, or a move.

A request log does not say. It says when each request of the client came, over which connection, how long the broker
took for whatever it handled meanwhile, and who else was heard. So the signs are kept with the verdict, and where two
explanations are left the verdict is `unknown`. Judged once, when a life ends; a request that comes later adds to it.
Numbered rules, the first that fits decides.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from kardia import slowness
from kardia.doubts import SURE, certainty_of, stands
from kardia.events import Event, Kind
from kardia.kafka.libraries import LIBRARIES
from kardia.observe.facts.groups_of_lane import Facts
from kardia.observe.facts.last_heard import FallingSilent, ended, last_heard
from kardia.observe.state.group import NEVER, Ended, Group, Member
from kardia.tolerances import IN_TIME_MS, SHORTEST_MS, STOPPED_WITHIN_MS

UNKNOWN = "unknown"


MISSED = 1.5
"""A member whose silence is that many times longer than its habit has missed a heartbeat."""

GOES_ON = 0.5
"""A client whose FETCH came that share of its session after its last heartbeat has missed one, whatever its habit: one
that has just joined has shown none yet."""

ENOUGH = 0.5
"""Share of what a session leaves room for: a broker that takes longer may have been the cause, alone or with others."""


_TAKEN_AWAY = frozenset(
    {"session_expired", "poll_timeout", "rebalance_timeout", "sync_timeout", "join_timeout", UNKNOWN}
)

_AT_ONCE = frozenset({int(Kind.HEARTBEAT), int(Kind.COMMIT)})
"""Requests that are answered at once: other ones may have waited by design."""


def heard(member: Member, event: Event) -> None:
    """Keep of a heartbeat what tells later who broke it."""
    if event.connection != member.heard_on:
        member.heard_before_on, member.heard_on = member.heard_on, event.connection
    if event.detail is not None or member.throttled_ms:
        member.throttled_ms = float((event.detail or {}).get("throttle_ms", 0.0))


def judge(facts: Facts, group: Group, over: Ended) -> None:
    """Say who broke it."""
    over.fault, over.fault_certainty, over.fault_signs = "", "", {}
    if over.cause not in _TAKEN_AWAY:
        return
    if over.cause == "poll_timeout":
        over.fault = _of_poll(facts, group, over)
    elif not facts.reads_requests(group.broker, over.ended_at_ms):
        over.fault = UNKNOWN
    elif over.cause == "session_expired":
        over.fault = _of_silence(facts, group, over)
    elif over.cause in ("rebalance_timeout", "sync_timeout"):
        over.fault = _of_phase(facts, group, over)
    else:
        over.fault = UNKNOWN
    over.fault_certainty = UNKNOWN if over.fault == UNKNOWN else _certainty(over)


def _certainty(over: Ended) -> str:
    """A verdict is inferred from signs; only of a poll timeout the client itself says whose it was."""
    end = certainty_of(over.doubts)
    return end if over.cause == "poll_timeout" or not stands(over.doubts) else "inferred"


def _of_silence(facts: Facts, group: Group, over: Ended) -> str:
    """Its session ran out: from its last renewal on nothing of it counted."""
    member, at, signs = over.member, over.ended_at_ms, over.fault_signs
    if not group.is_session_known(member):
        return UNKNOWN
    heard_at_ms = over.began_at
    usual_ms = _usual_ms(member)
    signs["heard_at_ms"] = int(heard_at_ms + 0.5)
    slow_ms, silent_ms = _broker(facts, group, signs, heard_at_ms, at)
    loaded = group.loaded_at_ms >= 0 and heard_at_ms <= group.loaded_at_ms + facts.settings.tolerance_ms
    if loaded:
        signs["loaded_at_ms"] = int(group.loaded_at_ms + 0.5)
    fetched = _fetches(facts, group, member, signs)
    heard_there, silent_there, elsewhere = _others(facts, group, member, heard_at_ms, at)
    signs |= {"host_heard": heard_there, "host_silent": silent_there, "elsewhere_heard": elsewhere}
    goes_on = fetched > heard_at_ms + max(MISSED * usual_ms, GOES_ON * member.session_ms)
    spare_ms = member.session_ms - min(usual_ms, 0.5 * member.session_ms)
    # 1. The broker alone took longer than the session leaves room for; or about as long, or logged nothing for so long.
    if member.throttled_ms > 0:
        signs["throttle_ms"] = int(member.throttled_ms)
    if max(slow_ms, member.throttled_ms) >= spare_ms:
        return "broker_slow"
    if max(slow_ms, member.throttled_ms, silent_ms) >= ENOUGH * spare_ms:
        return UNKNOWN
    # Where its broker's log was silent, those who are not heard may only be unseen: the next lines may tell otherwise.
    unseen = silent_ms > 0 and certainty_of(over.doubts) == "provisional"
    # 2. A coordinator loaded the group: the client lived and did not find it, or others found it, or nobody did. Who
    # asks anew under another id lived as well, or was started again: its old id cannot tell which.
    if loaded and goes_on:
        return "coordinator_moved"
    if loaded:
        others_found_it = heard_there + elsewhere and not _is_back_as_another(group, member, heard_at_ms)
        return "client_silent" if others_found_it and not unseen else UNKNOWN
    # 3. Its poll interval ran out where it says nothing of it.
    if _stopped_by_itself(member, heard_at_ms):
        signs["polled_at_ms"] = int(member.last_poll_at_ms + 0.5)
        return "application"
    # 4. Its other connections went on.
    if goes_on:
        return "heartbeats_stopped"
    # 5. Nothing came of it any more: from nobody at its address, or from it only. Where the end itself is provisional,
    # the others may only be unseen: with another broker, or in a JoinGroup.
    if unseen:
        return UNKNOWN
    others_too = silent_there and not heard_there and certainty_of(over.doubts) != "provisional"
    return "host_silent" if others_too else "client_silent"


def _of_poll(facts: Facts, group: Group, over: Ended) -> str:
    """It gave up its membership, because its application had not polled."""
    member, signs = over.member, over.fault_signs
    if member.session_renewed_at_ms >= 0:
        signs["heard_at_ms"] = int(member.session_renewed_at_ms + 0.5)
    if member.last_poll_at_ms >= 0:
        signs["polled_at_ms"] = int(member.last_poll_at_ms + 0.5)
        _broker(facts, group, signs, member.last_poll_at_ms, over.ended_at_ms)
    return "application"


def _of_phase(facts: Facts, group: Group, over: Ended) -> str:
    """It did not rejoin, or did not sync, in time: did its heartbeats go on?"""
    member, at, signs = over.member, over.ended_at_ms, over.fault_signs
    heard_at_ms = (
        member.session_renewed_at_ms if member.session_renewed_at_ms < at else member.renewed_before_join_at_ms
    )
    if heard_at_ms < 0:
        return UNKNOWN
    signs["heard_at_ms"] = int(heard_at_ms + 0.5)
    if member.last_poll_at_ms >= 0:
        signs["polled_at_ms"] = int(member.last_poll_at_ms + 0.5)
    slow_ms, silent_ms = _broker(facts, group, signs, heard_at_ms, at)
    if max(slow_ms, silent_ms) >= ENOUGH * max(at - heard_at_ms, _usual_ms(member)):
        return UNKNOWN
    # Only a heartbeat in the phase itself shows that the client lived in it: the join renews who is gone as well.
    current = group.rebalance
    began = (
        member.rebalance_notified_at_ms
        if over.cause == "rebalance_timeout"
        else NEVER
        if current is None
        else current.joined_at_ms
    )
    silent = (at - heard_at_ms) / _usual_ms(member)
    if 0 <= began < heard_at_ms or (began == heard_at_ms and over.cause == "rebalance_timeout"):
        return "application" if silent <= 2 * MISSED else "client_silent"
    return "client_silent" if silent > 2 * MISSED else UNKNOWN


def _broker(facts: Facts, group: Group, signs: dict[str, int], begin: float, end: float) -> tuple[float, float]:
    """(longest time that the broker took for a request, longest silence of its whole log) between two instants."""
    longest = 0.0
    slow = facts.slow_between(group.broker, begin, end)
    if slow is not None:
        longest = slow[slowness.TAKEN]
        signs["broker_ms"] = int(longest)
        signs["broker_queue_ms"] = int(slow[slowness.QUEUE])
        signs["broker_local_ms"] = int(slow[slowness.LOCAL])
        signs["broker_remote_ms"] = int(slow[slowness.REMOTE])
    silences = (min(to, end) - max(since, begin) for since, to in facts.silences.get(group.broker, ()) if since < end)
    silent_ms = max(silences, default=0.0)
    if silent_ms > 0:
        signs["log_silent_ms"] = int(silent_ms)
    return longest, silent_ms


def _fetches(facts: Facts, group: Group, member: Member, signs: dict[str, int]) -> float:
    """Arrival of its last FETCH; NEVER if none was seen, or if it may be of another member."""
    if member.fetched_at_ms < 0:
        return NEVER
    others = facts.clients.get((group.shard, member.client_id, member.client_host), {}).keys() - {member.member_id}
    if others:
        signs["fetches_of_others"] = len(others)
        return NEVER
    signs["fetched_at_ms"] = int(member.fetched_at_ms + 0.5)
    return member.fetched_at_ms


@contextmanager
def end_together(facts: Facts, group: Group) -> Iterator[None]:
    """While it lasts, all members of a group end, one after the other, and nobody is heard: what is asked about the
    others for each of them is looked up for all at once."""
    facts.falling_silent = FallingSilent(group, lambda other: MISSED * _usual_ms(other))
    try:
        yield
    finally:
        facts.falling_silent = None


def _others(facts: Facts, group: Group, member: Member, heard_at_ms: float, at: float) -> tuple[int, int, int]:
    """Others of the group: (heard later from its address, silent there since the same moment, heard elsewhere)."""
    silent_there = 0
    host, own_ms = member.client_host, MISSED * _usual_ms(member)
    together = facts.falling_silent
    later = None if together is None else together.later(group, member, heard_at_ms, own_ms)
    heard_there, elsewhere = later or (0, 0)
    for other, last, may_wait in last_heard(group) if later is None else ended(group):
        here = other.client_host == host != ""
        if (last <= heard_at_ms + own_ms and not here) or other.member_id == member.member_id or last < 0:
            continue  # the first of these is nearly everybody, where a large group falls silent at once
        within_ms = max(own_ms, MISSED * _usual_ms(other))
        if last > heard_at_ms + within_ms:
            heard_there += here
            elsewhere += not here
        elif here and not may_wait and abs(last - heard_at_ms) <= within_ms < at - last:
            silent_there += 1
    return heard_there, silent_there, elsewhere


def _is_back_as_another(group: Group, member: Member, heard_at_ms: float) -> bool:
    """Whether its client, by name and address, joined under another id since then."""
    current = group.rebalance
    joined = {} if current is None else {join.member_id: join.handled_at_ms for join in current.joins}
    return any(
        (other.client_id, other.client_host) == (member.client_id, member.client_host)
        and other.member_id != member.member_id
        and max(other.joined_at_ms, joined.get(other.member_id, NEVER)) >= heard_at_ms
        for other in group.members.values()
    )


def _usual_ms(member: Member) -> float:
    return (
        max(member.usual_gap_max_ms, SHORTEST_MS)
        if member.usual_gap_max_ms
        else max(member.session_ms / 3, SHORTEST_MS)
    )


def _stopped_by_itself(member: Member, heard_at_ms: float) -> bool:
    """Whether a static member stopped its heartbeats because its poll interval had run out."""
    if not member.instance_id or not LIBRARIES[member.library].poll_interval or member.last_poll_at_ms < 0:
        return False
    return abs(member.last_poll_at_ms + member.rebalance_ms - heard_at_ms) <= STOPPED_WITHIN_MS


def came_back(facts: Facts, group: Group, event: Event, at: float) -> None:
    """A member that is none any more sends a request under its old id: once per life it adds to what is known."""
    over = group.ended.get(event.member_id)
    if over is None or over.cause != "session_expired" or not over.fault or "back_at_ms" in over.fault_signs:
        return
    if event.kind not in _AT_ONCE:
        return
    signs = over.fault_signs
    signs["back_at_ms"] = int(event.arrived_at_ms + 0.5)
    if over.member.heard_on:
        same = event.connection == over.member.heard_on
        signs["back_on_same_connection"] = int(same)
        if over.fault == "heartbeats_stopped" and not same:
            over.fault = "connection_lost"
    if event.arrived_at_ms < over.ended_at_ms - IN_TIME_MS and at > over.ended_at_ms:
        signs["arrived_at_ms"], signs["handled_at_ms"] = int(event.arrived_at_ms + 0.5), int(at + 0.5)
        over.fault, over.fault_certainty = "broker_slow", "exact" if over.doubts == SURE else "inferred"
    facts.emit_member(group, over.member, over.ended_at_ms, over.doubts, over)
