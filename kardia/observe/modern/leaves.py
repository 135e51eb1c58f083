"""Why a member left a group that has epochs: a heartbeat with epoch -1 has no words for it.

Java gives up its subscription when it closes and keeps it when its application did not poll in time, in share groups as
well (recorded with 4.4.0). Kafka Streams and librdkafka send the same in both cases (librdkafka up to 2.14 when the
interval is over, later when the application polls again): there it is what was seen of its polls before, as where a
LeaveGroup has no reason.
"""

from __future__ import annotations

from kardia.doubts import SURE, Doubt, Doubts
from kardia.events import Event, Kind
from kardia.kafka.libraries import LIBRARIES
from kardia.observe.clients import leaves
from kardia.observe.facts.groups_of_lane import Facts
from kardia.observe.members import leaving
from kardia.observe.modern import groups
from kardia.observe.state.group import Group, Member
from kardia.tolerances import CALLED_BEFORE_MS, LEAVE_DELAY_MS, RECONNECTED_WITHIN_MS

Why = tuple[str, Doubts]
"""End cause, and what is in doubt about it."""


def why_left(facts: Facts, group: Group, member: Member | None, event: Event) -> Why:
    """Why a member left by a heartbeat; None: nothing was seen of it before."""
    detail = event.detail or {}
    if "topics" in detail or "regex" in detail:
        return "left", SURE
    if member is None:
        return "left", Doubt.REASON_NOT_GIVEN
    library = LIBRARIES[member.library]
    if detail.get("protocol") == "share":  # its poll interval is in no request
        return (
            ("poll_timeout", Doubt.REASON_CONCLUDED) if member.library == "java" else ("left", Doubt.REASON_NOT_GIVEN)
        )
    if detail.get("protocol") == "streams":
        return _by_polls(facts, group, member, event)
    if member.library in ("java", "streams"):
        return _by_java(facts, group, member, event)
    if library.poll_interval and leaves.poll_interval_ran_out(member, event.arrived_at_ms):
        return leaving.weakened(
            facts, member, leaves.Verdict("poll_timeout", Doubt.REASON_CONCLUDED), event.arrived_at_ms
        )
    may_have_run_out = library.gives_up and leaves.quiet_for(member, event.arrived_at_ms)
    return "left", Doubt.REASON_NOT_GIVEN if may_have_run_out else Doubt.REASON_CONCLUDED


def _by_java(facts: Facts, group: Group, member: Member, event: Event) -> Why:
    """A sign of a poll within the interval says that it closed."""
    interval_ms = member.rebalance_ms
    if interval_ms <= 0:
        return "left", Doubt.REASON_NOT_GIVEN
    silent_ms = event.arrived_at_ms - member.last_poll_at_ms
    if member.last_poll_at_ms >= 0 and silent_ms < interval_ms - LEAVE_DELAY_MS:
        is_sure = silent_ms + CALLED_BEFORE_MS < interval_ms - LEAVE_DELAY_MS
        back_at = max(member.last_poll_at_ms - RECONNECTED_WITHIN_MS, member.joined_at_ms)
        is_sure = is_sure and not facts.is_broken(group.broker, back_at, member.last_poll_at_ms, seen=True)
        return "left", SURE if is_sure else Doubt.POLLS_UNSEEN
    # One that ran out would have shown before: it has polled since, unseen.
    blind = silent_ms > interval_ms + 2 * LEAVE_DELAY_MS
    blind = blind or facts.is_blind(member.last_poll_at_ms, event.arrived_at_ms)
    blind = blind or group.gap_at_ms >= member.last_poll_at_ms or not facts.is_alone(group, member)
    blind = blind or group.unsure_to >= member.last_poll_at_ms  # a broker that died took the lines of later ones along
    return "poll_timeout", Doubt.POLLS_UNSEEN if blind or member.last_poll_at_ms < 0 else Doubt.REASON_CONCLUDED


def _by_polls(facts: Facts, group: Group, member: Member, event: Event) -> Why:
    """Kafka Streams sends the same in both cases: only what was seen of its polls tells them apart."""
    if member.rebalance_ms <= 0 or member.last_poll_at_ms < 0:
        return "left", Doubt.REASON_NOT_GIVEN
    return _by_java(facts, group, member, event)


def by_request(facts: Facts, group: Group, event: Event | None) -> dict[str, Why]:
    """Who left by the request that an answer belongs to, and why."""
    if event is None or event.error_code != 0:
        return {}
    detail = event.detail or {}
    found: dict[str, Why] = {}
    if event.kind == Kind.MODERN_HEARTBEAT and detail.get("member_epoch") == groups.LEAVES:
        member = group.members.get(event.member_id)
        if member is None and event.member_id in group.ended:  # its records were read before its answer
            member = group.ended[event.member_id].member
        found[event.member_id] = why_left(facts, group, member, event)
    elif event.kind == Kind.LEAVE:
        for asked_id, instance_id, reason, error in detail.get("members", ()):
            member = group.members.get(asked_id or group.instances.get(instance_id or "", ""))
            if error == 0 and member is not None:
                found[member.member_id] = leaving.why(facts, group, member, event, asked_id or "", reason or "")
    return found
