"""The consumers of a story as processes: starts them, tells them what to do, kills them, hears what they say.

It only acts; what follows from it is for the broker to decide and for Kardia to see.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from demo.scenario import PARTITIONS, TOPIC, MemberPlan
from supervise import process

ASSIGNED_TIMEOUT_S = 60.0
"""A group on a fresh broker forms within 5 s; a busy machine may take ten times that."""

LEAVE_PATIENCE_S = 10.0


class Actor:
    """One consumer process, from start to end."""

    def __init__(self, plan: MemberPlan, bootstrap: str, log: Path) -> None:
        self.plan = plan
        self.log = log
        command = [
            *(sys.executable, "-m", "demo.consumer"),
            *("--bootstrap-server", bootstrap, "--group", plan.group_id, "--topic", TOPIC),
            *("--client-id", plan.client_id, "--instance-id", plan.instance_id),
            *("--session-timeout-ms", str(plan.session_timeout_ms)),
            *("--heartbeat-interval-ms", str(plan.session_timeout_ms // 4)),
            *("--poll-interval-ms", str(plan.poll_interval_ms), "--protocol", plan.protocol),
        ]
        self._from_byte = log.stat().st_size if log.exists() else 0
        self._process = process.spawn(command, log=log, environ=process.environ(), commanded=True)

    @property
    def pid(self) -> int:
        """Process id."""
        return self._process.pid

    @property
    def running(self) -> bool:
        """Whether the process is there."""
        return self._process.poll() is None

    def tell(self, command: str) -> None:
        """Send one command line."""
        if self._process.stdin is None or not self.running:
            raise process.ProcessError(
                f"{self.plan.client_id} cannot {command!r}: it has ended.\n{process.tail(self.log)}"
            )
        self._process.stdin.write(command + "\n")
        self._process.stdin.flush()

    def kill(self) -> None:
        """SIGKILL: no last words to anybody."""
        process.kill_session(self._process)
        self._process.wait()

    def leave(self) -> None:
        """Ask it to close, and wait until it has."""
        self.tell("leave")
        try:
            self._process.wait(LEAVE_PATIENCE_S)
        except subprocess.TimeoutExpired:
            self.kill()

    def stop(self) -> None:
        """End it in whatever way works; not part of any story."""
        process.stop(self._process, 0.5)

    def said(self) -> list[dict[str, Any]]:
        """What it has said since it started."""
        return words(self.log, self._from_byte)

    def has_assignment(self) -> bool:
        """Whether it holds partitions now, by its own account."""
        for word in reversed(self.said()):
            if word["what"] in ("assigned", "revoked", "lost"):
                return bool(word["what"] == "assigned")
        return False

    def await_start(self) -> None:
        """Return when its process is up; it joins its group after that."""
        process.until(
            lambda: any(word["what"] == "started" for word in self.said()),
            ASSIGNED_TIMEOUT_S,
            lambda: (
                f"{self.plan.client_id} has not started after {ASSIGNED_TIMEOUT_S:.0f} s.\n{process.tail(self.log)}"
            ),
        )

    def await_assignment(self) -> None:
        """Return when it holds partitions."""
        process.until(
            self.has_assignment,
            ASSIGNED_TIMEOUT_S,
            lambda: (
                f"{self.plan.client_id} has no partitions after {ASSIGNED_TIMEOUT_S:.0f} s.\n{process.tail(self.log)}"
            ),
        )


class Cast:
    """All consumers of a story and the producer that feeds them; a context manager that ends them all."""

    def __init__(self, bootstrap: str, directory: Path) -> None:
        self._bootstrap = bootstrap
        self._directory = directory
        self._actors: dict[str, Actor] = {}
        self._traffic: subprocess.Popen[str] | None = None

    def __enter__(self) -> Cast:
        command = [sys.executable, "-m", "demo.traffic", "--bootstrap-server", self._bootstrap]
        command += ["--topic", TOPIC, "--partitions", str(PARTITIONS)]
        self._traffic = process.spawn(command, log=self._directory / "traffic.log", environ=process.environ())
        return self

    def __exit__(self, *_: object) -> None:
        for actor in self._actors.values():
            actor.stop()
        if self._traffic is not None:
            process.stop(self._traffic, 2.0)

    @property
    def up(self) -> set[str]:
        """Client ids whose process runs."""
        return {client for client, actor in self._actors.items() if actor.running}

    def said(self) -> dict[str, list[dict[str, Any]]]:
        """What each consumer has said, over all its lives."""
        return {client: words(actor.log) for client, actor in self._actors.items()}

    def start(self, plan: MemberPlan) -> Actor:
        """Start a consumer."""
        actor = Actor(plan, self._bootstrap, self._directory / f"{plan.client_id}.log")
        self._actors[plan.client_id] = actor
        return actor

    def actor(self, client_id: str) -> Actor:
        """The running consumer of that name."""
        return self._actors[client_id]

    def ended_early(self, expected: set[str]) -> list[Actor]:
        """Consumers that should be up and are not."""
        return [self._actors[client] for client in sorted(expected) if not self._actors[client].running]


def words(log: Path, from_byte: int = 0) -> list[dict[str, Any]]:
    """The complete JSON lines of a consumer's output."""
    with log.open("rb") as file:
        file.seek(from_byte)
        lines = file.read().splitlines()
    return [json.loads(line) for line in lines if line.startswith(b"{") and line.endswith(b"}")]
