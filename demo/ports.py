"""Ports for what a demo, a test or a benchmark starts: free now, and claimed until this process ends.

Whoever draws a port starts a server on it seconds later. A port that is only looked at may be drawn by another run
beside this one meanwhile, and one of the two servers does not start, or is taken for the other one. So each drawn port
is claimed by a lock on a file, which the system takes back when the process ends, however it ends. One that the system
had to give, because none was found in the range, is not.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import socket
from collections import deque

from spark_jobs.jvm.cache import cache_dir
from supervise.process import ProcessError

HOST = "127.0.0.1"

_OWN_PORTS = range(15_000, 32_000)
"""Below what Linux (32768 and up) and others (49152 and up) give to clients."""

_TRIES = 20

_CLAIMS_MAX = 200
"""Each is an open file."""

_claims: deque[int] = deque()
"""Files that are locked for as long as this process lives, or until it has drawn `_CLAIMS_MAX` more."""


def free_ports(count: int) -> list[int]:
    """Ports on the loopback address that nobody listens on now and no other run has drawn; all different.

    They are below the range from which the system gives ports to clients, if one is free there: while a broker is down
    a client could be given its port, even the very client that tries to reach it, and the broker could not come back.
    """
    sockets = [socket.socket() for _ in range(count)]
    try:
        for one in sockets:
            _bind(one)
        return [int(one.getsockname()[1]) for one in sockets]
    except OSError as error:
        raise ProcessError(
            f"The system has no free port on {HOST} ({error.strerror}). End programs that hold many connections, or "
            "widen the range of local ports."
        ) from error
    finally:
        for one in sockets:
            one.close()


def _bind(one: socket.socket) -> None:
    """Give a socket a port that is free: of those that no client is given, else of all."""
    for _ in range(_TRIES):
        port = secrets.choice(_OWN_PORTS)
        try:
            if _claim(port):
                one.bind((HOST, port))
                return
        except OSError:
            continue
    one.bind((HOST, 0))


def _claim(port: int) -> bool:
    """Claim a port, if neither this process nor another one of this user has claimed it already; whether it is now."""
    folder = cache_dir() / "ports"
    folder.mkdir(parents=True, exist_ok=True)
    file = os.open(folder / str(port), os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(file)
        return False
    if len(_claims) == _CLAIMS_MAX:
        os.close(_claims.popleft())
    _claims.append(file)
    return True
