"""`kardia disagreements`: lines of server.log that say otherwise than the requests, with what each of the two says."""

from __future__ import annotations

from typing import Annotated

import typer

from cli.asking.common import (
    AnyGroupArgument,
    ApiOption,
    ClusterOption,
    FromOption,
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

COMMAND = GroupEitherWay


def disagreements(
    group: AnyGroupArgument = None,
    kind: Annotated[str | None, typer.Option(help="Only those of this kind, e.g. another_instant.")] = None,
    from_: FromOption = None,
    to: ToOption = None,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="At most that many lines, the latest.")] = 200,
    output: TableOutputOption = TableOutput.TABLE,
    tables: TablesOption = None,
    api: ApiOption = None,
    cluster: ClusterOption = None,
    token_file: TokenOption = None,
    timezone: TimezoneOption = None,
) -> None:
    """List where server.log says otherwise than the requests: which group, when, and what each of the two says."""
    with asking("disagreements", tables, api, token_file, cluster, timezone) as questions:
        from cli.output import shown

        from_ms, to_ms = range_options(questions, from_, to)
        print_rows(
            output, "disagreements", questions.disagreements(group, from_ms, to_ms, kind, limit), shown.disagreements
        )
