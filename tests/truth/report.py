"""What a run found, for people on a terminal and as a part of docs/reference/truth.md that is the same every time.

Of classic groups the page has the last run. Of groups with epochs it has the sum of all runs that were kept
(`played.jsonl`, one line a run): ten million operations of five releases are the work of days, in runs of other seeds.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tests.truth.coverage import Cell, Verdict
from tests.truth.protocols import PROTOCOLS

BEGIN, END = "<!-- begin: make truth -->", "<!-- end: make truth -->"
SUM_BEGIN, SUM_END = "<!-- begin: make truth, epochs -->", "<!-- end: make truth, epochs -->"

ROOT = Path(__file__).resolve().parents[2]

PLAYED = Path(__file__).with_name("played.jsonl")
"""Runs of groups with epochs, each with the model of its day. A row says how to play it again."""


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


class Played(NamedTuple):
    """One run that was kept."""

    protocol: str
    version: str
    seed: int
    operations: int
    histories: int
    disagreements: int


def keep(results: Sequence[Result], path: Path = PLAYED) -> None:
    """Add runs to those that are kept. The same histories count once: of one seed the longest run stays."""
    runs = {(run.protocol, run.version, run.seed): run for run in played(path)}
    for result in results:
        run = Played(
            result.protocol,
            result.version,
            result.seed,
            result.operations,
            result.histories,
            len(result.disagreements),
        )
        known = runs.get(run[:3])
        if known is None or run.operations >= known.operations:
            runs[run[:3]] = run
    path.write_text("".join(json.dumps(run._asdict()) + "\n" for run in sorted(runs.values())), encoding="utf-8")


def played(path: Path = PLAYED) -> list[Played]:
    """Runs that were kept."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return [Played(**json.loads(line)) for line in lines]


def markdown(results: Sequence[Result], path: Path) -> None:
    """Put the numbers between the marks of a page; the page is made if there is none."""
    if results[0].protocol == "classic":
        _between(path, BEGIN, END, part(results))
    else:
        keep(results)
        _between(path, SUM_BEGIN, SUM_END, sums(played()))


def _between(path: Path, begin: str, end: str, text: str) -> None:
    page = path.read_text(encoding="utf-8") if path.exists() else f"# Truth\n\n{begin}\n{end}\n"
    head, _, rest = page.partition(begin)
    _, _, tail = rest.partition(end)
    path.write_text(f"{head}{begin}\n{text}{end}{tail}", encoding="utf-8")


def sums(runs: Sequence[Played]) -> str:
    """What the runs of each release add up to."""
    lines = ["| groups | Kafka | runs | operations | histories | disagreements |", "|---|---|---|---|---|---|"]
    for protocol, kind in PROTOCOLS.items():
        for version in kind.versions:
            of = [run for run in runs if (run.protocol, run.version) == (protocol, version)]
            if of:
                operations, histories = sum(run.operations for run in of), sum(run.histories for run in of)
                found = sum(run.disagreements for run in of)
                lines.append(f"| {protocol} | {version} | {len(of)} | {operations:,} | {histories:,} | {found} |")
    return "\n".join(lines) + "\n"


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
