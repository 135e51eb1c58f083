"""`python -m tests.truth.follow [--stories] [--fleet] [--groups N] [--seeds A B ...] [--version V ...] [--json]`.

What the follower (`kardia/follow`) makes of all recorded stories, healthy and disturbed apart, and of the simulated
fleet's scenarios: answers predicted, windows explained, surprises by class, session evictions (hit; within the instants
that are said; near, which is not within; invented; said as possible only; how wide what is said of them is), and CPU.
Without --stories and --fleet both. `--cpu` holds the CPU of the follower beside that of the observer, given the same
requests. The same arguments give the same counts.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence

from tests.truth.follow.cpu import costs
from tests.truth.follow.measured import (
    CLASSIC_SCENARIOS,
    HEALTHY,
    WELL_EVIDENCED,
    Measured,
    of_run,
    of_story,
    scenario_of,
    stories,
    total,
)

VERSIONS = ("3.9.2", "4.4.0")
CLASSES = ("evidence_missing", "settings_unknown", "broker_not_as_release", "own_mistake")


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m tests.truth.follow", description=__doc__)
    parser.add_argument("--stories", action="store_true", help="recorded stories")
    parser.add_argument("--fleet", action="store_true", help="simulated runs")
    parser.add_argument("--cpu", action="store_true", help="beside the observer, in microseconds per request")
    parser.add_argument("--groups", type=int, default=20, help="groups of a run")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2], help="a run of each scenario and release each")
    parser.add_argument("--version", action="append", help="release of the fleet's brokers; may be repeated")
    parser.add_argument("--scenario", action="append", choices=CLASSIC_SCENARIOS, help="may be repeated; all if absent")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--surprises", action="store_true", help="print each surprise as well")
    options = parser.parse_args()
    whole = not (options.stories or options.fleet or options.cpu)
    found: list[Measured] = []
    if options.stories or whole:
        found += of_stories()
    if options.fleet or whole:
        found += of_fleet(options.version or VERSIONS, options.seeds, options.groups, options.scenario)
    cpu = costs() if options.cpu or whole else []
    if options.json:
        told = {"measured": [one.as_json() for one in found], "cpu": cpu}
        sys.stdout.write(json.dumps(told, indent=1) + "\n")
        return 0
    sys.stdout.write(table(found) if found else "")
    if options.surprises:
        sys.stdout.write("".join(f"{one.name}: {surprise}\n" for one in found for surprise in one.surprises))
    for row in cpu:
        sys.stdout.write(
            f"{row['name']}: {row['requests']:,} requests, follower {row['follower_us']} µs a request, with who went "
            f"{row['with_ends_us']} µs, observer {row['observer_us']} µs; quiet path of the follower "
            f"{row['quiet_us']} µs\n"
        )
    return 0


def of_stories() -> list[Measured]:
    """Healthy ones, each disturbed one, and sums."""
    parts = [of_story(name) for name in stories()]
    parts = [one for one in parts if one.counts.answers]
    healthy = [one for one in parts if one.name in HEALTHY]
    disturbed = [one for one in parts if one.name not in HEALTHY]
    few = [one for one in disturbed if one.answers_share < 1]
    return [
        total(f"{len(healthy)} healthy stories", "healthy", healthy),
        total(f"{len(disturbed)} other stories", "disturbed", disturbed),
        *few,
    ]


def of_fleet(
    versions: Sequence[str], seeds: Sequence[int], groups: int, wanted: Sequence[str] | None
) -> list[Measured]:
    """Each scenario, and the sum of the well-evidenced ones."""
    found = []
    for name in wanted or CLASSIC_SCENARIOS:
        scenario = scenario_of(name)
        runs = [of_run(version, seed, groups, scenario) for version in versions for seed in seeds]
        found.append(total(name, runs[0].kind, runs))
    well = [one for one in found if one.name in WELL_EVIDENCED]
    upset = [one for one in found if one.name not in WELL_EVIDENCED]
    sums = [total("well evidenced, together", "well evidenced", well)] if well else []
    sums += [total("others, together", "upset", upset)] if upset else []
    return [*found, *sums]


def table(found: Sequence[Measured]) -> str:
    """As a table of Markdown."""
    head = ("", "answers", "predicted", "windows explained", *(one.replace("_", " ") for one in CLASSES))
    head += ("evictions hit, within, near, of", "invented", "possible, was not", "width ms, half, 90 %")
    head += ("replays", "µs a request")
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for one in found:
        counts = one.counts
        cells = [
            one.name,
            f"{counts.answers:,}",
            f"{100 * one.answers_share:.2f} %",
            f"{100 * one.windows_share:.2f} % of {counts.windows:,}",
            *(str(counts.surprising[name]) for name in CLASSES),
            f"{one.hit}, {one.within}, {one.near}, {one.evictions}",
            str(one.invented),
            f"{one.maybe}, {one.maybe_not}",
            f"{one.width_ms(0.5):,}, {one.width_ms(0.9):,}",
            str(counts.replays),
            f"{1e6 * one.cpu_s / max(counts.answers, 1):.1f}",
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    raise SystemExit(main())
