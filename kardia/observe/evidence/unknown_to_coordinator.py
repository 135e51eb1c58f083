"""What the coordinator says is not there any more: a member that it does not know, one that was replaced, a group.

Sources: the answers 25 and 82 of `validateGenerationIdAndMember` and its like, `DeleteGroups`, the group's tombstone.
"""

from __future__ import annotations

from kardia.doubts import SURE, Doubt, Doubts
from kardia.kafka.states import GroupState
from kardia.observe.coordinator_change import loads
from kardia.observe.deadlines import pending
from kardia.observe.deadlines.late import fired_from
from kardia.observe.deadlines.phases import how_ended, is_tied, sync_deadline, unsynced
from kardia.observe.facts import forgetting
from kardia.observe.facts.groups_of_lane import Facts
from kardia.observe.ledger.rebalance_row import drop
from kardia.observe.members import lives
from kardia.observe.rebalance.begin_and_settle import end_member
from kardia.observe.rebalance.seen_under_way import on_told
from kardia.observe.state.entries import Kept
from kardia.observe.state.group import NEVER, Group, Member
from kardia.tolerances import TWO_STAMPS_MS


def on_gone(facts: Facts, group: Group, member_id: str, at: float, since: float = NEVER) -> None:
    """The coordinator answers that it does not know a member. `since`: when the JoinGroup was handled that is answered
    so. Before its deadline it was a member and waited from then on, and no session ends of one who waits: it was taken
    out in the instant of the answer."""
    over = group.ended.get(member_id)
    if over is not None:
        lives.confirm(facts, group, over, at)
        return
    pending.is_over(group, member_id, at)
    member = group.members.get(member_id)
    if member is None:
        return
    waited = 0 <= since < min(member.deadline, at) - TWO_STAMPS_MS
    end = how_ended(group, member)
    if waited:
        facts.schedule(group, at + facts.settings.settle_ms, "gone", member_id)
    elif end.cause == "rebalance_timeout" and end.at_ms <= at + TWO_STAMPS_MS:
        cause = None if group.rebalance is None else group.rebalance.cause
        began: Doubts = Doubt.BEGIN_UNSEEN if cause is None else cause.doubts
        either = is_tied(group, member) or facts.were_late_together(group.broker, end.at_ms, member.deadline)
        doubts = Doubt.TIMERS_TIED if either else Doubt.SILENCE | began
        end_member(facts, group, member, min(end.at_ms, at), "rebalance_timeout", "", doubts, at)
    elif 0 <= member.deadline <= at + facts.settings.tolerance_ms and end.cause != "sync_timeout":
        ended_at_ms, doubts = facts.ran_out(group, member, member.session_renewed_at_ms, at)
        tied = is_tied(group, member)
        if tied:
            doubts |= Doubt.TIMERS_TIED
        if member.deadline > at + TWO_STAMPS_MS:
            doubts |= Doubt.SEEN_LATER
        end_member(facts, group, member, ended_at_ms, "session_expired", "", doubts, at)
        if tied:
            lives.rival(group, member_id)
    elif _ran_out_since_load(group, member, at):
        end_member(facts, group, member, at, "session_expired", "", Doubt.LOAD_UNSEEN)
    elif member in unsynced(group) and 0 <= sync_deadline(group) <= at + TWO_STAMPS_MS:
        began_at = min(fired_from(group, sync_deadline(group)), at)
        for one in unsynced(group):
            doubts = Doubt.TIMERS_TIED if is_tied(group, one) else Doubt.SILENCE
            end_member(facts, group, one, began_at, "sync_timeout", "", doubts, at)
    else:
        # Its LeaveGroup may stand right behind: both were handled in one instant.
        facts.schedule(group, at + facts.settings.settle_ms, "gone", member_id)


def _ran_out_since_load(group: Group, member: Member, at: float) -> bool:
    """Whether a session may be over that runs from the load after a restart, which lies soon after the last line."""
    return 0 <= group.broke_at_ms <= at - member.session_ms and 0 <= member.session_renewed_at_ms <= group.unsure_to


def on_fenced(facts: Facts, group: Group, member_id: str, at: float) -> None:
    """Another process took the instance id. Its JoinGroup waits, else it would have been seen; when it is answered it
    tells the instant, and corrects this one."""
    member = group.members.get(member_id)
    if member is None:
        return
    if group.state in (GroupState.STABLE, GroupState.COMPLETING):
        on_told(facts, group, member, at)
    end_member(facts, group, member, at, "static_replaced", "", Doubt.MAY_WAIT_UNSEEN)


def on_tombstone(facts: Facts, group: Group, at: float) -> None:
    """The group's tombstone, of one whose requests are not read."""
    if group.state != GroupState.DEAD:
        on_deleted(facts, group, at)
        group.said.kept = Kept(0, True)


def on_deleted(facts: Facts, group: Group, at: float, by: float | None = None) -> None:
    """The group was deleted or expired: a later group of that name starts again at generation 0. It was Empty then, so
    who was taken for a member had gone before."""
    for member in list(group.members.values()):
        end = how_ended(group, member)
        if 0 <= end.at_ms <= at:
            doubts: Doubts = Doubt.TIMERS_TIED if is_tied(group, member) else Doubt.SILENCE
            lives.end(facts, group, member, end.at_ms, end.cause, "", doubts, at)
        else:
            lives.end(facts, group, member, at, "group_deleted", "", Doubt.BY_ELIMINATION, by)
    if group.state != GroupState.DEAD:
        facts.set_state(group, at, GroupState.DEAD, "deleted", SURE, by)
    group.generation = 0
    if group.modern is not None:
        group.stable_at_ms = max(group.stable_at_ms, at)  # whoever ended before began no rebalance of a later group
    group.modern = None
    drop(facts, group)
    group.pending.clear()
    group.membership_complete = True
    loads.note_empty(group)
    forgetting.note_without_members(facts, group, at)
