"""The fleet on every rung of evidence: what is said of its classic groups without a request log, scored by the truth.

    python -m tests.truth.fleet.rungs --groups 30 --seed 1      each scenario with its own evidence of server.log and
                                                                records taken away in turn

The same runs are observed from `__consumer_offsets` alone, from `server.log` alone and from both. Goals: nothing is
invented, and what is said to be exact is true. What is found is counted beside it. Exit status 1 when a goal is missed.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass, replace

from tests.truth.fleet.report import INVENTED
from tests.truth.fleet.run import Run, play
from tests.truth.fleet.scenarios import SCENARIOS, Scenario
from tests.truth.fleet.score import Score, score
from tests.truth.fleet.seen import observe

VERSIONS = ("2.3.1", "3.9.2", "4.1.2", "4.4.0")
NEVER = (*INVENTED, "exact and untrue")


@dataclass(frozen=True)
class Reads:
    """What is read on a rung."""

    name: str
    records: bool
    server: bool


RUNGS = {
    2: Reads("`__consumer_offsets`", records=True, server=False),
    3: Reads("`server.log`", records=False, server=True),
    4: Reads("both", records=True, server=True),
}

CLASSIC = tuple(
    one for one in SCENARIOS.values() if one.share and not one.protocol and not one.loses and not one.middle
)
"""Scenarios of classic groups in which nothing of the evidence is lost: what damages the request log is none here."""


def scored(run: Run, rung: int) -> Score:
    """A run without its request log."""
    reads = RUNGS[rung]
    blind = replace(run, scenario=replace(run.scenario, requests=False))
    return score(blind, observe(blind, records=reads.records, server=reads.server))


def broken(found: Score) -> list[str]:
    """What no rung may say."""
    return [text for text in found.problems if text.startswith(NEVER)]


def on_all_rungs(version: str, seed: int, groups: int, scenario: Scenario) -> dict[int, Score]:
    """One run on each rung."""
    run = play(version, seed, groups, scenario)
    return {rung: scored(run, rung) for rung in RUNGS}


def table(sums: dict[int, Score]) -> str:
    """What was found on each rung, and what is wrong."""
    lines = ["| rung | evictions found | other ends found | triggers right | invented | exact and untrue |"]
    lines.append("|---|---|---|---|---|---|")
    for rung, found in sums.items():
        counts = found.counts
        invented = sum(counts[f"problem: {name}"] for name in INVENTED)
        lines.append(
            f"| {rung}: {RUNGS[rung].name} | {counts['evictions: found']} of {counts['evictions']} "
            f"| {counts['other ends: found']} of {counts['other ends']} "
            f"| {counts['rebalances: trigger right']} of {counts['rebalances']} "
            f"| {invented} | {counts['problem: exact and untrue']} |"
        )
    return "\n".join(lines) + "\n"


def main() -> int:
    """Play, take evidence away, score."""
    parser = argparse.ArgumentParser(prog="python -m tests.truth.fleet.rungs", description=__doc__)
    parser.add_argument("--groups", type=int, default=30)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--version", choices=VERSIONS, action="append")
    parser.add_argument("--scenario", choices=[one.name for one in CLASSIC], action="append")
    options = parser.parse_args()
    sums = {rung: Score() for rung in RUNGS}
    for version in options.version or VERSIONS:
        for scenario in CLASSIC:
            if options.scenario and scenario.name not in options.scenario:
                continue
            for rung, found in on_all_rungs(version, options.seed, options.groups, scenario).items():
                sums[rung].add(found, f"rung {rung}, {version}, {scenario.name}, seed {options.seed}")
    sys.stdout.write(table(sums))
    wrong = [text for found in sums.values() for text in found.problems if any(f": {name}:" in text for name in NEVER)]
    sys.stdout.writelines(f"{text}\n" for text in wrong[:20])
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
