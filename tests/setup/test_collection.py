"""Which tests there are is known without reading a recording: a single test begins at once.

Only `expect.json` is read, which names the cases of a story. Method: pytest collects everything in a process of its
own, in which each file that is opened is looked at.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

COLLECT = """
import sys
import pytest

recordings = set()

def look(event, arguments):
    if event == "open" and "/tests/" in str(arguments[0]) and str(arguments[0]).endswith((".gz", ".log", ".jsonl")):
        recordings.add(str(arguments[0]))

sys.addaudithook(look)
status = pytest.main(["--collect-only", "-n", "0"])
print("RECORDINGS", *sorted(recordings))
sys.exit(status)
"""


@pytest.mark.long
def test_no_recording_is_read_to_know_which_tests_there_are() -> None:
    environ = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    done = subprocess.run(
        [sys.executable, "-c", COLLECT], cwd=ROOT, env=environ, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr[-2_000:]
    assert done.stdout.splitlines()[-1] == "RECORDINGS", "these are read while pytest collects"
