"""`kardia check`: for scripts, whether members have enough of their timeouts left. The exit status is the answer.

0: all have. 1: some have not. 2: the question cannot be asked. 3: nobody can tell: no tables, tables that are behind,
or members whose status is unknown. Unknown is never 0; what is below for sure is 1, whatever else is unknown.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from kardia.command.asking import AnyGroupArgument, ApiOption, ClusterOption, TablesOption, TokenOption, asking
from kardia.command.options import GroupEitherWay

if TYPE_CHECKING:
    from kardia.command.questions import Questions

BELOW, NO_ANSWER = 1, 3
GROUPS_MAX = 50_000
SHOWN_MAX = 20


COMMAND = GroupEitherWay


def check(
    group: AnyGroupArgument = None,
    session_margin: Annotated[
        float, typer.Option(min=0.0, max=1.0, help="Part of the session timeout that must be left.")
    ] = 0.3,
    poll_margin: Annotated[
        float | None,
        typer.Option(min=0.0, max=1.0, help="Part of the poll interval that must be left; not looked at if absent."),
    ] = None,
    tables: TablesOption = None,
    api: ApiOption = None,
    cluster: ClusterOption = None,
    token_file: TokenOption = None,
) -> None:
    """Check margins: exit status 0 if all members have enough left, 1 if some have not, 3 if nobody can tell."""
    with asking("check", tables, api, token_file, cluster, no_answer=NO_ANSWER) as questions:
        freshness = questions.freshness()
        if group is None:
            rows, more = questions.groups(None, None, GROUPS_MAX)
        else:
            rows, more = [questions.group(group)], False
        for row in rows:
            if row["members"]["unknown"]:
                _known_only(row, questions)
    if freshness["stale"]:
        from kardia.story import words

        reached_ms = freshness["complete_as_of_ms"]
        reached = "nothing has been read" if reached_ms is None else f"they reach up to {words.instant(reached_ms)}"
        typer.echo(f"UNKNOWN: the tables are behind ({reached}), so nobody can tell what is left.")
        raise typer.Exit(NO_ANSWER)
    raise typer.Exit(_told(rows, more, session_margin, poll_margin))


def _known_only(row: dict[str, Any], questions: Questions) -> None:
    """Leave out of a group's margins what is left of members whose status is unknown: it is from before a gap."""
    known = [member for member in questions.members(row["group_id"])[0] if member["status"] != "unknown"]
    for noun in ("session", "poll"):
        ratios = [member[noun]["headroom_ratio"] for member in known if member[noun] is not None]
        row[f"{noun}_headroom_min_ratio"] = min((ratio for ratio in ratios if ratio is not None), default=None)


def _told(rows: list[dict[str, Any]], more: bool, session_margin: float, poll_margin: float | None) -> int:
    """Print the verdict; return the exit status."""
    from kardia.story import words

    below = [(row, why) for row in rows if (why := _below(row, session_margin, poll_margin))]
    for row, why in below[:SHOWN_MAX]:
        typer.echo(f"BELOW {words.name(row['group_id'])}: {why}")
    if len(below) > SHOWN_MAX:
        typer.echo(f"BELOW {len(below) - SHOWN_MAX} more groups")
    if below:
        return BELOW
    unknown = sum(row["members"]["unknown"] for row in rows)
    if unknown or more:
        what = f"of {words.count(unknown, 'member')} the status is unknown" if unknown else "there are too many groups"
        typer.echo(f"UNKNOWN: {what}.")
        return NO_ANSWER
    typer.echo(f"OK: {words.count(len(rows), 'group')}, nobody is below the margin.")
    return 0


def _below(row: dict[str, Any], session_margin: float, poll_margin: float | None) -> str:
    """Why a group is below the margin, empty if it is not; a deadline that has passed leaves nothing."""
    why = []
    if row["members"]["overdue"]:
        why.append(f"{row['members']['overdue']} overdue")
    for noun, margin in (("session", session_margin), ("poll", poll_margin)):
        ratio = row[f"{noun}_headroom_min_ratio"]
        if margin is not None and ratio is not None and ratio < margin:
            why.append(f"{noun} margin {ratio:g}, expected at least {margin:g}")
    return ", ".join(why)
