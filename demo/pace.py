"""How long this machine keeps a program waiting that wants to run: the witness of a machine that is busy otherwise.

Run as a program it asks for short sleeps and remembers by how much the longest was overslept, until its standard input
ends; then it prints that, in ms. A process of its own, because threads of the demo wait for each other as well.
"""

from __future__ import annotations

import contextlib
import select
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from demo import process

PAUSE_S = 0.002
"""Shorter than the stalls that matter (10 ms), long enough to cost nothing (500 looks a second, 1 % of a processor)."""

_PATIENCE_S = 10.0


class Pace:
    """The program beside a run; a context manager. `worst_ms` ends it and says what it found."""

    def __init__(self, log: Path) -> None:
        self._log = log
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        command = [sys.executable, "-m", "demo.pace"]
        self._process = process.spawn(command, log=self._log, environ=process.environ(), commanded=True)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is not None:
            process.stop(self._process, _PATIENCE_S)

    def worst_ms(self) -> int:
        """The longest stall until now, in whole ms; 0 where nothing could be measured."""
        if self._process is None or self._process.stdin is None:
            return 0
        self._process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired, OSError, ValueError):
            self._process.wait(_PATIENCE_S)
            return int(float(self._log.read_text("ascii")))
        return 0


def main() -> None:
    """Measure until nobody holds the other end of standard input any more."""
    worst_s = 0.0
    while True:
        began_s = time.monotonic()
        ended, _, _ = select.select([sys.stdin], [], [], PAUSE_S)
        worst_s = max(worst_s, time.monotonic() - began_s - PAUSE_S)
        if ended:
            break
    sys.stdout.write(f"{worst_s * 1000:.1f}\n")


if __name__ == "__main__":
    main()
