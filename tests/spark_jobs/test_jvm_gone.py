"""A JVM that ends by itself, for want of memory or killed: the job says so in a sentence, and what to do."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from spark_jobs import stream
from spark_jobs.spark import session

NO_ANSWER = ConnectionRefusedError(111, "Connection refused")


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (stream.OUT_OF_MEMORY, "Spark's JVM has ended with status 52: it had no memory left"),
        (-signal.SIGKILL, "Spark's JVM has ended with status -9: its own words are above"),
    ],
)
def test_it_is_said_how_the_jvm_ended(status: int, said: str) -> None:
    told = str(stream.explain(None, NO_ANSWER, "checkpoint c", status))
    assert told.startswith(said)
    assert "Next: start again: the batch is repeated, nothing is lost" in told
    assert "KARDIA_STREAM_MAX_RECORDS" in told


def test_a_jvm_that_lives_is_not_blamed() -> None:
    assert "JVM" not in str(stream.explain(None, ValueError("SomeError: x"), "checkpoint c"))


@pytest.mark.parametrize(
    ("code", "status"), [("raise SystemExit(52)", 52), ("import time; time.sleep(60)", None), (None, None)]
)
def test_the_status_is_that_of_the_process(
    code: str | None, status: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process of Python stands for the JVM; None: it was there before us, so it is not ours to look at."""
    process = None if code is None else subprocess.Popen([sys.executable, "-c", code])
    if process is not None and status is not None:
        process.wait(60)
    else:
        monkeypatch.setattr(session, "ENDING_S", 0.05)
    spark: Any = None
    monkeypatch.setattr(session, "jvm_process", lambda _: process)
    try:
        assert session.ended_by_itself(spark) == status
    finally:
        if process is not None:
            process.kill()
            process.wait()


def test_a_jvm_that_ends_at_its_start_is_a_sentence(tmp_path: Path) -> None:
    """A script stands for Java: it says something and ends."""
    program = tmp_path / "bin" / "java"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\necho 'Could not reserve enough space' >&2\nexit 1\n")
    program.chmod(0o755)
    code = (
        "from pathlib import Path\n"
        "from spark_jobs.errors import StoppedError\n"
        "from spark_jobs.spark.session import start_session\n"
        "try:\n"
        f"    start_session('gone', 'local[1]', [], Path({str(tmp_path)!r}))\n"
        "except StoppedError as error:\n"
        "    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert "Spark's JVM has ended before it was ready" in done.stdout, done.stderr
    assert "Next: its own words are above" in done.stdout
    assert "Could not reserve enough space" in done.stderr
    assert "Traceback" not in done.stderr
