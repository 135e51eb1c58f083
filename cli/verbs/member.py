"""`kardia member`: one member with both deadlines and what they rest on, and the lives it had before."""

from __future__ import annotations

from typing import Annotated

import typer

from cli.asking.common import (
    ApiOption,
    ClusterOption,
    GroupArgument,
    TableOutput,
    TableOutputOption,
    TablesOption,
    TokenOption,
    asking,
    print_as,
    stdout,
)
from cli.options import GroupEitherWay

LIVES_MAX = 5
"""Lives shown on a terminal; JSON and YAML have them all."""


COMMAND = GroupEitherWay


def member(
    group: GroupArgument,
    member_id: Annotated[
        str, typer.Argument(metavar="MEMBER", help="The member: its id, or a client.id or static id of several.")
    ],
    output: TableOutputOption = TableOutput.TABLE,
    tables: TablesOption = None,
    api: ApiOption = None,
    cluster: ClusterOption = None,
    token_file: TokenOption = None,
) -> None:
    """Show a member: who it is, its deadlines and what they rest on, or how it ended."""
    with asking("member", tables, api, token_file, cluster) as questions:
        from cli.output import shown
        from cli.output.telling import show_rung

        lives = questions.lives(group, member_id)
        if output is not TableOutput.TABLE:
            print_as(output, lives)
            return
        console, freshness = stdout(), questions.freshness()
        for life in lives[:LIVES_MAX]:
            console.print(shown.member(life, stale=freshness["stale"]))
            console.print()
        if len(lives) > LIVES_MAX:
            console.print(f"{len(lives) - LIVES_MAX} earlier memberships are not shown.")
        show_rung(console, questions.evidence(group))
        console.print(shown.fresh(freshness))
