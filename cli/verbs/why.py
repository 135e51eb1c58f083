"""`kardia why`: the last rebalance or eviction of a group in a few sentences.

Without a group: what all of them went through.
"""

from __future__ import annotations

from typing import Annotated

import typer

from cli.asking.common import (
    AnyGroupArgument,
    ApiOption,
    AtOption,
    ClusterOption,
    TablesOption,
    TextOutput,
    TimezoneOption,
    TokenOption,
    asking,
    instant_option,
    print_as,
    stdout,
)
from cli.options import GroupEitherWay

COMMAND = GroupEitherWay


def why(
    group: AnyGroupArgument = None,
    at: AtOption = None,
    evidence: Annotated[
        bool, typer.Option("--evidence", help="Name below each sentence the rows and lines that it rests on.")
    ] = False,
    output: Annotated[TextOutput, typer.Option("-o", "--output", help="Form of the answer.")] = TextOutput.TEXT,
    tables: TablesOption = None,
    api: ApiOption = None,
    cluster: ClusterOption = None,
    token_file: TokenOption = None,
    timezone: TimezoneOption = None,
) -> None:
    """Tell why a group rebalanced or lost a member, the last time before now or before --at.

    Without a GROUP it tells what all groups went through in the hour before, the worst first.
    """
    with asking("why", tables, api, token_file, cluster, timezone) as questions:
        from cli.output.telling import show, show_rung
        from kardia import story

        at_ms = instant_option(questions, "--at", at, group)
        if group is None:
            from cli.output.incidents import all_groups

            form = None if output is TextOutput.TEXT else output.value
            all_groups(questions, (None, None if at_ms is None else at_ms + 1), form, tables, api)
            return
        told = story.why(questions.material(group, at_ms, None, events=evidence), at_ms=at_ms)
        if output is TextOutput.TEXT:
            show(stdout(), told, with_evidence=evidence)
            show_rung(stdout(), questions.evidence(group), briefly=True)
        else:
            print_as(output, told.as_json())
