"""`kardia watch`: a live view that counts down and looks again every second, until Ctrl-C. The clock is the API's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from cli.asking.common import AnyGroupArgument, ApiOption, ClusterOption, TablesOption, TokenOption, asking
from cli.options import GroupEitherWay

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from cli.asking.questions import Questions

REFRESH_S = 1.0
WIDE_COLUMNS = 130
"""A terminal with fewer columns shows the narrow tables."""


COMMAND = GroupEitherWay


def watch(
    group: AnyGroupArgument = None,
    for_s: Annotated[
        float | None, typer.Option("--for", min=0.0, metavar="SECONDS", help="Stop after that long.")
    ] = None,
    tables: TablesOption = None,
    api: ApiOption = None,
    cluster: ClusterOption = None,
    token_file: TokenOption = None,
) -> None:
    """Watch groups, or the members of one, with what is left of their deadlines."""
    with asking("watch", tables, api, token_file, cluster) as questions:
        import time

        from rich.console import Console
        from rich.live import Live

        console = Console(markup=False, highlight=False, emoji=False)
        view = _view(questions, group, console)  # an error in the first look ends the verb with its sentence
        until = None if for_s is None else time.monotonic() + for_s  # of looking on: the first look is always shown
        try:
            with Live(view, console=console, auto_refresh=False, transient=not console.is_terminal) as live:
                while True:
                    if not console.is_terminal:
                        console.print(view, soft_wrap=True)
                    if until is not None and time.monotonic() >= until:
                        break
                    time.sleep(REFRESH_S)
                    view = _looked(questions, group, console)
                    live.update(view, refresh=True)
        except KeyboardInterrupt:
            console.print("Stopped.")


def _looked(questions: Questions, group_id: str | None, console: Console) -> RenderableType:
    """The next view; a server that is away for a while is waited for."""
    from rich.text import Text

    from cli.asking.answers import QuestionError

    try:
        return _view(questions, group_id, console)
    except QuestionError as error:
        return Text(f"kardia watch: {error} Asking again.", style="yellow")


def _view(questions: Questions, group_id: str | None, console: Console) -> RenderableType:
    """As much as the terminal has lines and columns for, the worst first."""
    from rich.console import Group as Pile

    from cli.output import shown

    room, narrow = max(1, console.height - 6), console.width < WIDE_COLUMNS
    freshness = questions.freshness()
    stale = freshness["stale"]
    if group_id is None:
        rows, more = questions.groups(None, None, room)
        return Pile(shown.groups(rows, more, stale=stale, narrow=narrow), shown.fresh(freshness))
    found, _ = questions.members(group_id)
    least = shown.members(sorted(found, key=shown.margin)[:room], stale=stale, narrow=narrow)
    return Pile(shown.group(questions.group(group_id), found), least, shown.fresh(freshness))
