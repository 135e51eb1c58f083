"""Runs a command that the kernel kills when its parent dies: `python -I -S launch.py PARENT_PID COMMAND...`.

A program of its own rather than a hook between fork and exec, which is unsafe in a parent that has threads. The wish is
kept over exec (`man 2 prctl`, PR_SET_PDEATHSIG); it costs 20 ms per start. Outside Linux it only runs the command.
"""

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def main(parent: int, command: list[str]) -> None:
    """Replace this process by the command."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL))
    if os.getppid() != parent:
        sys.exit(f"The parent {parent} of {command[0]} ended before it could be started.")
    os.execvp(command[0], command)  # noqa: S606 - the whole point: become the command, without a shell


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
