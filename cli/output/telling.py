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
        text = f"Evidence: {found['read']} (level {found['rung']} of 6); `kardia group` says what more would tell."
        console.print(Text(text, style="dim"))
    else:
        console.print(shown.evidence(found))


INDENT = 26
"""Columns of an instant and the blanks behind it."""

WIDTH_MIN, WIDTH_MAX = 60, 120
"""Columns to which a sentence is wrapped on a terminal, whatever its width: a line of more is hard to read."""


def _wrapped(console: Console, text: str) -> str:
    """A sentence in lines that fit on the terminal, behind its instant; for programs it stays one line."""
    if not console.is_terminal:
        return text
    width = max(WIDTH_MIN, min(WIDTH_MAX, shutil.get_terminal_size().columns))
    lines = textwrap.wrap(text, width - INDENT, break_long_words=False, break_on_hyphens=False)
    return ("\n" + " " * INDENT).join(lines)


def show(console: Console, story: Story, *, with_evidence: bool) -> None:
    """Print a story."""
    title = f"group {words.name(story.group_id)}, cluster {words.name(story.cluster_id)}"
    if story.member_id is not None:
        title = f"{words.name(story.member_id)} in {title}"
    console.print(Text(title, style="bold"))
    for sentence in story.sentences:
        line = Text(f"{words.instant(sentence.at_ms)}  ", style="dim")
        line.append(_wrapped(console, sentence.text), style=_STYLES.get(sentence.kind, "default"))
        console.print(line)
        for found in sentence.evidence if with_evidence else ():
            console.print(Text(f"    because of {evidence.sentence(found)}", style="dim"))
