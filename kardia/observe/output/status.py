"""How a member is at an instant, from what the observer holds: its status, how sure that is, and why. Decides no end.

What is the same for all members of a group is looked for once, so that a group of ten thousand costs ten thousand looks
and not a hundred million.
"""

from __future__ import annotations

from typing import Any

from kardia.doubts import SURE, Doubt, Doubts
from kardia.evidence_levels import NEEDS_REQUESTS_REASON
from kardia.instants import to_rfc3339
from kardia.kafka.states import GroupState
from kardia.observe.deadlines import pending
from kardia.observe.deadlines.phases import is_unsynced, longest_ms, sync_deadline
from kardia.observe.output import epoch_status
from kardia.observe.output.in_motion import Targets
from kardia.observe.state.group import Group, Member
from kardia.tolerances import GRACE_MS


class GroupAt:
    """A group at an instant, for what is said of each of its members: what is the same for all is looked for once."""

    def __init__(self, group: Group, now: float) -> None:
        """Look at nobody yet; while it is used nothing of the group may change but what has been said."""
        self.group, self.now = group, now
        self._over: dict[str, float] | None = None
        self._longest_ms: int | None = None
        self._pending: tuple[int, list[dict[str, Any]] | None] | None = None
        self.targets = Targets(group)

    def longest_ms(self, group: Group) -> int:
        """Highest rebalance timeout of its members, -1 where none is known."""
        if self._longest_ms is None:
            self._longest_ms = longest_ms(group)
        return self._longest_ms

    def over(self) -> dict[str, float]:
        """Member id -> since when its session, or its time for SyncGroup, is over at the earliest, unseen. One whose
        deadline a gap has hidden may be over at any time since an answer showed that the group was Stable."""
        if self._over is None:
            group, steady_at_ms = self.group, self.group.steady_at_ms
            self._over = {
                other.member_id: max(other.deadline, steady_at_ms)
                for other in group.members.values()
                if other.deadline < 0 or steady_at_ms < other.deadline <= self.now
            }
            sync_over_at = sync_deadline(group)
            if steady_at_ms < sync_over_at <= self.now:
                for member_id, other in group.members.items():
                    if is_unsynced(group, other):
                        self._over[member_id] = min(self._over.get(member_id, sync_over_at), sync_over_at)
        return self._over

    def pending(self) -> tuple[int, list[dict[str, Any]] | None]:
        """(How many ids that were handed out nobody uses, what is told of them)."""
        if self._pending is None:
            self._pending = len(pending.abandoned(self.group)), pending.told(self.group)
        return self._pending


LATE_SHARE = 1 / 3
"""Nobody is late before this share of its session timeout has passed in silence: Kafka's advice is to heartbeat at
least that often. Who has just joined sent a few requests within milliseconds, and they are no habit."""


def _in_between(group: Group) -> bool:
    """Whether a JoinGroup that cannot be seen yet may show that a member is none, or that its session runs longer."""
    current = group.rebalance
    return group.state == GroupState.PREPARING or (
        current is not None and current.joined_at_ms >= 0 and not current.settled
    )


def _sync_ran_out(group: Group, member: Member, now: float) -> bool:
    """Whether the coordinator may have removed a member because it never sent SyncGroup."""
    current = group.rebalance
    if current is None or current.joined_at_ms < 0 or member.synced_generation == group.generation:
        return False
    if member.rebalance_ms > now - current.joined_at_ms:
        return False  # the common case, without a look at the others
    longest = max(other.rebalance_ms for other in group.members.values())
    return 0 < longest <= now - current.joined_at_ms


def _may_be_dropped(group_at: GroupAt, member: Member) -> bool:
    """Whether the session of somebody else is over, unseen, for so long that the time to rejoin may be over as well."""
    group, now = group_at.group, group_at.now
    if member.rebalance_ms >= now - group.steady_at_ms:
        return False  # the common case, without a look at the others
    over = group_at.over()
    if member.member_id in over:
        over = {member_id: at for member_id, at in over.items() if member_id != member.member_id}
    if not over:
        return False
    left = (other.rebalance_ms for other in group.members.values() if other.member_id not in over)
    return 0 < max(left) <= now - min(over.values())


def _doubts(group_at: GroupAt, member: Member) -> Doubts:
    """What is in doubt about the deadline of a member. A static one may have been replaced by a JoinGroup that waits
    unseen."""
    group, now = group_at.group, group_at.now
    if 0 <= member.session_renewed_at_ms <= group.unsure_to:
        return Doubt.LOAD_UNSEEN
    if _in_between(group):
        return Doubt.MAY_WAIT_UNSEEN
    if _sync_ran_out(group, member, now):
        return Doubt.TIMER_PASSED_UNSEEN
    if 0 <= member.deadline < now:
        return Doubt.DEADLINE_PASSED
    if 0 <= member.session_renewed_at_ms <= group.gap_at_ms:
        return Doubt.LINES_LOST
    if member.renewed_unseen:
        return Doubt.RENEWAL_UNSURE
    if _may_be_dropped(group_at, member):
        return Doubt.TIMER_PASSED_UNSEEN
    if member.instance_id:
        heard = group.state != GroupState.COMPLETING or member.synced_generation == group.generation
        return (
            Doubt.SEAT_UNWATCHED
            if heard and now - member.session_renewed_at_ms <= 1.25 * member.usual_gap_max_ms
            else Doubt.SEAT_MAY_BE_TAKEN
        )
    return SURE


UNSEEN_TIMEOUT_TEXT = "its session timeout has not been seen yet: no JoinGroup and no group record"
UNHEARD_TEXT = "it is known from a record only: nothing of it was heard since the log began"

NEEDS_REQUESTS: tuple[str, Doubts, list[str]] = (
    "unknown",
    Doubt.REQUESTS_NOT_READ,
    [NEEDS_REQUESTS_REASON],
)
"""Of a member of a classic group whose requests are not read."""


def status_of(group_at: GroupAt, member: Member, alive_to: float) -> tuple[str, Doubts, list[str]]:
    """(status, doubts, reasons) of a member at an instant; reasons are sentences without their full stop. `alive_to`
    is the last sign of life of its broker."""
    group, now = group_at.group, group_at.now
    if member.unknown_since_at_ms >= 0:
        return (
            "unknown",
            Doubt.LINES_LOST | Doubt.NOT_SEEN,
            [f"the log has a gap since {to_rfc3339(member.unknown_since_at_ms)}"],
        )
    if member.session_ms < 0:
        return (
            "unknown",
            Doubt.NOT_SEEN,
            ["its session timeout has not been seen yet: no JoinGroup and no group record"],
        )
    if member.session_renewed_at_ms < 0:
        return (
            "unknown",
            Doubt.NOT_SEEN,
            ["it is known from a record only: nothing of it was heard since the log began"],
        )
    if group.modern is not None:
        return epoch_status.status_of(group, member, now, alive_to)
    if alive_to < member.deadline < now - GRACE_MS:
        return (
            "overdue",
            Doubt.DEADLINE_PASSED,
            [
                f"its session deadline passed, and its broker has logged nothing since {to_rfc3339(alive_to)}: one "
                "that is down evicts nobody, its next line will tell"
            ],
        )
    if member.overdue:
        return (
            "overdue",
            Doubt.DEADLINE_PASSED,
            [
                "its session deadline passed where nothing could be seen: in a rebalance, whose waiting JoinGroups "
                "are not logged yet, or while the broker logged nothing at all"
            ],
        )
    reasons = []
    doubts = _doubts(group_at, member)
    if member.imminent:
        silent = int(now - member.session_renewed_at_ms)
        reasons.append(f"silent for {silent} ms, session timeout {member.session_ms} ms")
    if member.poll_prediction_at_ms >= 0:
        silent = int(now - member.last_poll_at_ms)
        reasons.append(f"no sign of a poll for {silent} ms, poll interval {member.rebalance_ms} ms")
    if member.rebalance_prediction_at_ms >= 0:
        reasons.append(f"has not rejoined the rebalance, rebalance timeout {member.rebalance_ms} ms")
    if reasons:
        return "imminent", doubts, reasons
    usual_ms = max(2.0 * member.usual_gap_max_ms, LATE_SHARE * member.session_ms)
    if (
        member.usual_gap_max_ms > 0
        and now - member.session_renewed_at_ms > usual_ms
        and group.state != GroupState.PREPARING
    ):
        return (
            "late",
            doubts,
            [f"silent for {int(now - member.session_renewed_at_ms)} ms, usually {int(member.usual_gap_max_ms)} ms"],
        )
    return "ok", doubts, []
