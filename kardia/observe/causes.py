"""What began a rebalance: the earliest of everything that makes a settled group prepare one. Changes only its ledger.

An answer 27 before the earliest of them says that something else began it, which was not seen. Of two within the width
of a stamp neither is sure.
"""

from __future__ import annotations

from kardia.certainty import Certainty, stands
from kardia.observe.facts import Facts
from kardia.observe.group import NEVER, Cause, Group, Join, Member, Rebalance
from kardia.observe.phases import STAMP_MS


def how_dropped(observer: Facts, group: Group, current: Rebalance, member: Member) -> tuple[float, str, Certainty]:
    """(at, cause, certainty) of a member that is missing when the join phase ends."""
    joined_at, tolerance = current.joined_at, observer.settings.tolerance_ms
    armed = member.armed_before_join
    if member.unknown_since >= 0 or armed < 0 or member.session_ms < 0:
        return joined_at, "unknown", "unknown"
    deadline = armed + member.session_ms
    begins = [current.started_at, current.told_at, *(join.handled_at for join in (*current.joins, *current.refused))]
    began = min((at for at in begins if at >= 0), default=NEVER)
    longest = max((other.rebalance_ms for other in group.members.values()), default=-1)
    lasted = joined_at - began if began >= 0 and longest > 0 else NEVER
    over_at = current.sync_over_at
    unsynced = member.seen_joining and member.synced_generation != current.generation_before and member.told_at < 0
    if unsynced and 0 <= over_at <= min(joined_at, deadline) and (began < 0 or began >= over_at - STAMP_MS):
        return over_at, "sync_timeout", "provisional" if began <= over_at + STAMP_MS else "inferred"
    unsure = armed <= max(group.unsure_to, group.gap_at) or member.is_unsure(armed)
    by_timer = abs(lasted - longest) <= STAMP_MS and not member.instance_id
    if by_timer and joined_at - STAMP_MS <= deadline <= joined_at + tolerance:
        # The session was to end in the same moment; a busy broker fires timers late.
        return joined_at, "rebalance_timeout", "provisional" if deadline <= joined_at + STAMP_MS else "inferred"
    unasked = joined_at - max((join.handled_at for join in current.joins), default=0) > tolerance
    if armed <= group.unsure_to and 0 <= group.broke_at <= joined_at - member.session_ms and not unasked:
        # The session ran from a load that came soon after the last line, maybe: it was over before the others joined.
        return min(at for at in (began, joined_at) if at >= 0), "session_expired", "provisional"
    if deadline <= joined_at + tolerance:
        if observer.is_broken(group.broker, armed, deadline) and unasked:
            # The session ran anew since, or its timer was late. Nobody joined at this instant: the phase ended by it.
            return joined_at, "session_expired", "provisional"
        at, certainty = observer.ran_out(group, member, armed, joined_at)
        return at, "session_expired", "provisional" if unsure else certainty
    if lasted >= 0 and abs(lasted - longest) <= 4 * tolerance:
        return joined_at, "rebalance_timeout", "provisional" if unsure else "exact"
    if lasted >= 0.5 * longest > 0 and armed > group.unsure_to:
        return joined_at, "rebalance_timeout", "inferred"
    if armed <= group.unsure_to and unasked:
        # Sessions ran from the load, which is only known to lie before the first answer of the new coordinator. Nobody
        # joined at this instant, so the phase ended because this member's session did.
        return joined_at, "session_expired", "provisional"
    return joined_at, "unknown", "unknown"


def choose(
    observer: Facts, group: Group, current: Rebalance, dropped: list[tuple[Member, float, str, Certainty]]
) -> None:
    """The earliest thing that makes a settled group prepare is the trigger; an answer 27 before it says: not seen."""
    candidates = [] if current.cause is None else [current.cause]
    candidates += [
        Cause(at, how, member.member_id, member.client_id, member.instance_id, "", certainty)
        for member, at, how, certainty in dropped
        if how in ("session_expired", "sync_timeout")
    ]
    candidates += [_of_join(group, current, join) for join in (*current.joins, *current.refused)]
    tolerance = observer.settings.tolerance_ms
    line_at = group.prepared_at
    if line_at >= 0 and (current.joined_at < 0 or line_at <= current.joined_at + tolerance):
        chosen = _by_line(group, candidates, line_at, 4 * tolerance)
    else:
        chosen = _by_order(candidates, current, tolerance)
        current.contested = _is_contested(group, current, chosen, dropped)
        if chosen.certainty == "exact" and (current.contested or chosen.at <= group.gap_at):
            chosen.certainty = "provisional"  # that member may have gone first, or what came first is lost
    if current.cause is not None and current.row_known >= 0 and chosen.at != current.cause.at:
        return  # already written with another start: a late line does not make a second rebalance of it
    current.cause = chosen
    current.started_at = chosen.at


def _is_contested(
    group: Group, current: Rebalance, chosen: Cause, dropped: list[tuple[Member, float, str, Certainty]]
) -> bool:
    """Whether a member of which it is not sure when it ended may have gone before what was chosen."""
    unsure = [member.member_id for member, _, _, certainty in dropped if not stands(certainty)]
    unsure += [
        over.member.member_id
        for over in group.ended.values()
        if not stands(over.certainty) and chosen.at <= over.ended_at <= current.joined_at
    ]
    return any(member_id != chosen.member_id for member_id in unsure)


def _by_line(group: Group, candidates: list[Cause], line_at: float, near_ms: float) -> Cause:
    """The coordinator's own line says when it began: the cause is what happened then."""
    near = [cause for cause in candidates if abs(cause.at - line_at) <= near_ms]
    chosen = min(near, key=lambda item: abs(item.at - line_at)) if near else Cause(line_at, "unknown")
    chosen.at = line_at
    chosen.reason = chosen.reason or group.prepared_reason
    chosen.certainty = "exact"
    group.prepared_at = NEVER
    group.prepared_reason = ""
    return chosen


def _by_order(candidates: list[Cause], current: Rebalance, tolerance_ms: float) -> Cause:
    """The earliest candidate, unless a member was told of the rebalance before that."""
    told_at = current.told_at
    if not candidates:
        return Cause(told_at if told_at >= 0 else current.joined_at, "unknown", certainty="unknown")
    chosen = min(candidates, key=lambda item: item.at)
    if 0 <= told_at < chosen.at - tolerance_ms:
        return Cause(told_at, "unknown", certainty="unknown")
    told_before = 0 <= told_at < chosen.at - STAMP_MS
    near = [one for one in candidates if one.trigger != chosen.trigger and one.at - chosen.at <= STAMP_MS]
    if (near or told_before) and stands(chosen.certainty):
        chosen.certainty = "provisional"  # which of them came first is lost in the stamps
    return chosen


def _of_join(group: Group, current: Rebalance, join: Join) -> Cause:
    """What a JoinGroup means when it comes first (`doJoinGroup`: new member, static one, leader, follower)."""
    if join.replaces:
        trigger = "static_replaced"
    elif join.is_new:
        trigger = "member_joined"
    elif join.member_id == group.leader:
        trigger = "leader_rejoined"
    else:
        trigger = "metadata_changed"
    # Of a group that was not known whole, somebody unseen may have gone first.
    certainty: Certainty = "exact" if current.members_before >= 0 and join.replaces_surely else "provisional"
    return Cause(join.handled_at, trigger, join.member_id, join.client_id, join.instance_id, join.reason, certainty)
