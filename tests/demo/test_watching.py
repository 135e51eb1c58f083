"""Prometheus and Alertmanager of the demo: set up as docker-compose.yml does it, and what is missing is said."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from demo import watching
from demo.watching import RULES, Programs, Watchers
from supervise.process import ProcessError
from supervise.supervisor import Supervisor

COMPOSE = Path(__file__).parents[2] / "compose"


def settings(name: str) -> Any:
    return yaml.safe_load((COMPOSE / name / f"{name}.yml").read_text())


def test_the_settings_are_those_of_compose() -> None:
    told = watching.prometheus_settings("serve:8765", "alertmanager:9093", "/etc/prometheus/kardia.rules.yml")
    assert told == settings("prometheus")
    assert watching.alertmanager_settings(None) == settings("alertmanager")
    told = watching.alertmanager_settings("http://127.0.0.1:1/x")
    assert told["receivers"][0].pop("webhook_configs") == [{"url": "http://127.0.0.1:1/x", "send_resolved": True}]
    assert told == settings("alertmanager")


def test_the_rules_are_there() -> None:
    assert [group["name"] for group in yaml.safe_load(RULES.read_text())["groups"]] == ["kardia"]


def test_a_program_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ProcessError, match="not on the path: prometheus, prometheus-alertmanager"):
        watching.programs()
    for name in ("prometheus", "alertmanager"):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    assert watching.programs() == Programs(str(tmp_path / "prometheus"), str(tmp_path / "alertmanager"))


@pytest.mark.needs_alertmanager
@pytest.mark.needs_prometheus
def test_both_programs_take_their_settings_and_become_ready(tmp_path: Path) -> None:
    from demo.ports import free_ports

    prometheus_port, alertmanager_port, api_port = free_ports(3)
    watchers = Watchers(watching.programs(), prometheus_port, alertmanager_port)
    found = watching.roles(watchers, f"http://127.0.0.1:{api_port}", "http://127.0.0.1:9/x", tmp_path / "alarm")
    told: list[str] = []
    with Supervisor(found, told.append) as running:
        running.watch()
    # Which is ready first is a matter of the machine.
    assert sorted(sentence.split()[0] for sentence in told) == ["alertmanager", "prometheus"]
