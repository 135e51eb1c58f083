"""Rebalances of groups that have epochs: from a new group epoch to the moment at which every member has come to it.

One operation of the coordinator raises the group epoch by one, whatever its reasons. A member may pass epochs without
stopping at them, so that one step of it may end several rebalances. A static member that has left for a moment is not
waited for. Sources: `GroupMetadataManager.consumerGroupHeartbeat`, `CurrentAssignmentBuilder`.
"""

from __future__ import annotations

from msgspec.structs import replace

from kardia.doubts import SURE, Doubt, Doubts, certainty_of
from kardia.kafka.states import ModernState
from kardia.observe.deadlines.phases import in_no_order
from kardia.observe.facts.groups_of_lane import Facts
from kardia.observe.members import owners
from kardia.observe.modern import changed_topics, groups
from kardia.observe.output.epoch_rows import epoch_row
from kardia.observe.state.group import NEVER, Cause, Ended, Group, Member
from kardia.observe.state.modern import Bump, ModernGroup, ModernMember, Reached
from kardia.tolerances import ANSWERED_WITHIN_MS, CLASSES_WITHIN_MS, LATE_MS, STAMP_MS, TOLD_AFTER_MS

MAX_OPEN = 64
"""Rebalances of a group that are open at a time; the oldest is told as it is then, and no longer followed."""


_NOT_TOLD = -1


def raised(
    facts: Facts, group: Group, epoch: int, cause: Cause, members_before: int, *, shown: bool = False
) -> Bump | None:
    """The group has a new epoch since `cause.at`. None where it had that one or a higher one before. `shown`: an answer
    or a record has its number; else it is counted."""
    modern = group.modern
    if modern is None or epoch <= group.generation:
        return None
    uncounted = not modern.by_records and _somebody_may_be_gone(group, cause.at)
    if not shown and (uncounted or (modern.resolves and not modern.by_records) or _is_last_in_doubt(group, cause)):
        cause.doubts |= Doubt.EPOCH_UNSURE
    known = group.generation >= 0
    before = group.generation if known else epoch - 1
    bump = Bump(before, epoch, cause.at, cause)
    if group.membership_complete and not uncounted and not _changed_meanwhile(group, cause):
        bump.members_before = members_before
    if owners.are_known(group) and modern.protocol != "share":
        bump.moved, bump.stopped_ms = 0, 0.0
    if len(modern.bumps) >= MAX_OPEN:
        _tell(facts, group, modern.bumps.pop(0))
    modern.bumps.append(bump)
    if not known:
        modern.first = bump
    group.generation = epoch
    modern.lower_at_ms = NEVER
    facts.schedule_by_records(group, cause.at + TOLD_AFTER_MS, "epoch", str(epoch))
    return bump


def _is_last_in_doubt(group: Group, cause: Cause) -> bool:
    """Whether the epoch before was counted, and not surely: then the number of the next one is no surer."""
    bumps = group.modern.bumps if group.modern is not None else []
    last = next((bump for bump in bumps if bump.epoch == group.generation), None)
    if last is None or certainty_of(last.cause.doubts) != "provisional":
        return False
    return not 0 <= last.computed_at_ms <= cause.at


def _changed_meanwhile(group: Group, cause: Cause) -> bool:
    """Whether somebody came or went between the instants within which something unseen has made an epoch: how many
    members there were then is not known."""
    if cause.trigger != "unknown" or cause.by is None:
        return False
    came = any(cause.at <= member.joined_at_ms for member in group.members.values())
    return came or any(cause.at <= over.ended_at_ms for over in group.ended.values())


def on_epoch_timer(facts: Facts, group: Group, epoch: str, _: float) -> None:
    """A rebalance lasts: tell it as far as it has come."""
    for bump in group.modern.bumps if group.modern is not None else ():
        if str(bump.epoch) == epoch and bump.row_known < 0:
            _tell(facts, group, bump)


def computed(group: Group, epoch: int, at: float) -> None:
    """The target assignment of an epoch was computed at `at`, by its record; an answer may have shown it before."""
    for bump in group.modern.bumps if group.modern is not None else ():
        if bump.epoch <= epoch and not bump.is_computed_then:
            _set_computed(bump, at, is_then=True)
    if group.modern is not None:
        group.modern.assignment_epoch = max(group.modern.assignment_epoch, epoch)


def target_shown(group: Group, epoch: int, at: float) -> None:
    """An answer shows that the target assignment of an epoch was computed: at `at`, as heartbeats compute it, unless
    a member that has to give something up had been answered without it. In a streams group a timer may do it as well
    (`streams.initial.rebalance.delay.ms`), in a mixed one a JoinGroup of which the answer comes later."""
    modern = group.modern
    if modern is None or epoch <= modern.assignment_epoch:
        return
    modern.assignment_epoch = epoch
    by_heartbeats = modern.protocol != "streams" and not modern.mixed
    is_then = by_heartbeats and not any(groups.own_of(one).revoking for one in group.members.values())
    for bump in modern.bumps:
        if bump.epoch <= epoch and bump.computed_at_ms < 0:
            _set_computed(bump, at, is_then=is_then)


def _set_computed(bump: Bump, at: float, *, is_then: bool) -> None:
    bump.computed_at_ms, bump.is_computed_then = max(at, bump.started_at_ms), is_then
    bump.target_told = False


def _target_at_ms(modern: ModernGroup | None, bump: Bump) -> float:
    """When the target of an epoch was computed, NEVER where that is not known. The answer to what began the epoch shows
    it as well; without one it is over because nobody was left."""
    if bump.computed_at_ms < 0 and modern is not None and modern.by_records:
        return bump.completed_at_ms
    at = bump.computed_at_ms if bump.computed_at_ms >= 0 else bump.completed_at_ms
    with_begin = bump.cause.by is None and at <= bump.started_at_ms + STAMP_MS
    return at if bump.is_computed_then or with_begin else NEVER


def came_to(group: Group, member: Member, own: ModernMember, epoch: int, at: float) -> None:
    """A member has this epoch since `at`."""
    modern = group.modern
    if modern is None or epoch < 0:
        return
    if epoch != own.epoch:
        own.reached_at_ms = at
    own.epoch = epoch
    for bump in modern.bumps:
        if bump.completed_at_ms >= 0:
            continue  # over, and kept only until every partition has an owner again
        if bump.epoch <= epoch and all(one.member_id != member.member_id for one in bump.reached):
            since = max(bump.started_at_ms, member.joined_at_ms)
            bump.reached.append(Reached(member.member_id, member.client_id, max(at, since), own.held_back, since))
    if epoch >= group.generation:
        own.held_back = 0


def ended(group: Group, member: Member, at: float, by: float | None = None) -> None:
    """A member has ended, at `at` or up to `by`: nobody waits for it any more, nor did since it was away."""
    own = member.modern
    if own is not None and own.away_since_at_ms >= 0:
        return
    for bump in group.modern.bumps if group.modern is not None and own is not None else ():
        if bump.completed_at_ms >= 0 or any(one.member_id == member.member_id for one in bump.dropped):
            continue
        if own is not None and 0 <= own.epoch < bump.epoch and bump.started_at_ms < at - STAMP_MS:
            since = max(bump.started_at_ms, member.joined_at_ms)
            bump.dropped.append(Reached(member.member_id, member.client_id, at, own.held_back, since, by))


def went_away(
    facts: Facts, group: Group, member: Member, own: ModernMember, at: float, by: float | None = None
) -> None:
    """A static member left for a moment: until it did it was waited for."""
    if own.away_since_at_ms < 0:
        ended(group, member, at, by)
    groups.went_away(facts, group, member, own, at, by)


def is_waited_for(member: Member, epoch: int) -> bool:
    """Whether a member has yet to come to an epoch; so it is of one of which it is not known where it stands."""
    own = member.modern
    return own is not None and own.away_since_at_ms < 0 and not groups.is_gone(member) and own.epoch < epoch


def conclude(facts: Facts, group: Group, at: float) -> None:
    """Something has changed by `at`: tell the rebalances that are over."""
    modern = group.modern
    if modern is None:
        return
    for bump in list(modern.bumps):
        if bump.completed_at_ms < 0 and not _is_awaited(group, modern, bump):
            arrived = sorted((*bump.reached, *bump.dropped), key=lambda one: one.at_ms)
            last_at = arrived[-1].at_ms if arrived else at
            # Without a target it is over as nobody is left; who was away is nobody.
            last_at = max(last_at, at if modern.assignment_epoch < bump.epoch else bump.computed_at_ms)
            bump.completed_at_ms = max(bump.started_at_ms, last_at)
            bump.completed_by = arrived[-1].by_ms if arrived and last_at > bump.started_at_ms else bump.cause.by
            bump.members_after = len(groups.present(group))
            _tell(facts, group, bump)
        elif bump.row_known >= 0 and bump.computed_at_ms >= 0 and not bump.target_told:
            _tell(facts, group, bump)
        if bump.completed_at_ms < 0 or _may_be_explained(group, bump, at) or _is_counted_on(modern, bump):
            continue
        if not (modern.unowned and group.members and bump.stopped_ms >= 0):
            if bump.stopped_ms > 0 or bump.moved > 0:
                _tell(facts, group, bump, over=True)
            modern.bumps.remove(bump)


def _is_counted_on(modern: ModernGroup, bump: Bump) -> bool:
    """Whether the next epoch was counted from this one, and no answer has shown yet that it has that number."""
    if modern.by_records:
        return False
    return any(one.epoch_before == bump.epoch and certainty_of(one.cause.doubts) == "inferred" for one in modern.bumps)


def _may_be_explained(group: Group, bump: Bump, at: float) -> bool:
    """Whether it is not known yet why the member is gone that it began with; or the answer to the request that began it
    may come yet, as answers wait until what was written is stored."""
    if group.modern is None:
        return False
    member, over = group.members.get(bump.cause.member_id), group.ended.get(bump.cause.member_id)
    shown_at = bump.cause.at if bump.cause.by is None else bump.cause.by
    if over is not None and over.told and _may_have_left(over) and at < shown_at + ANSWERED_WITHIN_MS:
        return True
    if bump.cause.trigger != "unknown":
        return False
    is_new = not group.modern.by_records and at < shown_at + CLASSES_WITHIN_MS
    return is_new or (member is not None and groups.is_gone(member))


def _may_have_left(over: Ended) -> bool:
    """Whether a record says that a member is gone, and no more than silence why."""
    return over.cause == "unknown" or (over.cause == "session_expired" and over.doubts != SURE)


def _is_awaited(group: Group, modern: ModernGroup, bump: Bump) -> bool:
    if groups.present(group) and modern.assignment_epoch < bump.epoch:
        return True
    return any(is_waited_for(member, bump.epoch) for member in group.members.values())


def doubts_of(group: Group, bump: Bump) -> Doubts:
    """What is in doubt about a rebalance as a whole: its begin, and its end if it has one. Where answers alone are
    counted, members of the classic protocol make epochs that none of them shows."""
    if group.modern is not None and group.modern.mixed and not group.modern.by_records:
        return bump.cause.doubts | Doubt.EPOCH_UNSURE
    if bump.completed_at_ms >= 0 and not (group.membership_complete or bump.members_before >= 0):
        return bump.cause.doubts | Doubt.THERE_BEFORE
    return bump.cause.doubts


def _tell(facts: Facts, group: Group, bump: Bump, *, over: bool = False, withdrawn: bool = False) -> None:
    bump.row_known = facts.known_at_ms(group, bump.row_known)
    bump.target_told = bump.computed_at_ms >= 0
    cause = changed_topics.cause_of(facts, group, bump)
    doubts = doubts_of(group, bump) if cause is bump.cause else Doubt.BY_ELIMINATION
    facts.rows["rebalances"].append(
        epoch_row(
            facts.settings.cluster_id,
            group,
            bump,
            cause,
            bump.row_known,
            doubts,
            facts.settings.straggler_ms,
            over,
            withdrawn,
            _target_at_ms(group.modern, bump),
        )
    )


def explain(facts: Facts, group: Group, bump: Bump, cause: Cause) -> None:
    """What began a rebalance is known now. Its begin is part of what it is known by: with another one it is another."""
    was_told = bump.row_known >= 0
    if was_told and int(cause.at + 0.5) != int(bump.started_at_ms + 0.5):
        _tell(facts, group, bump, withdrawn=True)
        bump.row_known = _NOT_TOLD
    bump.cause, bump.started_at_ms = cause, cause.at
    if bump.computed_at_ms >= 0:
        bump.computed_at_ms = max(bump.computed_at_ms, cause.at)
    is_open = group.modern is not None and bump in group.modern.bumps and bump.completed_at_ms < 0
    if bump.row_known >= 0 or (was_told and not is_open):
        _tell(facts, group, bump)


def begin_before(facts: Facts, group: Group, last: Bump, cause: Cause, answered: int) -> None:
    """Something began an epoch before the last one that is known, and was shown after it. Where its answer has an epoch
    below that, it is that one; else the last one is what it began, and what had been taken for it began the next."""
    modern = group.modern
    if modern is None:
        return
    own = next((one for one in modern.bumps if one.epoch == answered and one.cause.trigger == "unknown"), None)
    if own is not None:
        explain(facts, group, own, cause)
        return
    last.completed_at_ms = NEVER  # whoever makes itself known now has yet to come to it
    if last not in modern.bumps:
        modern.bumps.append(last)
    if 0 < answered < last.epoch and last is modern.first:
        first = Bump(answered - 1, answered, cause.at, cause)
        modern.bumps.insert(modern.bumps.index(last), first)
        last.epoch_before, modern.first = answered, first
    else:
        second = last.cause
        explain(facts, group, last, cause)
        raised(facts, group, last.epoch + 1, second, last.members_before + 1)


def count_in(facts: Facts, group: Group, cause: Cause, members_before: int, *, in_order: bool) -> None:
    """An end made an epoch. `in_order`: it was by a timer whose instant is known, and silence shows it late. What was
    counted since then came after it, and has the next ones. Where the timer may have been late, or what was counted
    is told and done, the order is not sure."""
    modern = group.modern
    for bump in modern.bumps if modern is not None and not modern.by_records else ():
        if _may_have_come_after(cause, bump.cause):
            explain(facts, group, bump, replace(bump.cause, doubts=bump.cause.doubts | Doubt.EPOCH_UNSURE))
    if modern is None or not in_order:
        raised(facts, group, group.generation + 1, cause, members_before)
        return
    counted = [] if modern.by_records else list(modern.bumps)
    for bump in counted:
        if _ended_together(bump.cause, cause) or _may_have_come_after(bump.cause, cause):
            cause.doubts |= Doubt.TIMERS_TIED
            explain(facts, group, bump, replace(bump.cause, doubts=bump.cause.doubts | Doubt.TIMERS_TIED))
    later = [bump for bump in counted if bump.cause.at > cause.at + STAMP_MS]
    after = (one.modern for one in group.members.values() if one.modern is not None)
    if any(own.reached_at_ms > cause.at + STAMP_MS and own.epoch >= group.generation for own in after):
        cause.doubts |= Doubt.EPOCH_UNSURE
    causes = [cause, *(bump.cause for bump in later)]
    if later and later[0].cause.at - cause.at <= LATE_MS:  # the timer may have been as late
        unsure = sum(bump.cause.at - cause.at <= LATE_MS for bump in later) + 1
        causes[:unsure] = [replace(why, doubts=why.doubts | Doubt.TIMER_MAY_BE_LATE) for why in causes[:unsure]]
    for bump, why in zip(later, causes, strict=False):
        explain(facts, group, bump, why)
    raised(facts, group, group.generation + 1, causes[-1], members_before)


def _ended_together(one: Cause, other: Cause) -> bool:
    """Whether timers of two members were due so near to each other that stamps do not show which fired first."""
    return one.trigger == other.trigger == "session_expired" and in_no_order((one.at, one.at), (other.at, other.at))


def _may_have_come_after(known: Cause, cause: Cause) -> bool:
    """Whether what is known within bounds only, and is counted, may have come after something of which the instant is
    known."""
    return certainty_of(known.doubts) == "unknown" and known.by is not None and known.at <= cause.at < known.by


def withdraw_above(facts: Facts, group: Group, epoch: int) -> None:
    """The group never had an epoch above this one: rebalances that were counted are taken back. One that is counted
    from a number that was shown is right; which of the others was one too many is not known."""
    modern = group.modern
    if modern is None:
        return
    sure = counted(group)
    for bump in list(modern.bumps):
        if bump.epoch > epoch:
            modern.bumps.remove(bump)
            if bump.row_known >= 0:
                _tell(facts, group, bump, withdrawn=True)
        elif certainty_of(bump.cause.doubts) == "inferred" and bump not in sure:
            explain(facts, group, bump, replace(bump.cause, doubts=Doubt.EPOCH_UNSURE))
    group.generation = min(group.generation, epoch)


def close(facts: Facts, group: Group) -> None:
    """Nobody will come to the open epochs any more, as the group is one of another protocol: tell what is known."""
    modern = group.modern
    for bump in modern.bumps if modern is not None else ():
        if bump.row_known < 0 or bump.completed_at_ms < 0:  # what was told while it lasted may be less
            _tell(facts, group, bump)
    if modern is not None:
        modern.bumps.clear()


def unexplained(group: Group) -> list[Bump]:
    """Rebalances of which it is not known what began them, the oldest first."""
    return [bump for bump in group.modern.bumps if bump.cause.trigger == "unknown"] if group.modern is not None else []


def counted(group: Group) -> list[Bump]:
    """Rebalances that an end began, the number of which no answer has shown yet, and the number before which has been:
    by an answer before it began, or as everybody came to it."""
    bumps = group.modern.bumps if group.modern is not None else []
    before = {bump.epoch: bump for bump in bumps}
    found = []
    for bump in bumps:
        last = before.get(bump.epoch_before)
        shown = last is None or last.cause.doubts == SURE or 0 <= last.computed_at_ms <= bump.started_at_ms
        if shown and certainty_of(bump.cause.doubts) == "inferred" and bump.cause.member_id in group.ended:
            found.append(bump)
    return found


def state_of(group: Group, at: float) -> tuple[ModernState, Doubts]:
    """State of the group at an instant by what is held, and how sure that is: an end may be shown by who has joined
    since. Source: `ConsumerGroup.maybeUpdateGroupState` and its like."""
    modern = group.modern
    if modern is None:
        return ModernState.UNKNOWN, Doubt.NOT_SEEN
    doubts: Doubts = SURE if modern.by_records and group.membership_complete else Doubt.SEEN_LATER
    here = groups.present(group)
    if here and not modern.by_records and all(member.joined_at_ms > at + CLASSES_WITHIN_MS for member in here):
        return ModernState.EMPTY, Doubt.TIMER_MAY_BE_LATE  # the end may have come after they did
    if not here:
        return (ModernState.EMPTY, doubts) if group.membership_complete else (ModernState.UNKNOWN, Doubt.NOT_SEEN)
    if modern.protocol == "share":
        return ModernState.STABLE, SURE
    if group.generation < 0:
        return ModernState.UNKNOWN, Doubt.NOT_SEEN
    # The record of a target comes after that of its epoch: it would have been read.
    has_none = modern.assignment_epoch < 0 and modern.by_records and modern.epoch_sure
    if modern.assignment_epoch < 0 and not has_none:
        doubts = Doubt.EPOCH_UNSURE  # whether there is a target for the epoch is not known
    if has_none or group.generation > modern.assignment_epoch >= 0:
        # A streams group may be not ready instead, if its topology is not valid: nothing that is read shows that.
        return ModernState.ASSIGNING, Doubt.NOT_READY_UNSEEN if modern.protocol == "streams" else doubts
    if not _is_settled(group, modern):
        return ModernState.RECONCILING, doubts
    if modern.protocol == "streams":
        # One whose topics are missing is not ready instead, and nobody has a task then.
        if group.broker and not any(one.modern and one.modern.assigned for one in groups.present(group)):
            return ModernState.UNKNOWN, Doubt.NOT_SEEN
        if group.generation <= 1 and not _was_heard_again(group):
            # Only 4.1 has an epoch 1, and there a group is not ready before its second heartbeat.
            return (
                (ModernState.NOT_READY, Doubt.NOT_READY_UNSEEN)
                if modern.by_records
                else (ModernState.UNKNOWN, Doubt.NOT_SEEN)
            )
        doubts |= Doubt.NOT_READY_UNSEEN
    shown = modern.by_records or (owners.are_known(group) and not modern.unowned)  # else somebody may wait, unseen
    return ModernState.STABLE, doubts if shown else Doubt.MAY_WAIT_UNSEEN


def _was_heard_again(group: Group) -> bool:
    """Whether a heartbeat came after the first one of the group."""
    first = min((max(one.joined_at_ms, one.joined_by or NEVER) for one in groups.present(group)), default=NEVER)
    return group.steady_at_ms - STAMP_MS > first >= 0  # the first one itself was handled in the ms of its record


def _is_settled(group: Group, modern: ModernGroup) -> bool:
    """Whether every member has what the target gives it. Where only answers are seen that shows in partitions that had
    an owner and have none: built-in assignors give every partition to somebody, of a topic to which anybody still
    subscribes. Of one of which nobody has a partition it is not known whether anybody does."""
    for member in groups.present(group):
        own = member.modern
        if own is None or own.away_since_at_ms >= 0 or own.revoking or 0 <= own.epoch < group.generation:
            return False
        if modern.by_records and own.state in ("unrevoked", "unreleased"):
            return False
    if modern.by_records or not modern.unowned:
        return True
    wanted = {topic for member in group.members.values() if member.modern for topic in member.modern.assigned or ()}
    return not any(name.rpartition(":")[0] in wanted for name in modern.unowned)


def _somebody_may_be_gone(group: Group, at: float) -> bool:
    """Whether a member may be gone by an instant, which would have made an epoch."""
    return any(groups.may_be_gone(group, one, at) for one in group.members.values())


def _may_have_changed(group: Group, modern: ModernGroup, at: float) -> bool:
    """Whether, where no record is read, the group may have another epoch by then than was counted: nobody is answered
    with one for which no target is computed yet."""
    if modern.by_records:
        return False
    # Of a mixed group: it may be a classic one by now, and its epochs are counted.
    return modern.mixed or modern.resolves or _somebody_may_be_gone(group, at)


def _may_be_classic(group: Group, at: float) -> bool:
    """Whether an epoch is counted that no record shows yet, and the group may have become a classic one just before: by
    the leave of its only member of the consumer protocol, whose answer is not read."""
    modern = group.modern
    if modern is None or not modern.mixed or not modern.by_records or modern.record_at_ms >= at - STAMP_MS:
        return False
    return sum(not groups.own_of(member).classic for member in groups.present(group)) <= 1


def update_state(facts: Facts, group: Group, at: float, cause: str, by: float | None = None) -> None:
    """The state of the group follows from what is held now; say so if it is another one, since `at` or up to `by`."""
    state, doubts = state_of(group, at)
    if state == group.state:
        return
    if group.modern is not None and _may_have_changed(group, group.modern, at if by is None else max(at, by)):
        doubts |= Doubt.EPOCH_UNSURE
    if state == ModernState.ASSIGNING and _may_be_classic(group, at):
        doubts |= Doubt.MAY_BE_CLASSIC
    if state == ModernState.STABLE:
        if by is None:  # the last of them need not be the one whose answer is read last
            came = (one.modern.reached_at_ms for one in groups.present(group) if one.modern is not None)
            at = max(at, *came, at)
        group.stable_at_ms = at
    facts.set_state(group, at, state, cause, doubts, by)
