"""`kardia up` on a real broker, one word of kardia.yaml changed, and changed back: as whoever outgrows it does.

A consumer lives through all of it. It is one member throughout, and no gap is told, though nobody read meanwhile.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from demo.broker import Broker
from demo.ports import free_ports
from spark_jobs.leases import table_owner
from supervise import process
from tests.live.living import CLUSTER
from tests.live.test_process import asked, running
from tests.spark_jobs.support import ROOT, rows

pytestmark = pytest.mark.slow

SECONDS = 300.0
"""For Spark on a busy machine."""

GROUP = f"/api/v1/clusters/{CLUSTER}/groups/g"


def is_well(port: int) -> bool:
    """Whether the member is there and well, by an answer that is not old."""
    found = asked(port, f"{GROUP}/members")
    return bool(found) and not found["freshness"]["stale"] and [one["status"] for one in found["members"]] == ["ok"]


@pytest.mark.long
def test_one_word_moves_the_tables_and_back(tmp_path: Path) -> None:
    collect, stream, serve = free_ports(3)
    path = tmp_path / "kardia.yaml"
    with Broker(tmp_path / "broker") as broker:
        broker.create_topic("orders", 2)
        settings: dict[str, Any] = {
            "cluster": CLUSTER,
            "bootstrap_server": broker.bootstrap,
            "data": str(tmp_path / "data"),
            "collect": {"request_log": str(broker.request_log), "log_timezone": "UTC", "metrics_port": collect},
            "stream": {"metrics_port": stream},
            "serve": {"port": serve},
        }
        consumer = [
            *(sys.executable, "-m", "demo.consumer", "--bootstrap-server", broker.bootstrap, "--group", "g"),
            *("--topic", "orders", "--client-id", "steady"),
        ]
        with subprocess.Popen(consumer, cwd=ROOT, stdin=subprocess.PIPE) as steady:
            try:
                for place, engine in enumerate(("local", "spark", "local")):
                    path.write_text(yaml.safe_dump(settings | {"engine": engine}))
                    said = tmp_path / f"said-{place}"
                    with running([sys.executable, "-m", "cli.main", "up", "--config", str(path)], said) as up:
                        process.until(lambda: is_well(serve) or up.poll() is not None, SECONDS, said.read_text)
                        assert up.poll() is None, said.read_text()
                        assert ("they are moved to" in said.read_text()) is (place > 0)
                        up.send_signal(signal.SIGTERM)
                        assert up.wait(SECONDS) == 0, said.read_text()
            finally:
                steady.kill()
    tables = tmp_path / "data" / "tables"
    assert table_owner.engine_of(tables) == table_owner.LOCAL
    lives = {row["member_id"]: row for row in rows(tables, "members") if row["client_id"] == "steady"}
    assert [row["ended_at_ms"] for row in lives.values()] == [None]
    assert sum(row["gaps"] for row in rows(tables, "progress")) == 0
