"""What each rung of evidence finds in the stories: `python -m tests.corpora.rungs_page --markdown docs/truth.md`.

Counts the same things as `test_rungs` and writes them between two marks of a page; they do not depend on the machine.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tests.corpora.test_outages import OF_THREE, OUTAGES
from tests.support.rungs import NAMES, Count, score
from tests.support.stories import OLD_STORIES, STORIES

BEGIN, END = "<!-- begin: rungs of evidence -->", "<!-- end: rungs of evidence -->"

SETS = {
    "Kafka 3.9, 4.1 and 4.4": STORIES,
    "Kafka 2.0 to 2.7": OLD_STORIES,
    "Kafka 3.9 and 4.4, brokers that die, sleep or stand still": (*OUTAGES, *OF_THREE),
}

_KINDS = {
    "evictions": "evictions, with member, instant and cause",
    "leaves": "leaves, with member and instant",
    "rebalances": "rebalances, with the instant of their begin",
    "triggers": "... with their trigger",
}


def part() -> str:
    """The tables."""
    lines = []
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
                counts: list[Count] = [getattr(one, kind) for one in scores]
                found, unknown, wrong = (sum(column) for column in zip(*counts, strict=True))
                if found + unknown + wrong:
                    lines.append(f"| {meaning} | {NAMES[rung]} | {found} | {unknown} | {wrong} |")
        lines.append("")
    return "\n".join(lines)


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
