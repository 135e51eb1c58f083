"""Measures how long this machine delays a program that is ready to run: shows whether the machine was busy.

Run as a program it asks for short sleeps and remembers by how much the longest was overslept, until its standard input
ends; then it prints that, in ms. A process of its own, because threads of the demo wait for each other as well.
"""

from __future__ import annotations

import contextlib
import select
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Self

from supervise import process

PAUSE_S = 0.002
"""Shorter than the stalls that matter (10 ms), long enough to cost nothing (500 looks a second, 1 % of a processor)."""

_PATIENCE_S = 10.0

AROUND_MS = 1_500
"""A stall counts for what happened so long before and after it: whatever waited begins late as well."""

Stall = tuple[int, float]
"""(when it ended, epoch ms; how long it was, ms)."""


def kept_waiting_ms(stalls: Iterable[Stall], at_ms: float) -> int:
    """The longest that a program was seen to wait around an instant, whole ms; 0 if none was."""
    near = (long for ended, long in stalls if ended - long - AROUND_MS <= at_ms <= ended + AROUND_MS)
    return int(max(near, default=0.0))


class Pace:
    """The program beside a run; a context manager. `worst_ms` and `stalls` end it and say what it found. A stall of
    `each_ms` or more is noted with its instant; 0: none is."""

    def __init__(self, log: Path, each_ms: int = 0) -> None:
        self._log = log
        self._each_ms = each_ms
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        command = [sys.executable, "-m", "demo.scheduling_delay", str(self._each_ms)]
        self._process = process.spawn(command, log=self._log, environ=process.environ(), commanded=True)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is not None:
            process.stop(self._process, _PATIENCE_S)

    def worst_ms(self) -> int:
        """The longest stall until now, in whole ms; 0 where nothing could be measured."""
        return int(max((stall_ms for _, stall_ms in self._said()), default=0.0))

    def stalls(self) -> list[Stall]:
        """Each stall of `each_ms` or more: when it ended (epoch ms), and how long it was (ms)."""
        return [(int(at_ms), stall_ms) for at_ms, stall_ms in self._said() if at_ms]

    def _said(self) -> list[tuple[float, float]]:
        """The lines of the program, which ends now: instant and length of each stall, last the longest of all with the
        instant 0."""
        if self._process is None or self._process.stdin is None:
            return []
        with contextlib.suppress(subprocess.TimeoutExpired, OSError, ValueError):
            self._process.stdin.close()
            self._process.wait(_PATIENCE_S)
            pairs = [line.split() for line in self._log.read_text("ascii").splitlines()]
            return [(float(at_ms), float(stall_ms)) for at_ms, stall_ms in pairs]
        return []


def main() -> None:
    """Measure until nobody holds the other end of standard input any more."""
    each_s = float(sys.argv[1]) / 1000
    worst_s = 0.0
    while True:
        began_s = time.monotonic()
        ended, _, _ = select.select([sys.stdin], [], [], PAUSE_S)
        stall_s = time.monotonic() - began_s - PAUSE_S
        worst_s = max(worst_s, stall_s)
        if each_s and stall_s >= each_s:
            sys.stdout.write(f"{time.time_ns() // 1_000_000} {stall_s * 1000:.1f}\n")
        if ended:
            break
    sys.stdout.write(f"0 {worst_s * 1000:.1f}\n")


if __name__ == "__main__":
    main()
