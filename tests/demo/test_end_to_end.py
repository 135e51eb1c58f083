"""`kardia demo` as a user calls it, killed and ended in order: nothing is left behind. That somebody is told, and that
every short run ends in a right verdict, is in `test_notified.py`; a run on an older broker is a long one."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import psutil
import pytest

from demo import server_log
from demo.broker import NEWEST
from demo.tables import Tables
from supervise import process
from tests.demo.support import alive, ends_well

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]

WAIT_S = 480.0
WITHIN_MS = 10_000
"""Instants are the demo's to judge, on an idle machine; here it is only asked that nothing is missed or invented."""


def _family(pid: int) -> list[psutil.Process]:
    """Everything that a process has started, directly or not: broker, roles, the JVM of Spark and its workers."""
    return psutil.Process(pid).children(recursive=True)


@pytest.fixture
def demo(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[tuple[subprocess.Popen[bytes], Path, Path]]:
    """The command with the options of the test, its directory, and a file with what it prints; killed at the end if it
    still runs."""
    directory, said = tmp_path / "run", tmp_path / "said"
    command = [sys.executable, "-m", "cli.main", "demo", "--directory", str(directory)]
    command += [*request.param, "--stay", "--within", str(WITHIN_MS)]
    with said.open("wb") as output:
        running = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, env=process.environ())
    try:
        yield running, directory, said
    finally:
        running.kill()
        running.wait()


@pytest.mark.long
@pytest.mark.parametrize(
    ("demo", "release", "processes"),
    [
        # Broker, three roles, the JVM of Spark, a consumer; in one process: broker, role, consumer.
        (("--scenario", "leave", "--scenario", "kill"), NEWEST, 6),
        (("--kafka", "3.9.2", "--scenario", "leave", "--scenario", "kill"), "3.9.2", 6),
        (("--engine", "local", "--scenario", "leave", "--scenario", "kill"), NEWEST, 3),
    ],
    indirect=["demo"],
    ids=["newest", "3.9.2", "local"],
)
def test_two_faults_from_a_real_broker_to_a_verdict(
    demo: tuple[subprocess.Popen[bytes], Path, Path], release: str, processes: int
) -> None:
    running, directory, said = demo

    def stays() -> bool:
        return running.poll() is not None or "Everything stays up" in said.read_text()

    process.until(stays, WAIT_S, said.read_text)
    text = said.read_text()
    assert running.poll() is None, text
    assert f"A Kafka {release} broker listens" in text
    url = re.search(r"API and page: (http://\S+)/", text)
    assert url is not None
    groups = httpx.get(f"{url[1]}/api/v1/clusters/demo/groups", timeout=60)
    assert groups.status_code == 200
    assert "checkout" in groups.text
    family = _family(running.pid)
    assert len(family) >= processes
    running.send_signal(signal.SIGTERM)
    ends_well(running, directory)
    for table in ("members", "rebalances", "transitions"):
        assert f"Replayed from the archived logs: {table} equal" in text
    facts = server_log.read(directory / "broker" / "logs" / "server.log")
    [failed] = [fact for fact in facts if fact.what == server_log.MEMBER_FAILED]
    members = {row["member_id"]: row for row in Tables(directory / "kardia" / "tables").standing("members")}
    assert members[failed.member_id]["end_cause"] == "session_expired"
    assert alive(family) == []


@pytest.mark.parametrize(
    ("demo", "role", "processes"),
    [(("--scenario", "kill"), "serve", 5), (("--scenario", "kill", "--engine", "local"), "live", 2)],
    indirect=["demo"],
    ids=["spark", "local"],
)
def test_a_demo_that_is_killed_leaves_nothing_running(
    demo: tuple[subprocess.Popen[bytes], Path, Path], role: str, processes: int
) -> None:
    running, _, said = demo
    process.until(
        lambda: running.poll() is not None or f"{role} is ready" in said.read_text(), WAIT_S, lambda: said.read_text()
    )
    assert running.poll() is None, said.read_text()
    family = _family(running.pid)
    assert len(family) >= processes
    running.kill()
    running.wait()
    process.until(lambda: not alive(family), 30.0, lambda: f"still running: {alive(family)}")
