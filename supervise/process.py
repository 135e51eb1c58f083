"""Child processes that cannot outlive their parent, and waiting by condition. Knows nothing of Kafka or Kardia.

A child gets a session of its own, so that Ctrl-C in a terminal reaches the parent only and the parent ends its children
in order. On Linux the kernel kills the child when the thread that started it dies, however it dies (`launch`): start
children from a thread that lives as long as they should.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, TypeVar

T = TypeVar("T")

_LAUNCH = Path(__file__).with_name("launch.py")

POLL_S = 0.05
"""How often a condition is looked at; small beside everything that is waited for here (0.3 s and more)."""


class ProcessError(RuntimeError):
    """A process did not do what it must; the message says which, what was expected, and what it said last."""


def spawn(
    command: Sequence[str],
    *,
    log: Path,
    environ: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    commanded: bool = False,
) -> subprocess.Popen[str]:
    """Start a process that dies with this one. Its output goes to `log`; `commanded` keeps its standard input open."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as output:
        return subprocess.Popen(
            [sys.executable, "-I", "-S", str(_LAUNCH), str(os.getpid()), *command],
            stdin=subprocess.PIPE if commanded else subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            text=True,
            env=None if environ is None else dict(environ),
            cwd=cwd,
            start_new_session=True,
        )


def environ() -> dict[str, str]:
    """This process's environment, with the folder of these packages in reach of `python -m`."""
    here = str(_LAUNCH.parent.parent)
    known = os.environ.get("PYTHONPATH", "")
    return dict(os.environ, PYTHONPATH=here + (os.pathsep + known if known else ""))


def stop(process: subprocess.Popen[str], patience_s: float) -> int:
    """SIGTERM, then SIGKILL to its whole session after `patience_s`; returns the exit code. Idempotent."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(patience_s)
        except subprocess.TimeoutExpired:
            kill_session(process)
    _close(process.stdin)
    return process.wait()


def kill_session(process: subprocess.Popen[str]) -> None:
    """SIGKILL for the process and everything that it started in its session."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def _close(stream: IO[str] | None) -> None:
    if stream is not None and not stream.closed:
        try:
            stream.close()
        except BrokenPipeError:
            return


@contextlib.contextmanager
def stoppable() -> Iterator[None]:
    """Within it SIGTERM does what Ctrl-C does: a KeyboardInterrupt, so that everything started is stopped in order."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def until(
    condition: Callable[[], T | None], timeout_s: float, sentence: Callable[[], str], pause_s: float = POLL_S
) -> T:
    """Value of `condition` as soon as it is true; after `timeout_s` a ProcessError with `sentence()`."""
    deadline = time.monotonic() + timeout_s
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() >= deadline:
            raise ProcessError(sentence())
        time.sleep(pause_s)


def tail(path: Path, lines: int = 12, limit: int = 64_000) -> str:
    """Last lines of a text file, read from its end; says so if there is none."""
    try:
        with path.open("rb") as file:
            file.seek(0, 2)
            file.seek(max(0, file.tell() - limit))
            text = file.read().decode("utf-8", "replace")
    except OSError:
        return f"({path} cannot be read)"
    kept = text.splitlines()[-lines:]
    return "\n".join(f"    {line[:400]}" for line in kept) or "    (it said nothing)"
