"""What may be said of the present: a status as pictures show it, and what is known to be left of a deadline.

Statuses of rows are the observer's (`kardia.tables`). Two things about a rebalance stand in other columns, and a
picture that does not tell them points at the wrong member: who is `awaited` keeps its session with heartbeats and looks
well; who waits in a JoinGroup, which is logged only when it is answered, is silent and looks `overdue`.

While the feed is stale nothing is said of the present: `unknown`, and no number. Pure; reads no clock.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from api.current import GroupView
from api.freshness import Freshness
from kardia.tables import STATUSES

AWAITED = "awaited"
"""A rebalance waits for it: it was told and goes on with its heartbeats, or it leads and owes the assignment."""

UNSEEN = "unseen"
"""Silent for a session timeout while the group prepares a rebalance: it waits in its JoinGroup, or is gone."""

SHOWN = (*STATUSES, AWAITED, UNSEEN)
"""Statuses as pictures show them."""

SHOWN_MEANING = (
    "the status as pictures show it: `awaited` if a rebalance waits for it; `unseen`, and not overdue, if it is silent "
    "while the group prepares a rebalance: it waits in its JoinGroup, which is logged when it is answered, or is gone"
)

BADNESS = {
    status: rank
    for rank, status in enumerate(("ended", "ok", "unknown", UNSEEN, "late", AWAITED, "imminent", "overdue"))
}
"""Order of the shown statuses, the worst last."""

IN_DANGER = ("imminent", "overdue", AWAITED)
"""Shown statuses of a member that loses its membership, or holds a rebalance up, unless something comes of it."""

UNKNOWN_STATE = "Unknown"


def shown(status: str, group_state: str, awaited_since_at_ms: int | None) -> str:
    """The status of a health row as it is shown."""
    if status in ("ok", "late") and awaited_since_at_ms is not None:
        return AWAITED
    if status == "overdue" and group_state == "PreparingRebalance":
        return UNSEEN
    return status


def shown_of(view: GroupView, member_id: str) -> str:
    """The same of a present member; unknown before its first health row."""
    row = view.health.get(member_id)
    return "unknown" if row is None else shown(row.status, row.group_state, row.awaited_since_at_ms)


def shown_by_status(view: GroupView) -> Counter[str]:
    """Present members by shown status."""
    return view.remembered("shown", lambda of: Counter(shown_of(of, member_id) for member_id in of.lives))


def worst(statuses: Iterable[str]) -> str | None:
    """The worst of some shown statuses; None for none."""
    return max(statuses, key=lambda status: BADNESS[status], default=None)


def shown_now(view: GroupView, member_id: str, freshness: Freshness) -> str:
    """What may be said of it now."""
    return "unknown" if freshness.stale else shown_of(view, member_id)


def state_now(view: GroupView, freshness: Freshness) -> str:
    """State of a group, Unknown while the feed is stale."""
    return UNKNOWN_STATE if freshness.stale else view.state_name


def in_danger(view: GroupView) -> list[str]:
    """Members in danger, by id."""
    return [member_id for member_id in view.lives if shown_of(view, member_id) in IN_DANGER]


def left_ms(deadline_at_ms: int | None, row: Any, freshness: Freshness, *, is_least: bool) -> int | None:
    """What is left of a deadline of a health row. None where that is not known: the feed is stale or has not reached a
    deadline that the clock has passed, and nothing holds of a member that is `unknown` or `unseen`. Below 0 the
    deadline is over and the outcome not known yet; one that may have been renewed since (`is_least`) is never over."""
    if deadline_at_ms is None or freshness.stale or freshness.complete_as_of_ms is None:
        return None
    if shown(row.status, row.group_state, row.awaited_since_at_ms) in ("unknown", UNSEEN, "ended"):
        return None
    left = deadline_at_ms - freshness.now_ms
    return None if left < 0 and (is_least or freshness.complete_as_of_ms < deadline_at_ms) else left
