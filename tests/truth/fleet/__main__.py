"""`python -m tests.truth.fleet --groups N --version V --seed S [--scenario NAME] [--json]`: one run, its scores.

`--total N` plays N groups instead, in many runs of `--groups` with the seeds from `--seed` on, over all releases and
scenarios in turn, and `--markdown PAGE` puts the sums between the marks of a page (`many`). Exit status 1 when a goal
is missed. The same arguments always give the same run.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from tests.truth.fleet.many import CLASSIC, EPOCHS, many, told, write
from tests.truth.fleet.report import Report, judged, missed, table
from tests.truth.fleet.scenarios import PLAIN, SCENARIOS

VERSIONS = ("3.9.2", "4.1.2", "4.4.0")
WITH_EPOCHS = ("4.0.2", "4.1.2", "4.2.1", "4.3.1", "4.4.0")
OLD_VERSIONS = ("2.0.1", "2.3.1", "2.7.2")
"""Whose request log is text; played when they are named."""


def main() -> int:
    """Play, observe, score, print."""
    parser = argparse.ArgumentParser(prog="python -m tests.truth.fleet", description=__doc__)
    parser.add_argument("--groups", type=int, default=100, help="groups on the broker")
    parser.add_argument(
        "--version",
        choices=tuple(dict.fromkeys((*OLD_VERSIONS, *VERSIONS, *WITH_EPOCHS))),
        action="append",
        help="release of the broker; may be repeated; 3.9.2, 4.1.2 and 4.4.0 if none is named",
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--scenario", choices=SCENARIOS, help="what befalls brokers and evidence")
    parser.add_argument("--epochs", action="store_true", help="groups of the newer protocols, and those that migrate")
    parser.add_argument("--total", type=int, default=0, help="groups of many runs together")
    parser.add_argument("--processes", type=int, default=2, help="with --total: runs at a time")
    parser.add_argument("--markdown", type=Path, help="with --total: a page with marks to write the sums to")
    parser.add_argument("--json", action="store_true", help="counts, errors and problems as JSON")
    options = parser.parse_args()
    versions = options.version or (WITH_EPOCHS if options.epochs else VERSIONS)
    scenario = SCENARIOS.get(options.scenario)
    if options.total:
        of_turn = [one for one in SCENARIOS.values() if one.share and bool(one.protocol) == options.epochs]
        scenarios = [scenario] if scenario is not None else of_turn
        sums = many(versions, scenarios, options.total, options.groups, options.seed, options.processes)
        sys.stdout.write(told(sums, problems=True))
        if options.markdown:
            write(sums, options.markdown, EPOCHS if options.epochs else CLASSIC)
        return 1 if any(missed(report) for report in sums) else 0
    reports: list[Report] = [judged(version, options.seed, options.groups, scenario or PLAIN) for version in versions]
    if options.json:
        sys.stdout.write(json.dumps([report.as_json() for report in reports], indent=1) + "\n")
    else:
        sys.stdout.write(table(reports))
    return 1 if any(missed(report) for report in reports) else 0


if __name__ == "__main__":
    raise SystemExit(main())
