"""`kardia check`: for scripts, whether members have enough of their timeouts left. The exit status is the answer.

0: all have. 1: some have not. 2: the question cannot be asked. 3: nobody can tell: no tables, tables that are behind,
or members whose status is unknown. Unknown is never 0; what is below for sure is 1, whatever else is unknown.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

import typer

from cli.asking.common import (
    AnyGroupArgument,
    ApiOption,
    ClusterOption,
    TablesOption,
    TextOutput,
    TokenOption,
    asking,
    print_as,
)
from cli.options import GroupEitherWay

BELOW, NO_ANSWER = 1, 3
GROUPS_MAX = 50_000
SHOWN_MAX = 20
_WITH_REQUESTS = 5
"""Lowest rung of `kardia.evidence_levels` on which what is left of a timeout is known."""


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
    output: Annotated[TextOutput, typer.Option("-o", "--output", help="Form of the answer.")] = TextOutput.TEXT,
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
            rows, more = [questions.group(group) | {"rung": questions.evidence(group)["rung"]}], False
    found = _judged(freshness, rows, more, session_margin, poll_margin)
    if output is TextOutput.TEXT:
        for line in _lines(found):
            typer.echo(line)
    else:
        print_as(output, found)
    raise typer.Exit(found["exit_status"])


def _unknown(row: dict[str, Any]) -> int:
    """Members of a group of whom nobody can tell how much is left: unknown, or unseen because they may wait in a
    JoinGroup, where no timeout runs."""
    return int(row["members"]["unknown"] + row["members"]["unseen"])


def _judged(
    freshness: dict[str, Any], rows: list[dict[str, Any]], more: bool, session_margin: float, poll_margin: float | None
) -> dict[str, Any]:
    """The verdict and what it rests on, as `-o json` gives it. Of old tables nothing is judged."""
    stale = freshness["stale"]
    below = [] if stale else [one for row in rows if (one := _below(row, session_margin, poll_margin)) is not None]
    unknown = sum(map(_unknown, rows))
    if below:
        verdict, status = "below", BELOW
    elif stale or unknown or more:
        verdict, status = "unknown", NO_ANSWER
    else:
        verdict, status = "ok", 0
    return {
        "verdict": verdict,
        "exit_status": status,
        "stale": stale,
        "complete_as_of_ms": freshness["complete_as_of_ms"],
        "session_margin": session_margin,
        "poll_margin": poll_margin,
        "groups": len(rows),
        "more_groups": more,
        "unknown_members": unknown,
        "unknown_without_request_log": sum(_unknown(row) for row in rows if 0 < row["rung"] < _WITH_REQUESTS),
        "below": below,
    }


def _below(row: dict[str, Any], session_margin: float, poll_margin: float | None) -> dict[str, Any] | None:
    """A group that is below the margin, and why; a deadline that has passed leaves nothing. None if it is not."""
    overdue = row["members"]["overdue"]
    why = [f"{overdue} overdue"] if overdue else []
    ratios = {}
    for noun, margin in (("session", session_margin), ("poll", poll_margin)):
        ratios[noun] = ratio = row[f"{noun}_headroom_min_ratio"]
        if margin is not None and ratio is not None and ratio < margin:
            why.append(f"{noun} margin {ratio:g}, expected at least {margin:g}")
    if not why:
        return None
    return {
        "cluster_id": row["cluster_id"],
        "group_id": row["group_id"],
        "why": ", ".join(why),
        "overdue_members": overdue,
        "session_headroom_min_ratio": ratios["session"],
        "poll_headroom_min_ratio": ratios["poll"],
    }


def _lines(found: dict[str, Any]) -> Iterator[str]:
    """The verdict for people."""
    from kardia.story import words

    below, unknown = found["below"], found["unknown_members"]
    for one in below[:SHOWN_MAX]:
        yield f"BELOW {words.name(one['group_id'])}: {one['why']}"
    if len(below) > SHOWN_MAX:
        yield f"BELOW {len(below) - SHOWN_MAX} more groups"
    if found["verdict"] == "ok":
        yield f"OK: {words.count(found['groups'], 'group')}, nobody is below the margin."
    elif found["stale"]:
        reached_ms = found["complete_as_of_ms"]
        reached = "nothing has been read" if reached_ms is None else f"they reach up to {words.instant(reached_ms)}"
        yield f"UNKNOWN: the tables are behind ({reached}), so nobody can tell what is left."
    elif found["verdict"] == "unknown":
        what = f"of {words.count(unknown, 'member')} the status is unknown" if unknown else "there are too many groups"
        unread = found["unknown_without_request_log"]
        why = f"; it takes the request log of their broker, which is not read of {unread}" if unread else ""
        yield f"UNKNOWN: {what}{why}."
