"""Records the end of a membership, and takes it back when later evidence shows that it goes on; decides neither.

What an end does to the group is `rebalance.end_member`'s business.
"""

from __future__ import annotations

from kardia.doubts import SURE, Doubt, Doubts, certainty_of
from kardia.events import Event
from kardia.observe.deadlines import late
from kardia.observe.facts import forgetting
from kardia.observe.facts.groups_of_lane import Facts
from kardia.observe.members import who_broke
from kardia.observe.output import rows
from kardia.observe.output.status import GroupAt
from kardia.observe.state.entries import Foretold
from kardia.observe.state.group import NEVER, Ended, Group, Member
from kardia.tables import STRUCK
from kardia.tolerances import LATE_MS

MAX_ENDED = 64
"""Lives that are over and still held per group, for evidence that confirms or corrects them; the oldest goes first."""


def end(
    facts: Facts,
    group: Group,
    member: Member,
    at: float,
    cause: str,
    reason: str,
    doubts: Doubts,
    by: float | None = None,
) -> None:
    """A life is over, at `at` or up to `by` (see `Ended.by`): out of the indexes, into the tables, its predictions
    scored."""
    group.members.pop(member.member_id, None)
    if group.instances.get(member.instance_id) == member.member_id:
        del group.instances[member.instance_id]
    facts.forget(group, member)
    if not group.members:
        forgetting.note_without_members(facts, group, at)
    at = max(at, member.joined_at_ms)
    if member.session_renewed_at_ms >= at > member.renewed_before_join_at_ms >= 0:
        member.session_renewed_at_ms = (
            member.renewed_before_join_at_ms
        )  # the end of a join phase renews only who is in it
    over = Ended(member, at, cause, reason, doubts, by)
    who_broke.judge(facts, group, over)
    group.ended.pop(member.member_id, None)
    group.ended[member.member_id] = over
    if len(group.ended) > MAX_ENDED:
        del group.ended[next(iter(group.ended))]
    facts.emit_member(group, member, at, doubts, over)
    facts.emit_transition(group, at, member.member_id, "Member", "Absent", cause, doubts, by)
    _score(facts, group, over)
    if member.health_at_ms >= 0:
        known_at_ms = facts.known_at_ms(group)
        facts.rows["health"].append(
            rows.health_row(
                facts.settings.cluster_id, GroupAt(group, at), member, known_at_ms, doubts, "ended", [cause]
            )
        )


def _score(facts: Facts, group: Group, over: Ended) -> None:
    """What became of the predictions about a life that is over."""
    for kind in ("session", "poll", "rebalance"):
        if getattr(over.member, f"{kind}_prediction_at_ms") < 0:
            continue
        deadline = getattr(over.member, f"{kind}_prediction_deadline_at_ms")
        over.foretold.append(Foretold(kind, getattr(over.member, f"{kind}_prediction_at_ms"), deadline))
        outcome = _outcome(group, over, kind, deadline)
        facts.close_prediction(group, over.member, kind, outcome, over.ended_at_ms, _at_most(over))


def _at_most(over: Ended) -> Doubts:
    """What is in doubt about an outcome: what is about the end, of which it may be unknown why, and sure that it was
    one."""
    return SURE if certainty_of(over.doubts) == "unknown" else over.doubts


def _outcome(group: Group, over: Ended, kind: str, deadline: float) -> str:
    if kind == STRUCK.get(over.cause) and deadline < 0:
        return "came_true"  # that it would end was said, and not when
    if kind == STRUCK.get(over.cause):
        # A session that was begun anew without its member, as by a load, ends at another deadline.
        since_load = 0 <= over.member.session_renewed_at_ms <= group.unsure_to
        anew = since_load or abs(over.member.deadline - deadline) > LATE_MS
        anew = anew and kind == "session" and abs(over.ended_at_ms - deadline) > LATE_MS
        return "averted" if anew else "came_true"
    return "unknown" if over.cause in ("unknown", "session_expired") else "averted"


def _rescore(facts: Facts, group: Group, over: Ended) -> None:
    """An end was another one, and with it what became of predictions."""
    for kind, predicted_at, deadline in over.foretold:
        setattr(over.member, f"{kind}_prediction_at_ms", predicted_at)
        setattr(over.member, f"{kind}_prediction_deadline_at_ms", deadline)
        outcome = _outcome(group, over, kind, deadline)
        facts.close_prediction(group, over.member, kind, outcome, over.ended_at_ms, _at_most(over))


def _unscore(facts: Facts, group: Group, over: Ended, at: float) -> None:
    """An end is taken back, and with it what it made of predictions."""
    for kind, predicted_at, deadline in over.foretold:
        setattr(over.member, f"{kind}_prediction_at_ms", predicted_at)
        setattr(over.member, f"{kind}_prediction_deadline_at_ms", deadline)
        facts.close_prediction(group, over.member, kind, "unknown", at)


def rival(group: Group, member_id: str) -> None:
    """Two timers may have ended a member: that it is gone does not show which."""
    over = group.ended.get(member_id)
    if over is not None:
        over.rivalled = True


def confirm(facts: Facts, group: Group, over: Ended, by: float) -> None:
    """Later evidence shows that an eviction inferred from silence was one, by `by` at the latest; a rebalance that it
    began shows it earlier."""
    began = over.began_at
    # Its session ended; when, is known within bounds only.
    since_load = (
        over.member.is_unsure(began)
        or over.member.renewed_unseen
        or 0 <= began <= max(group.unsure_to, group.gap_at_ms)
    )
    since_load = since_load or facts.is_broken(group.broker, began, over.ended_at_ms, seen=True)
    # What was heard says that it ended, and not when, unless it is the instant of its own timer.
    since_load = since_load or 0 <= over.member.session_renewed_at_ms <= group.unsure_to
    if over.cause != "session_expired" or over.rivalled or since_load:
        return
    if certainty_of(over.doubts) in ("inferred", "provisional"):
        current = group.rebalance
        cause = None if current is None else current.cause
        began = cause is not None and cause.member_id == over.member.member_id
        over.doubts = SURE
        if over.by is not None:  # else the instant in which the timer fired is known
            over.by = by
        if current is not None and cause is not None and began and not current.contested and current.settled:
            if over.by is not None:
                over.by = late.earlier(by, late.begun_by(current, over.ended_at_ms))
            cause.doubts, cause.by = SURE, over.by
        facts.emit_member(group, over.member, over.ended_at_ms, SURE, over)
        facts.emit_transition(
            group, over.ended_at_ms, over.member.member_id, "Absent", "Absent", "session_expired", SURE, over.by
        )


def correct(
    facts: Facts, group: Group, over: Ended, at: float, cause: str, doubts: Doubts, by: float | None = None
) -> None:
    """An end that was concluded from silence was another one, earlier: the member's successor was answered. Or it was
    the same, and is as sure as that."""
    is_same = over.cause == cause and over.ended_at_ms == max(at, over.member.joined_at_ms)
    over.ended_at_ms, over.cause, over.doubts, over.by = max(at, over.member.joined_at_ms), cause, doubts, by
    who_broke.judge(facts, group, over)
    facts.emit_member(group, over.member, over.ended_at_ms, doubts, over)
    facts.emit_transition(group, over.ended_at_ms, over.member.member_id, "Absent", "Absent", cause, doubts, by)
    _rescore(facts, group, over)
    current = group.rebalance
    began = current.cause if current is not None and over.member.modern is not None else None
    if is_same and began is not None and began.member_id == over.member.member_id:
        began.doubts, began.by = began.doubts | doubts, by  # it made a classic group of one with epochs
    else:
        doubt(group, over.member.member_id)


def doubt(group: Group, member_id: str) -> None:
    """A member did not start the rebalance under way: what did is found when it is settled."""
    current = group.rebalance
    if current is None or current.settled or current.cause is None or current.row_known >= 0:
        return
    if current.cause.member_id == member_id:
        current.cause = None


def give_back(facts: Facts, group: Group, event: Event, at: float) -> None:
    """The coordinator could not store who took a seat, and the member before has it again, with a session that begins
    anew: `GroupMetadataManager.updateStaticMemberThenRebalanceOrCompleteJoin` (4.0 to 4.4), where a write lasts longer
    than `offsets.commit.timeout.ms`."""
    taker = group.members.get(event.member_id)
    if taker is not None:
        end(facts, group, taker, at, "static_replaced", "", SURE)
    for member_id in map(str, (event.detail or {}).get("members") or ()):
        over, member = group.ended.get(member_id), group.members.get(member_id)
        group.said.ends.pop(member_id, None)
        if member is not None:
            begin_in_doubt(facts, group, member, at)
        elif (
            over is not None
            and over.ended_at_ms <= at
            and (over.cause == "static_replaced" or not (over.told or over.doubts == SURE))
        ):
            reinstate(facts, group, over, at, doubts=SURE)


def begin_in_doubt(facts: Facts, group: Group, member: Member, at: float) -> None:
    """The session of a member may begin anew: until it is heard nothing is sure about it."""
    member.begin_anew(max(at, member.session_renewed_at_ms))
    member.doubtful_at_ms = member.session_renewed_at_ms
    facts.watch(group, member)


def reinstate(
    facts: Facts, group: Group, over: Ended, at: float, why: str = "still a member", doubts: Doubts = Doubt.SEEN_LATER
) -> Member:
    """A life that was taken for ended goes on: later evidence shows it. When its session was renewed is not known, only
    that it runs."""
    member = over.member
    group.ended.pop(member.member_id, None)
    group.members[member.member_id] = member
    _unscore(facts, group, over, at)
    if member.instance_id:
        group.instances[member.instance_id] = member.member_id
    if member.session_renewed_at_ms < at:
        member.begin_anew(at)
    member.returned_at_ms = member.session_renewed_at_ms
    member.timer_at_ms = member.sample_due_at_ms = NEVER
    member.overdue = False
    facts.index(group, member)
    doubt(group, member.member_id)
    facts.emit_member(group, member, at, doubts)
    facts.emit_transition(group, at, member.member_id, "Absent", "Member", why, doubts)
    facts.watch(group, member)
    return member
