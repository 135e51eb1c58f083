"""`kardia lag`: how far groups are behind the ends of their partitions, in records and in time, and why."""

from __future__ import annotations

from typing import Annotated

import typer

from cli.asking.common import (
    AnyGroupArgument,
    ApiOption,
    ClusterOption,
    TableOutput,
    TableOutputOption,
    TablesOption,
    TokenOption,
    asking,
    print_json,
    print_yaml,
    stdout,
)
from cli.options import GroupEitherWay

COMMAND = GroupEitherWay


def lag(
    group: AnyGroupArgument = None,
    limit: Annotated[int, typer.Option(min=1, max=1_000, help="At most that many groups or partitions.")] = 100,
    output: TableOutputOption = TableOutput.TABLE,
    json: Annotated[bool, typer.Option("--json", help="The same as --output json.")] = False,
    tables: TablesOption = None,
    api: ApiOption = None,
    cluster: ClusterOption = None,
    token_file: TokenOption = None,
) -> None:
    """Show how far groups are behind, in records and in time, by what they committed; and why they fall behind.

    With GROUP: each of its partitions.
    """
    with asking("lag", tables, api, token_file, cluster) as questions:
        from cli.output import lagging

        found = questions.lag(limit) if group is None else questions.lag_of(group, limit)
        if json or output is TableOutput.JSON:
            print_json(found["groups"] if group is None else found)
        elif output is TableOutput.YAML:
            print_yaml(found["groups"] if group is None else found)
        else:
            # Only of a group without commits it matters what it speaks; one with commits need not have members.
            spoken = [] if group is None or found["partitions"] else questions.protocols(group)
            stdout().print(lagging.groups(found) if group is None else lagging.group(found, spoken))
