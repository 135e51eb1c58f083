"""The language of traces, from its tables, as `kardia trace --language` prints it. Renders only."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain

from kardia.trace.language import CLAUSES, LOG_FAULTS, MARKS, OPTIONS, SETTINGS, UNANSWERED, VERBS

INTRODUCTION = f"""\
A trace is a history of one group: what its members do, and what the coordinator
answers and does. It is run by Kardia's model of the coordinator, of the release
named last in its line `Kafka`. A file without any `=>` is a question, and the
command tells what happens.

A step is a line `+SECONDS ACT => EXPECTED, EXPECTED`; more lines with `=>` may
follow it. `+1.000 to +9.000 every 2.000` stands for five steps. Timers of an
instant come before its requests, unless it says `before timers`. `=> on 4.x: ...`
holds for some of the releases only; `# {MARKS[0]}` and `# {MARKS[1]}` at the end
of a line say who can show it. Every change of the group's state, every member
that goes, every late answer and every error must be expected, or it is a
difference. Lines that begin with `Log` say what befalls the request log.

`{UNANSWERED}` after a verb: the connection breaks before the answer; the request
counts all the same.
"""


def language() -> str:
    """All that a trace can say, as plain text."""
    return INTRODUCTION + "".join(
        chain(
            _listed("What a member does", VERBS),
            _listed("How it does it", {f"{name}=": meaning for name, meaning in OPTIONS.items()}),
            _listed("What is expected", {one.form: one.meaning for one in CLAUSES.values()}),
            _listed("What befalls the log: Log and", {one.form: one.meaning for one in LOG_FAULTS.values()}),
            _listed("Properties of the broker, in a line Broker", dict.fromkeys(SETTINGS, "")),
        )
    )


def _listed(title: str, meanings: Mapping[str, str]) -> list[str]:
    width = max(map(len, meanings))
    return [f"\n{title}\n", *(f"  {form:<{width}}  {meaning}".rstrip() + "\n" for form, meaning in meanings.items())]
