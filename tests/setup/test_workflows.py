"""What runs on a forge: workflows take no right that they do not need, and call what the Makefile has."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
TARGETS = set(re.findall(r"(?m)^([a-z-]+):", (ROOT / "Makefile").read_text()))


def steps(workflow: dict[str, Any]) -> list[dict[str, Any]]:
    return [step for job in workflow["jobs"].values() for step in job["steps"]]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_may_only_read_and_ends_by_itself(path: Path) -> None:
    workflow = yaml.safe_load(path.read_text())
    assert workflow["permissions"] == {"contents": "read"}
    for job in workflow["jobs"].values():
        assert "permissions" not in job
        assert job["timeout-minutes"] <= 350
    for step in steps(workflow):
        if step.get("uses", "").startswith("actions/checkout@"):
            assert step["with"]["persist-credentials"] is False
        assert re.match(r"actions/[a-z-]+@v\d+$", step.get("uses", "actions/none@v1")), "actions of the forge only"


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_runs_what_is_there(path: Path) -> None:
    workflow = yaml.safe_load(path.read_text())
    matrix = {
        name
        for job in workflow["jobs"].values()
        for name in job.get("strategy", {}).get("matrix", {}).get("target", ())
    }
    for step in steps(workflow):
        program, *words = step.get("run", ".ci/run").split()
        if program == "make":
            assert {word for word in words if re.fullmatch(r"[a-z-]+", word)} | matrix <= TARGETS
        else:
            assert (ROOT / program).is_file()


def test_who_reports_something_told_wrong_is_asked_for_the_incident() -> None:
    for path in (ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"):
        asked = yaml.safe_load(path.read_text())
        assert path.name in ("config.yml", "not-understood.yml") or "kardia incident" in str(asked["body"]), path.name
