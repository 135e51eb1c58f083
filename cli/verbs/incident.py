"""`kardia incident`: everything about a group in a stretch of time, as Markdown for a ticket or as JSON.

Without a group: what all of them went through.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from cli.asking.common import (
    AnyGroupArgument,
    ApiOption,
    ClusterOption,
    FromOption,
    TablesOption,
    TimezoneOption,
    TokenOption,
    ToOption,
    asking,
    print_json,
    print_yaml,
    range_options,
)
from cli.options import GroupEitherWay


class ReportOutput(StrEnum):
    """Forms of a report."""

    MARKDOWN = "markdown"
    JSON = "json"
    YAML = "yaml"


COMMAND = GroupEitherWay


def incident(
    group: AnyGroupArgument = None,
    from_: FromOption = None,
    to: ToOption = None,
    output: Annotated[ReportOutput, typer.Option("-o", "--output", help="Form of the report.")] = ReportOutput.MARKDOWN,
    tables: TablesOption = None,
    api: ApiOption = None,
    cluster: ClusterOption = None,
    token_file: TokenOption = None,
    timezone: TimezoneOption = None,
) -> None:
    """Report what happened to a group: timeline, evictions, rebalances, deadlines, settings and what is odd about them.

    Without a GROUP it tells what all groups went through, the worst first. Without --from and --to it is about the last
    hour that was read, or, of all groups in an archive, about all of it.
    """
    with asking("incident", tables, api, token_file, cluster, timezone) as questions:
        from kardia.story.report import markdown

        times = range_options(questions, from_, to, group)
        if group is None:
            from cli.output.incidents import all_groups

            form = None if output is ReportOutput.MARKDOWN else output.value
            all_groups(questions, times, form, tables, api)
            return
        found = questions.incident(group, *times)
        if output is ReportOutput.JSON:
            print_json(found)
        elif output is ReportOutput.YAML:
            print_yaml(found)
        else:
            typer.echo(markdown(found), nl=False)
