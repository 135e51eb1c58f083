"""The alerts of a run as tables: for which fault each came and how soon, and where the time went. Only draws."""

from __future__ import annotations

from collections.abc import Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from demo.alarm import Delays
from demo.scenario import FAULTS
from demo.told import Begun, Danger

LEGS = (
    ("until evident", "begun_at_ms", "evidence_at_ms"),
    ("collector", "evidence_at_ms", "published_at_ms"),
    ("Spark+Delta", "published_at_ms", "committed_at_ms"),
    ("notifier", "committed_at_ms", "raised_at_ms"),
    ("Alertmanager", "raised_at_ms", "received_at_ms"),
    ("commit→page", "committed_at_ms", "received_at_ms"),
    ("→webhook", "committed_at_ms", "pushed_at_ms"),
)
"""Heading, and the two instants between which a leg lies."""

NO_FAULT = "none of them"
"""An alert that belongs to no fault: mostly one about Kardia itself, on a machine that is too busy for it."""


def show(console: Console, delays: Sequence[Delays], begun: Sequence[Begun], dangers: Sequence[Danger]) -> None:
    """Print who was told of which fault, and where the time went."""
    table = _table("Who was told of which fault", ("fault", "alert", "group"), ("after the fault", "by Prometheus"))
    order = [fault for fault in FAULTS if any(begin.fault == fault for begin in begun)]
    for fault in [*order, ""]:
        of_fault = [one for one in delays if one.fault == fault]
        for one in of_fault:
            table.add_row(
                Text(fault or NO_FAULT),
                Text(one.alert),
                Text(one.group_id),
                _span(one.begun_at_ms, one.received_at_ms) if fault else "",
                _span(one.begun_at_ms, one.prometheus_at_ms) if fault and one.prometheus_at_ms else "",
            )
        if fault and not of_fault:
            table.add_row(Text(fault), Text(_silence(fault, begun, dangers), style="dim"), "", "", "")
    console.print(table)
    measured = [one for one in delays if one.committed_at_ms is not None]
    if measured:
        legs = _table("Where the time went, in ms", ("fault", "alert"), tuple(name for name, _, _ in LEGS))
        for one in measured:
            cells = [_span(getattr(one, start), getattr(one, end), in_ms=True) for _, start, end in LEGS]
            legs.add_row(Text(one.fault or NO_FAULT), Text(one.alert), *cells)
        console.print(legs)
        worst = max(one.after_commit_ms or 0 for one in measured)
        console.print(
            f"{len(measured)} alerts of timeouts were received, at most {worst} ms after their evidence was committed."
        )


def _silence(fault: str, begun: Sequence[Begun], dangers: Sequence[Danger]) -> str:
    """Why nobody was told of a fault: it was no danger, or nobody could be told in time."""
    for begin in begun:
        if begin.fault != fault:
            continue
        later = [one.at_ms for one in begun if one.group_id == begin.group_id and one.at_ms > begin.at_ms]
        until_ms = min(later, default=1 << 62)
        if any(one.group_id == begin.group_id and begin.at_ms <= one.committed_at_ms < until_ms for one in dangers):
            return "none: it was in the tables too late or too briefly to be told"
    return "none: nothing was in danger"


def _table(title: str, left: tuple[str, ...], right: tuple[str, ...]) -> Table:
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
    for heading in left:
        table.add_column(heading, overflow="fold")
    for heading in right:
        table.add_column(heading, justify="right")
    return table


def _span(from_ms: int | None, to_ms: int | None, *, in_ms: bool = False) -> str:
    if from_ms is None or to_ms is None:
        return "?"
    return str(to_ms - from_ms) if in_ms else f"{(to_ms - from_ms) / 1000:.1f} s"
