"""A member's status as it is shown, the same wherever somebody reads it: page, boards, API, series, terminal, story.

Statuses of rows are the observer's (`kardia.tables.STATUS_MEANINGS`). Two things about a rebalance stand in other
columns, and whoever leaves them out points at the wrong member: who is `awaited` keeps its session with heartbeats and
looks well; who waits in a JoinGroup, which is logged only when it is answered, is silent and looks `overdue`.
"""

from __future__ import annotations

from kardia.tables import STATUSES

AWAITED = "awaited"
"""A rebalance waits for it: it was told and goes on with its heartbeats, or it leads and owes the assignment."""

UNSEEN = "unseen"
"""Silent for a session timeout while the group prepares a rebalance: it waits in its JoinGroup, or is gone."""

SHOWN = (*STATUSES, AWAITED, UNSEEN)
"""Statuses as they are shown."""

SHOWN_MEANING = (
    "the status as pictures show it: `awaited` if a rebalance waits for it; `unseen`, and not overdue, if it is silent "
    "while the group prepares a rebalance: it waits in its JoinGroup, which is logged when it is answered, or is gone; "
    "`late`, and not ok, if one of its timeouts is predicted to pass"
)

STATUS_SEVERITY = {
    status: rank
    for rank, status in enumerate(("ended", "ok", "unknown", UNSEEN, "late", AWAITED, "imminent", "overdue"))
}
"""Order of the shown statuses, the worst last."""

NOT_KNOWN = ("unknown", UNSEEN)
"""Shown statuses of a member of whom nobody can tell how much of a timeout is left."""


def shown(status: str, group_state: str, awaited_since_at_ms: int | None) -> str:
    """The status of a health row as it is shown."""
    if status in ("ok", "late") and awaited_since_at_ms is not None:
        return AWAITED
    if status == "overdue" and group_state == "PreparingRebalance":
        return UNSEEN
    return status
