"""`kardia rejected`: lines of the logs that could not be understood, as a table."""

from __future__ import annotations

from typing import Annotated

import typer

from cli.asking.common import (
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


def rejected(
    reason: Annotated[str | None, typer.Option(help="Only lines that were rejected for this, e.g. bad_json.")] = None,
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
    """List the lines of the logs that could not be understood: which, where, what was expected, how each begins."""
    with asking("rejected", tables, api, token_file, cluster, timezone) as questions:
        from functools import partial

        from cli.output import shown

        from_ms, to_ms = range_options(questions, from_, to)
        of_all = from_ms is None and to_ms is None and reason is None
        found = questions.rejected(from_ms, to_ms, reason, limit)
        print_rows(output, "rejected", found, partial(shown.rejected, of_all=of_all))
