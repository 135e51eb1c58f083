"""The reference page of traces: the language, from its tables, and every trace as it stands. Renders only."""

from __future__ import annotations

import re
from collections.abc import Mapping

from kardia.reference import GENERATED
from kardia.trace.language import CLAUSES, LOG_FAULTS, MARKS, OPTIONS, SETTINGS, UNANSWERED, VERBS
from kardia.trace.reading import read

INTRODUCTION = f"""# Traces

A trace is a history of one group: what its members do, and what the coordinator answers and does. Each is run by
Kardia's model of the coordinator, by the job from the request log of the history alone, and by Kafka's own classes,
in the releases named in its line `Kafka`. `kardia trace FILE` runs one; a file without any `=>` is a question, and
the command tells what happens.

Lines that begin with `Log` say what befalls the request log on its way: begun late, cut, delayed, doubled.

A step is a line `+SECONDS ACT => EXPECTED, EXPECTED`; more lines with `=>` may follow it. `+1.000 to +9.000
every 2.000` stands for five steps. Timers of an instant come before its requests, unless it says `before timers`.
`=> on 4.x: ...` holds for some of the releases only; `# {MARKS[0]}` and `# {MARKS[1]}` at the end of a line say who can
show it. Every change of the group's state, every member that goes, every late answer and every error must be
expected, or it is a difference.
"""


def page(texts: Mapping[str, str]) -> str:
    """Render texts of traces by file name."""
    traces = [read(text, name) for name, text in sorted(texts.items())]
    parts = [GENERATED, INTRODUCTION]
    parts.append(_rows("What a member does", (("verb", "request"), *VERBS.items())))
    options = {f"{name}=": meaning for name, meaning in OPTIONS.items()}
    parts.append(_rows("How it does it", (("option", "meaning"), *options.items())))
    parts.append(
        f"\n`{UNANSWERED}` after a verb: the connection breaks before the answer; the request counts all the same.\n"
    )
    parts.append(
        _rows("What is expected", (("form", "meaning"), *((one.form, one.meaning) for one in CLAUSES.values())))
    )
    parts.append(
        _rows(
            "What befalls the log: `Log` and",
            (("form", "meaning"), *((one.form, one.meaning) for one in LOG_FAULTS.values())),
        )
    )
    parts.append(f"\nBroker properties of a line `Broker`: {', '.join(f'`{name}`' for name in SETTINGS)}.\n")
    parts.append("\n## The traces\n\n")
    parts += [f"- [{_title(one.name)}](#{_title(one.name)}): {_first_sentence(one.title)}\n" for one in traces]
    parts += [f"\n### {_title(name)}\n\n```\n{text.strip()}\n```\n" for name, text in sorted(texts.items())]
    return "".join(parts)


def _rows(title: str, rows: tuple[tuple[str, str], ...]) -> str:
    (head, meaning), *rest = rows
    lines = [f"\n## {title}\n", f"| {head} | {meaning} |", "|---|---|"]
    lines += [f"| `{name.replace('|', chr(92) + '|')}` | {told} |" for name, told in rest]
    return "\n".join(lines) + "\n"


def _title(name: str) -> str:
    return name.removesuffix(".trace")


def _first_sentence(title: str) -> str:
    return re.split(r"(?<=\.) (?=[A-Z])", title, maxsplit=1)[0]
