"""`demo.scheduling_delay` measures a delay that the test makes, and the demo reports what it measured."""

from __future__ import annotations

import io
import os
import signal
import time
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from rich.console import Console

from demo import report, server_log
from demo.evidence import WITHIN_MS
from demo.scheduling_delay import AROUND_MS, Pace
from demo.show import _conclude
from demo.verdict import Verdict, judge
from supervise import process
from tests.demo.test_verdict import KILL, evidence_of


def _looking(log: Path) -> psutil.Process:
    """The measuring program, once it has become itself and waits for its first pause to end."""

    def found() -> psutil.Process | None:
        for child in psutil.Process().children():
            if "demo.scheduling_delay" in child.cmdline() and "launch" not in " ".join(child.cmdline()):
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


def late_by(off_ms: int, stalls: list[tuple[int, float]] | None = None) -> tuple[Verdict, int]:
    """The verdict where one end is so far off the broker's log, and the instant of the broker; stalls from there."""
    evidence = evidence_of(KILL)
    failed = next(fact for fact in evidence.facts if fact.what == server_log.MEMBER_FAILED)
    members = [
        {**row, "ended_at_ms": failed.at_ms + off_ms} if row["member_id"] == failed.member_id else row
        for row in evidence.members
    ]
    seen = [(failed.at_ms + ended_ms, stall_ms) for ended_ms, stall_ms in stalls or []]
    return judge(replace(evidence, members=members, stalls=seen)), failed.at_ms


def shown(verdict: Verdict, stall_ms: int = 0) -> str:
    console = Console(file=io.StringIO(), width=200)
    report.show(console, verdict, [])
    _conclude(console, verdict.faults, verdict, stall_ms)
    return console.file.getvalue()  # type: ignore[attr-defined,no-any-return]


def test_what_was_not_seen_grants_nothing_and_a_busy_machine_is_named() -> None:
    verdict, _ = late_by(-50)
    assert any("-50 ms off" in fault for fault in verdict.faults)
    assert "kept a program waiting for 40 ms" in shown(verdict, 40)
    assert "--within 50" in shown(verdict, 40)
    assert "busy" not in shown(verdict, 3)


@pytest.mark.parametrize("off_ms", [-1, 1])
def test_as_much_more_is_allowed_as_a_program_was_kept_waiting_then(off_ms: int) -> None:
    stalls = [(-1_400, 5.0), (1_400, 7.9)]
    for error_ms, right in ((10, True), (17, True), (18, False)):
        verdict, _ = late_by(off_ms * error_ms, stalls)
        assert (not verdict.faults) == right, verdict.faults
        assert f"{off_ms * error_ms:+d} ms" in shown(verdict)  # the error stands there, allowed or not
        assert ("1 of them was allowed more" in shown(verdict)) == (right and error_ms > WITHIN_MS)
    assert "up to 7 ms more" in shown(late_by(off_ms * 17, stalls)[0])
    assert "Allowed: 10 ms." in shown(late_by(off_ms * 10, stalls)[0])


@pytest.mark.parametrize("ended_ms", [-AROUND_MS - 1, AROUND_MS + 21])
def test_a_stall_at_another_time_allows_nothing(ended_ms: int) -> None:
    assert late_by(11, [(ended_ms, 20.0)])[0].faults
    assert not late_by(11)[0].excused
    assert not late_by(11, [(0, 20.0)])[0].faults
