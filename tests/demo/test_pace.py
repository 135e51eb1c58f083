"""The witness of a busy machine: it sees a stall that was made, and what it sees is granted and said."""

from __future__ import annotations

import io
import os
import signal
import time
from dataclasses import replace
from pathlib import Path

import psutil
from rich.console import Console

from demo import pace, process, report, server_log
from demo.pace import Pace
from demo.verdict import Evidence, Tolerance, judge
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
        assert 100 <= running.worst_ms() <= pace.STALL_MAX_MS
    assert float((tmp_path / "log").read_text()) >= 100


def test_more_than_the_bound_is_not_granted(tmp_path: Path) -> None:
    with Pace(tmp_path / "log") as running:
        one = _looking(tmp_path / "log")
        one.suspend()
        time.sleep((pace.STALL_MAX_MS + 50) / 1000)
        one.resume()
        assert running.worst_ms() == pace.STALL_MAX_MS


def test_a_program_that_died_grants_nothing(tmp_path: Path) -> None:
    with Pace(tmp_path / "log") as running:
        os.kill(_looking(tmp_path / "log").pid, signal.SIGKILL)
        assert running.worst_ms() == 0


def _late(by_ms: int, stall_ms: int) -> Evidence:
    """A story whose eviction the broker logged so late, on a machine that stalled so long."""
    evidence = evidence_of(KILL)
    failed = next(fact for fact in evidence.facts if fact.what == server_log.MEMBER_FAILED)
    members = [
        {**row, "ended_at_ms": failed.at_ms - by_ms} if row["member_id"] == failed.member_id else row
        for row in evidence.members
    ]
    return replace(evidence, members=members, tolerance=Tolerance(stall_ms=stall_ms))


def test_a_stall_is_granted_and_no_more_than_that() -> None:
    before = judge(_late(0, 40)).faults
    assert judge(_late(50, 40)).faults == before
    assert any("-51 ms off" in fault for fault in judge(_late(51, 40)).faults)
    assert any("-50 ms off" in fault for fault in judge(_late(50, 0)).faults)
    assert Tolerance(stall_ms=200).median_ms == Tolerance().median_ms


def test_what_was_granted_is_said() -> None:
    def shown(evidence: Evidence) -> str:
        console = Console(file=io.StringIO(), width=200)
        report.show(console, judge(evidence), ())
        return console.file.getvalue()  # type: ignore[attr-defined,no-any-return]

    said = shown(_late(50, 40))
    assert "right, for so busy a machine" in said
    assert (
        "it kept a program waiting for 40 ms that wanted to run, so an instant may be 50 ms off instead of 10" in said
    )
    assert "busy" not in shown(_late(0, 0))
