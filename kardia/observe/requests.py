"""What a completed request means: one function per kind of event, called in the order in which they took effect.

Sources: Kafka's `handleHeartbeat`, `doJoinGroup`, `doSyncGroup`, `handleLeaveGroup`, `doCommitOffsets` and their Java
successors. The broker's answer is the authority: where it differs from what is held, the difference is counted as a
divergence and what is held is mended.
"""

from __future__ import annotations

from kardia.events import Event
from kardia.model import sessions
from kardia.model.states import COORDINATOR_MOVED, ErrorCode, GroupState
from kardia.observe import costs, faults, leaves, lives, pending, polls, rebalance, refusals, timeouts
from kardia.observe.facts import Facts
from kardia.observe.group import NEVER, Group, Join, Member, Rebalance
from kardia.observe.identity import identify, learn_library, says_library
from kardia.observe.phases import STAMP_MS

MAX_LEFT_PENDING = 64
"""Ids remembered per group that left before they were seen to join; the oldest goes first."""

NONE, TOLD = int(ErrorCode.NONE), int(ErrorCode.REBALANCE_IN_PROGRESS)
CLASSIC = "classic"


def on_heartbeat(observer: Facts, event: Event, at: float) -> None:
    """Heartbeat: 0 and 27 renew the session, 25 and 82 say that the member is gone, the rest says nothing."""
    group = observer.group_of(event)
    error = event.error_code
    if error in (NONE, TOLD) and left_just_now(observer, group, event.member_id, at):
        return
    if error == NONE:
        member = group.members.get(event.member_id)
        if member is None:
            member = notice(observer, group, event, at)
        if says_library(member, event):
            learn_library(observer, group, member, event, at)
        if group.state != GroupState.STABLE or event.generation_id != group.generation:
            heard_steady(observer, group, event, at)
        elif at > group.steady_at:
            group.steady_at = at
        faults.heard(member, event)
        renew(observer, group, member, at)
    elif error == TOLD:
        member = group.members.get(event.member_id)
        if member is None:
            member = notice(observer, group, event, at)
        rebalance.on_told(observer, group, member, at)
        faults.heard(member, event)
        renew(observer, group, member, at)
        if member.told_at < 0:
            member.told_at = at
        timeouts.predict_straggler(observer, group, member, at)
    else:
        on_refused(observer, group, event, at)


def left_just_now(observer: Facts, group: Group, member_id: str, at: float) -> bool:
    """Whether a member left in the instant of another request of it: their order is lost in the stamps, and the broker
    does not answer 0 to a member that has left."""
    over = group.ended.get(member_id)
    return over is not None and over.cause in rebalance.LEFT and abs(at - over.ended_at) <= observer.settings.burst_ms


def heard_steady(observer: Facts, group: Group, event: Event, at: float) -> None:
    """A heartbeat answered 0 that does not fit a Stable group of this generation: bring the group in line with it."""
    if event.generation_id < group.generation:
        return  # a line that comes late, from before the last join completion
    state = group.state
    if state == GroupState.COMPLETING and event.generation_id == group.generation:
        return
    if state == GroupState.PREPARING and event.generation_id == group.generation:
        rebalance.on_contradicted(observer, group, at)
        return
    if state == GroupState.UNKNOWN and event.generation_id >= 0:
        group.generation = event.generation_id
        observer.move(group, at, GroupState.STABLE, "first seen", "inferred")
        group.steady_at = at
        return
    observer.divergences += 1
    if event.generation_id > group.generation:
        group.generation = event.generation_id
        group.whole = False
    group.rebalance = None
    observer.move(group, at, GroupState.STABLE, "generation seen", "inferred")
    group.steady_at = at


def renew(observer: Facts, group: Group, member: Member, at: float) -> None:
    """The session timer of a member starts again at `at`."""
    last = member.armed_at
    if at > last:
        if last >= 0:
            gap = at - last
            if gap < 0.7 * member.session_ms:
                member.habit_ms = max(member.habit_ms * 0.97, gap)
        member.armed_at = at
        if at > group.gap_at:
            member.unknown_since = NEVER
        member.overdue = False
        if member.session_prediction_at >= 0:
            observer.close_prediction(group, member, "session", "averted", at)
    observer.watch_renewed(group, member)


def notice(observer: Facts, group: Group, event: Event, at: float) -> Member:
    """A member that is not held but is answered as one: it was there before the log began, or was ended wrongly."""
    over = group.ended.get(event.member_id)
    if over is not None:
        observer.divergences += 1
        return lives.reinstate(observer, group, over, at)
    member = Member(event.member_id, at, instance_id=event.group_instance_id, armed_at=at)
    identify(member, event, "")
    member.generation_first = event.generation_id
    group.members[member.member_id] = member
    if member.instance_id:
        group.instances[member.instance_id] = member.member_id
    observer.index(group, member)
    observer.emit_member(group, member, at, "inferred")
    observer.emit_transition(group, at, member.member_id, "Absent", "Member", "first seen", "inferred")
    observer.watch(group, member)
    return member


def on_refused(observer: Facts, group: Group, event: Event, at: float) -> None:
    """An answer with an error other than 27: a member that is gone, or a coordinator that moved."""
    error = event.error_code
    if error == ErrorCode.UNKNOWN_MEMBER_ID:
        rebalance.on_gone(observer, group, event.member_id, at)
        faults.came_back(observer, group, event, at)
    elif error == ErrorCode.FENCED_INSTANCE_ID:
        rebalance.on_fenced(observer, group, event.member_id, at)
        tell_fenced(observer, group, event.member_id, at)
    elif error in COORDINATOR_MOVED:
        observer.moved(group, at)


def tell_fenced(observer: Facts, group: Group, member_id: str, at: float) -> None:
    """A replaced static member that still sends is a second process with the same instance id, not a restart of the
    first. Said once per life."""
    over = group.ended.get(member_id)
    if over is not None and over.cause == "static_replaced" and not over.member.fenced:
        over.member.fenced = True
        observer.emit_transition(group, at, member_id, "Absent", "Absent", "fenced", "exact")


def on_commit(observer: Facts, event: Event, at: float) -> None:
    """OffsetCommit: an accepted one of a member renews its session at its handling, before the record is written."""
    group = observer.group_of(event)
    if event.error_code != NONE:
        if event.error_code == TOLD:
            member = group.members.get(event.member_id)
            if member is not None:
                polls.on_commit(observer, group, member, event)
        elif event.member_id or event.error_code in COORDINATOR_MOVED:
            on_refused(observer, group, event, at)
        return
    if not event.member_id:
        return  # a simple consumer: commits without being a member
    member = group.members.get(event.member_id)
    if group.protocol != CLASSIC:
        return  # there a commit does not renew anything, and what does is not modelled
    if member is None:
        if event.generation_id < 0 or left_just_now(observer, group, event.member_id, at):
            return
        member = notice(observer, group, event, at)
    if says_library(member, event):
        learn_library(observer, group, member, event, at)
    renew(observer, group, member, at)
    polls.on_commit(observer, group, member, event)


def on_join(observer: Facts, event: Event, at: float) -> None:
    """JoinGroup, seen when it is answered; it took effect when it was handled, maybe long before."""
    group = observer.group_of(event)
    error, detail = event.error_code, event.detail or {}
    if error == ErrorCode.MEMBER_ID_REQUIRED:
        handed_out = str(detail.get("assigned_member_id", ""))
        deadline = at + int(detail.get("session_timeout_ms", 0))
        group.pending[handed_out] = [deadline, event.client_id, event.client_host, at]
        group.handed_out_at = max(group.handed_out_at, at)
        group.asked_ms = max(group.asked_ms, int(detail.get("rebalance_timeout_ms", -1)))
        observer.schedule(group, deadline, "pending", handed_out)
        return
    if error in COORDINATOR_MOVED:
        observer.moved(group, at)
        return
    if error != NONE:
        refusals.on_join(observer, group, event, at)
        if event.member_id:
            on_refused(observer, group, event, at)
        elif error == ErrorCode.FENCED_INSTANCE_ID:
            take_fenced(observer, group, event, at)
        return
    generation = event.generation_id
    begins = generation > group.generation or group.state in (GroupState.UNKNOWN, GroupState.EMPTY, GroupState.DEAD)
    if generation < group.generation and group.state not in (GroupState.EMPTY, GroupState.DEAD):
        observer.late += 1
        return
    group.protocol = CLASSIC
    if begins:
        answered = str(detail.get("assigned_member_id", "")) or event.member_id
        rebalance.on_join_phase_completed(observer, group, generation, at, answered, event.handled_at_ms)
    open_rebalance = group.rebalance
    member_id = str(detail.get("assigned_member_id", "")) or event.member_id
    in_burst = (
        open_rebalance is not None
        and open_rebalance.generation_after == generation
        and event.handled_at_ms <= open_rebalance.joined_at + observer.settings.tolerance_ms
    )
    if in_burst and open_rebalance is not None:
        take_join(observer, group, open_rebalance, event, member_id)
    elif not event.member_id and event.group_instance_id:
        take_replacement(observer, group, event, member_id, at)
    else:
        member = group.members.get(member_id)
        if member is None:
            member = notice(observer, group, event, at)
        identify(member, event, str(detail.get("protocol_type", "")))
        polls.on_request(observer, group, member, "join", event.arrived_at_ms)


def take_join(observer: Facts, group: Group, open_rebalance: Rebalance, event: Event, member_id: str) -> None:
    """One answer of the burst that ends a join phase."""
    detail = event.detail or {}
    member = group.members.get(member_id)
    replaces, surely = "", True
    is_new = member is None
    if member is None:
        over = group.ended.get(member_id)
        if over is not None and event.member_id:  # an id is never handed out twice, and an evicted one is answered 25
            observer.divergences += 1
            rebalance.note_left_after(observer, open_rebalance, over)
            member = lives.reinstate(observer, group, over, open_rebalance.joined_at)
            is_new = False
        else:
            replaces, surely = replaced_by(observer, group, event)
            member = Member(member_id, event.handled_at_ms, armed_at=open_rebalance.joined_at)
            group.members[member_id] = member
    pending.used(group, member_id)
    left = group.left_pending.pop(member_id, None)
    if left is not None:
        open_rebalance.left_after.append([member_id, max(left[0], open_rebalance.joined_at), *left[1:]])
    before = (member.session_ms, member.rebalance_ms)
    identify(member, event, str(detail.get("protocol_type", "")))
    member.session_ms = int(detail.get("session_timeout_ms", -1))
    member.rebalance_ms = int(detail.get("rebalance_timeout_ms", -1))
    member.seen_joining = True
    member.overdue = False
    if member.session_prediction_at >= 0:
        observer.close_prediction(group, member, "session", "averted", open_rebalance.joined_at)
    if member.generation_first < 0:
        member.generation_first = open_rebalance.generation_after
    if member.armed_at < open_rebalance.joined_at:
        member.armed_at = open_rebalance.joined_at
    observer.index(group, member)
    old = group.members.get(replaces)
    if old is not None:
        how_sure = "exact" if surely else "provisional"
        rebalance.end_member(observer, group, old, event.handled_at_ms, "static_replaced", "", how_sure)
    if member.instance_id:
        group.instances[member.instance_id] = member_id
    open_rebalance.joins.append(
        Join(
            member_id,
            event.member_id,
            event.group_instance_id,
            event.client_id,
            event.arrived_at_ms,
            event.handled_at_ms,
            str(detail.get("reason", "")),
            is_new,
            replaces,
            surely,
        )
    )
    open_rebalance.leader = str(detail.get("leader", "")) or open_rebalance.leader
    open_rebalance.protocol_name = str(detail.get("protocol_name", "")) or open_rebalance.protocol_name
    group.protocol_type = str(detail.get("protocol_type", "")) or group.protocol_type
    if detail.get("members"):
        open_rebalance.listed = [[str(entry[0]), str(entry[1] or "")] for entry in detail["members"]]
    polls.on_request(observer, group, member, "join", event.arrived_at_ms)
    observer.watch(group, member)
    if open_rebalance.settled:
        rebalance.settle(observer, group, open_rebalance)
    elif not is_new and before != (member.session_ms, member.rebalance_ms):
        observer.emit_member(group, member, open_rebalance.joined_at, "exact")


def take_fenced(observer: Facts, group: Group, event: Event, at: float) -> None:
    """A static process that restarted waited in its JoinGroup, and was replaced by the next one before it was let in:
    its answer (82) names the id that it had been given."""
    detail, taken_at = event.detail or {}, event.handled_at_ms
    member_id = str(detail.get("assigned_member_id", ""))
    if not member_id or member_id in group.ended:
        return
    old = group.members.get(group.instances.get(event.group_instance_id, ""))
    if old is not None and old.member_id != member_id:
        if 0 <= old.deadline <= taken_at:
            lives.end(observer, group, old, old.deadline, "session_expired", "", "exact")
        else:
            lives.end(observer, group, old, taken_at, "static_replaced", "", "exact")
    member = Member(member_id, taken_at, instance_id=event.group_instance_id, seen_joining=True)
    identify(member, event, str(detail.get("protocol_type", "")))
    observer.emit_transition(group, taken_at, member_id, "Absent", "Member", "static_replaced", "exact")
    lives.end(observer, group, member, at, "static_replaced", "", "exact")


def replaced_by(observer: Facts, group: Group, event: Event) -> tuple[str, bool]:
    """Id of the static member whose instance id a JoinGroup of the burst took over, empty when nobody held it then; and
    whether that is sure: it may have been gone where it is not known until when its session ran."""
    instance_id, taken_at = event.group_instance_id, event.handled_at_ms
    if not instance_id or event.member_id:
        return "", True
    old = group.members.get(group.instances.get(instance_id, ""))
    if old is not None:
        ran_out_at = old.armed_before_join + old.session_ms
        if old.armed_before_join < 0 or old.session_ms < 0 or old.unknown_since >= 0:
            return old.member_id, False
        if ran_out_at > taken_at:
            return old.member_id, old.armed_before_join > group.unsure_to
        return (
            "",
            True,
        )  # its session had run out; it is missing from the list, and ended when the join phase is settled
    for over in reversed(list(group.ended.values())):
        if over.member.instance_id != instance_id:
            continue
        if over.certainty != "exact" and over.ended_at > taken_at - observer.settings.burst_ms:
            surely = over.certainty != "unknown"
            lives.correct(observer, group, over, taken_at, "static_replaced", "exact" if surely else "provisional")
            return over.member.member_id, surely
        return "", True
    return "", True


def take_replacement(observer: Facts, group: Group, event: Event, member_id: str, at: float) -> None:
    """A static member that came back under a new id in a Stable group: no rebalance, the old session timeout runs."""
    detail = event.detail or {}
    handled_at = event.handled_at_ms
    old = group.members.get(group.instances.get(event.group_instance_id, ""))
    member = group.members.get(member_id)
    if member is None:
        member = Member(member_id, handled_at, armed_at=handled_at, generation_first=event.generation_id)
        group.members[member_id] = member
    if old is not None and old.member_id != member_id:
        member.session_ms = old.session_ms
        rebalance.note_never_synced(group, old)
        if old.member_id in group.held:
            group.held[member_id] = group.held.pop(old.member_id)
        rebalance.end_member(observer, group, old, handled_at, "static_replaced", "", "exact")
        if group.leader == old.member_id:
            group.leader = member_id
    identify(member, event, str(detail.get("protocol_type", "")))
    group.instances[event.group_instance_id] = member_id
    member.seen_joining = True
    observer.index(group, member)
    observer.emit_transition(group, handled_at, member_id, "Absent", "Member", "static_replaced", "exact")
    # This arming still runs on the timeout stored before (Kafka arms first, updates then); later ones on the new.
    deadline_ms = member.session_ms
    member.session_ms = int(detail.get("session_timeout_ms", -1))
    if deadline_ms >= 0:
        member.armed_at = handled_at + deadline_ms - member.session_ms
    member.rebalance_ms = int(detail.get("rebalance_timeout_ms", -1))
    observer.emit_member(group, member, handled_at, "exact")
    polls.on_request(observer, group, member, "join", event.arrived_at_ms)
    group.steady_at = max(group.steady_at, at)
    observer.watch(group, member)


def on_sync(observer: Facts, event: Event, at: float) -> None:
    """SyncGroup: the leader's ends the rebalance; a waiting one renews when it is answered."""
    group = observer.group_of(event)
    error = event.error_code
    member = group.members.get(event.member_id)
    if error == NONE:
        if member is None:
            if left_just_now(observer, group, event.member_id, at):
                return
            member = notice(observer, group, event, at)
        leads = bool(event.detail and event.detail.get("assignments")) or event.member_id == group.leader
        if group.state == GroupState.COMPLETING and event.generation_id == group.generation and leads:
            # Scala: received before the handler thread appends the record; Java: after the handler passed it on.
            java = observer.coordinator is sessions.Coordinator.JAVA
            rebalance.on_assigned(observer, group, event.handled_at_ms if java else event.arrived_at_ms, at)
            costs.take_assignment(group, (event.detail or {}).get("assignments") or ())
        member.synced_generation = event.generation_id
        served_stable = group.state == GroupState.STABLE and event.handled_at_ms > group.stable_at
        row = sessions.RENEWALS["sync_served_stable" if served_stable else "sync_propagated"]
        if observer.coordinator in row.coordinators:
            renew(observer, group, member, at)
        hardly_waited = at - event.handled_at_ms <= STAMP_MS
        if not leads and hardly_waited and not (served_stable and event.handled_at_ms > group.stable_at + STAMP_MS):
            member.doubtful_at = member.armed_at
        polls.on_request(observer, group, member, "sync", event.arrived_at_ms)
    elif error == TOLD:
        if member is not None:
            rebalance.on_told(observer, group, member, at)
            if member.told_at < 0:
                member.told_at = at
            current = group.rebalance
            began = NEVER if current is None else current.started_at
            if current is not None and began < 0:
                began = current.told_at - observer.settings.burst_ms
            if began >= 0 and event.handled_at_ms < began:
                renew(observer, group, member, at)  # it was waiting, and was sent back when the rebalance began
    elif event.member_id:
        on_refused(observer, group, event, at)


def on_leave(observer: Facts, event: Event, at: float) -> None:
    """LeaveGroup: each entry is judged alone; the first accepted one makes a Stable group prepare a rebalance."""
    group = observer.group_of(event)
    if event.error_code in COORDINATOR_MOVED:
        observer.moved(group, at)
        return
    for asked_id, instance_id, reason, error in (event.detail or {}).get("members", ()):
        if error != NONE:
            if error == ErrorCode.UNKNOWN_MEMBER_ID and asked_id:
                rebalance.on_gone(observer, group, asked_id, at)
            continue
        member_id = asked_id or group.instances.get(instance_id or "", "")
        if pending.is_over(group, member_id, at) and member_id not in group.members:
            _left_unseen(group, member_id, event, reason or "")
            if observer.coordinator is sessions.Coordinator.JAVA:
                rebalance.on_pending_left(observer, group, member_id, event, at)
            continue
        if left_just_now(observer, group, member_id, at):
            continue  # it ended a join phase by leaving, and was taken out with it
        member = group.members.get(member_id)
        if member is None and asked_id:
            member = notice(observer, group, event._replace(member_id=asked_id), at)
        if member is None:
            continue
        verdict = leaves.why(member, event, asked_id or "", reason or "")
        certainty = verdict.certainty
        if certainty == "inferred" and group.state != GroupState.STABLE:
            certainty = "provisional"  # whoever waits in a rebalance polls and commits nothing, stalled or not
        rebalance.end_member(observer, group, member, at, verdict.cause, reason or "", certainty)


def _left_unseen(group: Group, member_id: str, event: Event, reason: str) -> None:
    """An id left of which no JoinGroup was answered yet: it was pending, or is answered in this same instant."""
    verdict = leaves.why(Member(member_id, event.handled_at_ms), event, member_id, reason)
    while len(group.left_pending) >= MAX_LEFT_PENDING:
        del group.left_pending[next(iter(group.left_pending))]
    group.left_pending[member_id] = [event.handled_at_ms, verdict.cause, reason, verdict.certainty]


def on_leave_before(observer: Facts, group: Group, current: Rebalance, event: Event) -> None:
    """LeaveGroup handled in the instant in which a join phase ended: who is not on the leader's list left before it,
    and by leaving may have ended it."""
    if current.listed is None or event.error_code != NONE:
        return
    listed = {entry[0] for entry in current.listed}
    for asked_id, instance_id, reason, error in (event.detail or {}).get("members", ()):
        member = group.members.get(asked_id or group.instances.get(instance_id or "", ""))
        if error == NONE and member is not None and member.member_id not in listed:
            verdict = leaves.why(member, event, asked_id or "", reason or "")
            at = min(event.handled_at_ms, current.joined_at)
            lives.end(observer, group, member, at, verdict.cause, reason or "", verdict.certainty)


def on_fetch(observer: Facts, event: Event, _at: float) -> None:
    """FETCH: belongs to the members of the shard with the same client.id and address."""
    found = observer.clients.get((event.shard, event.client_id, event.client_host))
    if found is not None:
        for group, member in found.values():
            polls.on_fetch(observer, group, member, event)


def on_modern(observer: Facts, event: Event, at: float) -> None:
    """A heartbeat of a protocol that is not modelled: the member is shown, its state is unknown."""
    observer.not_modelled += 1
    group = observer.group_of(event)
    detail = event.detail or {}
    group.protocol = str(detail.get("protocol", "consumer"))
    if event.error_code != NONE or not event.member_id:
        return
    member = group.members.get(event.member_id)
    epoch = int(detail.get("member_epoch", 0))
    if member is None and epoch >= 0:
        member = Member(event.member_id, event.handled_at_ms)
        identify(member, event, "")
        group.members[member.member_id] = member
        observer.index(group, member)
        observer.emit_member(group, member, at, "unknown")
    elif member is not None and epoch == -1:
        rebalance.end_member(observer, group, member, event.handled_at_ms, "left", "", "inferred")


def on_telemetry(observer: Facts, event: Event, _at: float) -> None:
    """Pushed client metrics: when the application polled, where the client says that, of itself and of nobody else.

    It is pushed to any broker, so it does not tell who coordinates the group.
    """
    group = observer.groups.get(event.group_id)
    member = group.members.get(event.member_id) if group is not None else None
    ago_s = (event.detail or {}).get("last_poll_s")
    if group is None or member is None or ago_s is None or event.error_code != NONE:
        observer.not_modelled += 1
    elif (member.client_id, member.client_host) == (event.client_id, event.client_host):
        polls.on_telemetry(observer, group, member, event.arrived_at_ms, 1_000.0 * float(ago_s))


def on_delete_groups(observer: Facts, event: Event, at: float) -> None:
    """DeleteGroups: an empty group that was deleted starts again at generation 0."""
    if event.error_code == NONE and event.group_id:
        rebalance.on_deleted(observer, observer.group_of(event), at)
