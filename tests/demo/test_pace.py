"""The witness of a busy machine: it sees a stall that was made, and what it sees is said."""

from __future__ import annotations

import io
import os
import signal
import time
from dataclasses import replace
from pathlib import Path

import psutil
from rich.console import Console

from demo import process, server_log
from demo.pace import Pace
from demo.show import _conclude
from demo.verdict import judge
from tests.demo.test_verdict import KILL, evidence_of


def _looking(log: Path) -> psutil.Process:
    """The measuring program, once it has become itself and waits for its first pause to end."""

    def found() -> psutil.Process | None:
        for child in psutil.Process().children():
            if "demo.pace" in child.cmdline() and "launch" not in " ".join(child.cmdline()):
                return child
        return None

    one = process.until(found, 60, lambda: "the program has not started")
    process.until(lambda: sum(one.cpu_times()[:2]) > 0 and one.num_ctx_switches().voluntary > 50, 60, lambda: "idle")
    return one


def test_a_stall_is_measured(tmp_path: Path) -> None:
    with Pace(tmp_path / "log") as running:
        one = _looking(tmp_path / "log")
        one.suspend()
        time.sleep(0.12)  # the stall itself, which is what is measured
        one.resume()
        assert running.worst_ms() >= 100
    assert float((tmp_path / "log").read_text().split()[1]) >= 100


def test_a_program_that_died_says_nothing(tmp_path: Path) -> None:
    with Pace(tmp_path / "log") as running:
        os.kill(_looking(tmp_path / "log").pid, signal.SIGKILL)
        assert running.worst_ms() == 0


def test_a_verdict_is_as_strict_on_a_busy_machine_which_is_said() -> None:
    """The stall explains; it grants nothing."""

    def shown(stall_ms: int) -> str:
        console = Console(file=io.StringIO(), width=200)
        _conclude(console, verdict.faults, verdict, stall_ms)
        return console.file.getvalue()  # type: ignore[attr-defined,no-any-return]

    evidence = evidence_of(KILL)
    failed = next(fact for fact in evidence.facts if fact.what == server_log.MEMBER_FAILED)
    members = [
        {**row, "ended_at_ms": failed.at_ms - 50} if row["member_id"] == failed.member_id else row
        for row in evidence.members
    ]
    verdict = judge(replace(evidence, members=members))
    assert any("-50 ms off" in fault for fault in verdict.faults)
    assert "kept a program waiting for 40 ms" in shown(40)
    assert "--within 50" in shown(40)
    assert "busy" not in shown(3)
