"""Which of two came first, where nothing that a broker logs can show it: two timers of one instant, or a timer that was
late while somebody else began what it would have begun. What is said of them provisionally is no mistake, and counted.

Of the truth only: whether the timer that is named was due in the coordinator then. Instants in ms.
"""

from __future__ import annotations

from tests.truth.fleet.bounds import MOST_LATE_MS
from tests.truth.fleet.truth import STAMPS_MS, Truth

TIMER_MS = 2
"""An instant that a timer of the broker decided: stamps are cut to 1 ms, so two of them may add up."""


def was_due(truth: Truth, member_id: str, cause: str, at_ms: int, late_ms: int = 0) -> bool:
    """Whether right before an instant the coordinator had a timer of that kind set for a member: for that very instant,
    or for up to `late_ms` earlier."""
    before_ms = at_ms - TIMER_MS - 2
    view, member = truth.view_at(before_ms), truth.member_at(member_id, before_ms)
    if view is None or member is None:
        return False
    due_at_ms = {
        "session_expired": member.session_deadline_at_ms,
        "sync_timeout": view.sync_deadline_at_ms,
        "rebalance_timeout": view.join_deadline_at_ms,
        "join_timeout": member.session_deadline_at_ms,
    }.get(cause, -1)
    return due_at_ms >= 0 and at_ms - late_ms - TIMER_MS - 1 <= due_at_ms <= at_ms + TIMER_MS + 1


def two_timers(truth: Truth, member_id: str, cause: str, other: str, at_ms: int) -> bool:
    """Whether timers of two kinds were set for a member, both for an instant."""
    return was_due(truth, member_id, cause, at_ms) and was_due(truth, member_id, other, at_ms)


def seat_taken_as_it_ended(truth: Truth, member_id: str) -> bool:
    """Whether another process came for the seat of a static member when the timer of its session was due: in the very
    instant, or before that timer, which was late, had fired. Evicted or replaced: the log looks the same."""
    return any(
        life.member_id == member_id
        and (
            (life.cause == "session_expired" and truth.seat_taken_at_its_end(member_id))
            or (
                life.cause == "static_replaced"
                and was_due(truth, member_id, "session_expired", life.ended_at_ms, MOST_LATE_MS + STAMPS_MS)
            )
        )
        for life in truth.lives
    )
