"""`python -m dashboards.generate`: write `json/*.json` and `prometheus/kardia.rules.yml` from the code beside it."""

from __future__ import annotations

import argparse
from pathlib import Path

import yaml
from grafana_foundation_sdk.builders.dashboard import Dashboard
from grafana_foundation_sdk.cog.encoder import JSONEncoder

from dashboards import group, groups, rules

HERE = Path(__file__).parent
HEADER = "# Written by `python -m dashboards.generate` from dashboards/rules.py; change that, not this.\n"


def files(runbooks: str = rules.RUNBOOKS, kardia: str = "") -> dict[Path, str]:
    """Path below this folder, and content, of everything that is generated."""
    dashboards: dict[str, Dashboard] = {groups.UID: groups.build(), group.UID: group.build()}
    found = {
        Path("json") / f"{uid}.json": JSONEncoder(sort_keys=True, indent=2).encode(dashboard.build()) + "\n"
        for uid, dashboard in dashboards.items()
    }
    written = yaml.safe_dump(rules.build(runbooks, kardia), sort_keys=False, width=118, allow_unicode=True)
    found[Path("prometheus") / "kardia.rules.yml"] = HEADER + written
    return found


def main() -> None:
    """Write all files."""
    parser = argparse.ArgumentParser(description="Write Grafana dashboards and Prometheus rules.")
    parser.add_argument("--into", type=Path, default=HERE, help="folder to write into (this one)")
    parser.add_argument("--runbooks", default=rules.RUNBOOKS, help="address in front of the names of the runbooks")
    parser.add_argument("--kardia", default="", help="address of `kardia serve`, in front of links to incident reports")
    given = parser.parse_args()
    for path, content in files(given.runbooks, given.kardia).items():
        target: Path = given.into / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(content)


if __name__ == "__main__":
    main()
