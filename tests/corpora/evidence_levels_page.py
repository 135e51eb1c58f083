"""What each rung of evidence finds in the stories.

    python -m tests.corpora.evidence_levels_page --markdown docs/reference/truth.md

Counts the same things as `test_rungs` and writes them between two marks of a page; they do not depend on the machine.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tests.corpora.samples_recording import EVERY_S
from tests.corpora.test_outages import OF_THREE, OUTAGES
from tests.support.evidence_levels import NAMES, Count, Score, score
from tests.support.stories import OLD_STORIES, SAMPLED_STORIES, STORIES

BEGIN, END = "<!-- begin: rungs of evidence -->", "<!-- end: rungs of evidence -->"

SETS = {
    "Kafka 3.9, 4.1 and 4.4": STORIES,
    "Kafka 2.0 to 2.7": OLD_STORIES,
    "Kafka 3.9 and 4.4, brokers that die, sleep or stand still": (*OUTAGES, *OF_THREE),
}

_KINDS = {
    "evictions": "evictions, with member, instant and cause",
    "leaves": "leaves, with member and instant",
    "replacements": "static members whose seat was taken",
    "rebalances": "rebalances, with the instant of their begin",
    "triggers": "... with their trigger",
}


def part() -> str:
    """The tables."""
    lines = _sampled()
    for title, names in SETS.items():
        lines += [
            f"{title}, {len(names)} stories:",
            "",
            "| | rung | found | not knowable | wrong |",
            "|---|---|---|---|---|",
        ]
        for rung in ("2", "3", "4"):
            scores = [score(name, rung) for name in names]
            for kind, meaning in _KINDS.items():
                count = _sum(scores, kind)
                if any(count):
                    lines.append(f"| {meaning} | {NAMES[rung]} | {count.found} | {count.unknown} | {count.wrong} |")
        lines.append("")
    return "\n".join(lines)


def _sampled() -> list[str]:
    """The stories with the admin API beside them, on its rung and on those that every cluster has."""
    lines = [
        f"Kafka 3.9 and 4.4, the admin API sampled every {EVERY_S:.0f} s, {len(SAMPLED_STORIES)} stories:",
        "",
        "| | rung | found | between two instants | not knowable | wrong |",
        "|---|---|---|---|---|---|",
    ]
    for rung in ("1", "2", "3", "4"):
        scores = [score(name, rung) for name in SAMPLED_STORIES]
        for kind, meaning in _KINDS.items():
            count = _sum(scores, kind)
            counts = f"{count.found} | {count.between} | {count.unsaid} | {count.wrong}"
            lines.append(f"| {meaning} | {NAMES[rung]} | {counts} |")
    return [*lines, ""]


def _sum(scores: list[Score], kind: str) -> Count:
    counts: list[Count] = [getattr(one, kind) for one in scores]
    return Count(*map(sum, zip(*counts, strict=True)))


def main() -> None:
    """Write the page, or print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--markdown", type=Path)
    path: Path | None = parser.parse_args().markdown
    if path is None:
        sys.stdout.write(part())
        return
    head, _, rest = path.read_text(encoding="utf-8").partition(BEGIN)
    _, _, tail = rest.partition(END)
    path.write_text(f"{head}{BEGIN}\n{part()}{END}{tail}", encoding="utf-8")


if __name__ == "__main__":
    main()
