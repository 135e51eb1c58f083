"""Stories on a terminal: one line per sentence, the instant first, with its evidence below if it is asked for."""

from __future__ import annotations

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


def show_rung(console: Console, found: dict[str, Any]) -> None:
    """Below a story: what else would have been told with more evidence; nothing where the request log is read."""
    if found["rung"] < shown.REQUEST_LOG_RUNG:
        console.print(shown.evidence(found))


def show(console: Console, story: Story, *, with_evidence: bool) -> None:
    """Print a story."""
    title = f"group {words.name(story.group_id)}, cluster {words.name(story.cluster_id)}"
    if story.member_id is not None:
        title = f"{words.name(story.member_id)} in {title}"
    console.print(Text(title, style="bold"))
    for sentence in story.sentences:
        line = Text(f"{words.instant(sentence.at_ms)}  ", style="dim")
        line.append(sentence.text, style=_STYLES.get(sentence.kind, "default"))
        console.print(line)
        for found in sentence.evidence if with_evidence else ():
            console.print(Text(f"    because of {evidence.sentence(found)}", style="dim"))
