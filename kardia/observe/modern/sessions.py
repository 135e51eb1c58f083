"""What a collector reads of the cluster's configuration about sessions of the newer protocols; and what renews one
before its request is understood.

A collector reads the configuration of the cluster and tells it in a tick of the offsets topic: `session_ms` of each
protocol, and `group_session_ms` of the groups that have a configuration of their own. What `ObserverSettings` gives
stands above it. A session runs with what was in force at its last heartbeat, so a change counts from the next one of
each member on. Sources: `GroupMetadataManager.scheduleConsumerGroupSessionTimeout`, `consumerGroupSessionTimeoutMs`,
and those of share and streams groups.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kardia.events import Event, Kind
from kardia.kafka.states import PROTOCOLS_WITH_EPOCHS, ErrorCode
from kardia.observe.deadlines.handling import is_late, was_slow
from kardia.observe.facts.groups_of_lane import Facts
from kardia.observe.modern import groups, session_length
from kardia.observe.requests.member_requests import renew
from kardia.observe.state.group import Group, Member

_RENEWS = {
    int(Kind.MODERN_HEARTBEAT): (ErrorCode.NONE,),
    int(Kind.HEARTBEAT): (ErrorCode.NONE, ErrorCode.REBALANCE_IN_PROGRESS),
    int(Kind.JOIN): (ErrorCode.NONE,),
}
"""Requests that renew a session at once, by the answers with which they do. Not SyncGroup: it does in a group with
epochs, and does not in a Stable one that is classic again, which its records may say."""


def on_told(facts: Facts, event: Event, _at: float) -> None:
    """The configuration as a collector has read it; the whole of it, so what is not there is not configured."""
    detail = event.detail or {}
    of_cluster = _sessions(detail.get("session_ms"))
    of_groups = {str(name): _sessions(own) for name, own in (detail.get("group_session_ms") or {}).items()}
    if (of_cluster, of_groups) == (facts.told_session_ms, facts.told_group_session_ms):
        return
    facts.told_session_ms, facts.told_group_session_ms = of_cluster, of_groups
    session_length.take_up(facts)


def renew_at_once(facts: Facts, group: Group, event: Event) -> None:
    """The session of a member runs anew whatever else its request does."""
    member = group.members.get(event.member_id)
    stays = int((event.detail or {}).get("member_epoch", 0)) >= groups.JOINS
    if member is not None and stays and event.error_code in _RENEWS.get(event.kind, ()):
        renew_by(facts, group, member, event)


def renew_by(facts: Facts, group: Group, member: Member, event: Event) -> None:
    """A request renews a session as it is handled. A broker that was slow to handle it did so at any instant meanwhile,
    and the coordinator of a busy one at any instant up to the answer: then the deadline is in doubt."""
    at, last = event.handled_at_ms, member.session_renewed_at_ms
    if at >= last:
        slow = was_slow(event.arrived_at_ms, at)
        if slow or (is_late(event.arrived_at_ms, at, event.decided_at_ms) and facts.is_busy(at)):
            member.doubtful_at_ms = at
            groups.own_of(member).heard_from_ms = event.arrived_at_ms
    own = member.modern
    if last >= 0 and own is not None and not own.classic:
        session_length.note_silence(facts, group, last, at)
    renew(facts, group, member, max(at, member.session_renewed_at_ms))


def _sessions(told: Mapping[str, Any] | None) -> dict[str, int]:
    return {name: int(ms) for name, ms in (told or {}).items() if name in PROTOCOLS_WITH_EPOCHS and int(ms) > 0}
