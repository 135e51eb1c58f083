"""A night of ten minutes, whole: broker, `kardia up`, consumers, and faults by chance, with a seed that is the same."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from supervise import process
from tests.night.faults import ROLES_OF

MINUTES = 10
SEED = 7


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.timeout(3_000)
@pytest.mark.parametrize("engine", ROLES_OF)
def test_a_night_of_ten_minutes_ends_with_nothing_wrong(tmp_path: Path, engine: str) -> None:
    command = [sys.executable, "-m", "tests.night", "--minutes", str(MINUTES), "--seed", str(SEED), "--engine", engine]
    done = subprocess.run(
        [*command, "--directory", str(tmp_path / "night")],
        capture_output=True,
        text=True,
        env=process.environ(),
        timeout=2_700,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-6_000:] + done.stderr[-2_000:]
    assert done.stdout.splitlines()[-1].startswith("Nothing is wrong.")
