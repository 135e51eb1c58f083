"""`kardia explain`: the story of a group, or of one member of it, in sentences."""

from __future__ import annotations

from typing import Annotated

import typer

from cli.asking.common import (
    ApiOption,
    AtOption,
    ClusterOption,
    FromOption,
    GroupArgument,
    TablesOption,
    TextOutput,
    TimezoneOption,
    TokenOption,
    ToOption,
    asking,
    instant_option,
    print_as,
    range_options,
    stdout,
)
from cli.options import GroupEitherWay

COMMAND = GroupEitherWay


def explain(
    group: GroupArgument,
    member: Annotated[
        str | None, typer.Option(help="Only what is about this member: its id, client.id or static id.")
    ] = None,
    at: AtOption = None,
    from_: FromOption = None,
    to: ToOption = None,
    evidence: Annotated[
        bool, typer.Option("--evidence", help="Name below each sentence the rows and lines that it rests on.")
    ] = False,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="At most that many sentences, the latest.")] = 200,
    output: Annotated[TextOutput, typer.Option("-o", "--output", help="Form of the answer.")] = TextOutput.TEXT,
    tables: TablesOption = None,
    api: ApiOption = None,
    cluster: ClusterOption = None,
    token_file: TokenOption = None,
    timezone: TimezoneOption = None,
) -> None:
    """Tell what happened in a group: who came and went and why, what each rebalance waited for and cost."""
    with asking("explain", tables, api, token_file, cluster, timezone) as questions:
        from cli.asking.answers import QuestionError
        from cli.output.telling import show, show_rung
        from kardia import story

        at_ms = instant_option(questions, "--at", at, group)
        from_ms, to_ms = range_options(questions, from_, to, group)
        if at_ms is not None and (from_ms is not None or to_ms is not None):
            raise QuestionError(
                "--at asks what was so at an instant, --from and --to what happened between; expected one of the two.",
                2,
            )
        material = questions.material(group, at_ms, to_ms, events=evidence)
        try:
            told = story.explain(
                material, member=member, from_ms=from_ms, to_ms=to_ms, at_ms=at_ms, sentences_max=limit
            )
        except story.NoSuchMember:
            raise questions.no_member(material, str(member)) from None
        if output is TextOutput.TEXT:
            show(stdout(), told, with_evidence=evidence)
            show_rung(stdout(), questions.evidence(group))
        else:
            print_as(output, told.as_json())
