"""From `kill -9` of a real consumer to a received notification, through everything there is in between.

Broker log, collector, topic, Spark, Delta, notifier, a real Alertmanager, a real Prometheus, a receiver over HTTP:
`kardia demo --with-prometheus` as a user starts it, stretched so that a busy machine has twelve seconds to tell before
the session is over. What is asserted is who was told of what, and that the instants of the legs lie in the order of
cause and effect; how long a leg took is printed, and depends on the machine.
"""

from __future__ import annotations

import json
import logging
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from demo import server_log
from demo.broker import NEWEST
from demo.receiver import FROM_ALERTMANAGER, FROM_NOTIFIER
from demo.tables import Tables
from supervise import process
from tests.demo.support import alive, ends_well
from tests.support.links import report_asked

pytestmark = [
    pytest.mark.slow,
    pytest.mark.needs_alertmanager,
    pytest.mark.needs_prometheus,
    pytest.mark.timeout(1200),
]

log = logging.getLogger(__name__)

WAIT_S = 480.0
WITHIN_MS = 10_000
SESSION = "KafkaGroupSessionTimeoutImminent"
LABELS = {"alertname": SESSION, "severity": "critical", "cluster": "demo", "group": "checkout"}


@pytest.fixture
def running(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """The command; killed at the end if it still runs."""
    command = [sys.executable, "-m", "cli.main", "demo", "--with-prometheus", "--stay"]
    command += ["--scenario", "leave", "--scenario", "kill"]
    command += ["--directory", str(tmp_path / "run"), "--within", str(WITHIN_MS), "--stretch", "3"]
    with (tmp_path / "said").open("wb") as output:
        found = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, env=process.environ())
    try:
        yield found
    finally:
        found.kill()
        found.wait()


@pytest.mark.long
def test_somebody_is_told_that_a_consumer_was_killed(running: subprocess.Popen[bytes], tmp_path: Path) -> None:
    said = tmp_path / "said"

    def stays() -> bool:
        return running.poll() is not None or "Everything stays up" in said.read_text()

    process.until(stays, WAIT_S, said.read_text)
    text = said.read_text()
    assert running.poll() is None, text
    assert f"A Kafka {NEWEST} broker listens" in text
    log.warning("%s", text[text.find("Who was told") :])

    alarm = tmp_path / "run" / "alarm"
    messages = [json.loads(line) for line in (alarm / "received.jsonl").read_text().splitlines()]
    paged = [alert for alert in _alerts(messages) if alert["labels"] == LABELS and alert["status"] == "firing"]
    assert "roup checkout" in paged[0]["annotations"]["description"]
    pushed = [one["body"] for one in messages if one["path"] == FROM_NOTIFIER]
    raised = [one for one in pushed if one["type"].endswith("raised") and one["data"]["labels"] == LABELS]
    assert raised[0]["data"]["members"] == ["checkout-1 at 127.0.0.1"]

    # The broker itself says who was gone, and it is the one that the alert was about.
    facts = server_log.read(tmp_path / "run" / "broker" / "logs" / "server.log")
    [failed] = [fact for fact in facts if fact.what == server_log.MEMBER_FAILED]
    delays = [one for one in json.loads((alarm / "alerts.json").read_text()) if one["alert"] == SESSION]
    [told] = [one for one in delays if one["member_id"] == failed.member_id]
    assert (told["fault"], told["group_id"]) == ("kill", "checkout")
    legs = ("evidence_at_ms", "published_at_ms", "committed_at_ms", "raised_at_ms", "pushed_at_ms")
    instants = [told[name] for name in legs]
    assert instants == sorted(instants), told
    # Whichever of the two roads came first: nothing is known before it is in the tables.
    assert told["committed_at_ms"] <= told["received_at_ms"]

    # Its link leads somewhere, and Prometheus has what it needs to tell the same.
    address, parameters = report_asked(told["incident_url"])
    incident = httpx.get(address, params=parameters, trust_env=False, timeout=60)
    assert incident.status_code == 200
    assert "checkout-1" in incident.text
    prometheus = re.search(r"Prometheus: (http://\S+)/", text)
    assert prometheus
    [scraped] = _get(f"{prometheus[1]}/api/v1/query?query=max_over_time(up[1h])")["data"]["result"]
    assert (scraped["metric"]["job"], scraped["value"][1]) == ("kardia", "1")
    rules = {
        rule["name"]: rule for one in _get(f"{prometheus[1]}/api/v1/rules")["data"]["groups"] for rule in one["rules"]
    }
    assert rules[SESSION]["health"] == "ok"
    [manager] = _get(f"{prometheus[1]}/api/v1/alertmanagers")["data"]["activeAlertmanagers"]
    assert manager["url"].startswith(re.findall(r"Alertmanager: (http://\S+)/", text)[0])

    family = psutil.Process(running.pid).children(recursive=True)
    assert len(family) >= 8  # broker, four roles, the JVM of Spark, Prometheus, Alertmanager
    running.send_signal(signal.SIGTERM)
    ends_well(running, tmp_path / "run")
    assert alive(family) == []
    for table in ("members", "rebalances", "transitions"):
        assert f"Replayed from the archived logs: {table} equal" in text
    members = {row["member_id"]: row for row in Tables(tmp_path / "run" / "kardia" / "tables").standing("members")}
    assert members[failed.member_id]["end_cause"] == "session_expired"


def _alerts(messages: list[Any]) -> list[Any]:
    """All alerts of all notifications of Alertmanager."""
    return [alert for one in messages if one["path"] == FROM_ALERTMANAGER for alert in one["body"]["alerts"]]


def _get(url: str) -> Any:
    return httpx.get(url, trust_env=False, timeout=60).raise_for_status().json()
