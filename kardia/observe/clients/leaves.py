"""Why a member left: numbered rules, the first that fits decides.

The instant of a leave is the broker's; the cause is exact only where the client says it. Reasons are Kafka's and the
clients' own texts (KIP-800: brokers and Java clients from 3.2). Without a reason the client's behaviour decides, and
the answer is `inferred`.
"""

from __future__ import annotations

from typing import NamedTuple

from kardia.doubts import SURE, Doubt, Doubts
from kardia.events import Event
from kardia.kafka.libraries import AUTO_COMMIT_INTERVAL_MS, LIBRARIES
from kardia.observe.state.group import Member
from kardia.tolerances import CLOSE_COMMIT_WITHIN_MS, LEAVE_DELAY_MS, TELEMETRY_ERROR_MS, UNSEEN_MS

POLL_TIMEOUT_REASONS = frozenset({"consumer poll timeout has expired.", "worker poll timeout has expired."})
"""LeaveGroup reasons of Java consumers and of Connect workers whose poll interval ran out."""

ADMIN_REASON = "member was removed by an admin"
"""Default reason of Kafka's admin client; Streams' `removeStreamThread` uses it too."""


class Verdict(NamedTuple):
    """`end_cause` of `members`, and what is in doubt about it."""

    cause: str
    doubts: Doubts


def why(member: Member, event: Event, asked_id: str, reason: str) -> Verdict:
    """Cause of an accepted LeaveGroup entry for `member`."""
    # 1. The client says it.
    if reason in POLL_TIMEOUT_REASONS:
        return Verdict("poll_timeout", SURE)
    # 2. Members name themselves; only an admin names an instance alone.
    if not asked_id or reason == ADMIN_REASON:
        return Verdict("removed_by_admin", SURE)
    # 3. Somebody else asked: another client from another connection than the member ever used.
    if event.client_id != member.client_id and member.client_id and event.connection != member.connection:
        return Verdict("removed_by_admin", Doubt.REASON_CONCLUDED)
    # 4. Any other words are the application's own wish.
    if reason:
        return Verdict("left", SURE)
    # 5. Without a reason: a library that gives up when its poll interval ran out, and signs that it did.
    if LIBRARIES[member.library].poll_interval and poll_interval_ran_out(member, event.arrived_at_ms):
        return Verdict("poll_timeout", Doubt.REASON_CONCLUDED)
    # 6. A close, unless the poll interval may have run out without a sign: on an idle topic there is none.
    may_have_run_out = LIBRARIES[member.library].gives_up and quiet_for(member, event.arrived_at_ms)
    return Verdict("left", Doubt.REASON_NOT_GIVEN if may_have_run_out else Doubt.REASON_CONCLUDED)


def quiet_for(member: Member, left_at: float) -> bool:
    """Whether nothing shows for sure that it polled within the poll interval before a leave; where that is not on the
    wire, right before it."""
    if member.last_poll_at_ms < 0:
        return True
    since = member.last_poll_at_ms - (TELEMETRY_ERROR_MS if member.by_telemetry else member.poll_error_ms)
    if not LIBRARIES[member.library].poll_interval:
        return left_at - since > UNSEEN_MS
    return member.rebalance_ms <= 0 or left_at - since >= member.rebalance_ms - LEAVE_DELAY_MS


def poll_interval_ran_out(member: Member, left_at: float) -> bool:
    """Whether the last sign of a poll is as old as the poll interval, and no final commit was made.

    One that is older than that is no sign of it: the member would have left before, so it has polled since, unseen.
    Where commits trail (librdkafka) the last poll may be later than the last commit by the commit interval, and only
    data that came and was not committed tells a stall from an idle topic.
    """
    interval = member.rebalance_ms
    if interval <= 0:
        return False
    library = LIBRARIES[member.library]
    if "fetch" in library.polled_by:
        silent_ms = left_at - member.last_poll_at_ms
        ran_out = interval - LEAVE_DELAY_MS <= silent_ms <= interval + LEAVE_DELAY_MS + UNSEEN_MS
        return member.last_poll_at_ms >= 0 and ran_out
    if member.committed_at_ms < 0 or left_at - member.committed_at_ms <= CLOSE_COMMIT_WITHIN_MS:
        return False
    slack = min(float(AUTO_COMMIT_INTERVAL_MS), 0.6 * interval) + LEAVE_DELAY_MS
    uncommitted = (
        member.data_since_commit_at_ms >= 0 and left_at - member.data_since_commit_at_ms > CLOSE_COMMIT_WITHIN_MS
    )
    return left_at - member.polled_at_ms >= interval - slack and uncommitted
