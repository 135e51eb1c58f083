"""Prometheus and Alertmanager as roles of the demo, beside the notifier: the same three that docker-compose.yml starts.

Both are programs of the machine (Debian: `prometheus`, `prometheus-alertmanager`), found on the path; nothing is
fetched. Their settings are those of `compose/`, with other addresses; a test holds them together. They listen on
127.0.0.1 only, and Alertmanager tells the demo's own receiver.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

import dashboards
from demo.ports import HOST
from supervise.process import ProcessError
from supervise.roles import answers
from supervise.supervisor import Role

PROGRAMS = {
    "prometheus": ("prometheus",),
    "prometheus-alertmanager": ("prometheus-alertmanager", "alertmanager"),
}
"""Debian package -> names of its program; the project's own builds of Alertmanager have the shorter one."""

RULES = Path(dashboards.__file__).with_name("prometheus") / "kardia.rules.yml"


@dataclass(frozen=True)
class Programs:
    """Paths of the two programs."""

    prometheus: str
    alertmanager: str


@dataclass(frozen=True)
class Watchers:
    """The two programs and the ports that they are to have."""

    programs: Programs
    prometheus_port: int
    alertmanager_port: int

    @property
    def prometheus_url(self) -> str:
        """Address of Prometheus."""
        return f"http://{HOST}:{self.prometheus_port}"

    @property
    def alertmanager_url(self) -> str:
        """Address of Alertmanager."""
        return f"http://{HOST}:{self.alertmanager_port}"


def programs() -> Programs:
    """Prometheus and Alertmanager, or a ProcessError that names what is missing."""
    found = {package: next(filter(None, map(shutil.which, names)), None) for package, names in PROGRAMS.items()}
    missing = [package for package, path in found.items() if path is None]
    if missing:
        raise ProcessError(
            f"--with-prometheus needs programs that are not on the path: {', '.join(missing)}. Install the packages of "
            "these names (Debian, Ubuntu), or run the demo without it."
        )
    return Programs(str(found["prometheus"]), str(found["prometheus-alertmanager"]))


def prometheus_settings(api: str, alertmanager: str, rules: str) -> dict[str, Any]:
    """prometheus.yml: one scrape a second, as sessions of the demo are a few seconds long. Addresses are HOST:PORT."""
    return {
        "global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
        "rule_files": [rules],
        "scrape_configs": [{"job_name": "kardia", "static_configs": [{"targets": [api]}]}],
        "alerting": {"alertmanagers": [{"static_configs": [{"targets": [alertmanager]}]}]},
    }


def alertmanager_settings(webhook: str | None) -> dict[str, Any]:
    """alertmanager.yml: one notification per alert and group, told without waiting for others."""
    receiver: dict[str, Any] = {"name": "page"}
    if webhook is not None:
        receiver["webhook_configs"] = [{"url": webhook, "send_resolved": True}]
    return {
        "route": {
            "receiver": "page",
            "group_by": ["alertname", "cluster", "group"],
            "group_wait": "0s",
            "group_interval": "5s",
            "repeat_interval": "4h",
        },
        "receivers": [receiver],
    }


def roles(watchers: Watchers, api: str, webhook: str, directory: Path) -> list[Role]:
    """Alertmanager and Prometheus; `api` is where `kardia serve` answers, `webhook` whom Alertmanager tells."""
    directory.mkdir(parents=True, exist_ok=True)
    prometheus_file, alertmanager_file = directory / "prometheus.yml", directory / "alertmanager.yml"
    alertmanager_file.write_text(yaml.safe_dump(alertmanager_settings(webhook)), encoding="utf-8")
    settings = prometheus_settings(_place(api), _place(watchers.alertmanager_url), str(RULES))
    prometheus_file.write_text(yaml.safe_dump(settings), encoding="utf-8")
    return [
        Role(
            "alertmanager",
            [
                watchers.programs.alertmanager,
                f"--config.file={alertmanager_file}",
                f"--storage.path={directory / 'alertmanager'}",
                f"--web.listen-address={_place(watchers.alertmanager_url)}",
                "--cluster.listen-address=",  # alone: no port for other instances
            ],
            directory / "alertmanager.log",
            lambda: answers(f"{watchers.alertmanager_url}/-/ready"),
        ),
        Role(
            "prometheus",
            [
                watchers.programs.prometheus,
                f"--config.file={prometheus_file}",
                f"--storage.tsdb.path={directory / 'prometheus'}",
                f"--web.listen-address={_place(watchers.prometheus_url)}",
            ],
            directory / "prometheus.log",
            lambda: answers(f"{watchers.prometheus_url}/-/ready"),
        ),
    ]


def _place(url: str) -> str:
    return url.removeprefix("http://")
