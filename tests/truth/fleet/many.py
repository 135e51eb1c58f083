"""Many runs: their scores added up per release, as a part of docs/reference/truth.md that is the same every time.

A run is a function of (release, seed, groups, scenario), so what is added up is one of (releases, total, groups, first
seed).
"""

from __future__ import annotations

import statistics
import sys
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from kardia.certainty import CERTAINTIES
from tests.truth.fleet.report import INVENTED, JUDGED_TABLES, NEVER_WRONG, Report, judged, missed
from tests.truth.fleet.scenarios import PLAIN, Scenario
from tests.truth.fleet.score import Score

CLASSIC, EPOCHS = "the fleet", "the fleet of groups with epochs"
"""Parts of the page, each between marks of its name."""

SHOWN = 200
"""Problems that are printed at the end; all are counted."""

SHOWN_OF_A_RUN = 20
"""Problems of a run that are printed as soon as it has been played."""

GRAVE = (*INVENTED, "exact and untrue", "inferred and untrue", "missed end")
"""Kinds that are printed first: no scenario may have them, or few."""

SAY_EVERY = 20
"""Runs between two words on standard error: about a minute."""


def many(
    versions: Sequence[str], scenarios: Sequence[Scenario], total: int, groups: int, seed: int, processes: int
) -> list[Report]:
    """One report per release and scenario, of so many runs that they hold at least `total` groups together.

    A scenario has its share of every turn, and goes over the releases from one of its runs to the next.
    """
    runs = -(-total // groups)
    turns = turn(scenarios)
    played: Counter[str] = Counter()
    work = []
    for number in range(runs):
        scenario = turns[number % len(turns)]
        able = [one for one in versions if scenario.is_played_by(one)]
        if able:
            work.append((able[played[scenario.name] % len(able)], seed + number, scenario))
        played[scenario.name] += 1
    sums = {
        (version, scenario.name): Report(version, seed, 0, scenario, Score())
        for scenario in scenarios
        for version in versions
    }
    with ProcessPoolExecutor(processes) as pool:
        futures = [pool.submit(judged, version, one, groups, scenario) for version, one, scenario in work]
        for done, future in enumerate(futures, 1):
            report = future.result()
            where = f"{report.version} seed {report.seed} {report.scenario.name}"
            shown = sorted(report.score.problems, key=_is_bearable)[:SHOWN_OF_A_RUN]
            sys.stderr.write("".join(f"{where}: {problem}\n" for problem in shown))
            if done % SAY_EVERY == 0:
                sys.stderr.write(f"{done * groups:,} of {runs * groups:,} groups\n")
            whole = sums[report.version, report.scenario.name]
            whole.groups += report.groups
            whole.score.add(report.score, where)
    return [report for report in sums.values() if report.groups]


def _is_bearable(problem: str) -> bool:
    """Whether no goal forbids a problem in every scenario."""
    return problem.partition(":")[0] not in GRAVE


def turn(scenarios: Sequence[Scenario]) -> list[Scenario]:
    """Each scenario once, then once more those with a share of two, and so on: a short series has something of all."""
    most = max(one.share for one in scenarios)
    return [one for place in range(max(most, 1)) for one in scenarios if place < max(one.share, 1)]


def _joined(reports: Sequence[Report], name: str, scenario: Scenario) -> Report:
    """Several reports as one column."""
    whole = Report(name, reports[0].seed, sum(report.groups for report in reports), scenario, Score())
    for report in reports:
        whole.score.add(report.score, report.version)
    return whole


def write(reports: Sequence[Report], path: Path, part: str = CLASSIC) -> None:
    """Put the sums between the marks of a part of a page."""
    begin, end = f"<!-- begin: {part} -->", f"<!-- end: {part} -->"
    head, _, rest = path.read_text(encoding="utf-8").partition(begin)
    _, _, tail = rest.partition(end)
    path.write_text(f"{head}{begin}\n{told(reports)}{end}{tail}", encoding="utf-8")


def told(reports: Sequence[Report], *, problems: bool = False) -> str:
    """The tables: by release where nothing befalls brokers and evidence, then by scenario, all releases together.
    Nothing in them depends on the machine or the day."""
    by_version: dict[str, list[Report]] = {}
    by_scenario: dict[str, list[Report]] = {}
    for report in reports:
        by_scenario.setdefault(report.scenario.name, []).append(report)
        if report.scenario.plain:
            by_version.setdefault(report.version, []).append(report)
    parts = []
    if by_version:
        columns = [_joined(some, f"Kafka {version}", PLAIN) for version, some in by_version.items()]
        parts.append("Evidence complete, brokers well, without and with `__consumer_offsets`:\n\n" + _table(columns))
    columns = [_joined(some, name, some[0].scenario) for name, some in by_scenario.items()]
    parts.append("By what befalls the brokers and the evidence, all releases together:\n\n" + _table(columns))
    meanings = [f"- {name}: {some[0].scenario.meaning}." for name, some in by_scenario.items()]
    parts.append("\n".join(meanings) + "\n")
    if problems:
        lines = [text for report in reports for text in report.score.problems[:SHOWN]]
        parts.append("".join(f"{line}\n" for line in lines))
    return "\n".join(parts)


SHARES = (
    ("evictions found with their cause", "evictions: found", "evictions"),
    ("... found, cause said to be unknown", "evictions: cause unknown", "evictions"),
    ("... not found, member said to be unknown", "evictions: said to be unknown", "evictions"),
    ("... not found, member said to be overdue", "evictions: said to be overdue", "evictions"),
    ("... found, the instant within what is said", "evictions: instant within its bound", "evictions: found"),
    ("other ends found", "other ends: found", "other ends"),
    ("rebalances, trigger right", "rebalances: trigger right", "rebalances"),
    ("... trigger said to be unknown", "rebalances: trigger unknown", "rebalances"),
    ("... end of the join phase not dated", "rebalances: end of the join phase not dated", "rebalances"),
    ("rebalances that stand provisional", "stand provisional: rebalances", "stand: rebalances"),
    ("lives that stand provisional", "stand provisional: members", "stand: members"),
    ("stragglers right", "stragglers: right", "stragglers"),
    ("states right, at instants all through", "states: right", "states"),
    ("... said to be unknown", "states: unknown", "states"),
    ("session timeouts foretold", "timeouts: foretold", "timeouts"),
    ("... silent inside a rebalance", "timeouts inside a rebalance: foretold", "timeouts inside a rebalance"),
    ("predictions right at half the timeout", "predictions at half: right", "predictions at half"),
    ("predictions taken back before half", "predictions taken back before half", "predictions"),
)
"""(row, count, count of the whole)."""


def _table(columns: Sequence[Report]) -> str:
    rows: list[tuple[str, list[str]]] = [
        ("groups", [f"{one.groups:,}" for one in columns]),
        ("lines of the logs", [f"{one.score.counts['lines']:,}" for one in columns]),
    ]
    for name, part, whole in SHARES:
        if any(one.score.counts[part] for one in columns) or not name.startswith("..."):
            rows.append((name, [f"{one.score.counts[part]:,} of {one.score.counts[whole]:,}" for one in columns]))
    rows.append(("median lead, of the timeout", [_median(one) for one in columns]))
    rows.append(("... silent inside a rebalance", [_median(one, " inside a rebalance") for one in columns]))
    rows.append(("99 % of the instants of evictions within", [_within(one, "eviction instant") for one in columns]))
    in_time = [_within(one, "eviction instant, timer in time") for one in columns]
    rows.append(("... of those whose timer fired within 3 ms", in_time))
    rows += [
        (f"99 % of the instants of rebalances within, {what}", [_within(one, f"rebalance, {what}") for one in columns])
        for what in ("start", "end of the join phase", "completion")
    ]
    rows += [(f"rows said {sure}", [_said(one, sure) for one in columns]) for sure in CERTAINTIES]
    rows += [(f"untrue rows said {sure}", [_untrue(one, sure) for one in columns]) for sure in CERTAINTIES[:2]]
    rows += [(name, [f"{one.score.counts[f'problem: {name}']}" for one in columns]) for name in NEVER_WRONG]
    rows += [(name, [f"{one.score.counts[name]}" for one in columns]) for name in COUNTED]
    rows.append(("goals missed", ["; ".join(missed(one)) or "none" for one in columns]))
    lines = ["| | " + " | ".join(one.version for one in columns) + " |", "|---|" + "---|" * len(columns)]
    lines += [f"| {name} | " + " | ".join(values) + " |" for name, values in rows]
    return "\n".join(lines) + "\n"


COUNTED = (
    "causes of one instant, said provisionally",
    "triggers of one instant, said provisionally",
    "trigger members of one instant, said provisionally",
    "leaves whose reason is said provisionally",
    "ends undone by a load that nobody saw",
    "ends said provisionally of members that are there",
)
"""What is no mistake by the evidence there was, and would be one with more of it."""


def _count(report: Report, kind: str, certainty: str) -> int:
    return sum(report.score.counts[f"{kind}: {name} {certainty}"] for name in JUDGED_TABLES)


def _said(report: Report, certainty: str) -> str:
    everything = sum(_count(report, "said", one) for one in CERTAINTIES)
    return f"{_count(report, 'said', certainty) / max(everything, 1):.1%}"


def _untrue(report: Report, certainty: str) -> str:
    return f"{_count(report, 'untrue', certainty):,} of {_count(report, 'said', certainty):,}"


def _median(report: Report, where: str = "") -> str:
    shares = report.score.errors.get(f"lead{where}, share of the timeout in %")
    return f"{statistics.median(shares):.0f} %" if shares else "none"


def _within(report: Report, what: str) -> str:
    errors = sorted(abs(error) for error in report.score.errors.get(what, [0]))
    return f"{errors[int(0.99 * (len(errors) - 1))]:,} ms"
