"""`python -m tests.truth.fleet --groups N --version V --seed S [--reloads] [--json]`: one run, its scores as a table.

Exit status 1 when a goal is missed. The same arguments always give the same run.
"""

from __future__ import annotations

import argparse
import json
import sys

from tests.truth.fleet.report import Report, judged, missed, table

VERSIONS = ("3.9.2", "4.1.2", "4.4.0")


def main() -> int:
    """Play, observe, score, print."""
    parser = argparse.ArgumentParser(prog="python -m tests.truth.fleet", description=__doc__)
    parser.add_argument("--groups", type=int, default=100, help="groups on the broker")
    parser.add_argument("--version", choices=VERSIONS, action="append", help="release of the broker; may be repeated")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--reloads", action="store_true", help="the coordinator also gives groups up and loads them")
    parser.add_argument("--json", action="store_true", help="counts, errors and problems as JSON")
    options = parser.parse_args()
    reports: list[Report] = [
        judged(version, options.seed, options.groups, reloads=options.reloads)
        for version in options.version or VERSIONS
    ]
    if options.json:
        sys.stdout.write(json.dumps([report.as_json() for report in reports], indent=1) + "\n")
    else:
        sys.stdout.write(table(reports))
    return 1 if any(missed(report) for report in reports) else 0


if __name__ == "__main__":
    raise SystemExit(main())
