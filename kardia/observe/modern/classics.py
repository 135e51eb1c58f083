"""Members of the classic protocol in a consumer group: what their requests show.

They are members like the others, with epochs for generations, and nobody waits for them: a JoinGroup is answered at
once, without a leader. They keep their own session timeout; their time to rejoin runs from the first answer 27, their
time to sync from the answer to their JoinGroup. Sources: `consumerGroupJoin` of classic members,
`classicGroupHeartbeatToConsumerGroup`, `classicGroupSyncToConsumerGroup`, `consumerGroupLeave`.
"""

from __future__ import annotations

from kardia.doubts import SURE, Doubt
from kardia.events import Event, Kind
from kardia.kafka.states import COORDINATOR_MOVED, ErrorCode
from kardia.observe.coordinator_change import new_coordinator
from kardia.observe.deadlines.handling import took_effect
from kardia.observe.facts.groups_of_lane import Facts
from kardia.observe.members import leaving, lives, polls, who_broke
from kardia.observe.members.identity import identify
from kardia.observe.modern import conversions, ends, epochs, evidence, groups, removed, sessions, silence
from kardia.observe.requests import joins, last_consumer_seat, refusals
from kardia.observe.requests.member_requests import renew
from kardia.observe.state.group import NEVER, Cause, Group, Member

NONE, IN_PROGRESS = int(ErrorCode.NONE), int(ErrorCode.REBALANCE_IN_PROGRESS)


def on_request(facts: Facts, event: Event, at: float) -> None:
    """A request of the classic protocol to a group that has epochs."""
    group = new_coordinator.group_of(facts, event)
    if _is_of_before(group, event):
        return
    if event.error_code in COORDINATOR_MOVED:
        new_coordinator.moved(facts, group, event, at)
    elif event.kind == Kind.JOIN:
        _on_join(facts, group, event, at)
    elif event.kind == Kind.LEAVE:
        _on_leave(facts, group, event)
    elif event.error_code == ErrorCode.UNKNOWN_MEMBER_ID:
        evidence.on_gone(facts, group, event.member_id, event.handled_at_ms)
        who_broke.came_back(facts, group, event, at)
    elif event.kind == Kind.HEARTBEAT:
        _on_heartbeat(facts, group, event)
    elif event.kind == Kind.SYNC:
        _on_sync(facts, group, event)
    elif event.kind == Kind.COMMIT:
        _on_commit(facts, group, event)


def _is_of_before(group: Group, event: Event) -> bool:
    """Whether this is the answer to a member that has left meanwhile: it waited until what was written before was
    stored, and was handled first."""
    if event.kind == Kind.LEAVE or event.error_code not in (NONE, IN_PROGRESS):
        return False
    member_id = event.member_id or str((event.detail or {}).get("assigned_member_id", ""))
    return ends.was_before_its_end(group, member_id, event.handled_at_ms)


def _on_heartbeat(facts: Facts, group: Group, event: Event) -> None:
    if event.error_code not in (NONE, IN_PROGRESS):
        return
    member = group.members.get(event.member_id) or _notice(facts, group, event)
    own = groups.own_of(member)
    own.classic = True
    if event.error_code == IN_PROGRESS and own.rejoin_since_at_ms < 0:
        own.rejoin_since_at_ms = event.handled_at_ms
    who_broke.heard(member, event)
    sessions.renew_by(facts, group, member, event)
    silence.watch_phases(facts, group, member)
    group.steady_at_ms = max(group.steady_at_ms, event.handled_at_ms)


def _on_join(facts: Facts, group: Group, event: Event, at: float) -> None:
    detail = event.detail or {}
    if event.error_code != NONE:
        _on_join_refused(facts, group, event, at)
    elif detail.get("leader") or detail.get("members") or not (group.members or group.ended):
        conversions.downgrade_by_join(facts, group, event)
        joins.on_join(facts, event, at)
    elif last_consumer_seat.rebalances_at_once(event):
        conversions.downgrade_by_seat(facts, group, event, str(detail.get("assigned_member_id", "")))
    else:
        _on_join_accepted(facts, group, event)


def _on_join_refused(facts: Facts, group: Group, event: Event, at: float) -> None:
    if event.error_code == IN_PROGRESS:
        refusals.began_before(group, group.said.unfinished, event)
        _sent_back(facts, group, event)
    elif event.error_code == ErrorCode.UNKNOWN_MEMBER_ID:
        evidence.on_gone(facts, group, event.member_id, event.handled_at_ms)
    elif event.error_code == ErrorCode.MEMBER_ID_REQUIRED and _is_empty(group):
        conversions.downgrade_empty(facts, group, event)
        joins.on_join(facts, event, at)


def _on_join_accepted(facts: Facts, group: Group, event: Event) -> None:
    """The group is a consumer group still: it is answered at once, with the epoch of the member."""
    detail = event.detail or {}
    handled_at_ms, by = took_effect(event, facts.coordinator)
    member_id = str(detail.get("assigned_member_id") or event.member_id)
    member = group.members.get(member_id)
    answered = event.generation_id
    takes_last = False
    if member is None:
        seat = group.members.get(group.instances.get(event.group_instance_id, "")) if event.group_instance_id else None
        takes_last = seat is not None and not groups.own_of(seat).classic
        member = _joined(facts, group, event, member_id, handled_at_ms, by)
    own = groups.own_of(member)
    own.classic, own.rejoin_since_at_ms = True, NEVER
    if group.modern is not None:
        group.modern.mixed = True
    before = groups.told(member)
    identify(facts, group, member, event, str(detail.get("protocol_type", "")))
    member.session_ms = int(detail.get("session_timeout_ms", member.session_ms))
    member.rebalance_ms = int(detail.get("rebalance_timeout_ms", member.rebalance_ms))
    if member.row_known < 0 or before != groups.told(member):
        facts.emit_member(group, member, member.joined_at_ms, SURE if member.seen_joining else Doubt.THERE_BEFORE)
    own.sync_since_at_ms = event.handled_at_ms
    sessions.renew_by(facts, group, member, event)
    if takes_last:
        ends.may_begin_anew(facts, group, handled_at_ms)
    polls.on_request(facts, group, member, "join", event.arrived_at_ms)
    silence.watch_phases(facts, group, member)
    if answered > group.generation:
        evidence.hidden(facts, group, answered, handled_at_ms, by)
    epochs.target_shown(group, answered, handled_at_ms)
    if own.epoch != answered:
        epochs.came_to(group, member, own, answered, handled_at_ms)
    epochs.conclude(facts, group, handled_at_ms)
    epochs.update_state(facts, group, handled_at_ms, "join")


def _sent_back(facts: Facts, group: Group, event: Event) -> None:
    """It waited in a JoinGroup as the group became a consumer group, and is a member of it: since that was handled, if
    it had been none."""
    member_id = event.member_id or str((event.detail or {}).get("assigned_member_id", ""))
    member = group.members.get(member_id)
    if member is None and member_id and member_id not in group.ended and not ends.stands_by_record(group):
        at = event.handled_at_ms
        member = groups.add(
            facts, group, member_id, at, event.group_instance_id, event.client_id, event.client_host, is_new=True
        )
        member.seen_joining = True
        own = groups.own_of(member)
        own.classic, own.epoch = True, group.generation - 1  # the join that made it a consumer group made an epoch
        member.session_ms = int((event.detail or {}).get("session_timeout_ms", -1))
        member.rebalance_ms = int((event.detail or {}).get("rebalance_timeout_ms", -1))
        identify(facts, group, member, event, str((event.detail or {}).get("protocol_type", "")))
        facts.emit_transition(group, at, member_id, "Absent", "Member", "member_joined", SURE)
        facts.emit_member(group, member, at, SURE)
        renew(facts, group, member, event.decided_at_ms)
        facts.watch(group, member)
    if member is not None:
        polls.on_request(facts, group, member, "join", event.arrived_at_ms)


def _is_empty(group: Group) -> bool:
    """Whether a group is known to have no members, by requests: records say themselves what it becomes."""
    modern = group.modern
    return modern is not None and not modern.by_records and not group.members and group.membership_complete


def _joined(facts: Facts, group: Group, event: Event, member_id: str, at: float, by: float | None) -> Member:
    """A member that is new, or a static one in the place of another."""
    members_before, instance = len(groups.present(group)), event.group_instance_id
    old = group.members.get(group.instances.get(instance, "")) if instance else None
    if old is not None:
        ends.remove(facts, group, old, at, "static_replaced", "", ends.seat_doubts(group, old, at), by, told=True)
    member = groups.add(facts, group, member_id, at, instance, event.client_id, event.client_host, is_new=True)
    member.seen_joining, member.joined_by = True, by
    cause = "member_joined" if old is None else "static_replaced"
    facts.emit_transition(group, at, member_id, "Absent", "Member", cause, SURE, by)
    if old is not None:
        groups.inherit(old, member)
    elif group.generation >= 0:
        if event.generation_id > group.generation + 1:
            evidence.hidden(facts, group, event.generation_id - 1, at, by)
        why = Cause(at, "member_joined", member_id, member.client_id, instance, "", SURE, by)
        epochs.raised(facts, group, max(group.generation + 1, event.generation_id), why, members_before)
    return member


def _notice(facts: Facts, group: Group, event: Event) -> Member:
    """A member that is not held but is answered as one."""
    over = group.ended.get(event.member_id)
    if over is not None:
        facts.divergences += 1
        return ends.back(facts, group, over, event.handled_at_ms)
    at = event.handled_at_ms
    member = groups.add(
        facts, group, event.member_id, at, event.group_instance_id, event.client_id, event.client_host, is_new=False
    )
    groups.own_of(member).classic = True
    identify(facts, group, member, event, "")
    facts.emit_member(group, member, at, Doubt.THERE_BEFORE)
    facts.emit_transition(group, at, member.member_id, "Absent", "Member", "first seen", Doubt.THERE_BEFORE)
    epochs.came_to(group, member, groups.own_of(member), event.generation_id, at)
    return member


def _on_sync(facts: Facts, group: Group, event: Event) -> None:
    member = group.members.get(event.member_id)
    if member is None:
        return
    own = groups.own_of(member)
    if event.error_code == NONE:
        own.sync_since_at_ms = NEVER
        if group.may_be_classic:  # a Stable one answers a SyncGroup without a renewal
            lives.begin_in_doubt(facts, group, member, event.handled_at_ms)
        else:
            sessions.renew_by(facts, group, member, event)
        polls.on_request(facts, group, member, "sync", event.arrived_at_ms)
    elif event.error_code == IN_PROGRESS and own.rejoin_since_at_ms < 0:
        own.rejoin_since_at_ms = event.handled_at_ms
    silence.watch_phases(facts, group, member)


def _on_leave(facts: Facts, group: Group, event: Event) -> None:
    """LeaveGroup, also of members of the consumer protocol, by an administrator: one new epoch for all of them."""
    at, by = took_effect(event, facts.coordinator)
    for asked_id, instance_id, reason, error in (event.detail or {}).get("members", ()):
        member_id = asked_id or group.instances.get(instance_id or "", "")
        member = group.members.get(member_id)
        if error == ErrorCode.UNKNOWN_MEMBER_ID and asked_id:
            evidence.on_gone(facts, group, asked_id, at)
        elif error == NONE and member is not None:
            cause, doubts = leaving.why(facts, group, member, event, asked_id or "", reason or "")
            if groups.own_of(member).gone_at_ms >= 0:
                removed.finish(facts, group, member, cause, reason or "", doubts)
            else:
                ends.remove_counted(facts, group, member, at, cause, reason or "", doubts, by, told=True)
        elif error == NONE and member_id in group.ended and group.ended[member_id].cause in ("unknown", "left"):
            over = group.ended[member_id]
            cause, doubts = leaving.why(facts, group, over.member, event, asked_id or "", reason or "")
            if cause != over.cause:
                over.reason = reason or ""
                ends.by_request(facts, group, over, event, cause, doubts)


def _on_commit(facts: Facts, group: Group, event: Event) -> None:
    """A commit renews nothing here; it may show a poll."""
    member = group.members.get(event.member_id)
    if member is not None and event.error_code in (NONE, IN_PROGRESS):
        polls.on_commit(facts, group, member, event)
