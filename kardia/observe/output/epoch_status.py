"""Status of a member of a group that has epochs: the words are those of every member, the reasons are its own.

It is never silent because it waits, so that silence says more than in a classic group; but how long its session is may
only be the broker's default, and then nothing about it is sure.
"""

from __future__ import annotations

from kardia.doubts import SURE, Doubt, Doubts
from kardia.instants import to_rfc3339
from kardia.observe.state.group import NO_SESSION, Group, Member
from kardia.tolerances import GRACE_MS, TWO_STAMPS_MS

NO_SESSION_TEXT = (
    "not heard since its group was loaded, which begins no sessions of a share group before Kafka 4.1: it stays a "
    "member, and has a session again when it is heard"
)

LATE_SHARE = 1 / 3
"""As for every member: nobody is late before this share of its session timeout has passed in silence."""


def status_of(group: Group, member: Member, now: float, alive_to: float) -> tuple[str, Doubts, list[str]]:
    """(status, doubts, reasons) of a member that was heard, at an instant."""
    own, silent = member.modern, int(now - member.session_renewed_at_ms)
    doubts = _doubts(group, member, now)
    if own is not None and own.gone_at_ms >= 0:
        return "overdue", Doubt.RECORDS_AWAITED, ["a record says that it is a member no more; why is not known yet"]
    if member.overdue or alive_to < member.deadline < now - GRACE_MS:
        return "overdue", Doubt.DEADLINE_PASSED, [_overdue(group, member, alive_to)]
    if member.session_ms == NO_SESSION and group.modern is not None and group.modern.protocol == "share":
        return "late", doubts, [NO_SESSION_TEXT]
    reasons = []
    if member.is_session_assumed and member.session_prediction_at_ms >= 0:
        return "late", doubts, [_unheard(member, silent)]
    if member.imminent:
        reasons.append(f"silent for {silent} ms, session timeout {member.session_ms} ms")
    if member.poll_prediction_at_ms >= 0:
        polled = int(now - member.last_poll_at_ms)
        reasons.append(f"no sign of a poll for {polled} ms, poll interval {member.rebalance_ms} ms")
    if member.rebalance_prediction_at_ms >= 0:
        reasons.append(f"has not given up its partitions, rebalance timeout {member.rebalance_ms} ms")
    if reasons:
        return "imminent", doubts, reasons
    usual_ms = max(2.0 * member.usual_gap_max_ms, LATE_SHARE * member.session_ms)
    if member.usual_gap_max_ms > 0 and silent > usual_ms:
        return "late", doubts, [f"silent for {silent} ms, usually {int(member.usual_gap_max_ms)} ms"]
    if own is not None and own.away_since_at_ms >= 0:
        since = to_rfc3339(own.away_since_at_ms)
        return "ok", doubts, [f"left for a moment at {since}, as a static member; its session runs on"]
    return "ok", doubts, []


def _unheard(member: Member, silent: int) -> str:
    interval_ms = member.modern.interval_ms if member.modern is not None else -1
    return (
        f"silent for {silent} ms, where its broker wants a heartbeat every {interval_ms} ms; it is evicted when its "
        "session is over, and how long that is, is not known"
    )


def _overdue(group: Group, member: Member, alive_to: float) -> str:
    if alive_to < member.deadline:
        return (
            f"its session deadline passed, and its broker has logged nothing since {to_rfc3339(alive_to)}: one that is "
            "down evicts nobody, its next line will tell"
        )
    if not group.is_session_known(member):
        whose = "the broker's default session timeout" if member.is_session_assumed else "the sessions of another group"
        return f"silent for longer than {whose} of {member.session_ms} ms; whether it has another one is not known"
    return "its session deadline passed, and no record and no answer shows yet that it is gone"


def _doubts(group: Group, member: Member, now: float) -> Doubts:
    """What is in doubt about the deadline of a member."""
    modern, own = group.modern, member.modern
    begins = (member.session_renewed_at_ms, *(own.awaited_since() if own is not None else ()))
    if any(0 <= at <= group.unsure_to + TWO_STAMPS_MS for at in begins):
        return Doubt.LOAD_UNSEEN
    if any(0 <= at <= group.gap_at_ms for at in begins):
        return Doubt.LINES_LOST
    if member.renewed_unseen:
        return Doubt.RENEWAL_UNSURE
    if group.may_be_classic:
        return Doubt.MAY_BE_CLASSIC
    if 0 <= member.deadline < now:
        return Doubt.DEADLINE_PASSED
    if _may_be_over(member, now):
        return Doubt.TIMER_PASSED_UNSEEN
    if own is not None and modern is not None and modern.may_hold_back(own, member.session_renewed_at_ms):
        return Doubt.TIMER_PASSED_UNSEEN
    if own is not None and own.classic:
        return SURE
    return modern.session_doubts if modern is not None else Doubt.SESSION_GUESSED


def _may_be_over(member: Member, now: float) -> bool:
    """Whether another timer of a member was due, so that it may be gone, which the next answer or record tells: it was
    told to give partitions up, or, with the classic protocol, to rejoin or to sync."""
    own = member.modern
    if own is None or member.rebalance_ms <= 0:
        return False
    return any(0 <= since <= now - member.rebalance_ms + TWO_STAMPS_MS for since in own.awaited_since())
