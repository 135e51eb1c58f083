"""Beside a real broker: one command, and a warning before the eviction.

A consumer with a session of eight seconds is killed. Somebody is told that its session runs out before it does, the
process answers that it was evicted, when and why, and its lag, all without a topic of events and without Java of ours.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from demo.broker import Broker
from demo.ports import free_ports
from demo.receiver import Receiver
from supervise import process
from tests.live.living import CLUSTER
from tests.live.test_process import SECONDS, asked, running
from tests.spark_jobs.support import ROOT

pytestmark = pytest.mark.slow

GROUP = f"/api/v1/clusters/{CLUSTER}/groups/g"


def members(port: int) -> list[dict[str, Any]]:
    found = asked(port, f"{GROUP}/members")
    return found["members"] if found else []


def test_a_warning_comes_before_the_eviction(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    said = tmp_path / "said"
    with Broker(tmp_path / "broker") as broker, Receiver(tmp_path / "told") as receiver:
        broker.create_topic("orders", 2)
        command = [
            *(sys.executable, "-m", "cli.main", "live", "--tables", str(tmp_path / "tables"), "--cluster", CLUSTER),
            *("--request-log", str(broker.request_log), "--server-log", str(broker.server_log)),
            *("--log-timezone", "UTC", "--bootstrap-server", broker.bootstrap, "--port", str(port)),
            *("--webhook", f"{receiver.url}/notifier"),
        ]
        consumer = [
            *(sys.executable, "-m", "demo.consumer", "--bootstrap-server", broker.bootstrap, "--group", "g"),
            *("--topic", "orders", "--client-id", "doomed"),
        ]
        with running(command, said), subprocess.Popen(consumer, cwd=ROOT, stdin=subprocess.PIPE) as doomed:
            try:
                process.until(
                    lambda: any(one["status"] == "ok" and one["client_id"] == "doomed" for one in members(port)),
                    SECONDS,
                    lambda: said.read_text()[-3000:],
                )
            finally:
                doomed.kill()
            killed_ms = time.time_ns() // 1_000_000
            found = process.until(
                lambda: asked(port, f"{GROUP}/evictions")["evictions"],
                SECONDS,
                lambda: json.dumps(members(port)),
            )
            told = [message for message in receiver.messages if "doomed" in json.dumps(message.body)]
    (eviction,) = found
    assert (eviction["client_id"], eviction["end_cause"]) == ("doomed", "session_expired")
    assert eviction["certainty"] == "exact"
    assert killed_ms < eviction["ended_at_ms"] < killed_ms + 9_000
    first = min(told, key=lambda message: message.at_ms)
    assert first.at_ms < eviction["ended_at_ms"], "nobody was told before"
    assert "traceback" not in said.read_text().lower()
