"""What follows when a phase of a rebalance has lasted too long: who was dropped, who never synced, who was silent.

Called by timers and answers; `rebalance` carries out what is found. Sources: `onCompleteJoin`, `onExpirePendingSync`,
`onExpireHeartbeat`.
"""

from __future__ import annotations

from kardia.model.states import GroupState
from kardia.observe import lives
from kardia.observe.deadlines import GRACE_MS
from kardia.observe.facts import Facts
from kardia.observe.group import NEVER, Cause, Group, Member
from kardia.observe.phases import STAMP_MS, unsynced, watch_join_timer
from kardia.observe.rebalance import end_member


def conclude_silent(observer: Facts, group: Group, at: float) -> None:
    """Followers were sent back at `at`: a member that was not, and whose session had run out by then, is the cause."""
    current = group.rebalance
    if current is None or current.cause is not None or group.state != GroupState.PREPARING:
        return
    silent = [member for member in group.members.values() if 0 <= member.deadline <= at + STAMP_MS]
    why = "session_expired"
    if not silent and group.unsynced_at >= 0:
        why = "sync_timeout"
        silent = [member for member in unsynced(group) if member.told_at < 0]
    if not silent:
        return
    first = min(silent, key=lambda one: (one.member_id != group.leader, one.deadline, one.member_id))
    began = min(first.deadline if why == "session_expired" else group.unsynced_at, at)
    current.cause = Cause(began, why, first.member_id, first.client_id, first.instance_id, "", "inferred")
    current.started_at = current.told_start = began
    current.told_from = group.told_state
    for member in silent if why == "sync_timeout" else [first]:
        lives.end(observer, group, member, began, why, "", "inferred")
    observer.move(group, began, GroupState.PREPARING, why, "inferred")
    watch_join_timer(observer, group, current)


def on_join_timer(observer: Facts, group: Group, key: str, due: float) -> None:
    """The rebalance timeout is over and no JoinGroup was answered: nobody had rejoined. Dynamic members are dropped."""
    current, at = group.rebalance, due - GRACE_MS
    if current is None or group.state != GroupState.PREPARING or key != str(current.generation_before):
        return
    if current.joined_at >= 0 or observer.silent_at(group.broker, at):
        return
    for member in sorted(group.members.values(), key=lambda one: one.member_id):
        if not member.instance_id and member.armed_at <= at:
            end_member(observer, group, member, at, "rebalance_timeout", "", "inferred")


def on_sync_timer(observer: Facts, group: Group, key: str, due: float) -> None:
    """The time for SyncGroup is over and the leader has sent none, else its group were Stable: it is removed."""
    at = due - GRACE_MS
    leader = group.members.get(group.leader)
    current = group.rebalance
    completing = group.state == GroupState.COMPLETING and key == str(group.generation)
    if current is None or group.handed_out_at >= current.joined_at or group.instances:
        return  # somebody may have joined since: that begins a rebalance, unseen, and ends this timer
    if completing and leader is not None and not observer.silent_at(group.broker, at):
        end_member(observer, group, leader, at, "sync_timeout", "", "inferred")


def conclude_gone(observer: Facts, group: Group, member_id: str, at: float) -> None:
    """A moment after the coordinator said that it does not know a member: nothing has shown why."""
    member = group.members.get(member_id)
    if member is not None and member.armed_at < at:
        observer.divergences += 1
        end_member(observer, group, member, at, "unknown", "", "unknown")


def predict_straggler(observer: Facts, group: Group, member: Member, at: float) -> None:
    """A member that still heartbeats and does not rejoin will be dropped when the rebalance timeout is over."""
    current = group.rebalance
    if current is None or group.state != GroupState.PREPARING or member.rebalance_prediction_at >= 0:
        return
    began = current.started_at if current.started_at >= 0 else current.told_at
    longest = max(other.rebalance_ms for other in group.members.values())
    if longest > 0 and not member.instance_id and at - began >= observer.settings.prediction_share * longest:
        member.rebalance_prediction_at = at
        member.rebalance_prediction_deadline = began + longest
        observer.emit_prediction(group, member, "rebalance", "open", NEVER)
