"""The fleet on every rung of evidence: what is said of its groups without a request log, scored by the truth.

    python -m tests.truth.fleet.evidence_levels --groups 30 --seed 1      each scenario with its own evidence of
                                                                          server.log and records taken away in turn
    … --markdown docs/reference/truth.md                                  puts the tables between the marks of the page

The same runs are observed from samples of the admin API alone, from `__consumer_offsets` alone, from `server.log`
alone, with samples beside it and with the records. Groups that have epochs are sampled only. Goals: nothing is
invented, what is said to be exact is true, and what is said to have been between two instants was. What is found is
counted beside it. Exit status 1 when a goal is missed.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from kardia.events import CLOCKS_APART_MS
from tests.truth.fleet.between import OUTSIDE
from tests.truth.fleet.report import INVENTED
from tests.truth.fleet.run import Run, play
from tests.truth.fleet.sampling import Asks
from tests.truth.fleet.scenarios import SCENARIOS, Scenario
from tests.truth.fleet.score import Score, score
from tests.truth.fleet.seen import observe

VERSIONS = ("2.3.1", "3.9.2", "4.1.2", "4.4.0")
UNTRUE = ("exact and untrue", OUTSIDE)
NEVER = (*INVENTED, *UNTRUE, "members before", "members after")

BEGIN, END = "<!-- begin: the fleet on each rung -->", "<!-- end: the fleet on each rung -->"

ASKERS = {
    "1 s": Asks(1.0),
    "5 s": Asks(5.0, restarts=True),
    "ahead": Asks(5.0, apart_ms=0.7 * CLOCKS_APART_MS, restarts=True),
}
"""Samplers beside every run: their clocks agree with the brokers', but for the one that is read beside `server.log`."""


@dataclass(frozen=True)
class Reads:
    """What is read on a rung."""

    name: str
    records: bool = False
    server: bool = False
    samples: str = ""
    """One of `ASKERS`."""


RUNGS = {
    one.name: one
    for one in (
        Reads("1: the admin API, every 1 s", samples="1 s"),
        Reads("1: the admin API, every 5 s", samples="5 s"),
        Reads("2: `__consumer_offsets`", records=True),
        Reads("3: `server.log`", server=True),
        Reads("3: `server.log` and samples", server=True, samples="ahead"),
        Reads("4: `server.log` and `__consumer_offsets`", records=True, server=True),
    )
}
"""By name."""

SAMPLED = tuple(name for name, one in RUNGS.items() if one.samples and not one.server)

CLASSIC = tuple(
    one for one in SCENARIOS.values() if one.share and not one.protocol and not one.loses and not one.middle
)
"""Scenarios of classic groups in which nothing of the evidence is lost: what damages the request log is none here."""

EPOCHS = tuple(SCENARIOS[name] for name in ("consumer", "consumer, failover", "migration", "migration, moves"))
"""Of groups that have epochs. Share groups are not listed by the client library."""


def scored(run: Run, rung: str) -> Score:
    """A run without its request log."""
    reads = RUNGS[rung]
    blind = replace(run, scenario=replace(run.scenario, requests=False))
    return score(blind, observe(blind, records=reads.records, server=reads.server, samples=reads.samples))


def broken(found: Score) -> list[str]:
    """What no rung may say."""
    return [text for text in found.problems if text.startswith(NEVER)]


def on_all_rungs(version: str, seed: int, groups: int, scenario: Scenario) -> dict[str, Score]:
    """One run on each rung that is played of its groups."""
    run = play(version, seed, groups, scenario, ASKERS)
    return {rung: scored(run, rung) for rung in (SAMPLED if scenario.protocol else RUNGS)}


def table(sums: dict[str, Score]) -> str:
    """What was found on each rung, and what is wrong."""
    columns: dict[str, Callable[[Score], str]] = {
        "evictions found": lambda one: _of(one, "evictions: found", "evictions"),
        "other ends found": lambda one: _of(one, "other ends: found", "other ends"),
        "ends between two instants": lambda one: str(_ends_between(one)),
        "triggers right": lambda one: _of(one, "rebalances: trigger right", "rebalances"),
        "rebalances between two instants": lambda one: str(one.counts["rebalances: shown by samples"]),
        "states right": lambda one: _of(one, "states: right", "states"),
        "invented": lambda one: str(sum(one.counts[f"problem: {name}"] for name in INVENTED)),
        "untrue": lambda one: str(sum(one.counts[f"problem: {name}"] for name in UNTRUE)),
    }
    lines = [f"| rung | {' | '.join(columns)} |", "|---|" + "---|" * len(columns)]
    for rung, found in sums.items():
        lines.append(f"| {rung} | " + " | ".join(told(found) for told in columns.values()) + " |")
    widths = [width for found in sums.values() for width in found.errors.get("width of the bounds of an end", ())]
    if widths:
        lines.append(f"\nBounds of an end: {statistics.median(widths):,.0f} ms in the median, {max(widths):,} at most.")
    return "\n".join(lines) + "\n"


def _of(found: Score, part: str, whole: str) -> str:
    return f"{found.counts[part]} of {found.counts[whole]}"


def _ends_between(found: Score) -> int:
    return sum(found.counts[f"{kind}: within their bounds"] for kind in ("evictions", "other ends"))


def main() -> int:
    """Play, take evidence away, score."""
    parser = argparse.ArgumentParser(prog="python -m tests.truth.fleet.evidence_levels", description=__doc__)
    parser.add_argument("--groups", type=int, default=30)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--version", choices=VERSIONS, action="append")
    parser.add_argument("--scenario", choices=[one.name for one in (*CLASSIC, *EPOCHS)], action="append")
    parser.add_argument("--markdown", type=Path, help="a page with marks to write the tables to")
    options = parser.parse_args()
    classic = {rung: Score() for rung in RUNGS}
    epochs = {rung: Score() for rung in SAMPLED}
    for version in options.version or VERSIONS:
        for scenario in (*CLASSIC, *EPOCHS):
            if (options.scenario and scenario.name not in options.scenario) or not scenario.is_played_by(version):
                continue
            sums = epochs if scenario.protocol else classic
            for rung, found in on_all_rungs(version, options.seed, options.groups, scenario).items():
                sums[rung].add(found, f"rung {rung}, {version}, {scenario.name}, seed {options.seed}")
    versions = " ".join(f"--version {version}" for version in options.version or VERSIONS)
    told = (
        f"`python -m tests.truth.fleet.evidence_levels --groups {options.groups} --seed {options.seed} {versions}`, "
        f"classic groups:\n\n{table(classic)}\nGroups that have epochs, or migrate, sampled:\n\n{table(epochs)}"
    )
    sys.stdout.write(f"{told}\n")
    if options.markdown:
        text = options.markdown.read_text(encoding="utf-8")
        first, last = text.index(BEGIN) + len(BEGIN), text.index(END)
        options.markdown.write_text(f"{text[:first]}\n{told}{text[last:]}", encoding="utf-8")
    problems = [text for found in (*classic.values(), *epochs.values()) for text in found.problems]
    wrong = [text for text in problems if any(f": {name}:" in text for name in NEVER)]
    sys.stdout.writelines(f"{text}\n" for text in wrong[:20])
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
