"""What an answered JoinGroup means: an id handed out, one answer of a join burst, a static member in its old place.

A JoinGroup took effect when it was handled, maybe long before it was answered and so logged. Sources: `doJoinGroup`,
`updateStaticMemberAndRebalance`, `onCompleteJoin` and their Java successors.
"""

from __future__ import annotations

from typing import Any

from kardia.coordinator.classic.behaviour import behaviour_of
from kardia.doubts import SURE, Doubt, Doubts, certainty_of
from kardia.events import Event
from kardia.kafka.releases import version_of
from kardia.kafka.states import COORDINATOR_MOVED, ErrorCode, GroupState
from kardia.observe.coordinator_change import loads, new_coordinator
from kardia.observe.deadlines import pending
from kardia.observe.deadlines.handling import told_between, took_effect
from kardia.observe.facts.groups_of_lane import Facts
from kardia.observe.members import lives, polls
from kardia.observe.members.identity import identify
from kardia.observe.rebalance import begin_and_settle, generations, seen_under_way
from kardia.observe.requests import last_consumer_seat, not_stored, refusals, sent_back
from kardia.observe.requests.member_requests import CLASSIC, NONE, heard_steady, notice, on_refused
from kardia.observe.state.entries import HandedOut
from kardia.observe.state.group import NEVER, Ended, Group, Join, Member, Rebalance
from kardia.observe.timers import timeouts
from kardia.tolerances import AT_ONCE_MS, GRACE_MS, LATE_MS, TWO_STAMPS_MS


def on_join(facts: Facts, event: Event, at: float) -> None:
    """JoinGroup, seen when it is answered; it took effect when it was handled, maybe long before."""
    group = new_coordinator.group_of(facts, event)
    if event.error_code == ErrorCode.MEMBER_ID_REQUIRED:
        _note_handed_out(facts, group, event, at)
    elif not_stored.is_told(facts, event) and (event.group_instance_id or event.member_id):
        not_stored.on_join(facts, group, event, at)
    elif event.error_code in COORDINATOR_MOVED:
        new_coordinator.moved(facts, group, event, at)
    elif event.error_code == NONE:
        _let_in(facts, group, event, at)
    elif event.error_code == ErrorCode.REBALANCE_IN_PROGRESS:
        sent_back.on_join(facts, group, event, at)
    else:
        refusals.on_join(facts, group, event, at)
        if event.member_id:
            on_refused(facts, group, event, at)
        elif event.error_code == ErrorCode.FENCED_INSTANCE_ID:
            take_fenced(facts, group, event)


def _note_handed_out(facts: Facts, group: Group, event: Event, at: float) -> None:
    """A first JoinGroup was answered with an id, to join with."""
    detail = event.detail or {}
    member_id = str(detail.get("assigned_member_id", ""))
    until_at_ms = at + int(detail.get("session_timeout_ms", 0))
    group.pending[member_id] = HandedOut(until_at_ms, event.client_id, event.client_host, at, event.connection)
    group.handed_out_at_ms = max(group.handed_out_at_ms, at)
    group.asked_ms = max(group.asked_ms, int(detail.get("rebalance_timeout_ms", -1)))
    facts.schedule(group, until_at_ms + GRACE_MS, "pending", member_id)


def _let_in(facts: Facts, group: Group, event: Event, at: float) -> None:
    """A JoinGroup was answered with a generation: in the burst that ends a join phase, in the place of a static member,
    or by itself, as to somebody who asked again."""
    generation, detail = event.generation_id, event.detail or {}
    loads.take_back(facts, group, event, at)
    if _replaced_while_stable(group, event):
        heard_steady(facts, group, event, event.handled_at_ms)
    elif loads.was_stored(group, event):
        heard_steady(facts, group, event, event.handled_at_ms, Doubt.LOAD_UNSEEN)
    is_over = group.state in (GroupState.EMPTY, GroupState.DEAD)
    if generation < group.generation and not is_over:
        if not last_consumer_seat.begin(facts, group, event):
            facts.late += 1
            _doubt_begin(group, event)
        return
    group.protocol = CLASSIC
    group.release = _release(facts, detail)
    member_id = str(detail.get("assigned_member_id", "")) or event.member_id
    if detail.get("leader") == "":
        _note_asked(facts, group, event, member_id, at)
        return  # a consumer group answers without a leader: the line of the heartbeat that made it one is still to come
    if generation > group.generation or is_over:
        generations.on_join_phase_completed(facts, group, generation, at, member_id, event.handled_at_ms)
    current = group.rebalance
    if current is not None and _is_in_burst(facts, group, current, event, member_id):
        take_join(facts, group, current, event, member_id)
    elif not event.member_id and event.group_instance_id:
        take_replacement(facts, group, event, member_id)
    else:
        _note_asked(facts, group, event, member_id, at)


def _doubt_begin(group: Group, event: Event) -> None:
    """Who is let into the generation before the one that is held, where a rebalance seems to be under way, did not wait
    in it: what began that, and who was a member, is not known."""
    current = group.rebalance
    if current is not None and current.joined_at_ms < 0 and current.started_at_ms <= event.handled_at_ms:
        current.members_before, group.membership_complete = -1, False


def _note_asked(facts: Facts, group: Group, event: Event, member_id: str, at: float) -> None:
    """Somebody asked again, or was seen for the first time. A JoinGroup renews nothing."""
    member = group.members.get(member_id)
    if member is None:
        _end_the_holder(facts, group, event)
        member = notice(facts, group, event._replace(member_id=member_id), at)
    member.asked_at_ms = max(member.asked_at_ms, event.handled_at_ms)
    identify(facts, group, member, event, str((event.detail or {}).get("protocol_type", "")))
    polls.on_request(facts, group, member, "join", event.arrived_at_ms)
    timeouts.rejoined(facts, group, member, event.handled_at_ms)


def _end_the_holder(facts: Facts, group: Group, event: Event) -> None:
    """Who has an instance id is gone when another one is answered under it, as in a group that a request which is not
    answered yet has made a consumer group."""
    old = _holder(group, event.group_instance_id, "") if event.group_instance_id and not event.member_id else None
    if old is not None:
        taken_at, by = took_effect(event, facts.coordinator)
        lives.end(facts, group, old, max(taken_at, old.joined_at_ms), "static_replaced", "", Doubt.MAY_WAIT_UNSEEN, by)


def _is_in_burst(facts: Facts, group: Group, current: Rebalance, event: Event, member_id: str) -> bool:
    """Whether a JoinGroup is one of those that the end of the join phase answered. Who was answered in it and asks once
    more is told the same again."""
    if current.generation_after != event.generation_id:
        return False
    if event.handled_at_ms > current.joined_at_ms and any(join.member_id == member_id for join in current.joins):
        return False
    by = current.joined_at_ms + facts.settings.tolerance_ms
    return event.handled_at_ms <= by and not _came_when_stable(group, current, event)


def _release(facts: Facts, detail: dict[str, Any]) -> str:
    """Release that answered, where the line is text: as configured, if that is one whose lines may look so."""
    shown, configured = str(detail.get("release", "")), facts.settings.kafka_version
    return configured if shown and configured and version_of(configured) > version_of(shown) else shown


def _came_when_stable(group: Group, current: Rebalance, event: Event) -> bool:
    """Whether a JoinGroup was handled when the assignment of the generation had come already: then it is none of those
    that its join phase answered, however soon after."""
    return 0 <= current.joined_at_ms <= group.stable_at_ms < event.handled_at_ms - TWO_STAMPS_MS


def _replaced_while_stable(group: Group, event: Event) -> bool:
    """Whether an answer shows by itself, where not enough is known of the group, that a static member took its place
    again while it was Stable: nobody joins a generation that is over otherwise, without an id."""
    if event.member_id or not event.group_instance_id:
        return False
    known = group.state == GroupState.UNKNOWN and event.generation_id == group.generation
    return known or bool((event.detail or {}).get("skip_assignment"))


def take_join(facts: Facts, group: Group, open_rebalance: Rebalance, event: Event, member_id: str) -> None:
    """One answer of the burst that ends a join phase."""
    detail = event.detail or {}
    replaces, surely = "", True
    begun_at, came_at, came_by = _came_between(facts, open_rebalance, event)
    member = _known_in_burst(facts, group, open_rebalance, event, member_id)
    if member is None:
        is_new = not _may_have_been_member(group, open_rebalance, event, member_id)
    else:
        is_new = _was_only_listed(open_rebalance, member) and _was_handed_out(group, event, member_id)
    first_seen = member is None and not is_new
    if member is None:
        replaces, surely = replaced_by(facts, group, event)
        member = Member(member_id, came_at, joined_by=came_by)
        member.session_renewed_at_ms = open_rebalance.joined_at_ms
        group.members[member_id] = member
    asked_since = pending.used(group, member_id, event)
    heard_before_ms = NEVER if is_new else refusals.heard_before(member, event)
    left = group.left_pending.pop(member_id, None)
    if left is not None:
        left_at_ms = max(left.left_at_ms, open_rebalance.joined_at_ms)
        open_rebalance.left_after.append(left._replace(left_at_ms=left_at_ms))
    before = (member.session_ms, member.rebalance_ms)
    identify(facts, group, member, event, str(detail.get("protocol_type", "")))
    member.session_ms = int(detail.get("session_timeout_ms", -1))
    member.rebalance_ms = int(detail.get("rebalance_timeout_ms", -1))
    member.seen_joining = True
    _renew_in_burst(facts, group, open_rebalance, member, event)
    if group.release and not behaviour_of(group.release).new_member_keeps_short_timer:
        # Its session does not run before it is heard once more, or joins again.
        member.unknown_since_at_ms = open_rebalance.joined_at_ms if is_new else NEVER
    facts.index(group, member)
    old = group.members.get(replaces)
    if old is not None:
        doubts: Doubts = SURE if surely else Doubt.RENEWAL_UNSURE
        taken_at, by = took_effect(event, facts.coordinator, waited=True)
        taken_at = max(taken_at, old.joined_at_ms)
        begin_and_settle.end_member(facts, group, old, taken_at, "static_replaced", "", doubts, by)
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
            asked_since,
            heard_before_ms,
            begun_at,
            came_by,
            first_seen,
        )
    )
    open_rebalance.leader = str(detail.get("leader", "")) or open_rebalance.leader
    open_rebalance.protocol_name = str(detail.get("protocol_name", "")) or open_rebalance.protocol_name
    group.protocol_type = str(detail.get("protocol_type", "")) or group.protocol_type
    if detail.get("members"):
        open_rebalance.listed = {str(entry[0]): str(entry[1] or "") for entry in detail["members"]}
    polls.on_request(facts, group, member, "join", event.arrived_at_ms)
    facts.watch(group, member)
    if open_rebalance.settled:
        begin_and_settle.settle(facts, group, open_rebalance)
    elif not is_new and before != (member.session_ms, member.rebalance_ms):
        facts.emit_member(group, member, open_rebalance.joined_at_ms, SURE)


_SECOND_JOIN = ("need to re-join with the given member-id", "rebalance failed due to MemberIdRequiredException")
"""Reasons that Java clients give for joining with an id that they have just been handed (KIP-394, KIP-800)."""


def _may_have_been_member(group: Group, current: Rebalance, event: Event, member_id: str) -> bool:
    """Whether somebody of whom nothing had been read may have been a member before: the list of members is not known
    to be whole, as where a log begins in the middle, and the id that it asked with was handed out where nothing was
    read. Nobody was a member before generation 1."""
    if not event.member_id or group.membership_complete or current.generation_after == 1:
        return False
    return not _was_handed_out(group, event, member_id)


def _was_handed_out(group: Group, event: Event, member_id: str) -> bool:
    """Whether a JoinGroup is the first with an id that had just been handed out."""
    handed_out = member_id in group.pending or any(over.member_id == member_id for over in group.pending_over)
    return handed_out or str((event.detail or {}).get("reason", "")).startswith(_SECOND_JOIN)


def _was_only_listed(current: Rebalance, member: Member) -> bool:
    """Whether a member is known by the leader's list of this very rebalance alone: its own answer is read later."""
    return not member.seen_joining and member.joined_at_ms == current.joined_at_ms


def _known_in_burst(
    facts: Facts, group: Group, open_rebalance: Rebalance, event: Event, member_id: str
) -> Member | None:
    """The member that is answered in the burst, if it is none that is new; one that was taken for ended lives on."""
    over = group.ended.get(member_id)
    if member_id in group.members or over is None or not event.member_id:
        return group.members.get(member_id)
    # An id is never handed out twice, and an evicted one is answered 25.
    begin_and_settle.note_left_after(facts, open_rebalance, over)
    return lives.reinstate(facts, group, over, open_rebalance.joined_at_ms)


def _renew_in_burst(facts: Facts, group: Group, open_rebalance: Rebalance, member: Member, event: Event) -> None:
    """The end of the join phase begins the sessions of all who are in it anew."""
    member.overdue = False
    member.heard_at_ms = NEVER
    if member.session_prediction_at_ms >= 0:
        facts.close_prediction(group, member, "session", "averted", open_rebalance.joined_at_ms)
    timeouts.rejoined(facts, group, member, event.handled_at_ms)
    if member.generation_first < 0:
        member.generation_first = open_rebalance.generation_after
    if member.session_renewed_at_ms < open_rebalance.joined_at_ms:
        member.session_renewed_at_ms = open_rebalance.joined_at_ms


def _came_between(facts: Facts, open_rebalance: Rebalance, event: Event) -> tuple[float, float, float | None]:
    """The earliest that somebody came into a rebalance, when it did most likely, and the latest, None where that is the
    same as the second. A young broker was at the end of 80 ms in its handler, as it had loaded classes; a busy one at
    the begin of 90. A line that is written late makes all of its request seem later than it was: the first of the burst
    shows by how much (2.7.2: 37 ms)."""
    begun_at, by = took_effect(event, facts.coordinator, waited=True)
    came_at = begun_at
    if by is not None and facts.loads_classes(event.handled_at_ms):
        came_at, by = event.handled_at_ms, by if by > event.handled_at_ms + TWO_STAMPS_MS else None
    late_ms = event.decided_at_ms - open_rebalance.joined_at_ms
    if open_rebalance.joined_at_ms < 0 or late_ms <= AT_ONCE_MS:
        return begun_at, came_at, by
    return min(begun_at, came_at - late_ms), came_at - late_ms, came_at if by is None else by


def take_fenced(facts: Facts, group: Group, event: Event) -> None:
    """A static process that restarted waited in its JoinGroup, and was replaced by the next one before it was let in:
    its answer (82) names the id that it had been given. The next one's own answer may have been read before."""
    detail, taken_at = event.detail or {}, event.handled_at_ms
    member_id = str(detail.get("assigned_member_id", ""))
    if not member_id or member_id in group.ended:
        return
    heir, held_by = refusals.heir_of(group, event), refusals.held_before(group, event)
    old, over = group.members.get(held_by), group.ended.get(held_by)
    came_by = "member_joined"
    if old is not None and old.member_id != member_id:
        came_by = refusals.end_the_seated(facts, group, old, taken_at)
    elif over is not None and over.cause in ("static_replaced", "session_expired"):
        came_by = "static_replaced"
        lives.correct(facts, group, over, taken_at, came_by, over.doubts)
    if heir is not None:
        heir.replaces, heir.replaces_surely = member_id, True
    member = Member(member_id, taken_at, instance_id=event.group_instance_id, seen_joining=True)
    identify(facts, group, member, event, str(detail.get("protocol_type", "")))
    facts.emit_transition(group, taken_at, member_id, "Absent", "Member", came_by, SURE)
    told_from, told_by = told_between(event)
    lives.end(facts, group, member, max(told_from, taken_at), "static_replaced", "", SURE, told_by)


def replaced_by(facts: Facts, group: Group, event: Event) -> tuple[str, bool]:
    """Id of the static member whose instance id a JoinGroup of the burst took over, empty when nobody held it then; and
    whether that is sure: it may have been gone where it is not known until when its session ran."""
    instance_id, taken_at = event.group_instance_id, event.handled_at_ms
    if not instance_id or event.member_id:
        return "", True
    old = group.members.get(group.instances.get(instance_id, ""))
    if old is not None:
        return _replaced_a_member(group, old, taken_at)
    held = (over for over in reversed(list(group.ended.values())) if over.member.instance_id == instance_id)
    last = next(held, None)
    return _replaced_one_that_ended(facts, group, last, taken_at) if last is not None else ("", True)


def _replaced_a_member(group: Group, old: Member, taken_at: float) -> tuple[str, bool]:
    """The same of one that is held as a member still."""
    if _let_sync_pass(group, old, taken_at):
        return old.member_id, False
    armed = old.renewed_before_join_at_ms
    ran_out_at = armed + old.session_ms
    if armed < 0 or old.session_ms < 0 or old.unknown_since_at_ms >= 0:
        return old.member_id, False
    if ran_out_at > taken_at:
        known = armed > group.unsure_to and not old.is_unsure(armed)
        return old.member_id, known and ran_out_at > taken_at + TWO_STAMPS_MS
    return "", True  # its session had run out; it is missing from the list, and ended when the join phase is settled


def _replaced_one_that_ended(facts: Facts, group: Group, over: Ended, taken_at: float) -> tuple[str, bool]:
    """The same of the last one that is held as ended, whose end may have to be corrected."""
    told_by = over.ended_at_ms if over.by is None else max(over.by, over.ended_at_ms)
    in_time = -facts.settings.burst_ms <= told_by - taken_at and over.ended_at_ms - taken_at <= AT_ONCE_MS
    if over.cause == "static_replaced" and in_time:
        # It waited, and was told in the instant in which its place was taken.
        return over.member.member_id, certainty_of(over.doubts) != "provisional"
    if over.doubts == SURE:
        return "", True
    if taken_at - LATE_MS <= over.ended_at_ms <= taken_at - TWO_STAMPS_MS:
        if over.by is not None and not 0 <= over.by < taken_at:
            over.rivalled = True  # the timer of its session may have been late: then it was replaced
            lives.correct(facts, group, over, over.ended_at_ms, over.cause, Doubt.TIMER_MAY_BE_LATE, taken_at)
        return "", True
    if over.ended_at_ms > taken_at - TWO_STAMPS_MS:
        surely = certainty_of(over.doubts) == "inferred" and over.ended_at_ms > taken_at + TWO_STAMPS_MS
        lives.correct(facts, group, over, taken_at, "static_replaced", SURE if surely else Doubt.STAMPS_TIED)
        return over.member.member_id, surely
    return "", True


def _let_sync_pass(group: Group, old: Member, taken_at: float) -> bool:
    """Whether a member may have been removed because the time for SyncGroup was over when its place was taken. Once
    somebody is told of the next rebalance nobody waits for SyncGroup."""
    current = group.rebalance
    if current is None or not old.seen_joining or old.synced_generation == current.generation_before:
        return False
    return (
        0 <= current.sync_over_at_ms <= taken_at and not 0 <= current.rebalance_notified_at_ms < current.sync_over_at_ms
    )


def _holder(group: Group, instance_id: str, member_id: str) -> Member | None:
    """Who holds an instance id that a member is given; the member itself if nobody else does. Its SyncGroup, which it
    sent when it had the answer, may have been put before it: stamps are cut to 1 ms."""
    holder = group.members.get(group.instances.get(instance_id, ""))
    if holder is None or holder.member_id != member_id:
        return holder
    others = (one for one in group.members.values() if one.instance_id == instance_id and one.member_id != member_id)
    return next(others, holder)


def _may_be_taken_back(group: Group, holder: Member) -> bool:
    """Whether a load since it was heard may have put somebody else in its static seat: before 2.6.1 a replacement in a
    Stable group is not recorded, and a load brings back whom it replaced."""
    recorded = not group.release or behaviour_of(group.release).replacement_is_recorded
    return not recorded and holder.session_renewed_at_ms <= group.unsure_to


def _may_have_been_taken_unseen(facts: Facts, group: Group, holder: Member) -> bool:
    """Whether somebody else may have taken a seat just before the broker fell, with what it had not logged."""
    heard_at_ms, loaded_at_ms = holder.last_heard_at_ms, group.loaded_at_ms
    if not 0 <= heard_at_ms < loaded_at_ms:
        return False
    return any(begin <= loaded_at_ms and heard_at_ms < end for begin, end in facts.silences.get(group.broker, ()))


def _correct_the_seated(facts: Facts, group: Group, instance_id: str, taken_at: float) -> None:
    """Whom silence alone had ended had its seat still, as another takes it and its end would have made a generation."""
    over = group.last_in_seat(instance_id)
    if over is None or over.ended_at_ms <= group.stable_at_ms:
        return
    if over.cause == "session_expired" and not (over.doubts == SURE or over.told):
        lives.correct(facts, group, over, taken_at, "static_replaced", Doubt.BY_ELIMINATION)


def take_replacement(facts: Facts, group: Group, event: Event, member_id: str) -> None:
    """A static member that came back under a new id in a Stable group: no rebalance, the old session timeout runs."""
    detail = event.detail or {}
    taken_at, by = took_effect(event, facts.coordinator)
    old = _holder(group, event.group_instance_id, member_id)
    if old is not None and old.member_id != member_id:
        taken_at = max(taken_at, old.joined_at_ms)
    session_renewed_at_ms = max(taken_at, event.handled_at_ms)  # the instant in every recording, within these bounds
    # Of two that took a seat in one breath Scala's tells the second the id of the first, which is over.
    of_new: Doubts = Doubt.ID_UNSURE if member_id in group.ended else SURE
    member = group.members.get(member_id)
    if member is None:
        member = Member(
            member_id,
            taken_at,
            session_renewed_at_ms=session_renewed_at_ms,
            generation_first=event.generation_id,
            joined_by=by,
        )
        group.members[member_id] = member
    if old is None:
        member.doubtful_at_ms = session_renewed_at_ms  # it runs on the timeout of whom it replaced, who was not seen
        _correct_the_seated(facts, group, event.group_instance_id, taken_at)
    elif old.member_id != member_id:
        member.session_ms = old.session_ms
        seen_under_way.note_never_synced(facts, group, old)
        loads.note_replaced(group, old.member_id, member_id)
        if old.member_id in group.held:
            group.held[member_id] = group.held.pop(old.member_id)
        named = detail.get("leader") == old.member_id
        heard_since = old.session_renewed_at_ms > group.gap_at_ms or named
        # Unless it was heard since the gap, somebody may have taken its place in it; unless it was since a load,
        # just before the broker fell.
        unseen = _may_be_taken_back(group, old) or (not named and _may_have_been_taken_unseen(facts, group, old))
        doubts: Doubts = SURE if heard_since else Doubt.LINES_LOST
        if unseen:
            doubts |= Doubt.SEAT_MAY_BE_TAKEN
        said = group.said.end_of(old.member_id, "static_replaced", taken_at, LATE_MS)
        group.said.ends.pop(old.member_id, None)
        if said is not None:
            taken_at, by, doubts = max(said.at_ms, old.joined_at_ms), None, said.doubts
        begin_and_settle.end_member(facts, group, old, taken_at, "static_replaced", "", doubts, by)
        if group.leader == old.member_id:
            group.leader = member_id
    identify(facts, group, member, event, str(detail.get("protocol_type", "")))
    group.instances[event.group_instance_id] = member_id
    member.seen_joining = True
    facts.index(group, member)
    facts.emit_transition(group, taken_at, member_id, "Absent", "Member", "static_replaced", of_new, by)
    # This arming still runs on the timeout stored before (Kafka arms first, updates then); later ones on the new.
    deadline_ms = member.session_ms
    member.session_ms = int(detail.get("session_timeout_ms", -1))
    if deadline_ms >= 0:
        member.session_renewed_at_ms = session_renewed_at_ms + deadline_ms - member.session_ms
    member.rebalance_ms = int(detail.get("rebalance_timeout_ms", -1))
    facts.emit_member(group, member, taken_at, of_new)
    polls.on_request(facts, group, member, "join", event.arrived_at_ms)
    # The group was Stable when it was handled; by the answer, which waits for an append, it need not have been.
    group.steady_at_ms = max(group.steady_at_ms, event.handled_at_ms)
    facts.watch(group, member)
