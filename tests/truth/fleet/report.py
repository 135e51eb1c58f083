"""Scores for people: the table of a run, and which goals it misses. The goals are here, as data."""

from __future__ import annotations

import statistics
from collections import Counter
from dataclasses import dataclass
from typing import Any

from tests.truth.fleet.run import play
from tests.truth.fleet.scenarios import PLAIN, Scenario
from tests.truth.fleet.score import Score, score
from tests.truth.fleet.seen import observe

LEAD = "lead, share of the timeout in %"

PROBLEMS_SHOWN = 20

JUDGED_TABLES = ("members", "transitions", "rebalances", "health")
"""Tables whose rows are judged one by one."""

INVENTED = ("invented member", "invented end", "invented rebalance", "rebalance twice")
"""Problems that no run may have, whatever befalls brokers and evidence."""

NEVER_WRONG = (
    *INVENTED,
    "missed end",
    "missed rebalance",
    "wrong cause",
    "instant of an end",
    "wrong trigger",
    "wrong trigger member",
    "generation",
    "rebalance, start",
    "rebalance, end of the join phase",
    "rebalance, completion",
    "members before",
    "members after",
    "provisional and untrue at last",
    "prediction left open",
    "untrue outcome",
    "not foretold",
)
"""Problems that no run may have whose evidence is complete and whose brokers are well."""


@dataclass
class Report:
    """One run and its score."""

    version: str
    seed: int
    groups: int
    scenario: Scenario
    score: Score

    @property
    def again(self) -> str:
        """The command that plays the same run."""
        where = "" if self.scenario is PLAIN else f' --scenario "{self.scenario.name}"'
        return f"python -m tests.truth.fleet --groups {self.groups} --version {self.version} --seed {self.seed}{where}"

    def share(self, part: str, whole: str) -> float:
        """Share of one count in another; 1 where there was nothing."""
        counts = self.score.counts
        return counts[part] / counts[whole] if counts[whole] else 1.0

    def untrue(self, certainty: str) -> float:
        """Share of untrue rows among those of a certainty that were judged."""
        counts = self.score.counts
        said = sum(counts[f"said: {name} {certainty}"] for name in JUDGED_TABLES)
        return sum(counts[f"untrue: {name} {certainty}"] for name in JUDGED_TABLES) / max(said, 1)

    def as_json(self) -> dict[str, Any]:
        """Everything, for other programs."""
        return {
            "version": self.version,
            "seed": self.seed,
            "counts": dict(sorted(self.score.counts.items())),
            "errors": {name: _spread(errors) for name, errors in self.score.errors.items()},
            "problems": self.score.problems,
            "again": self.again,
        }


def judged(version: str, seed: int, groups: int, scenario: Scenario = PLAIN) -> Report:
    """Play a run, show its log to the observer, compare."""
    run = play(version, seed, groups, scenario)
    return Report(version, seed, len(run.truths), scenario, score(run, observe(run)))


def missed(report: Report) -> list[str]:
    """Goals that a run misses, as sentences."""
    counts = report.score.counts
    never = NEVER_WRONG if report.scenario.plain else (*INVENTED, *report.scenario.must_find)
    found = [f"{counts[f'problem: {name}']} x {name}" for name in never if counts[f"problem: {name}"]]
    scenario = report.scenario
    honest = (
        ("exact rows true", 1 - report.untrue("exact"), scenario.exact_goal),
        ("inferred rows true", 1 - report.untrue("inferred"), scenario.inferred_goal),
    )
    goals: tuple[tuple[str, float, float], ...] = (
        ("evictions found", report.share("evictions: found", "evictions"), 0.995),
        ("triggers right", report.share("rebalances: trigger right", "rebalances"), 0.99),
        ("stragglers right", report.share("stragglers: right", "stragglers"), 0.99),
        ("states right", report.share("states: right", "states"), 0.999),
        ("predictions right at half", report.share("predictions at half: right", "predictions at half"), 0.99),
        ("lead of the timeout", statistics.median(report.score.errors.get(LEAD, [100])) / 100, 0.6),
    )
    # Where evidence is lost or sessions run from a load that nobody saw, fewer things are known; what is said is true.
    judged_by = (*honest, *goals) if scenario.plain else honest
    found += [f"{name}: {value:.2%}, goal {goal:.2%}" for name, value, goal in judged_by if value < goal]
    return found


def table(reports: list[Report]) -> str:
    """Scores of several runs side by side, then what they miss and their first problems."""
    rows: list[tuple[str, list[str]]] = [
        ("groups / log lines", [f"{r.score.counts['groups']} / {r.score.counts['lines']:,}" for r in reports]),
        ("evictions found", [_of(r, "evictions: found", "evictions") for r in reports]),
        ("other ends found", [_of(r, "other ends: found", "other ends") for r in reports]),
        ("instant of an eviction", [_error(r, "eviction instant") for r in reports]),
        ("rebalances, trigger right", [_of(r, "rebalances: trigger right", "rebalances") for r in reports]),
        ("rebalances, start", [_error(r, "rebalance, start") for r in reports]),
        ("rebalances, completion", [_error(r, "rebalance, completion") for r in reports]),
        ("stragglers right", [_of(r, "stragglers: right", "stragglers") for r in reports]),
        ("states right", [_of(r, "states: right", "states") for r in reports]),
        ("session timeouts foretold", [_of(r, "timeouts: foretold", "timeouts") for r in reports]),
        (
            "... inside a rebalance",
            [_of(r, "timeouts inside a rebalance: foretold", "timeouts inside a rebalance") for r in reports],
        ),
        ("right at half the timeout", [_of(r, "predictions at half: right", "predictions at half") for r in reports]),
        ("median lead", [_median(r, "lead", " ms") for r in reports]),
        ("... of the timeout", [_median(r, "lead, share of the timeout in %", " %") for r in reports]),
        ("untrue rows said exact", [_untrue(r, "exact") for r in reports]),
        ("untrue rows said inferred", [_untrue(r, "inferred") for r in reports]),
        ("rows said provisional", [_said(r, "provisional") for r in reports]),
        ("rows said unknown", [_said(r, "unknown") for r in reports]),
    ]
    lines = ["| | " + " | ".join(f"Kafka {r.version}" for r in reports) + " |", "|---|" + "---|" * len(reports)]
    lines += [f"| {name} | " + " | ".join(values) + " |" for name, values in rows]
    for report in reports:
        goals = missed(report)
        kinds = Counter(text.split(":", 1)[0] for text in report.score.problems)
        lines.append(f"\n{report.version}: {'all goals met' if not goals else '; '.join(goals)}. {report.again}")
        lines += [f"  {kind}: {count}" for kind, count in kinds.most_common()]
        lines += [f"    {text}" for text in report.score.problems[:PROBLEMS_SHOWN]]
    return "\n".join(lines) + "\n"


def _of(report: Report, part: str, whole: str) -> str:
    return f"{report.score.counts[part]} of {report.score.counts[whole]}"


def _untrue(report: Report, certainty: str) -> str:
    counts = report.score.counts
    wrong = sum(count for name, count in counts.items() if name.startswith("untrue:") and name.endswith(certainty))
    return f"{wrong} of {_said(report, certainty)}"


def _said(report: Report, certainty: str) -> str:
    counts = report.score.counts
    return str(sum(n for name, n in counts.items() if name.startswith("said:") and name.endswith(f" {certainty}")))


def _spread(errors: list[int]) -> dict[str, float]:
    return {"count": len(errors), "median": statistics.median(errors), "min": min(errors), "max": max(errors)}


def _error(report: Report, name: str) -> str:
    errors = report.score.errors.get(name, [0])
    return f"{min(errors):+d} … {max(errors):+d} ms"


def _median(report: Report, name: str, unit: str) -> str:
    return f"{statistics.median(report.score.errors.get(name, [0])):,.0f}{unit}"
