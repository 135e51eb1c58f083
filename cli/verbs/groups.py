"""`kardia groups`: all groups of a cluster, the worst first unless told otherwise.

Takes the options of Kafka's own `kafka-consumer-groups` too.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from cli.asking.common import (
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
from cli.options import StateEitherWay

COMMAND = StateEitherWay


class Sort(StrEnum):
    """Orders of the list."""

    WORST = "worst"
    MARGIN = "margin"
    NAME = "name"


LIMIT_MAX = 50_000
_HABIT = "As in kafka-consumer-groups.sh"


def groups(
    search: Annotated[str | None, typer.Option(help="Only groups whose name contains this.")] = None,
    state: Annotated[
        str | None,
        typer.Option("--in-state", help="Only groups in this state, e.g. Stable; --state Stable is the same."),
    ] = None,
    sort: Annotated[
        Sort, typer.Option(help="Worst status first, least margin of a timeout first, or by name.")
    ] = Sort.WORST,
    limit: Annotated[int, typer.Option(min=1, max=LIMIT_MAX, help="At most that many groups.")] = 100,
    output: TableOutputOption = TableOutput.TABLE,
    names: Annotated[bool, typer.Option("--list", rich_help_panel=_HABIT, help="Only the names.")] = False,
    describe: Annotated[
        bool, typer.Option("--describe", rich_help_panel=_HABIT, help="With --group: the same as `kardia group`.")
    ] = False,
    group: Annotated[str | None, typer.Option(rich_help_panel=_HABIT, help="The group to describe.")] = None,
    members: Annotated[bool, typer.Option("--members", rich_help_panel=_HABIT, help="Its members alone.")] = False,
    state_only: Annotated[bool, typer.Option("--state", rich_help_panel=_HABIT, help="Its state alone.")] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", rich_help_panel=_HABIT, help="More columns about members.")
    ] = False,
    tables: TablesOption = None,
    api: ApiOption = None,
    cluster: ClusterOption = None,
    token_file: TokenOption = None,
) -> None:
    """List groups with state, members, what is left of the next deadlines, and the last rebalance."""
    with asking("groups", tables, api, token_file, cluster) as questions:
        from cli.asking.answers import QuestionError
        from cli.output import describing, shown
        from kardia.story import words

        if group is not None:
            describing.describe(questions, group, members, state_only, verbose, output)
            return
        if describe or members or state_only:
            raise QuestionError("--describe, --members and --state are about one group; name it with --group.", 2)
        gone_through = questions.gone_through() if output is TableOutput.TABLE and not names else None
        # The worst of an archive are those that went through most, which is known of all together.
        by_course = gone_through is not None and sort is Sort.WORST
        rows, more = questions.groups(search, named_state(state), LIMIT_MAX if by_course else limit, sort.value)
        if output is TableOutput.JSON:
            print_json([row["group_id"] for row in rows] if names else rows)
        elif output is TableOutput.YAML:
            print_yaml([row["group_id"] for row in rows] if names else rows)
        elif names:
            for row in rows:
                typer.echo(words.name(row["group_id"], 40_000))
        else:
            console, freshness = stdout(), questions.freshness()
            if gone_through is None:
                console.print(shown.groups(rows, more, stale=freshness["stale"]))
            else:
                if by_course:
                    rank = {group_id: place for place, group_id in enumerate(gone_through)}
                    rows.sort(key=lambda row: rank.get(row["group_id"], len(rank)))
                    rows, more = rows[:limit], more or len(rows) > limit
                console.print(shown.groups_of_archive(rows, more, gone_through))
            console.print(shown.fresh(freshness))


def named_state(word: str | None) -> str | None:
    """A state as the coordinator writes it, however it was typed. QuestionError names the nearest: a word that is none
    finds no group, which looks like an answer."""
    from difflib import get_close_matches

    from api.present.current import STATES
    from cli.asking.answers import QuestionError
    from kardia.story import words

    if word is None:
        return None
    by_lower = {state.lower(): state for state in STATES}
    if word.lower() in by_lower:
        return by_lower[word.lower()]
    near = get_close_matches(word.lower(), by_lower, 1, 0.5)
    meant = f"did you mean {by_lower[near[0]]}?" if near else "name one of them."
    raise QuestionError(
        f"--in-state {words.quoted(word)} is no state of a group; expected {words.listing(STATES)}; {meant}", 2
    )
