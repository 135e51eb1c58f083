"""Roles of Kardia as processes of a measurement: started with a log file, ended with it."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

END_S = 60
"""How long a role may take to end in order before it is killed."""


@contextlib.contextmanager
def role(log: Path, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """`kardia ARGUMENTS`, what it says going to `log`."""
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "cli.main", *arguments], stdout=output, stderr=subprocess.STDOUT
        )
        try:
            yield process
        finally:
            process.terminate()
            try:
                process.wait(END_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
