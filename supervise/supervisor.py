"""Starts the roles of a machine as processes, watches them, restarts what falls, and stops them in order.

Used by `kardia up` and `kardia demo`. A role is ready when a condition of its own says so, never after a while; that
is told of each as soon as it is so, and again after a restart. One that falls is started again; one that keeps falling
stops the whole, with the end of its log in the message. If the supervisor itself dies, however it dies, the kernel ends
the roles (`process.spawn`).
It knows nothing of what the roles do.
"""

from __future__ import annotations

import signal
import subprocess
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from supervise import process
from supervise.process import ProcessError

READY_TIMEOUT_S = 180.0
"""Spark is ready in 15 s on two free cores and was seen to need 44 s on busy ones."""

STOP_PATIENCE_S = 30.0
"""A batch of the stream may take a few seconds to finish."""

RESTARTS_MAX = 5
RESTARTS_WINDOW_S = 300.0
"""More than five falls in five minutes is not bad luck: stop and show why."""

STUCK_S = 120.0
"""A role whose pulse stands still for that long is ended. No round takes half of it, whatever it waits for."""

PULSE_EVERY_S = 5.0

ABORT_S = 10.0
"""How long a role may take to write where it stands, before it is killed."""


@dataclass(frozen=True)
class Role:
    """One process to keep up. `ready` is asked until it says yes."""

    name: str
    command: Sequence[str]
    log: Path
    ready: Callable[[], bool]
    before_others: bool = False
    """Must be ready before any later role is started, because those need what it makes."""
    environ: Mapping[str, str] = field(default_factory=dict, repr=False)
    """What it gets beside this process's own environment; may hold secrets."""
    pulse: Callable[[], float | None] | None = None
    """A number that changes while it works, None where it gives none, 0 before it has begun; looked at once it is
    ready."""
    means: str = ""
    """What `ready` shows, for whoever reads that it is: `its first batch is in the tables`."""


class _Running:
    """One role while it is watched."""

    def __init__(self, role: Role) -> None:
        self.role = role
        self.falls: deque[float] = deque(maxlen=RESTARTS_MAX + 1)
        self.started_s = self.looked_s = self.moved_s = 0.0
        self.is_ready = False
        self.pulse: float | None = None
        self.process = self._start()

    def _start(self) -> subprocess.Popen[str]:
        self.started_s, self.is_ready, self.pulse = time.monotonic(), False, None
        # Whatever it stands in, SIGABRT writes it into its log.
        environ = {**process.environ(), "PYTHONFAULTHANDLER": "1", **self.role.environ}
        return process.spawn(self.role.command, log=self.role.log, environ=environ)

    def is_stuck(self) -> bool:
        """Whether its pulse, once it has begun, has stood still for too long, by looks made all the while."""
        now_s = time.monotonic()
        if self.role.pulse is None or not self.is_ready or now_s - self.looked_s < PULSE_EVERY_S:
            return False
        missed, self.looked_s = now_s - self.looked_s > STUCK_S / 2, now_s
        pulse = self.role.pulse()
        if missed or not self.pulse or pulse not in (None, self.pulse):
            self.pulse, self.moved_s = self.pulse if pulse is None else pulse, now_s
        return now_s - self.moved_s >= STUCK_S

    def abort(self) -> None:
        """End it, with its stacks in its log."""
        self.process.send_signal(signal.SIGABRT)
        try:
            self.process.wait(ABORT_S)
        except subprocess.TimeoutExpired:
            process.kill_session(self.process)
            self.process.wait()

    def restart(self) -> None:
        """Start it again, or a ProcessError if it has fallen too often."""
        now = time.monotonic()
        self.falls.append(now)
        if len(self.falls) > RESTARTS_MAX and now - self.falls[0] < RESTARTS_WINDOW_S:
            raise ProcessError(self.last_words(f"fell {len(self.falls)} times within {RESTARTS_WINDOW_S:.0f} s"))
        self.process = self._start()

    def became_ready(self) -> str:
        """The sentence for it, once; empty before and after."""
        if self.is_ready or not self.role.ready():
            return ""
        self.is_ready = True
        means = f": {self.role.means}" if self.role.means else ""
        again = " again" if self.falls else ""
        return f"{self.role.name} is ready{again} after {time.monotonic() - self.started_s:.1f} s{means}."

    def last_words(self, what: str) -> str:
        """A sentence with exit code and the end of the log."""
        return (
            f"{self.role.name} {what}, last with exit code {self.process.returncode}. Its log {self.role.log} ends:\n"
            f"{process.tail(self.role.log)}\nRemove the cause named there and start again; a restart loses nothing."
        )


class Supervisor:
    """The roles of one machine, a context manager. Roles are given in the order of the flow."""

    def __init__(self, roles: Sequence[Role], told: Callable[[str], None]) -> None:
        self._roles = roles
        self._told = told
        self._running: list[_Running] = []

    def __enter__(self) -> Supervisor:
        try:
            for role in self._roles:
                self._running.append(_Running(role))
                if role.before_others:
                    self._await_ready(self._running[-1:])
            self._await_ready(self._running)
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def pids(self) -> dict[str, int]:
        """Process id by role."""
        return {running.role.name: running.process.pid for running in self._running}

    def watch(self) -> None:
        """Look at all roles once; restart what has fallen, and say so, and when it is ready again."""
        for running in self._running:
            self._tell_ready(running)
            if running.is_stuck():
                running.abort()
                self._told(
                    f"{running.role.name} stood still for {STUCK_S:.0f} s and was ended; where it stood is at the end "
                    f"of its log ({running.role.log})."
                )
            if running.process.poll() is not None:
                code = running.process.returncode
                running.restart()
                self._told(
                    f"{running.role.name} ended with exit code {code} and was started again ({running.role.log})."
                )

    def stop(self) -> None:
        """Stop in the order of the flow, so that each role still reads what the one before wrote last. Idempotent."""
        while self._running:
            running = self._running[0]
            code = process.stop(running.process, STOP_PATIENCE_S)
            if code == -9:
                self._told(f"{running.role.name} did not stop within {STOP_PATIENCE_S:.0f} s and was killed.")
            del self._running[0]

    def _await_ready(self, awaited: Sequence[_Running]) -> None:
        """Until all of some are ready, each told in its turn."""

        def ready() -> bool:
            for running in awaited:
                if running.process.poll() is not None:
                    raise ProcessError(running.last_words("ended before it was ready"))
                self._tell_ready(running)
            return all(running.is_ready for running in awaited)

        def late() -> str:
            waits = [running.role for running in awaited if not running.is_ready]
            return "\n".join(
                f"{role.name} was not ready after {READY_TIMEOUT_S:.0f} s. Its log {role.log} ends:\n"
                f"{process.tail(role.log)}"
                for role in waits
            )

        process.until(ready, READY_TIMEOUT_S, late)

    def _tell_ready(self, running: _Running) -> None:
        sentence = running.became_ready()
        if sentence:
            self._told(sentence)
