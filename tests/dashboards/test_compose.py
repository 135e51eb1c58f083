"""docker-compose.yml without a container engine: its shape, what it mounts, and every command line it starts.

What cannot be seen here: whether the images exist and what runs inside them.
"""

from __future__ import annotations

import importlib
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import typer.main
import yaml
from grafana_foundation_sdk.builders.dashboard import TextBoxVariable

from cli.main import app
from dashboards.sources import INFINITY, sources
from demo.broker_logging import log4j2_xml
from kardia import __version__
from tests.dashboards.questions import BOARDS

ROOT = Path(__file__).parents[2]
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]

WORDS = {"type": "array", "items": {"type": "string"}, "minItems": 1}
SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["name", "services", "volumes"],
    "additionalProperties": False,
    "patternProperties": {"^x-": {"type": "object"}},
    "properties": {
        "name": {"pattern": "^[a-z0-9][a-z0-9_-]*$"},
        "volumes": {"additionalProperties": {"type": "object", "maxProperties": 0}},
        "services": {
            "additionalProperties": {
                "type": "object",
                "additionalProperties": False,
                "required": [
                    "image",
                    "user",
                    "cap_drop",
                    "security_opt",
                    "pids_limit",
                    "mem_limit",
                    "healthcheck",
                    "restart",
                ],
                "properties": {
                    "image": {"type": "string", "pattern": r"^[a-z0-9/_-]+:v?\d+\.\d+\.\d+$"},
                    "build": {"type": "object", "required": ["context", "dockerfile"]},
                    "user": {"pattern": r"^[1-9]\d*:\d+$"},
                    "profiles": {"const": ["live"]},
                    "restart": {"const": "unless-stopped"},
                    "cap_drop": {"const": ["ALL"]},
                    "security_opt": {"const": ["no-new-privileges:true"]},
                    "pids_limit": {"type": "integer"},
                    "mem_limit": {"pattern": r"^\d+[mg]$"},
                    "read_only": {"const": True},
                    "stdin_open": {"const": True},
                    "tmpfs": WORDS,
                    "entrypoint": WORDS,
                    "command": WORDS,
                    "environment": {"additionalProperties": {"type": "string"}},
                    "ports": {"type": "array", "items": {"pattern": r"^127\.0\.0\.1:\d+:\d+$"}},
                    "volumes": {"type": "array", "items": {"pattern": r"^[^:]+:/[^:]+(:ro)?$"}},
                    "depends_on": {
                        "additionalProperties": {
                            "type": "object",
                            "required": ["condition"],
                            "properties": {"condition": {"const": "service_healthy"}},
                        }
                    },
                    "healthcheck": {
                        "type": "object",
                        "required": ["test", "interval"],
                        "additionalProperties": False,
                        "properties": {
                            "test": {**WORDS, "prefixItems": [{"const": "CMD"}], "minItems": 2},
                            **{name: {"pattern": r"^\d+s$"} for name in ("interval", "timeout", "start_period")},
                            "retries": {"type": "integer"},
                        },
                    },
                },
            }
        },
    },
}


def test_it_has_the_shape_of_a_compose_file_and_everything_is_hardened() -> None:
    jsonschema.Draft202012Validator(SCHEMA).validate(COMPOSE)


@pytest.mark.parametrize(
    ("service", "change"),
    [
        ("serve", {"ports": ["8765:8765"]}),
        ("serve", {"privileged": True}),
        ("grafana", {"user": "0:0"}),
        ("grafana", {"image": "grafana/grafana:latest"}),
        ("broker", {"cap_drop": []}),
        ("broker", {"comand": ["typo"]}),
    ],
)
def test_the_shape_refuses_what_it_is_there_to_refuse(service: str, change: dict[str, Any]) -> None:
    spoilt = {**COMPOSE, "services": {**SERVICES, service: {**SERVICES[service], **change}}}
    assert list(jsonschema.Draft202012Validator(SCHEMA).iter_errors(spoilt))


def test_everything_that_is_named_exists() -> None:
    for name, service in SERVICES.items():
        for mount in service.get("volumes", ()):
            source = mount.split(":")[0]
            if source.startswith("."):
                assert (ROOT / source).exists(), (name, source)
                assert mount.endswith(":ro"), (name, mount)
            else:
                assert source in COMPOSE["volumes"], (name, source)
        for other in service.get("depends_on", ()):
            assert other in SERVICES, (name, other)
        if "build" in service:
            assert (ROOT / service["build"]["dockerfile"]).is_file()
            assert service["image"] in (f"kardia:{__version__}", f"kardia-live:{__version__}")
    used = {mount.split(":")[0] for service in SERVICES.values() for mount in service.get("volumes", ())}
    assert set(COMPOSE["volumes"]) <= used


IMAGES = {"Dockerfile": ROOT / ".dockerignore", "live.Dockerfile": ROOT / "compose" / "live.Dockerfile.dockerignore"}
"""Image below `compose` -> what of this folder is let through to those who build it."""


@pytest.mark.parametrize("image", IMAGES)
def test_the_base_image_is_pinned_by_digest(image: str) -> None:
    bases = re.findall(r"^FROM (\S+)", (ROOT / "compose" / image).read_text(), re.MULTILINE)
    assert bases
    assert all(re.fullmatch(r"[a-z]+:[\w.-]+@sha256:[0-9a-f]{64}", base) for base in bases)
    assert len(set(bases)) == 1


@pytest.mark.parametrize("image", IMAGES)
def test_what_the_image_copies_exists_and_is_let_through(image: str) -> None:
    copied = re.findall(r"^COPY (?!--from)(.*) \S+$", (ROOT / "compose" / image).read_text(), re.MULTILINE)
    let_through = {line[1:] for line in IMAGES[image].read_text().splitlines() if line.startswith("!")}
    names = {name for line in copied for name in line.split()}
    assert names == let_through
    wheel = re.search(r"packages = (\[.*\])", (ROOT / "pyproject.toml").read_text())
    assert wheel
    assert set(yaml.safe_load(wheel[1])) <= names
    for name in names:
        assert (ROOT / name).exists(), name


def test_no_secret_is_inside() -> None:
    for path in [ROOT / "docker-compose.yml", *(ROOT / "compose").rglob("*")]:
        if path.is_file():
            assert not re.search(r"(?i)(password|passwd|secret|api_?key)\s*[:=]", path.read_text()), path
    for service in SERVICES.values():
        assert not any("TOKEN" in name or "PASSWORD" in name for name in service.get("environment", ()))


def test_the_broker_logs_what_the_demo_logs() -> None:
    logging = ROOT / "compose" / "kafka" / "log4j2.xml"
    assert logging.read_text() == log4j2_xml(Path("/var/lib/kafka/data/logs"))
    assert "broker:/kafka:ro" in SERVICES["collect"]["volumes"]
    assert {"--request-log=/kafka/logs/kafka-request.log", "--server-log=/kafka/logs/server.log"} <= set(
        SERVICES["collect"]["command"]
    )


VERBS = sorted(
    name for name, service in SERVICES.items() if service["image"].startswith("kardia:") and "entrypoint" not in service
)
MODULES = sorted(name for name, service in SERVICES.items() if "entrypoint" in service)


def test_all_roles_are_there() -> None:
    assert [SERVICES[name]["command"][0] for name in VERBS] == VERBS == ["collect", "notify", "serve", "stream"]
    assert MODULES == ["consumer-1", "consumer-2", "consumer-static", "traffic"]


@pytest.mark.parametrize("name", VERBS)
def test_every_command_line_of_a_verb_is_understood_and_the_verb_starts(name: str) -> None:
    verb, *words = SERVICES[name]["command"]
    command = typer.main.get_command(app)
    found = command.commands[verb]  # type: ignore[attr-defined]
    with found.make_context(verb, list(words), resilient_parsing=False) as context:
        assert context.params
    done = subprocess.run(
        [sys.executable, "-m", "cli.main", verb, "--help"],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_one_process_follows_what_the_collector_follows_and_starts_only_where_it_is_named() -> None:
    live, collect = SERVICES["live"], SERVICES["collect"]
    found = typer.main.get_command(app).commands["live"]  # type: ignore[attr-defined]
    with found.make_context("live", list(live["command"]), resilient_parsing=False) as context:
        assert context.params["tables"] == Path("/var/lib/kardia/tables")
    followed = {word for word in collect["command"] if re.match("--(request-log|server-log|bootstrap-server)=", word)}
    assert followed <= set(live["command"])
    assert [name for name, service in SERVICES.items() if "profiles" in service] == ["live"]
    assert not any("live" in service.get("depends_on", ()) for service in SERVICES.values())
    port, inside = live["ports"][0].rsplit(":", 2)[1:]
    assert f"--port={inside}" in live["command"]
    head = (ROOT / "docker-compose.yml").read_text().partition("name: kardia")[0]
    [named] = re.findall(r"#   docker compose up --build (live .*?)     then http://localhost:(\d+)/", head)
    assert named[1] == port
    assert set(named[0].split()) == {"live", *MODULES}


@pytest.mark.parametrize("name", MODULES)
def test_every_command_line_of_a_module_is_understood(name: str) -> None:
    _, dash, module = SERVICES[name]["entrypoint"]
    assert dash == "-m"
    folder = re.search(r"^WORKDIR (\S+)$", (ROOT / "compose" / "Dockerfile").read_text(), re.MULTILINE)
    assert folder
    assert SERVICES[name]["environment"] == {"PYTHONPATH": folder[1]}, "the demo is beside what is installed"
    options = importlib.import_module(module).parse(SERVICES[name]["command"])
    assert options.bootstrap_server == "broker:9092"
    assert options.topic == "orders"


def test_prometheus_is_told_what_is_mounted() -> None:
    told = yaml.safe_load((ROOT / "compose" / "prometheus" / "prometheus.yml").read_text())
    mounts = [mount.split(":")[1] for mount in SERVICES["prometheus"]["volumes"]]
    assert set(told["rule_files"]) <= set(mounts)
    target = told["scrape_configs"][0]["static_configs"][0]["targets"][0]
    host, port = target.split(":")
    assert f"--port={port}" in SERVICES[host]["command"]


def test_grafana_finds_its_dashboards_its_sources_and_its_plugin() -> None:
    grafana = SERVICES["grafana"]
    mounts = {mount.split(":")[1]: mount.split(":")[0] for mount in grafana["volumes"]}
    provider = yaml.safe_load((ROOT / "compose" / "grafana" / "dashboards" / "kardia.yaml").read_text())["providers"][0]
    assert mounts[provider["options"]["path"]] == "./dashboards/json"
    home = Path(grafana["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"])
    assert (ROOT / mounts[str(home.parent)] / home.name).is_file()
    plugin = grafana["environment"]["GF_PLUGINS_PREINSTALL_SYNC"]
    assert re.fullmatch(rf"{INFINITY}@\d+\.\d+\.\d+", plugin), "one plugin, pinned"
    assert "grafana:/var/lib/grafana" in grafana["volumes"], "the plugin is fetched once"
    found = {}
    for path in (ROOT / "compose" / "grafana" / "datasources").glob("*.yaml"):
        for source in yaml.safe_load(path.read_text())["datasources"]:
            host, port = source["url"].removeprefix("http://").split(":")
            assert grafana["depends_on"][host] == {"condition": "service_healthy"}, source["name"]
            found[source["type"]] = source
            if host == "serve":
                assert f"--port={port}" in SERVICES[host]["command"]
    assert set(found) == {"prometheus", INFINITY}
    assert found["prometheus"]["isDefault"]
    assert found[INFINITY]["jsonData"]["allowedHosts"] == [found[INFINITY]["url"]], "it asks nobody else"
    refreshed_s = min(int(board["refresh"].removesuffix("s")) for board in BOARDS.values())
    assert found[INFINITY]["jsonData"]["timeoutInSeconds"] < refreshed_s, "a question that is replaced never fails"


def test_links_of_the_dashboards_lead_to_where_the_page_is_published() -> None:
    page = str(next(one for one in sources() if isinstance(one, TextBoxVariable)).build().query)
    assert page.removeprefix("http://").replace("localhost", "127.0.0.1") in {
        port.rpartition(":")[0] for port in SERVICES["serve"]["ports"]
    }


def test_prometheus_and_the_notifier_tell_the_same_alertmanager() -> None:
    prometheus = yaml.safe_load((ROOT / "compose" / "prometheus" / "prometheus.yml").read_text())
    [target] = prometheus["alerting"]["alertmanagers"][0]["static_configs"][0]["targets"]
    assert target.split(":")[0] in SERVICES
    assert f"--alertmanager=http://{target}" in SERVICES["notify"]["command"]
    mount = SERVICES["alertmanager"]["volumes"][0].split(":")[1]
    assert f"--config.file={mount}" in SERVICES["alertmanager"]["command"]


@pytest.mark.needs_alertmanager
def test_alertmanager_accepts_its_configuration() -> None:
    program = shutil.which("amtool")
    assert program
    checked = ROOT / "compose" / "alertmanager" / "alertmanager.yml"
    done = subprocess.run([program, "check-config", checked], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
