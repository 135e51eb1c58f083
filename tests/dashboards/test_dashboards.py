"""What dashboards and rules name exists: every series, in `/metrics` of a real API over a filled table directory."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from api.notify.metrics import NotifyMetrics
from api.settings import ApiSettings
from dashboards import generate, rules
from spark_jobs.metrics import Metrics as JobMetrics
from tests.api.conftest import Api, Clock, running
from tests.api.written import NOW_MS, Tables, health, lag, looked, member, prediction, progress, rebalance, transition
from tests.dashboards import questions
from tests.dashboards.questions import filled

FOLDER = Path(generate.__file__).parent
ROOT = FOLDER.parent
VALUES = {"cluster": "demo", "group": "orders"}


def queries() -> list[tuple[str, str]]:
    """(where, expression) of every panel and rule."""
    found = [(one.where, filled(one.expr, VALUES)) for one in questions.series()]
    return found + [(alert.name, alert.expr) for alert in rules.ALERTS]


@pytest.fixture(scope="module")
def series(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[dict[str, str]]]:
    """Name of a series -> its label sets, as scraped."""
    tables = Tables(tmp_path_factory.mktemp("metrics") / "tables")
    tables.create()
    tables.batch(
        0,
        transition("orders", 1, "Stable"),
        member("orders", "a"),
        member("orders", "b", ended_at_ms=NOW_MS, end_cause="session_expired"),
        health("orders", "a", status="imminent"),
        rebalance("orders", NOW_MS - 900),
        prediction("orders", "a", "session"),
        lag("orders", 0, 7),
        looked(),
        prediction("orders", "b", "session", outcome="came_true", outcome_at_ms=NOW_MS, lead_ms=4_000),
        progress(NOW_MS),
    )
    with running(ApiSettings(tables=tables.root, refresh_ms=20), Clock()) as url:
        api = Api(url)
        api.wait_for_batch(0)
        api.get("/api/v1/clusters")
        text = api.client.get("/metrics").text
        api.client.close()
    notifier = NotifyMetrics()
    notifier.begin("webhook-1")
    text = text.removesuffix("# EOF\n") + generate_latest(notifier.registry).decode()
    text += generate_latest(JobMetrics().registry).decode()
    found: dict[str, list[dict[str, str]]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            found.setdefault(sample.name, []).append(sample.labels)
    return found


def test_what_is_committed_is_what_the_code_gives() -> None:
    for path, content in generate.files().items():
        assert (FOLDER / path).read_text() == content, f"run python -m dashboards.generate: {path} differs"
    committed = {path.relative_to(FOLDER) for path in FOLDER.glob("json/*")}
    assert len(committed) == 5
    assert committed == {path for path in generate.files() if path.parent.name == "json"}


def test_every_series_that_a_panel_or_a_rule_names_is_scraped_with_its_labels(
    series: dict[str, list[dict[str, str]]],
) -> None:
    assert len(queries()) > 30
    for where, expr in queries():
        # What fires is Prometheus's own series.
        expr = re.sub(r"\bALERTS{[^}]*}", "ALERTS", expr)
        names = re.findall(r"\bkardia_\w+", expr)
        assert names or "ALERTS" in expr, (where, expr)
        if not names or expr.startswith("kardia_stream_"):
            continue  # of another program
        for name in names:
            assert name in series, f"{where}: no series is called {name}"
        labels = {label for name in names for label in series[name][0]} | {"instance"}  # that one is Prometheus's
        for wanted in re.findall(r"[{,](\w+)(?:=|!~|=~|!=)", expr):
            assert wanted in labels, f"{where}: {names} have no label {wanted}"
        for grouped in re.findall(r"by \(([^)]*)\)", expr):
            assert set(grouped.split(", ")) <= labels, f"{where}: {names} are not grouped by {grouped}"


def test_no_member_client_or_host_is_a_label(series: dict[str, list[dict[str, str]]]) -> None:
    allowed = {"cluster", "group", "state", "status", "kind", "trigger", "cause", "outcome", "what", "table", "version"}
    allowed |= {
        "source",
        "certainty",
        "threshold",
        "method",
        "route",
        "limit",
        "le",
        "quantile",
        "why",
        "reason",
        "target",
        *("program", "stage", "step"),  # of the job
    }
    of_partitions = {"topic", "partition"}  # of series that are capped (`metrics_lag_partitions_max`)
    for name, found in series.items():
        extra = of_partitions if name.startswith("kardia_partition_lag_") else set()
        assert set().union(*found) <= allowed | extra, name


def test_alerts_say_what_is_wrong_and_where_to_read_on() -> None:
    for alert in rules.ALERTS:
        assert alert.severity in ("critical", "warning", "info")
        assert alert.summary.endswith(".")
        assert "{{" not in alert.summary
        assert "{{" in alert.description or alert.name == "KardiaAbsent", "what is absent has no labels"
        runbook = (ROOT / "docs" / "runbooks" / alert.runbook).read_text()
        for chapter in ("**Meaning.**", "**Impact.**", "**Look.**", "**Do.**"):
            assert chapter in runbook, (alert.runbook, chapter)


def promtool(*arguments: Any) -> None:
    program = shutil.which("promtool")
    assert program is not None
    done = subprocess.run([program, *map(str, arguments)], capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.needs_promtool
def test_promtool_accepts_the_rules_and_their_tests_pass() -> None:
    promtool("check", "rules", "--lint=all", "--lint-fatal", FOLDER / "prometheus" / "kardia.rules.yml")
    promtool("test", "rules", FOLDER / "prometheus" / "kardia.rules.test.yml")


def test_the_operators_object_holds_the_same_rules() -> None:
    plain, of_operator = (
        yaml.safe_load((FOLDER / "prometheus" / name).read_text())
        for name in ("kardia.rules.yml", "kardia.prometheusrule.yml")
    )
    assert (of_operator["apiVersion"], of_operator["kind"]) == ("monitoring.coreos.com/v1", "PrometheusRule")
    assert of_operator["spec"] == plain


@pytest.mark.needs_promtool
def test_promtool_understands_every_query_of_every_panel(tmp_path: Path) -> None:
    recorded = [{"record": f"query:{at}", "expr": expr} for at, (_, expr) in enumerate(queries())]
    path = tmp_path / "queries.yml"
    path.write_text(yaml.safe_dump({"groups": [{"name": "queries", "rules": recorded}]}))
    promtool("check", "rules", path)


def test_another_address_of_the_runbooks_is_put_in_front() -> None:
    elsewhere = generate.files("https://example.org/kardia")
    for path, content in elsewhere.items():
        assert path.suffix != ".json" or "/runbooks" not in content.replace("/kardia/", ""), path
        assert path.suffix != ".json" or "https://example.org/kardia/" in content, path
    for rule in rules.build("https://example.org/kardia")["groups"][0]["rules"]:
        assert rule["annotations"]["runbook_url"].startswith("https://example.org/kardia/")
