"""What a sentence rests on: the transitions it tells of, and the lines behind them where the archive has them.

The `evidence` of a transition is the position of the event that settled it, `SOURCE@FIRST_BYTE`, or the name of a timer
that fired because the log was complete up to its instant and silent. What settles a rebalance is the end of its join
phase, because waiting JoinGroups are logged when they are answered.
"""

from __future__ import annotations

from kardia.story import words
from kardia.story.facts import Evidence, Row


def of(*transitions: Row | None) -> tuple[Evidence, ...]:
    """Evidence of the transitions that are there."""
    return tuple(_of(row) for row in transitions if row is not None)


def of_row(table: str) -> tuple[Evidence, ...]:
    """Evidence of a sentence that no transition stands behind: a row of the table itself."""
    return (Evidence(table, None, f"a row of {table}"),)


def _of(row: Row) -> Evidence:
    shown_by = str(row["evidence"] or "")
    source, _, start = shown_by.rpartition("@")
    if not (source and start.isascii() and start.isdigit()):
        return Evidence("transitions", row["seq"], shown_by)
    event = row.get("event")
    if event is None:
        return Evidence("transitions", row["seq"], shown_by, source, int(start))
    return Evidence(
        "transitions",
        row["seq"],
        shown_by,
        source,
        int(start),
        event["end"],
        event["kind"],
        event["client_id"],
        event["logged_at_ms"],
    )


def sentence(found: Evidence) -> str:
    """Evidence in words."""
    if found.seq is None and found.source is None:
        return found.shown_by
    which = f"a row of {found.table}" if found.seq is None else f"transition {found.seq}"
    if found.source is None:
        return f"{which}: {words.quoted(found.shown_by) if found.shown_by else 'nothing named'}, no line"
    line = f"{which}: the line at byte {found.start} of {words.name(found.source, 200)}"
    if found.event is None:
        return line
    of_client = f" of {words.name(found.client_id)}" if found.client_id else ""
    logged = "" if found.logged_at_ms is None else f", logged {words.instant(int(found.logged_at_ms))}"
    return f"{line}, {found.event}{of_client}{logged}"
