"""The verdict as a table: what was done to whom, what Kardia said, how early and how exactly. Only draws."""

from __future__ import annotations

from collections.abc import Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from demo.evidence import Line
from demo.narrator import clock
from demo.replayed import Comparison
from demo.verdict import Verdict


def show(console: Console, verdict: Verdict, comparisons: Sequence[Comparison]) -> None:
    """Print the table and the sentences below it."""
    title = "What the broker's own log says, and what Kardia said"
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("at (UTC)", no_wrap=True)
    for heading in ("who", "what happened", "what Kardia said"):
        table.add_column(heading, overflow="fold")
    table.add_column("before", justify="right", no_wrap=True)
    table.add_column("error", justify="right", no_wrap=True)
    table.add_column("verdict")
    for line in verdict.lines:
        if not line.routine or line.fault:
            table.add_row(*_cells(line))
    console.print(table)
    routine = [line for line in verdict.lines if line.routine and not line.fault]
    if routine:
        console.print(
            f"Not shown: {len(routine)} joins and rebalances while the groups formed, commits as rebalances began and "
            "the rehearsal, all of them right."
        )
    leads = [line.lead_ms for line in verdict.lines if line.lead_ms is not None]
    early = [lead for lead in leads if lead > 0]
    if leads:
        console.print(_foresight(len(leads), early))
    console.print(
        f"{len(verdict.errors_ms)} instants against the broker's log: median {verdict.median_ms:.0f} ms, "
        f"largest {verdict.max_ms} ms. {_allowed(verdict)}"
    )
    for comparison in comparisons:
        style = "bold red" if comparison.fault else "" if comparison.equal else "yellow"
        console.print(comparison.sentence, style=style)


def _cells(line: Line) -> tuple[Text, ...]:
    lead = "" if line.lead_ms is None else f"{line.lead_ms / 1000:.1f} s"
    error = "" if line.error_ms is None else f"{line.error_ms:+d} ms"
    verdict = Text("right", style="green") if not line.fault else Text(line.fault, style="bold red")
    # Ids come from clients and may hold anything: Text takes them literally, markup does not.
    return (Text(clock(line.at_ms)), Text(line.who), Text(line.done), Text(line.said), Text(lead), Text(error), verdict)


def _allowed(verdict: Verdict) -> str:
    """By what measure the instants are right."""
    always, excused = f"Allowed: {verdict.tolerance.instant_ms} ms", verdict.excused
    if not excused:
        return f"{always}."
    more_ms = max(line.excused_by_ms for line in excused)
    return (
        f"{always}; {len(excused)} of them {'was' if len(excused) == 1 else 'were'} allowed more, because this machine "
        f"was seen to keep a program waiting then: up to {more_ms} ms more."
    )


def _foresight(struck: int, early_ms: Sequence[int]) -> str:
    """How many timeouts struck, and how long before they were said."""
    if struck == 1:
        return (
            f"1 timeout struck, {f'said {early_ms[0] / 1000:.1f} s before' if early_ms else 'said by nobody before'}."
        )
    ahead = f", {min(early_ms) / 1000:.1f} to {max(early_ms) / 1000:.1f} s ahead" if early_ms else ""
    return f"{struck} timeouts struck, {len(early_ms)} of them were said before{ahead}."
