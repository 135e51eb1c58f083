"""`python -m dashboards.generate`: write `json/*.json`, `prometheus/*.yml` and `README.md` from the code."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import yaml
from grafana_foundation_sdk.cog.encoder import JSONEncoder

from api.settings import URL
from dashboards import fleet, group, member, readme, rebalances, rules, truth
from dashboards.panels import RUNBOOKS

HERE = Path(__file__).parent
HEADER = "# Written by `python -m dashboards.generate` from dashboards/rules.py; change that, not this.\n"


def files(runbooks: str = "", kardia: str = "") -> dict[Path, str]:
    """Path below this folder, and content, of everything that is generated."""
    runbooks, kardia = runbooks.rstrip("/"), kardia.rstrip("/")
    found: dict[Path, str] = {}
    dashboards = []
    for build in (fleet.build, group.build, member.build, rebalances.build, truth.build):
        content = JSONEncoder(sort_keys=True, indent=2).encode(build().build()) + "\n"
        dashboards.append(json.loads(content))
        # Panels name runbooks as they lie in the repository. `kardia serve` has them, where the variable `page` says it
        # is; `--runbooks` is where readers of Grafana find another copy.
        at = runbooks or f"{kardia or '${page}'}/runbooks"
        content = content.replace(f"{RUNBOOKS}/", f"{at}/")
        found[Path("json") / f"{dashboards[-1]['uid']}.json"] = content
    built = rules.build(runbooks, kardia or URL)
    for name, document in (("kardia.rules.yml", built), ("kardia.prometheusrule.yml", rules.for_operator(built))):
        written = yaml.safe_dump(document, sort_keys=False, width=118, allow_unicode=True)
        found[Path("prometheus") / name] = HEADER + written
    found[Path("README.md")] = readme.written(dashboards)
    return found


def main() -> None:
    """Write all files."""
    parser = argparse.ArgumentParser(description="Write Grafana dashboards and Prometheus rules.")
    parser.add_argument("--into", type=Path, default=HERE, help="folder to write into (this one)")
    parser.add_argument("--runbooks", default="", help="address of another copy of the runbooks than that of --kardia")
    parser.add_argument("--kardia", default="", help=f"address of `kardia serve`, in front of links ({URL})")
    given = parser.parse_args()
    for path, content in files(given.runbooks, given.kardia).items():
        target: Path = given.into / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(content)


if __name__ == "__main__":
    main()
