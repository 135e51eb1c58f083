"""All groups' incidents on a terminal: a group's name, what it went through below it, and how to ask on."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.text import Text

from cli.asking.common import print_json, print_yaml, stdout
from cli.asking.questions import Questions
from cli.options import Folder
from cli.output.telling import wrapped
from kardia.story import incidents, words

SHOWN_MAX = 20
"""Groups that are shown; the rest is counted."""


def all_groups(
    questions: Questions,
    times: tuple[int | None, int | None],
    form: str | None,
    tables: Folder | None,
    api: str | None,
) -> None:
    """What all groups went through between two instants, on the terminal or, with a `form`, for programs."""
    found = questions.incidents(*times)
    if form is not None:
        (print_yaml if form == "yaml" else print_json)(found)
        return
    where = f" --tables {tables}" if tables is not None else f" --api {api}" if api else ""
    _show(stdout(), found, where)


def _show(console: Console, answer: dict[str, Any], where: str) -> None:
    """Print them; `where` is what a next command needs to ask the same tables."""
    found = answer["incidents"]
    console.print(Text(incidents.title(answer), style="bold"))
    for one in found[:SHOWN_MAX]:
        console.print()
        console.print(Text(words.name(one["group_id"]), style="bold red" if one["evictions"] else "bold"))
        for sentence in incidents.told(one):
            console.print(Text("  " + wrapped(console, sentence, indent=4, first=2)))
    more = len(found) - SHOWN_MAX + answer["left_off"]
    if more > 0:
        console.print(Text(f"\n{words.count(more, 'more group')}; -o json has them.", style="dim"))
    if found:
        worst = words.name(found[0]["group_id"])
        console.print(Text(f"\nNext: kardia why {worst}{where}; kardia explain {worst}{where}", style="dim"))
