"""`kardia group`: one group with its members, the least margin first."""

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
)
from cli.options import GroupEitherWay

COMMAND = GroupEitherWay


def group(
    group_id: GroupArgument,
    members: Annotated[bool, typer.Option("--members", help="Its members alone.")] = False,
    state: Annotated[bool, typer.Option("--state", help="Its state alone.")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", help="More columns about members.")] = False,
    output: TableOutputOption = TableOutput.TABLE,
    tables: TablesOption = None,
    api: ApiOption = None,
    cluster: ClusterOption = None,
    token_file: TokenOption = None,
) -> None:
    """Show a group: its state, since when and why, and its members with what is left of their deadlines."""
    with asking("group", tables, api, token_file, cluster) as questions:
        from cli.output.describing import describe

        describe(questions, group_id, members, state, verbose, output)
