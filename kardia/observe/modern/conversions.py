"""A group changes its protocol while it lives: from classic to consumer when the first member of the consumer protocol
joins, and back when only members of the classic protocol are left.

Records show it in one operation. Where only requests are seen an upgrade shows in the answer to the join, and a
downgrade in the first JoinGroup that is answered with a leader: it was when the last member of the consumer protocol
went. Sources: `GroupMetadataManager.convertToConsumerGroup`, `convertToClassicGroup`, `ClassicGroup.fromConsumerGroup`.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from kardia.doubts import SURE, Doubt, Doubts
from kardia.events import Event
from kardia.kafka.states import GroupState, MemberState
from kardia.observe.deadlines import member_deadlines, phases
from kardia.observe.evidence import records
from kardia.observe.facts.groups_of_lane import Facts
from kardia.observe.ledger import causes
from kardia.observe.ledger.rebalance_row import emit
from kardia.observe.members.identity import identify
from kardia.observe.modern import ends, epochs, groups
from kardia.observe.modern.leaves import Why
from kardia.observe.rebalance import begin_and_settle, emptied
from kardia.observe.requests import last_consumer_seat, refusals
from kardia.observe.state.entries import Stored
from kardia.observe.state.group import NEVER, Cause, Ended, Group, Member
from kardia.observe.state.modern import ModernMember
from kardia.observe.state.partitions import named, taken
from kardia.tolerances import EARLY_MS, LATE_MS, STAMP_MS, STORED_AT_ONCE_MS, TOLD_AFTER_MS


def upgrade(facts: Facts, group: Group, at: float, doubts: Doubts, by: float | None = None) -> None:
    """A classic group becomes a consumer group: its generation is the epoch, its members stay what they are, and their
    sessions begin anew."""
    told, generation, open_one = group.told_state, group.generation, group.rebalance
    if open_one is not None and open_one.refused and open_one.joined_at_ms < 0:
        causes.choose(facts, group, open_one, [])  # who was sent back when it could not be converted may have begun it
    began = open_one.cause if open_one is not None and open_one.assigned_at_ms < 0 else None
    if open_one is not None and began is not None and began.at < at and refusals.shows_begin(open_one, began):
        if began.by is not None and not 0 <= began.by <= at:
            began.doubts |= Doubt.EPOCH_UNSURE  # it may have come after, and have made an epoch
        group.said.unfinished = open_one
        # Not before the others who had waited are heard: their answers are held until the conversion is told.
        facts.schedule_by_records(group, max(at, facts.known) + TOLD_AFTER_MS, "epoch", "unfinished")
    modern = groups.enter(facts, group, "consumer", at)
    group.stored = None  # its record is gone with the conversion, and no load brings it back
    group.generation = modern.assignment_epoch = generation
    modern.epoch_sure, modern.mixed, modern.since_at_ms = generation >= 0, True, at
    for over in group.ended.values():
        over.rivalled = over.rivalled or bool(over.member.instance_id)  # unseen, another one may have had its seat
    for member in group.members.values():
        member.modern = ModernMember(epoch=generation, classic=True, state=MemberState.STABLE, reached_at_ms=at)
        member.rebalance_notified_at_ms = NEVER
        _begin_anew(facts, group, member, at)
    group.state = group.told_state = GroupState.STABLE
    facts.tell_group(group, at, told, "upgraded", doubts, by)


def upgrade_by_request(facts: Facts, group: Group, at: float, by: float | None) -> None:
    """No record is read, and an answer shows the conversion. Whose session was over before it, in a group that was seen
    to be Stable meanwhile, went then, unless its timer was late; who is taken for a member has a session anew, and
    its end would be an epoch."""
    over = [one for one in group.members.values() if 0 <= one.deadline < at - STAMP_MS]
    # Asked before an end changes the state; what has begun since a deadline does not hide who was silent up to it.
    silent = [one for one in over if member_deadlines.surely_silent(group, one) or _was_silent_before(group, one)]
    for member in sorted(silent, key=lambda one: (one.deadline, one.member_id)):
        begin_and_settle.end_member(
            facts, group, member, member.deadline_from, "session_expired", "", Doubt.BY_ELIMINATION, at
        )
    upgrade(facts, group, at, Doubt.SEEN_LATER, by)


def _was_silent_before(group: Group, member: Member) -> bool:
    """Whether a member's session was over before the rebalance that is under way began, as others were answered as in a
    Stable group when it should have been heard."""
    current = group.rebalance
    began_at = current.cause.at if current is not None and current.cause is not None else NEVER
    return member.deadline < began_at - STAMP_MS and member_deadlines.silent_among_others(group, member)


def is_another(group: Group, protocol: str, answered: int) -> bool:
    """Whether the answer to the first heartbeat of a newer protocol shows that the classic group had no members any
    more: only a consumer group is made of one with members, and that counts on from its generation."""
    return protocol != "consumer" or (0 <= answered <= groups.FIRST_EPOCH_MAX and answered < group.generation)


def empty_before(facts: Facts, group: Group, at: float) -> None:
    """Whoever was taken for a member of a classic group was gone by an instant: by the timer that was due, or it is not
    known why."""
    last_at, ends = NEVER, phases.all_ends(group)
    due = [end for end in ends if 0 <= end.at_ms <= at]
    for end in due:
        member = group.members[end.member_id]
        doubts: Doubts = Doubt.SEEN_LATER if len(due) == len(ends) else Doubt.BY_ELIMINATION
        if end.tied:
            doubts |= Doubt.TIMERS_TIED
        if member.renewed_unseen:
            doubts |= Doubt.RENEWAL_UNSURE
        if member.session_renewed_at_ms <= group.unsure_to:
            doubts |= Doubt.LOAD_UNSEEN
        begin_and_settle.end_member(facts, group, member, end.at_ms, end.cause, "", doubts, at, with_others=True)
        last_at = max(last_at, end.at_ms)
    for member in list(group.members.values()):
        since = min(max(member.last_heard_at_ms, member.joined_at_ms), at)
        begin_and_settle.end_member(facts, group, member, since, "unknown", "", Doubt.NOT_SEEN, at, with_others=True)
        last_at = max(last_at, since)
    group.pending.clear()
    if group.state != GroupState.EMPTY:
        emptied.becomes_empty(facts, group, last_at, at, Doubt.BY_ELIMINATION)


def upgrade_again(facts: Facts, group: Group, event: Event, at: float, by: float | None, before_it: int) -> None:
    """Somebody joins a consumer group in which only members of the classic protocol are left, by requests alone, and
    its answer has no room for the epoch that the end of the last one of the consumer protocol would have made: that
    had made it a classic group, which prepared a rebalance until now. `before_it`: the epoch that the group had before
    the join, by the answer. Where answers have older targets it need not be so."""
    modern = group.modern
    if modern is None or modern.by_records or not modern.mixed or modern.protocol != "consumer":
        return
    why, members_before = _end_of_the_last(facts, group, event, at, before_it)
    if why is None:
        return
    why = replace(why, doubts=why.doubts | Doubt.BY_ELIMINATION)
    _become_classic(facts, group, why.at, Doubt.BY_ELIMINATION, why.by)
    begin_and_settle.begin(facts, group, why, NEVER, members_before)
    began = group.rebalance
    upgrade(facts, group, at, Doubt.BY_ELIMINATION, by)
    group.said.unfinished = began
    facts.schedule_by_records(group, at + TOLD_AFTER_MS, "epoch", "unfinished")


def _end_of_the_last(facts: Facts, group: Group, event: Event, at: float, before_it: int) -> tuple[Cause | None, int]:
    """The end of the last member of the consumer protocol, if it has made no epoch, and how many members there were."""
    modern, members_before = group.modern, len(group.members)
    others = [one for one in group.members.values() if not groups.own_of(one).classic]
    last = modern.bumps[-1] if modern is not None and modern.bumps else None
    if not others and members_before and last is not None and 0 <= before_it < last.epoch == group.generation:
        over = group.ended.get(last.cause.member_id)
        own = over.member.modern if over is not None else None
        if over is None or own is None or own.classic or over.cause == "static_replaced":
            return None, -1
        epochs.withdraw_above(facts, group, last.epoch_before)
        return last.cause, members_before + 1
    if modern is None or len(others) != 1 or members_before < 2 or before_it != group.generation:
        return None, -1
    gone, due = others[0], ends.timers(group, others[0])
    assigned = named(taken((event.detail or {}).get("assigned")) or {})
    has_its_own = any(modern.owners.get(one) == gone.member_id and one not in modern.unowned for one in assigned)
    if not has_its_own or not due or due[0].at_ms > at + EARLY_MS:
        return None, -1
    ended_at_ms = min(due[0].at_ms, at)
    return ends.remove(facts, group, gone, ended_at_ms, due[0].cause, "", Doubt.BY_ELIMINATION, at), members_before


def tell_unfinished(facts: Facts, group: Group) -> None:
    """A rebalance had begun when the group became a consumer group, and is never completed."""
    current, group.said.unfinished = group.said.unfinished, None
    if current is not None:
        emit(facts, group, current)


def on_epoch_timer(facts: Facts, group: Group, epoch: str, due: float) -> None:
    """A moment after a new epoch, or after a conversion: what is still open is told as far as it has come."""
    tell_unfinished(facts, group)
    epochs.on_epoch_timer(facts, group, epoch, due)


def upgrade_empty(
    facts: Facts, group: Group, protocol: str, at: float, doubts: Doubts, by: float | None = None
) -> None:
    """A classic group without members becomes a group of another protocol by the first member of it: said if it was
    one, and had not been deleted. Sources: `getOrMaybeCreateConsumerGroup`, from 4.2 on `getOrCreateStreamsGroup`."""
    is_empty = group.state == GroupState.EMPTY or phases.delayed_to(group) >= 0
    was_classic = group.modern is None and group.protocol == "classic" and is_empty
    if was_classic and not group.members and protocol in ("consumer", "streams"):
        told, group.protocol = group.told_state, protocol
        facts.tell_group(group, at, told, "upgraded", doubts, by)


def downgrade(
    facts: Facts,
    group: Group,
    record: Event,
    at: float,
    until: float | None,
    gone: list[Member],
    gone_by: dict[str, Why],
    by: Event | None,
) -> None:
    """The record of a classic group stands where a consumer group was: whoever is not in it has gone, `gone_by` says
    why. It happened at `at`, or up to `until`. `by`: the answer of the request that did it, if it has been read."""
    detail: dict[str, Any] = record.detail or {}
    entries = detail.get("members") or ()
    listed, heirs = {str(entry[0]) for entry in entries}, {entry[1]: entry for entry in entries if entry[1]}
    epochs.conclude(facts, group, at)  # who went just before may have been all that was waited for
    members_before = len(group.members)
    why = ends.left_to_classic(group, at)
    if why is not None:
        members_before += 1
    doubts_after: Doubts = SURE
    for member in gone:
        if member.member_id in listed or member.member_id not in group.members:
            continue
        if member.instance_id in heirs:
            seat = ends.remove(facts, group, member, at, "static_replaced", "", SURE, until, told=True)
            if by is None or by.group_instance_id != member.instance_id or by.error_code != 0:
                doubts_after = Doubt.MAY_WAIT_UNSEEN  # whether it rebalances the next answers show
            elif last_consumer_seat.rebalances_at_once(by):
                why = seat
            entry = heirs[member.instance_id]
            records.take_entry(facts, group, entry, int(detail.get("generation", -1)), at)
            heir = group.members.get(str(entry[0]))
            if heir is not None and heir.session_renewed_at_ms < 0 and facts.reads_requests(group.broker, at):
                heir.session_renewed_at_ms = at  # it begins with the classic group, as those of all in it
            continue
        cause, doubts = gone_by[member.member_id]
        doubts = Doubt.NOT_SEEN if cause == "unknown" else doubts
        why = ends.remove(facts, group, member, at, cause, "", doubts, until, told=True)
    generation = int(detail.get("generation", group.generation))
    epochs.withdraw_above(facts, group, generation)  # leaves that were counted came after it, and made no epoch
    group.generation = generation
    group.protocol_type = str(detail.get("protocol_type") or "consumer")
    group.leader = str(detail.get("leader") or "")
    group.protocol_name = str(detail.get("protocol_name") or "")
    group.membership_complete = True
    group.stored = Stored(group.generation, group.leader, list(listed))
    _become_classic(facts, group, at, doubts_after, until)
    # Where server.log is read without requests, its own sentence tells of the rebalance; no timer runs then.
    told_by_lines = bool(group.broker) and not facts.reads_requests(group.broker, at)
    if why is not None and group.members and not told_by_lines:
        begin_and_settle.begin(facts, group, why, NEVER, members_before)


def downgrade_empty(facts: Facts, group: Group, event: Event) -> None:
    """A JoinGroup without a member id to a group without members: it is a classic one from then on, whether the member
    comes back with the id that it is told or not. Source: `getOrMaybeCreateClassicGroup`."""
    group.generation = 0
    _become_classic(facts, group, event.handled_at_ms, Doubt.BY_RULE)


def downgrade_by_seat(facts: Facts, group: Group, event: Event, member_id: str) -> None:
    """No record is read, and a static member that came back with JoinGroup was the last one of the consumer protocol:
    the group is a classic one, and prepares a rebalance."""
    at, members_before = event.handled_at_ms, len(group.members)
    seat = group.members.get(group.instances.get(event.group_instance_id, ""))
    why = Cause(at, "static_replaced", doubts=Doubt.SEEN_LATER)
    for member in list(group.members.values()):
        if member is seat:
            why = ends.remove(facts, group, member, at, "static_replaced", "", SURE, told=True)
            why.doubts = Doubt.SEEN_LATER
        elif not groups.own_of(member).classic:
            ends.remove(facts, group, member, at, "unknown", "", Doubt.NOT_SEEN)
    _become_classic(facts, group, at, Doubt.SEEN_LATER)
    detail = event.detail or {}
    member = Member(member_id, at, session_renewed_at_ms=at, generation_first=group.generation)
    member.session_ms = int(detail.get("session_timeout_ms", -1))
    member.rebalance_ms = int(detail.get("rebalance_timeout_ms", -1))
    member.seen_joining = True
    group.members[member_id] = member
    identify(facts, group, member, event, str(detail.get("protocol_type", "")))
    group.instances[event.group_instance_id] = member_id
    facts.index(group, member)
    facts.emit_transition(group, at, member_id, "Absent", "Member", "static_replaced", SURE)
    facts.emit_member(group, member, at, SURE)
    facts.watch(group, member)
    begin_and_settle.begin(facts, group, why, NEVER, members_before)


def downgrade_by_join(facts: Facts, group: Group, event: Event) -> None:
    """A JoinGroup was answered with a leader: the group is a classic one since the last member of the consumer protocol
    went, as far as was seen. What began the rebalance no answer says."""
    held = group.members.get(group.instances.get(event.group_instance_id, "")) if event.group_instance_id else None
    if held is not None and not groups.own_of(held).classic and ends.was_over(group, held, event.handled_at_ms):
        due = ends.timers(group, held)[0]
        ends.remove_counted(
            facts, group, held, due.at_ms, due.cause, "", Doubt.BY_ELIMINATION, event.handled_at_ms, told=False
        )
    last: Ended | None = max(group.ended.values(), key=lambda one: one.ended_at_ms, default=None)
    if not group.members:  # nobody was left: it is a new one of the name, if it was not a classic one before
        before = last is not None and last.member.modern is not None and last.member.modern.classic
        group.generation = 0
        _become_classic(facts, group, event.handled_at_ms, Doubt.BY_ELIMINATION if before else Doubt.SEEN_LATER)
        return
    left = [member for member in group.members.values() if member.modern is None or not member.modern.classic]
    at = event.handled_at_ms if last is None else min(last.ended_at_ms, event.handled_at_ms)
    seat = next((one for one in left if one.instance_id and one.instance_id == event.group_instance_id), None)
    seated = seat is not None or _takes_a_classic_seat(group, event, last)
    at_once = seated and event.decided_at_ms - event.handled_at_ms <= STORED_AT_ONCE_MS
    generation = event.generation_id if at_once else event.generation_id - 1
    epochs.withdraw_above(facts, group, generation)
    if seat is not None:  # a static member that comes back with JoinGroup makes it one
        left.remove(seat)
        at = event.handled_at_ms
        doubts = ends.seat_doubts(group, seat, at)
        ends.remove(facts, group, seat, at, "static_replaced", "", doubts, told=True)
    for member in left:
        if member.member_id != event.member_id:
            since = min(member.last_heard_at_ms, event.handled_at_ms)
            ends.remove(facts, group, member, since, "unknown", "", Doubt.NOT_SEEN, event.handled_at_ms)
    members_before = len(group.members) + 1
    why: Cause | None = Cause(at, "unknown", doubts=Doubt.SEEN_LATER)
    if last is not None and not left and last.cause == "static_replaced":
        why = None  # a seat that was taken rebalances nothing by itself; what did the answers show
        members_before -= 1
    elif last is not None and not left:
        over = last.member
        why = ends.cause_of(over, at, last.cause, last.reason, last.doubts, last.by)
    group.generation = generation
    sent_back = (one.modern.rejoin_since_at_ms for one in group.members.values() if one.modern is not None)
    told_at = min((since for since in sent_back if since >= max(at, 0)), default=NEVER)
    if why is not None:
        why.doubts |= Doubt.BY_ELIMINATION
    _become_classic(
        facts, group, at, Doubt.BY_ELIMINATION, last.by if last is not None and at == last.ended_at_ms else None
    )
    if group.members and not at_once:
        begin_and_settle.begin(facts, group, why, told_at, members_before)


def _takes_a_classic_seat(group: Group, event: Event, last: Ended | None) -> bool:
    """Whether a JoinGroup takes the seat of a member of the classic protocol in a group that had become a classic one
    as a seat was taken: nothing rebalanced then, and its answer has the epoch that the group had."""
    is_held = bool(event.group_instance_id) and event.group_instance_id in group.instances
    by_seat = last is not None and last.cause == "static_replaced"
    return is_held and by_seat and event.generation_id == group.generation


def _become_classic(facts: Facts, group: Group, at: float, doubts: Doubts, by: float | None = None) -> None:
    told = group.told_state
    tell_unfinished(facts, group)
    epochs.close(facts, group)
    groups.leave(group)
    group.protocol = "classic"
    group.rebalance = None
    group.stable_at_ms = at
    group.state = group.told_state = GroupState.STABLE if group.members else GroupState.EMPTY
    facts.tell_group(group, at, told, "downgraded", doubts, by)
    is_heard = facts.reads_requests(group.broker, at)
    for member in group.members.values():
        member.generation_first = group.generation if member.generation_first < 0 else member.generation_first
        if is_heard:
            _begin_anew(facts, group, member, at)
        else:  # its records told of it while it had epochs; now nothing renews a session, and silence says nothing
            member.session_renewed_at_ms = member.heard_at_ms = NEVER
            member.overdue = False


def _begin_anew(facts: Facts, group: Group, member: Member, at: float) -> None:
    """The session of a member begins anew as its group is another one. If it was over by then as far as was seen, the
    member is gone, or waited where it could not be seen."""
    if 0 <= member.session_renewed_at_ms < at:
        was_over = 0 <= member.deadline <= at + LATE_MS
        member.begin_anew(at)
        if was_over and (group.modern is None or not group.modern.by_records):
            member.doubtful_at_ms = at
        if member.session_prediction_at_ms >= 0:
            facts.close_prediction(group, member, "session", "averted", at)
    elif member.session_renewed_at_ms > at:  # by the rules of the group that it was taken for: a SyncGroup renews in it
        member.doubtful_at_ms = member.session_renewed_at_ms
    member.overdue = False
    facts.watch(group, member)
