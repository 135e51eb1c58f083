"""What a run found, for people on a terminal and as a part of docs/truth.md that comes out the same every time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tests.truth.coverage import Cell, Verdict
from tests.truth.protocols import PROTOCOLS

BEGIN, END = "<!-- begin: make truth -->", "<!-- end: make truth -->"


class Result(NamedTuple):
    """One release's run."""

    version: str
    seed: int
    operations: int
    histories: int
    seconds: float
    disagreements: Sequence[str]
    counts: Counter[Cell]
    protocol: str = "classic"
    spins: int = 0
    """Histories that ended where Kafka's coordinator goes round in circles."""

    def verdict(self) -> Verdict:
        """What was reached of what there is."""
        return PROTOCOLS[self.protocol].judge(self.counts, self.version)

    def good(self) -> bool:
        """No disagreement, every cell reached or known to be out of reach."""
        verdict = self.verdict()
        return not (self.disagreements or verdict.missing or verdict.impossible)


def plain(results: Sequence[Result]) -> str:
    """For a terminal."""
    lines = []
    for result in results:
        verdict = result.verdict()
        rate = result.operations / result.seconds if result.seconds else 0
        lines.append(
            f"Kafka {result.version}: {result.operations} operations in {result.histories} histories, "
            f"{len(result.disagreements)} disagreements; {verdict.reached} cells reached, {verdict.unreachable} cannot "
            f"be, {len(verdict.missing)} missing; {result.seconds:.0f} s, {rate:.0f} operations/s"
        )
        lines += [f"  {result.spins} histories ended where Kafka spins"] if result.spins else []
        lines += [f"  missing: {', '.join(part or '-' for part in cell)}" for cell in verdict.missing]
        lines += [f"  reached although listed as unreachable: {', '.join(cell)}" for cell in verdict.impossible]
        lines += ["", *result.disagreements] if result.disagreements else []
    return "\n".join(lines) + "\n"


def markdown(results: Sequence[Result], path: Path) -> None:
    """Put the numbers between the marks of a page; the page is made if there is none."""
    page = path.read_text(encoding="utf-8") if path.exists() else f"# Truth\n\n{BEGIN}\n{END}\n"
    head, _, rest = page.partition(BEGIN)
    _, _, tail = rest.partition(END)
    path.write_text(f"{head}{BEGIN}\n{part(results)}{END}{tail}", encoding="utf-8")


def part(results: Sequence[Result]) -> str:
    """The part: nothing in it depends on the machine or the day."""
    lines = [
        f"Run with seed {results[0].seed}.",
        "",
        "| Kafka | operations | histories | disagreements | cells reached | cells out of reach | cells missing |",
        "|---|---|---|---|---|---|---|",
    ]
    for result in results:
        verdict = result.verdict()
        numbers = (
            result.operations,
            result.histories,
            len(result.disagreements),
            verdict.reached,
            verdict.unreachable,
            len(verdict.missing),
        )
        lines.append(f"| {result.version} | " + " | ".join(f"{number:,}" for number in numbers) + " |")
    lines += ["", "How often each answer was compared, all releases together:", ""]
    total: Counter[Cell] = Counter()
    for result in results:
        total.update(result.counts)
    kinds = sorted({cell.operation for cell in total})
    lines += ["| operation | answers and how often |", "|---|---|"]
    for kind in kinds:
        per: Counter[str] = Counter()
        for cell, count in total.items():
            if cell.operation == kind:
                per[f"{cell.who} {cell.outcome}" if kind == "late answer" else cell.outcome] += count
        told = ", ".join(f"{name}: {count:,}" for name, count in sorted(per.items()))
        lines.append(f"| {kind} | {told} |")
    return "\n".join(lines) + "\n"
