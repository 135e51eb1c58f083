"""Many runs: their scores added up per release, as a part of docs/truth.md that comes out the same every time.

A run is a function of (release, seed, groups), so what is added up is one of (releases, total, groups, first seed).
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from tests.truth.fleet.report import NEVER_WRONG, Report, judged, missed
from tests.truth.fleet.scenarios import PLAIN, Scenario
from tests.truth.fleet.score import Score

BEGIN, END = "<!-- begin: the fleet -->", "<!-- end: the fleet -->"

SHOWN = 200
"""Problems that are printed; all are counted."""


def many(
    versions: Sequence[str], total: int, groups: int, seed: int, processes: int, scenario: Scenario = PLAIN
) -> list[Report]:
    """One report per release, of so many runs that they hold at least `total` groups together."""
    runs = -(-total // groups)
    work = [(versions[number % len(versions)], seed + number) for number in range(runs)]
    sums = {version: Report(version, seed, 0, scenario, Score()) for version in versions}
    with ProcessPoolExecutor(processes) as pool:
        futures = [pool.submit(judged, version, one, groups, scenario) for version, one in work]
        for future in futures:
            report = future.result()
            whole = sums[report.version]
            whole.groups += report.groups
            whole.score.add(report.score, f"{report.version} seed {report.seed}")
    return list(sums.values())


def write(reports: Sequence[Report], path: Path) -> None:
    """Put the sums between the marks of a page."""
    head, _, rest = path.read_text(encoding="utf-8").partition(BEGIN)
    _, _, tail = rest.partition(END)
    path.write_text(f"{head}{BEGIN}\n{told(reports)}{END}{tail}", encoding="utf-8")


def told(reports: Sequence[Report], *, problems: bool = False) -> str:
    """The table: nothing in it depends on the machine or the day."""
    rows: list[tuple[str, list[str]]] = [
        ("groups", [f"{report.groups:,}" for report in reports]),
        ("lines of the log", [f"{report.score.counts['lines']:,}" for report in reports]),
    ]
    shares = (
        ("evictions found with their cause", "evictions: found", "evictions"),
        ("... found, cause said to be unknown", "evictions: cause unknown", "evictions"),
        ("other ends found", "other ends: found", "other ends"),
        ("rebalances, trigger right", "rebalances: trigger right", "rebalances"),
        ("... trigger said to be unknown", "rebalances: trigger unknown", "rebalances"),
        ("stragglers right", "stragglers: right", "stragglers"),
        ("states right, at instants all through", "states: right", "states"),
        ("session timeouts foretold", "timeouts: foretold", "timeouts"),
        ("... silent inside a rebalance", "timeouts inside a rebalance: foretold", "timeouts inside a rebalance"),
        ("predictions right at half the timeout", "predictions at half: right", "predictions at half"),
        ("predictions taken back before half", "predictions taken back before half", "predictions"),
    )
    for name, part, whole in shares:
        rows.append((name, [f"{r.score.counts[part]:,} of {r.score.counts[whole]:,}" for r in reports]))
    rows.append(("median lead, of the timeout", [_median(report) for report in reports]))
    rows.append(("99 % of the instants of evictions within", [_within(report) for report in reports]))
    rows += [(f"untrue rows said {one}", [_untrue(report, one) for report in reports]) for one in ("exact", "inferred")]
    rows += [(name, [f"{r.score.counts[f'problem: {name}']}" for r in reports]) for name in NEVER_WRONG]
    rows.append(("goals missed", ["; ".join(missed(report)) or "none" for report in reports]))
    lines = ["| | " + " | ".join(f"Kafka {r.version}" for r in reports) + " |", "|---|" + "---|" * len(reports)]
    lines += [f"| {name} | " + " | ".join(values) + " |" for name, values in rows]
    if problems:
        lines += [text for report in reports for text in report.score.problems[:SHOWN]]
    return "\n".join(lines) + "\n"


def _median(report: Report) -> str:
    return f"{statistics.median(report.score.errors.get('lead, share of the timeout in %', [0])):.0f} %"


def _within(report: Report) -> str:
    errors = sorted(abs(error) for error in report.score.errors.get("eviction instant", [0]))
    return f"{errors[int(0.99 * (len(errors) - 1))]} ms"


def _untrue(report: Report, certainty: str) -> str:
    tables = ("members", "transitions", "rebalances", "health")
    counts = report.score.counts
    wrong = sum(counts[f"untrue: {name} {certainty}"] for name in tables)
    return f"{wrong:,} of {sum(counts[f'said: {name} {certainty}'] for name in tables):,}"
