"""`kardia history`: every change of a group's state and of its memberships, as a table."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from cli.asking.common import (
    ApiOption,
    ClusterOption,
    FromOption,
    GroupArgument,
    TableOutput,
    TableOutputOption,
    TablesOption,
    TimezoneOption,
    TokenOption,
    ToOption,
    asking,
    print_rows,
    range_options,
)
from cli.options import GroupEitherWay


class Entity(StrEnum):
    """Whose changes."""

    GROUP = "group"
    MEMBER = "member"


COMMAND = GroupEitherWay


def history(
    group: GroupArgument,
    from_: FromOption = None,
    to: ToOption = None,
    of: Annotated[Entity | None, typer.Option("--of", help="Changes of the group or of its members alone.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="At most that many changes, the latest.")] = 200,
    output: TableOutputOption = TableOutput.TABLE,
    tables: TablesOption = None,
    api: ApiOption = None,
    cluster: ClusterOption = None,
    token_file: TokenOption = None,
    timezone: TimezoneOption = None,
) -> None:
    """List the changes of a group and of its memberships, each with its cause and how sure it is."""
    with asking("history", tables, api, token_file, cluster, timezone) as questions:
        from cli.output import shown

        from_ms, to_ms = range_options(questions, from_, to, group)
        print_rows(
            output,
            "transitions",
            questions.history(group, from_ms, to_ms, None if of is None else of.value, limit),
            lambda rows, more: shown.history(rows, more, questions.protocols(group)),
        )
