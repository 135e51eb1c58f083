"""What an answer shows of somebody else: that a member is gone, that one lives, that the group has another epoch.

Only where records do not say it. A member that silence alone has ended is confirmed by the epoch that its end made, or
taken back by an epoch that it would have made and that is not there. A partition that is given to somebody, and that
its owner had not given up, shows that the owner is gone.
"""

from __future__ import annotations

from math import inf

from msgspec.structs import replace

from kardia.doubts import SURE, Doubt, Doubts, certainty_of, stands
from kardia.kafka.releases import version_of
from kardia.observe.facts.groups_of_lane import Facts
from kardia.observe.modern import ends, epochs, groups
from kardia.observe.state.group import NEVER, Cause, Ended, Group, Member
from kardia.observe.state.modern import Bump, Partitions
from kardia.observe.state.partitions import named
from kardia.tables import LEAVE_CAUSES
from kardia.tolerances import (
    ASSIGNMENT_INTERVAL_MS,
    CONTRADICTED_AFTER_MS,
    EARLY_MS,
    LATE_MS,
    RESYNCED_AFTER_MS,
    TIMERS_NEAR_MS,
)


def on_gone(facts: Facts, group: Group, member_id: str, at: float) -> None:
    """The coordinator does not know a member: it went before, by the timer that was due first."""
    over = group.ended.get(member_id)
    if over is not None:
        ends.confirm(facts, group, over, at)
        return
    member = group.members.get(member_id)
    if member is None or member.modern is None or member.modern.gone_at_ms >= 0:
        return
    due = ends.timers(group, member)
    if due and due[0].at_ms <= at + EARLY_MS:
        _end_by_timer(facts, group, member, at)
        return
    since = max(member.last_heard_at_ms, member.joined_at_ms)
    ends.remove_counted(facts, group, member, min(since, at), "unknown", "", Doubt.NOT_SEEN, at)


def on_alive(facts: Facts, group: Group, member_id: str, at: float, *, renewed: bool = False) -> None:
    """The coordinator had a member at an instant, by what it answered: whose silence was taken for an end up to then,
    or, as that renewed its session, for one after it, is a member still."""
    over = group.ended.get(member_id)
    if over is None or over.told or over.doubts == SURE or group.modern is None:
        return
    if over.cause not in LEAVE_CAUSES and (renewed or over.ended_at_ms <= at):
        facts.divergences += 1
        ends.back(facts, group, over, at, Doubt.RENEWAL_UNSURE)


def _end_by_timer(facts: Facts, group: Group, member: Member, by: float) -> None:
    """A timer of the member was due by `by`, and it is gone. A broker fires the timers of a shard in the order of their
    deadlines (`SystemTimer`): whoever was due before it is gone as well, and went first."""
    last = ends.timers(group, member)[0]
    others = [(ends.timers(group, one)[0], one) for one in group.members.values() if due_by(group, one, last.at_ms)]
    before = [(due, one) for due, one in others if one is not member and due.at_ms < last.at_ms]
    for due, one in sorted(before, key=lambda entry: entry[0].at_ms):
        _end_one(facts, group, one, by, tied=last.at_ms - due.at_ms <= EARLY_MS)
    tied = any(one is not member and abs(due.at_ms - last.at_ms) <= EARLY_MS for due, one in others)
    _end_one(facts, group, member, by, tied=tied)


def _end_one(facts: Facts, group: Group, member: Member, by: float, *, tied: bool) -> None:
    """One of them. `tied`: another one was due in the same moment, so that their order is not known."""
    due, modern, own = ends.timers(group, member), group.modern, groups.own_of(member)
    first = due[0]
    doubts: Doubts = Doubt.TIMERS_TIED if tied else SURE
    if len(due) > 1 and due[1].at_ms - first.at_ms <= TIMERS_NEAR_MS:
        doubts |= Doubt.TIMERS_TIED
    elif modern is not None and first.cause == "session_expired":
        doubts |= SURE if own.classic else modern.session_doubts
    if 0 <= member.session_renewed_at_ms <= group.unsure_to:
        doubts |= Doubt.LOAD_UNSEEN
    if member.renewed_unseen:
        doubts |= Doubt.RENEWAL_UNSURE
    if first.cause != "session_expired" and first.at_ms - member.rebalance_ms <= group.unsure_to:
        doubts |= Doubt.LOAD_UNSEEN
    if first.cause != "session_expired" and first.at_ms - member.rebalance_ms <= group.gap_at_ms:
        doubts |= Doubt.LINES_LOST
    if ends.may_have_run_out(group, member, first.at_ms):
        doubts |= Doubt.TIMER_PASSED_UNSEEN
    if modern is not None and modern.may_hold_back(own, member.session_renewed_at_ms):
        doubts |= Doubt.TIMER_PASSED_UNSEEN
    if facts.is_broken(group.broker, member.session_renewed_at_ms, first.at_ms):
        doubts |= Doubt.BROKER_SILENT
    ends.remove_counted(facts, group, member, min(first.at_ms, by), first.cause, "", doubts, by)


def expire_due(facts: Facts, group: Group, epoch: int, at: float) -> None:
    """An answer has a higher epoch than was counted: those end whose timers were due by then, if they are no more than
    epochs are missing."""
    due = [one for one in group.members.values() if due_by(group, one, at)]
    if 0 < len(due) <= epoch - group.generation:
        for member in sorted(due, key=lambda one: ends.timers(group, one)[0].at_ms):
            _end_by_timer(facts, group, member, at)


def hidden(facts: Facts, group: Group, epoch: int, at: float, by: float | None = None) -> None:
    """An answer has a higher epoch than was counted: somebody's timer was due by then, or it is not known what it was.
    `by`: the latest instant of the operation, where it was not done at once."""
    modern = group.modern
    if modern is None:
        return
    expire_due(facts, group, epoch, at)
    if epoch > group.generation:
        since = _not_before(facts, group)
        doubts: Doubts = Doubt.SEEN_LATER if since >= 0 else Doubt.NOT_SEEN
        for bump in list(modern.bumps):  # what was counted since then may have come after what was not seen
            if since <= bump.cause.at < at and bump.epoch < epoch and stands(bump.cause.doubts):
                epochs.explain(facts, group, bump, replace(bump.cause, doubts=Doubt.EPOCH_UNSURE))
        since = min(since, at) if since >= 0 else at
        why = Cause(since, "unknown", doubts=doubts, by=at if by is None else max(at, by))
        new = epochs.raised(facts, group, epoch, why, len(groups.present(group)), shown=True)
        if new is not None:
            new.spare = new.epoch - new.epoch_before - 1
        modern.resolves = False


def _not_before(facts: Facts, group: Group) -> float:
    """The earliest that a new group epoch may have begun which an answer shows now; NEVER if nothing shows it. Since
    4.3 a target is computed once in a while, and until then answers have the epoch before."""
    modern = group.modern
    if modern is None or modern.lower_at_ms < 0:
        return NEVER
    since = modern.lower_at_ms if has_targets_at_once(facts) else modern.lower_at_ms - ASSIGNMENT_INTERVAL_MS
    return max(since, modern.since_at_ms)


def has_targets_at_once(facts: Facts) -> bool:
    """Whether the broker is known to compute the target of each epoch as that begins, so that every answer has the
    epoch of the group."""
    version = facts.settings.kafka_version
    return bool(version) and version_of(version) < (4, 3, 0)


def due_by(group: Group, member: Member, at: float) -> bool:
    due = ends.timers(group, member)
    return bool(due) and due[0].at_ms <= at + EARLY_MS and member.unknown_since_at_ms < 0


def on_epoch_shown(facts: Facts, group: Group, epoch: int, at: float) -> None:
    """An answer has the epoch that was counted: whoever was ended by silence, and made it, is gone; and where that was
    sure, so is the number of its epoch."""
    for bump in epochs.counted(group):
        over = group.ended.get(bump.cause.member_id)
        if bump.epoch <= epoch and over is not None and over.doubts == SURE and bump.started_at_ms <= at:
            epochs.explain(facts, group, bump, replace(bump.cause, doubts=SURE, by=over.by))
    for over in list(group.ended.values()):
        if (
            certainty_of(over.doubts) in ("inferred", "provisional")
            and over.by == NEVER
            and not over.told
            and over.ended_at_ms <= at
            and _made(group, over.ended_at_ms, over.member.member_id, epoch)
        ):
            ends.confirm(facts, group, over, at)


def _made(group: Group, ended_at_ms: float, member_id: str, epoch: int) -> bool:
    bumps = group.modern.bumps if group.modern is not None else []
    return any(
        bump.cause.member_id == member_id and bump.epoch <= epoch and bump.started_at_ms >= ended_at_ms - LATE_MS
        for bump in bumps
    )


def on_lower_epoch(facts: Facts, group: Group, epoch: int, at: float) -> None:
    """A member that has nothing to give up is answered with an epoch below that of the group, long after that began:
    the group has no such epoch, and whose silence was taken for an end is a member still. The epoch to which somebody
    who is there has come it had: an answer that waited while nothing could be stored is older."""
    modern = group.modern
    if modern is None:
        return
    epoch = max(epoch, *(groups.own_of(one).epoch for one in groups.present(group)), -1)
    for bump in reversed(list(modern.bumps)):
        over = group.ended.get(bump.cause.member_id)
        if bump.epoch <= epoch or over is None or over.told or over.doubts == SURE:
            break
        if at < max(bump.started_at_ms, over.ended_at_ms) + CONTRADICTED_AFTER_MS:
            break
        facts.divergences += 1
        epochs.withdraw_above(facts, group, bump.epoch_before)
        # Of several whom silence alone had ended another one may be the one that is there; and whose session began anew
        # in doubt may have been gone before. An answer may have an older target for as long as is configured.
        doubted = _has_rivals(group, over) or over.member.is_unsure(over.member.session_renewed_at_ms)
        doubted = doubted or not has_targets_at_once(facts)
        ends.back(facts, group, over, at, Doubt.RENEWAL_UNSURE if doubted else Doubt.SEEN_LATER)
    last_at = max((bump.started_at_ms for bump in modern.bumps), default=NEVER)
    if epoch < group.generation and at >= last_at + RESYNCED_AFTER_MS:
        facts.divergences += 1
        epochs.withdraw_above(facts, group, epoch)


def _has_rivals(group: Group, over: Ended) -> bool:
    """Whether silence alone has ended somebody else since a member was last heard."""
    since = over.member.last_heard_at_ms
    others = (one for one in group.ended.values() if one is not over and one.ended_at_ms >= since)
    return any(not one.told and one.doubts != SURE and one.cause not in LEAVE_CAUSES for one in others)


def on_taken(
    facts: Facts, group: Group, member: Member, assigned: Partitions, answered: int, at: float, by: float | None
) -> None:
    """A member is given partitions, at `at` or up to `by`: whose they are, and who has not given them up, is gone."""
    modern = group.modern
    if modern is None or modern.protocol != "consumer" or modern.by_records:
        return
    if answered > group.generation and epochs.unexplained(group):
        hidden(facts, group, answered, at, by)  # which of them an end has made is not shown then
    names = [modern.owners.get(name, "") for name in named(assigned) if name not in modern.unowned]
    found = (group.members.get(owner_id) for owner_id in dict.fromkeys(names))
    gone = [owner for owner in found if owner is not None and owner is not member and owner.modern is not None]
    gone_by = at if by is None else max(at, by)
    for owner in sorted(gone, key=lambda one: one.session_renewed_at_ms):  # sessions are of one length, and end so
        if due_by(group, owner, gone_by):
            _end_by_timer(facts, group, owner, gone_by)
        else:
            end_within(facts, group, owner, gone_by)


def _latest(at: float, by: float | None) -> float:
    """The latest that something was, which was at `at` or up to `by`."""
    return at if by is None else inf if by < 0 else by


def _may_be_of_a_regex(group: Group, since: float, by: float) -> bool:
    """Whether somebody joined by a regular expression when an epoch may have begun that no answer explains: that makes
    one, at once or when it is resolved."""
    joined = (one.joined_at_ms for one in group.members.values() if one.modern is not None and one.modern.regex)
    return any(since - LATE_MS <= at <= by for at in joined)


def _session_at_most(group: Group) -> float:
    """The longest that a session can be, by members that were gone so long after they were last heard."""
    lasted = (
        _latest(over.ended_at_ms, over.by) - over.member.session_renewed_at_ms
        for over in group.ended.values()
        if over.cause == "session_expired" and over.member.session_renewed_at_ms >= 0
    )
    return min(lasted, default=inf)


def _is_of_its_end(
    group: Group, renewed_at: float, began: list[Bump], unexplained: list[Bump], since: float, by: float
) -> bool:
    """Whether the epochs that `began` since a member was last heard show when it ended: one, which nothing else has
    made."""
    if not unexplained:
        return not began
    first = unexplained[0]
    if began and [bump.epoch - bump.epoch_before for bump in unexplained] != [1]:
        return False
    if _may_be_of_a_regex(group, since, by) or since > renewed_at + _session_at_most(group):
        return False
    # Else it may have come before those, whose epochs are counted.
    return not any(bump.epoch < first.epoch and bump.started_at_ms >= since for bump in began)


def end_within(facts: Facts, group: Group, owner: Member, at: float) -> None:
    """A member is gone and did not leave, as another one has its partitions or its instance id: its session ended, at
    some time since the last answer that showed that the group had no new epoch. How long a session is, is not known."""
    modern = group.modern
    if modern is None or owner.modern is None or modern.session_from == "given":
        return
    since, by, renewed_at = _not_before(facts, group), at, owner.session_renewed_at_ms
    began = [bump for bump in modern.bumps if bump.started_at_ms >= renewed_at]
    # What had begun before it was last heard is no end of it.
    open_bumps = [bump for bump in epochs.unexplained(group) if _latest(bump.cause.at, bump.cause.by) >= renewed_at]
    if open_bumps:
        first = open_bumps[0].cause
        since, by = first.at, at if first.by is None or len(open_bumps) > 1 else first.by
        if certainty_of(first.doubts) == "unknown":
            since = renewed_at  # from when on it may have begun was not shown
    elif began:
        since = renewed_at  # one of them is its end, and something else is taken for the cause
    is_its_own = _is_of_its_end(group, renewed_at, began, open_bumps, since, by)
    since = max(renewed_at, since)
    cause = "session_expired" if owner.modern.revoke_since_at_ms < 0 else "unknown"
    doubts: Doubts = Doubt.NOT_SEEN if cause == "unknown" else Doubt.SEEN_LATER if is_its_own else Doubt.BY_ELIMINATION
    if (
        facts.is_broken(group.broker, owner.session_renewed_at_ms, at)
        or since <= group.unsure_to
        or owner.renewed_unseen
    ):
        doubts |= Doubt.BROKER_SILENT  # the line in which it gave them up may be lost with its broker
    ends.remove_counted(facts, group, owner, since, cause, "", doubts, max(by, since))
