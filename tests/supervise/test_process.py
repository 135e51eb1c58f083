"""Processes: nothing outlives its parent, a stop waits and then kills, waiting is for conditions."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from supervise import process
from supervise.process import ProcessError

WAIT_S = 20.0

SLEEPER = [sys.executable, "-c", "import signal; print('up', flush=True); signal.pause()"]
STUBBORN = [
    sys.executable,
    "-c",
    "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True)\nwhile True: signal.pause()",
]


def _up(log: Path) -> None:
    process.until(lambda: log.exists() and "up" in log.read_text(), WAIT_S, lambda: "it did not come up")


def test_a_killed_parent_leaves_no_orphan(tmp_path: Path) -> None:
    """The parent is killed with SIGKILL, so no code of it runs any more; its child must end all the same."""
    parent = (
        "import pathlib, signal, sys\n"
        "from supervise import process\n"
        f"child = process.spawn({SLEEPER!r}, log=pathlib.Path({str(tmp_path / 'child.log')!r}))\n"
        "print(child.pid, flush=True)\n"
        "signal.pause()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", parent], stdout=subprocess.PIPE, text=True, env=process.environ()
    ) as running:
        assert running.stdout is not None
        child = psutil.Process(int(running.stdout.readline()))
        _up(tmp_path / "child.log")
        assert child.is_running()
        running.send_signal(signal.SIGKILL)
    process.until(lambda: not psutil.pid_exists(child.pid) or child.status() == "zombie", WAIT_S, lambda: "an orphan")


def test_a_process_that_ignores_the_request_is_killed(tmp_path: Path) -> None:
    log = tmp_path / "log"
    running = process.spawn(STUBBORN, log=log)
    _up(log)
    assert process.stop(running, patience_s=0.1) == -signal.SIGKILL
    assert process.stop(running, patience_s=0.1) == -signal.SIGKILL


def test_a_process_that_obeys_ends_by_the_request(tmp_path: Path) -> None:
    log = tmp_path / "log"
    running = process.spawn(SLEEPER, log=log)
    _up(log)
    assert process.stop(running, patience_s=WAIT_S) == -signal.SIGTERM


def test_what_never_happens_ends_in_its_sentence() -> None:
    with pytest.raises(ProcessError, match="it did not happen"):
        process.until(lambda: None, 0.0, lambda: "it did not happen")
    assert process.until(lambda: 7, 0.0, lambda: "") == 7


def test_the_end_of_a_log_is_short_whatever_is_in_it(tmp_path: Path) -> None:
    log = tmp_path / "log"
    assert "cannot be read" in process.tail(log)
    log.write_bytes(b"")
    assert "said nothing" in process.tail(log)
    log.write_bytes(b"x" * 1_000_000 + b"\n" + b"\xff\xfe last\n")
    assert process.tail(log, lines=1).endswith("last")
    assert len(process.tail(log)) < 1_000


def test_sigterm_is_an_interrupt_while_stoppable() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(KeyboardInterrupt), process.stoppable():
        signal.raise_signal(signal.SIGTERM)
    assert signal.getsignal(signal.SIGTERM) is before
