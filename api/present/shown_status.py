"""The present as it is shown: a status (`kardia.statuses`) and what is left of a deadline, or `unknown`.

While the feed is stale nothing is said of the present: `unknown`, and no number. Where only one broker is silent, its
groups' states are not known; what is known of their members (a deadline that passed) is said. Pure; reads no clock.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from api.present.current import UNKNOWN_STATE, GroupView
from api.present.freshness import Freshness
from api.present.health import shown_as
from kardia.statuses import AWAITED, NOT_KNOWN, STATUS_SEVERITY

IN_DANGER = ("imminent", "overdue", AWAITED)
"""Shown statuses of a member that loses its membership, or holds a rebalance up, unless something comes of it."""


def worst(statuses: Iterable[str]) -> str | None:
    """The worst of some shown statuses; None for none."""
    return max(statuses, key=lambda status: STATUS_SEVERITY[status], default=None)


def shown_now(view: GroupView, member_id: str, freshness: Freshness) -> str:
    """What may be said of it now."""
    return "unknown" if freshness.stale else view.shown_of(member_id)


def state_now(view: GroupView, freshness: Freshness) -> str:
    """State of a group, Unknown while the feed is stale."""
    return UNKNOWN_STATE if freshness.stale else view.state_name


def in_danger(view: GroupView) -> int:
    """How many members are in danger."""
    shown_by_status = view.shown_by_status()
    return sum(shown_by_status[status] for status in IN_DANGER)


def left_ms(deadline_at_ms: int | None, row: Any, freshness: Freshness, *, is_least: bool) -> int | None:
    """What is left of a deadline of a health row. None where that is not known: the feed is stale or has not reached a
    deadline that the clock has passed, and nothing holds of a member that is `unknown` or `unseen`. Below 0 the
    deadline is over and the outcome not known yet; one that may have been renewed since (`is_least`) is never over."""
    if deadline_at_ms is None or freshness.stale or freshness.complete_as_of_ms is None:
        return None
    if shown_as(row) in (*NOT_KNOWN, "ended"):
        return None
    left = deadline_at_ms - freshness.now_ms
    return None if left < 0 and (is_least or freshness.complete_as_of_ms < deadline_at_ms) else left
