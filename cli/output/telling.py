"""Stories on a terminal: one line per sentence, the instant first, with its evidence below if it is asked for."""

from __future__ import annotations

import shutil
import textwrap
from typing import Any

from rich.console import Console
from rich.text import Text

from cli.output import shown
from kardia.story import Story, evidence, words

_STYLES = {
    "ended": "red",
    "rebalance_began": "cyan",
    "rebalance_ended": "cyan",
    "predicted": "yellow",
    "deadline": "yellow",
    "state": "bold",
    "limit": "dim",
}


def show_rung(console: Console, found: dict[str, Any], *, briefly: bool = False) -> None:
    """Below a story: what it rests on, and what more would tell; nothing where the request log is read."""
    if found["rung"] >= shown.REQUEST_LOG_RUNG:
        return
    if briefly:
        text = f"Evidence: {found['read']} only (level {found['rung']} of 6). `kardia group` says what more would tell."
        console.print(Text(wrapped(console, text), style="dim"))
    else:
        show_evidence(console, found)


def show_evidence(console: Console, found: dict[str, Any]) -> None:
    """What a group's answers rest on, and what is lacking for the others."""
    for line in shown.evidence(found):
        console.print(Text(wrapped(console, line, indent=2), style="dim"))


INDENT = 26
"""Columns of an instant and the blanks behind it."""

WIDTH_MIN, WIDTH_MAX = 60, 120
"""Columns to which a sentence is wrapped on a terminal, whatever its width: a line of more is hard to read."""


def wrapped(console: Console, text: str, *, indent: int = 0, first: int = 0) -> str:
    """A sentence in lines that fit on the terminal, `indent` columns in from the second on; `first` are taken already
    of the first. For programs it stays one line."""
    if not console.is_terminal:
        return text
    width = max(WIDTH_MIN, min(WIDTH_MAX, shutil.get_terminal_size().columns))
    begin = " " * first
    lines = textwrap.wrap(
        text,
        width,
        initial_indent=begin,
        subsequent_indent=" " * indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return "\n".join(lines)[first:]


def show(console: Console, story: Story, *, with_evidence: bool) -> None:
    """Print a story."""
    title = f"group {words.name(story.group_id)}, cluster {words.name(story.cluster_id)}"
    if story.member_id is not None:
        title = f"{words.name(story.member_id)} in {title}"
    console.print(Text(title, style="bold"))
    for sentence in story.sentences:
        style = _STYLES.get(sentence.kind, "default")
        if sentence.kind == "limit":  # about the answer, not about an instant
            console.print(Text(wrapped(console, sentence.text, indent=2), style=style))
            continue
        line = Text(f"{words.instant(sentence.at_ms)}  ", style="dim")
        line.append(wrapped(console, sentence.text, indent=INDENT, first=INDENT), style=style)
        console.print(line)
        for found in sentence.evidence if with_evidence else ():
            console.print(Text(f"    because of {evidence.sentence(found)}", style="dim"))
