"""`kardia live` as a process: killed with SIGKILL at each numbered step, refused beside another one, stopped in order,
and telling a webhook what it sees."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from demo.ports import free_ports
from spark_jobs.replay.run import Inputs, replay
from spark_jobs.writers.faults import VARIABLE
from supervise import process
from tests.live.living import CLUSTER
from tests.live.test_same_rows import FACTORY, FACTS, facts_in, known_at
from tests.spark_jobs.support import ROOT
from tests.support.stories import Story

pytestmark = pytest.mark.slow

STORY = "c04_mpi-4.1.2"
SECONDS = 60.0


class Logs:
    """The logs of a story, whole."""

    def __init__(self, directory: Path) -> None:
        self.story = Story(STORY)
        self.paths = {name: directory / name for name in ("kafka-request.log", "server.log")}
        for name, path in self.paths.items():
            path.write_bytes(gzip.decompress((self.story.folder / f"{name}.gz").read_bytes()))

    def command(self, tables: Path, port: int, *more: str) -> list[str]:
        return [
            *(sys.executable, "-m", "cli.main", "live", "--tables", str(tables), "--cluster", CLUSTER),
            *("--request-log", str(self.paths["kafka-request.log"]), "--server-log", str(self.paths["server.log"])),
            *("--log-timezone", self.story.zone, "--port", str(port), *more),
        ]


@contextmanager
def running(command: list[str], said: Path, fault: str = "") -> Iterator[subprocess.Popen[bytes]]:
    environment = {name: value for name, value in os.environ.items() if name != VARIABLE}
    if fault:
        environment[VARIABLE] = fault
    with said.open("ab") as output:
        started = subprocess.Popen(command, cwd=ROOT, stdout=output, stderr=output, env=environment)
        try:
            yield started
        finally:
            if started.poll() is None:
                started.kill()
            started.wait()


def asked(port: int, path: str) -> Any:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as answer:
            return json.load(answer)
    except OSError:
        return None


def is_written(port: int) -> bool:
    """Whether all of the logs is in the tables: the log has ended long ago, so it is complete up to about now."""
    found = asked(port, f"/api/v1/clusters/{CLUSTER}")
    if not found:
        return False
    told = found["freshness"]
    return bool(told["in_tables"] and not told["stale"])


def stopped(one: subprocess.Popen[bytes], port: int, said: Path) -> None:
    """Everything is written, and the process ends in order."""
    process.until(lambda: is_written(port) or one.poll() is not None, SECONDS, lambda: said.read_text()[-3000:])
    one.send_signal(signal.SIGTERM)
    assert one.wait(SECONDS) == 0, said.read_text()[-3000:]


def facts_by_the_end(tables: Path, end_ms: float) -> dict[str, Any]:
    """What is known by the last line; what the silence since then is said to be depends on when that was."""
    found = facts_in(tables)
    return {name: {row: count for row, count in found[name].items() if known_at(row) <= end_ms} for name in FACTS}


FAULTS = ("file:before@3", "file:written@2", "transitions:written@2", "progress:before@2", "progress:written@3")
"""Steps of the batch that has all of the story, and of one after it."""


@pytest.mark.parametrize("fault", FAULTS)
def test_killed_at_a_step_it_goes_on(fault: str, tmp_path: Path) -> None:
    logs, tables, said = Logs(tmp_path), tmp_path / "tables", tmp_path / "said"
    (port,) = free_ports(1)
    replay(Inputs([logs.paths["kafka-request.log"]], [logs.paths["server.log"]]), tmp_path / "replayed", FACTORY)
    with running(logs.command(tables, port), said, fault) as one:
        assert one.wait(SECONDS) == -signal.SIGKILL, said.read_text()[-3000:]
    with running(logs.command(tables, port), said) as one:
        stopped(one, port, said)
    replayed = facts_in(tmp_path / "replayed")
    end_ms = max(known_at(row) for rows in replayed.values() for row in rows)
    assert facts_by_the_end(tables, end_ms) == {name: dict(rows) for name, rows in replayed.items()}


def test_two_on_one_directory_are_refused(tmp_path: Path) -> None:
    logs, tables, said = Logs(tmp_path), tmp_path / "tables", tmp_path / "said"
    port, other = free_ports(2)
    with running(logs.command(tables, port), said) as one:
        process.until(lambda: is_written(port), SECONDS, lambda: said.read_text()[-3000:])
        second = tmp_path / "second"
        with running(logs.command(tables, other), second) as two:
            assert two.wait(SECONDS) == 2
        assert "another run holds it" in second.read_text()
        assert "Next: stop the other run" in second.read_text()
        stopped(one, port, said)
    assert said.read_text().splitlines()[-1] == "live: stopped; everything that was read is in the tables"
