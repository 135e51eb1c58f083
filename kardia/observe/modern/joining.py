"""What an answered heartbeat with epoch 0 shows where records do not: who is new, whose place it takes, and which epoch
that makes.

A join is one epoch more, by names; what the answer has beyond it came before, unseen, and by a regular expression the
epoch comes later. Since 4.3 an answer may have the epoch of an older target, so that epochs are counted only. Sources:
`GroupMetadataManager.consumerGroupHeartbeat`, `getOrMaybeSubscribeStaticConsumerMember`,
`maybeUpdateRegularExpressions`.
"""

from __future__ import annotations

from msgspec.structs import replace

from kardia.doubts import SURE, Doubt, Doubts
from kardia.events import Event
from kardia.observe.deadlines.handling import took_effect
from kardia.observe.facts.groups_of_lane import Facts
from kardia.observe.members import lives
from kardia.observe.modern import ends, epochs, evidence, groups, session_length
from kardia.observe.state.group import NEVER, Cause, Group, Member
from kardia.observe.state.modern import Bump, ModernGroup
from kardia.tolerances import AT_ONCE_MS, CLASSES_WITHIN_MS, LATE_MS, STAMP_MS

MAX_UNSTORED = 64
"""Who joined and was not answered in time is remembered, so many of a group."""

DELAYED = 5
"""Status of a streams group whose first assignment waits for more members (`streams.initial.rebalance.delay.ms`)."""


def joined(
    facts: Facts, group: Group, modern: ModernGroup, member: Member | None, event: Event, answered: int
) -> Member:
    """A member joined, or asked for everything again: one that was refused begins anew under the same id."""
    at, by = took_effect(event, facts.coordinator)
    first_at_ms = _take_unstored(group, modern, event)
    if first_at_ms >= 0:
        at, by = first_at_ms, None
    if member is not None:
        member = _asks_again(facts, group, modern, member, event, at)
    if member is not None:
        return member
    if group.generation < 0 and answered <= groups.FIRST_EPOCH_MAX and not group.members:
        group.membership_complete = True
        modern.since_at_ms = at
    old = group.members.get(group.instances.get(event.group_instance_id, "")) if event.group_instance_id else None
    replaces = old is not None and (groups.own_of(old).away_since_at_ms >= 0 or groups.own_of(old).classic)
    # What the answer has beyond the epoch that the join makes came before it, unseen.
    makes_one = not replaces and not by_regex(event)
    if 0 <= group.generation < answered - makes_one:
        evidence.hidden(facts, group, answered - makes_one, at, by)
    if old is not None and old.member_id in group.members:
        _leave_seat(facts, group, modern, old, at, by, replaced=replaces)
    members_before = len(groups.present(group))
    member = groups.add(
        facts, group, event.member_id, at, event.group_instance_id, event.client_id, event.client_host, is_new=True
    )
    member.seen_joining, member.joined_by = True, by
    if old is not None and replaces:
        groups.inherit(old, member)
    cause = "static_replaced" if replaces else "member_joined"
    facts.emit_transition(group, at, member.member_id, "Absent", "Member", cause, SURE, by)
    if group.modern is not None and group.modern.mixed and not modern.by_records:
        _doubt_classic(facts, group, member, at)
    is_counted = not (replaces or modern.by_records or by_regex(event))
    if first_at_ms >= 0 and is_counted and group.generation >= 0:
        _count_unstored(facts, group, member, members_before)
    elif not replaces and not _came_before(facts, group, modern, event, member, answered, by):
        _count_join(facts, group, event, member, answered, members_before, by)
    return member


def _take_unstored(group: Group, modern: ModernGroup, event: Event) -> float:
    """When a member was made one by a first request, which was answered that it was not stored in time; NEVER if it was
    not. It is told once."""
    first_at_ms, over = modern.unstored.pop(event.member_id, NEVER), group.ended.get(event.member_id)
    if over is not None and over.ended_at_ms > first_at_ms:
        return NEVER  # what it joined by then is over, whether its answer was ever read or not
    return first_at_ms


def _asks_again(
    facts: Facts, group: Group, modern: ModernGroup, member: Member, event: Event, at: float
) -> Member | None:
    """A member that is held joins: by a record it has just become one, or it asks for everything again. None where it
    was gone by then, and is a new one."""
    if modern.by_records:
        if member.joined_at_ms >= event.arrived_at_ms - LATE_MS:
            _begins_earlier(facts, group, modern, member, event)
        return member
    if _ran_out(group, member, at):
        evidence.on_gone(facts, group, member.member_id, at)
    return group.members.get(member.member_id)


def _leave_seat(
    facts: Facts, group: Group, modern: ModernGroup, old: Member, at: float, by: float | None, *, replaced: bool
) -> None:
    """Whoever had the instance id of a new member is one no more: `replaced`, or gone before, as the coordinator would
    have refused the new one otherwise."""
    if replaced:
        ends.remove(facts, group, old, at, "static_replaced", "", ends.seat_doubts(group, old, at), by, told=True)
        return
    if _ran_out(group, old, at):
        evidence.on_gone(facts, group, old.member_id, at)
    elif not modern.by_records:
        evidence.end_within(facts, group, old, at)
    if old.member_id in group.members:
        ends.remove(facts, group, old, at, "static_replaced", "", Doubt.BY_ELIMINATION, by, told=False)


def joined_unstored(facts: Facts, group: Group, modern: ModernGroup, event: Event) -> None:
    """Who is told that its join could not be stored in time is a member: the coordinator has done what was asked, and
    will answer the same to the next try. Where that has to say what the join was, or records do, it is waited for."""
    at, instance = event.handled_at_ms, event.group_instance_id
    modern.unstored[event.member_id] = at
    if len(modern.unstored) > MAX_UNSTORED:
        del modern.unstored[next(iter(modern.unstored))]
    if modern.by_records or group.generation < 0 or by_regex(event) or instance in group.instances:
        return
    members_before = len(groups.present(group))
    named = (event.member_id, at, instance, event.client_id, event.client_host)
    member = groups.add(facts, group, *named, is_new=True)
    member.seen_joining = True
    session_length.arm(group, member)
    facts.emit_transition(group, at, member.member_id, "Absent", "Member", "member_joined", Doubt.BY_RULE)
    facts.emit_member(group, member, at, Doubt.BY_RULE)
    facts.watch(group, member)
    _count_unstored(facts, group, member, members_before)


def _count_unstored(facts: Facts, group: Group, member: Member, members_before: int) -> None:
    """A join made an epoch before it was answered: the one that answers have shown since, if nothing explains it."""
    why = Cause(member.joined_at_ms, "member_joined", member.member_id, member.client_id, member.instance_id)
    why.doubts = Doubt.EPOCH_COUNTED
    shown = [
        bump for bump in epochs.unexplained(group) if not bump.cause.member_id and ends.fits(bump.cause, why.at, None)
    ]
    if len(shown) > 1:
        why.doubts = Doubt.EPOCH_UNSURE
    if shown:
        epochs.explain(facts, group, shown[0], why)
    else:
        epochs.count_in(facts, group, why, members_before, in_order=True)


def _came_before(
    facts: Facts, group: Group, modern: ModernGroup, event: Event, member: Member, answered: int, by: float | None
) -> bool:
    """Two joined at once, and the second is answered first, as both answers wait until what they wrote is stored: the
    epoch that was counted for the second is that of the first, or the one after it. So it is where an answer to
    somebody else has shown the epoch of a join that was handled before it, and where a leave is answered before a join
    whose answer has the epoch that was counted for the leave."""
    last = modern.bumps[-1] if modern.bumps else modern.first
    if last is None or modern.by_records or by_regex(event):
        return False
    if last.cause.trigger == "unknown":
        return _is_shown_before(facts, group, last, event, member, answered, by)
    left_first = last.cause.trigger == "member_left" and answered == last.epoch
    if last.cause.trigger != "member_joined" and not left_first:
        return False
    if not member.joined_at_ms < last.cause.at <= event.decided_at_ms or last.epoch < group.generation:
        return False
    if left_first and not evidence.has_targets_at_once(facts):  # the answer may have an older target
        epochs.explain(facts, group, last, replace(last.cause, doubts=last.cause.doubts | Doubt.TARGET_MAY_BE_OLDER))
        return False
    in_doubt_to = member.joined_at_ms + STAMP_MS if by is None else by
    if last.cause.at <= in_doubt_to and answered > last.epoch:
        member.joined_at_ms = last.cause.at  # its request took longer, and its answer has the later epoch
        return False
    why = Cause(member.joined_at_ms, "member_joined", member.member_id, member.client_id, member.instance_id, by=by)
    why.doubts = _doubt_order(facts, group, last, event, member)
    # While the first assignment of a streams group is delayed answers have the epoch from before every join.
    epochs.begin_before(facts, group, last, why, 0 if _is_delayed(event) else answered)
    return True


def _doubt_order(facts: Facts, group: Group, last: Bump, event: Event, member: Member) -> Doubts:
    """What is in doubt about which of two that joined was the first: within an instant the epochs of their answers show
    it, where each has its own. If they do not, what the other one began is said to be as unsure."""
    has_its_own = evidence.has_targets_at_once(facts) and not _is_delayed(event)
    if has_its_own or abs(last.cause.at - member.joined_at_ms) > STAMP_MS:
        return SURE
    epochs.explain(facts, group, last, replace(last.cause, doubts=last.cause.doubts | Doubt.STAMPS_TIED))
    return Doubt.STAMPS_TIED


def _is_shown_before(
    facts: Facts, group: Group, last: Bump, event: Event, member: Member, answered: int, by: float | None
) -> bool:
    """Whether an answer to somebody else, which was handled after a join and written before its answer, has shown the
    epoch that the join made. Where the answer to a join may have an older target, it need not be that one."""
    shown_at = last.cause.at if last.cause.by is None else last.cause.by
    if not (last.epoch == answered == group.generation and member.joined_at_ms <= shown_at <= event.decided_at_ms):
        return False
    if last.spare > 0:
        last.spare -= 1
        return True
    last.completed_at_ms = NEVER  # whoever makes itself known now has yet to come to it
    doubts: Doubts = SURE if evidence.has_targets_at_once(facts) else Doubt.TARGET_MAY_BE_OLDER
    id_of, name, seat = member.member_id, member.client_id, member.instance_id
    epochs.explain(facts, group, last, Cause(member.joined_at_ms, "member_joined", id_of, name, seat, "", doubts, by))
    return True


def _begins_earlier(facts: Facts, group: Group, modern: ModernGroup, member: Member, event: Event) -> None:
    """A record said when a member joined; in the first operation of its kind a broker loads classes before that, and a
    busy one stands still. The line of the request, which came after records of others, shows between which two instants
    the join was (see `_Operation`)."""
    at, stamp = took_effect(event, facts.coordinator)[0], member.joined_at_ms
    waited = event.handled_at_ms + AT_ONCE_MS < stamp  # longer than for a thread to handle it
    if not (waited and stamp <= event.decided_at_ms and stamp - at <= CLASSES_WITHIN_MS):
        return
    known = [*modern.bumps, *([modern.first] if modern.first is not None else [])]
    its_own = (one for one in known if one.cause.member_id == member.member_id and one.cause.at == stamp)
    bump = next((one for one in its_own if one.cause.by is None), None)
    if bump is None:
        return
    if bump is modern.first:
        modern.first = None
    last_at_ms = max((one.cause.at for one in known if one.epoch < bump.epoch), default=NEVER)
    epochs.explain(facts, group, bump, replace(bump.cause, at=min(max(at, last_at_ms), stamp), by=stamp))


def _doubt_classic(facts: Facts, group: Group, member: Member, at: float) -> None:
    """The first of the consumer protocol came to members that speak the classic one: if the group had become a classic
    one unseen, it changes back now, and the sessions of all others begin anew."""
    others = [one for one in group.members.values() if one is not member]
    if all(groups.own_of(one).classic for one in others):
        for one in others:
            lives.begin_in_doubt(facts, group, one, at)


def doubts_of_replaced(group: Group, member: Member) -> Doubts:
    """What is in doubt about whoever a new member has replaced having been one until then, if it has replaced
    anybody."""
    before = group.last_in_seat(member.instance_id) if member.instance_id else None
    return before.doubts if before is not None and before.cause == "static_replaced" else SURE


def doubts_of_stay(facts: Facts, group: Group, member: Member, answered: int, at: float) -> Doubts:
    """What is in doubt about a member that asks for everything again having been one until then: where nothing says how
    long a session is, or since a gap, it may have ended unseen. An end would have made an epoch, which an answer shows
    where it has no older target."""
    own = groups.own_of(member)
    lost = member.unknown_since_at_ms >= 0
    silent = lost or own.away_since_at_ms >= 0 or ends.may_have_run_out(group, member, at)
    none_since = answered <= group.generation and evidence.has_targets_at_once(facts)
    by_records = group.modern is not None and group.modern.by_records
    known = group.is_session_known(member) and not lost
    return Doubt.TIMER_PASSED_UNSEEN if silent and not (by_records or known or none_since) else SURE


def by_regex(event: Event) -> bool:
    """Whether a member joins by a regular expression alone."""
    detail = event.detail or {}
    return bool(detail.get("regex")) and not detail.get("topics")


def _is_delayed(event: Event) -> bool:
    return DELAYED in ((event.detail or {}).get("status") or ())


def _ran_out(group: Group, member: Member, at: float) -> bool:
    """Whether a timer of a member was due by an instant."""
    due = ends.timers(group, member)
    return bool(due) and due[0].at_ms <= at


def _count_join(
    facts: Facts, group: Group, event: Event, member: Member, answered: int, members_before: int, by: float | None
) -> None:
    """A member that is new is one epoch more. What the answer has beyond that came before it, unseen; an answer with
    less has the epoch of a target that is older: one is computed once in a while (`assignment.interval.ms`)."""
    at, before = member.joined_at_ms, group.generation
    why = Cause(at, "member_joined", member.member_id, member.client_id, member.instance_id, "", SURE, by)
    delayed = _is_delayed(event)
    if by_regex(event):
        _count_join_by_regex(facts, group, member, answered, replace(why, doubts=Doubt.EPOCH_COUNTED))
        return
    if before < 0:
        why.doubts = Doubt.THERE_BEFORE
        first = groups.FIRST_EPOCH_MAX if delayed and group.membership_complete else answered
        epochs.raised(facts, group, first, why, members_before)
        return
    at_once = evidence.has_targets_at_once(facts)
    if at_once and not delayed and 0 < answered <= before and group.modern is not None and not group.modern.mixed:
        evidence.on_lower_epoch(facts, group, answered - 1, at)  # it was no higher just before
        before = group.generation
    bumps = group.modern.bumps if group.modern is not None else []
    if answered <= before and any(bump.cause.at > at + STAMP_MS for bump in bumps):
        epochs.count_in(facts, group, why, members_before, in_order=True)  # silence was seen before its late answer
        return
    may_be_older = answered > before and not at_once  # the answer may have the epoch of a target before this join
    for bump in bumps:
        if may_be_older or bump.epoch > answered:  # its number is counted, and so are those
            why.doubts |= bump.cause.doubts
    unheard = not at_once and any(0 <= one.session_renewed_at_ms <= group.unsure_to for one in group.members.values())
    if unheard or (answered <= before and any(_may_be_gone(group, one, at) for one in group.members.values())):
        why.doubts |= Doubt.EPOCH_UNSURE
    shown = answered > before and at_once and not delayed
    last = bumps[-1] if bumps else None
    if last is not None and not shown and last.cause.trigger == "member_joined":
        why.doubts |= _doubt_order(facts, group, last, event, member)
    epochs.raised(facts, group, max(before + 1, answered), why, members_before, shown=shown)


def _may_be_gone(group: Group, member: Member, at: float) -> bool:
    return evidence.due_by(group, member, at) or ends.may_have_run_out(group, member, at)


def _count_join_by_regex(facts: Facts, group: Group, member: Member, answered: int, why: Cause) -> None:
    """Who joins by a regular expression alone makes no epoch unless that was resolved before: its resolution makes one,
    some ms later, which nobody asks for. The first epoch of a group is one by itself up to 4.2."""
    at = why.at
    is_first = group.generation < 0 and answered == 1 and group.membership_complete
    if is_first and evidence.has_targets_at_once(facts):  # from 4.3 on a group has epoch 1 before anything makes one
        epochs.raised(facts, group, answered, why, 0, shown=True)
    if group.generation < 0:
        group.generation = answered
        epochs.target_shown(group, answered, at)
    if group.modern is not None:
        group.modern.resolves = not group.modern.by_records
    epochs.came_to(group, member, groups.own_of(member), answered, at)
