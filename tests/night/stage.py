"""What runs in a night: brokers, consumers, and `kardia up` from a kardia.yaml of its own. Does one step at a time.

Everything is below one directory and dies with this process. What was done is kept with its instant; what follows from
it is for the broker to decide.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, Self

import psutil
import yaml
from confluent_kafka.admin import AdminClient

from demo.broker import BrokerSettings
from demo.consumer_processes import Actor
from demo.ports import HOST, free_ports
from demo.receiver import FROM_NOTIFIER, Receiver
from demo.scenario import PARTITIONS, TOPIC, MemberPlan
from supervise import process
from supervise.roles import answers, counted
from tests.night.cluster import Cluster
from tests.night.faults import BROKER, EVENTS_TOPIC, LOCAL, LOGS, MEMBERS, ROLES, ROLES_OF, SPARK, Step, plan_of

CLUSTER = "night"

ROTATE_KB = 8_192
"""The request log goes on in a new file every minute or two."""

ROTATE_SERVER_KB = 1_024
"""server.log does every three or four minutes. The broker keeps 60 files: a night has three hours at most."""

RECORDS_PER_S = 3.0
"""Enough for fetches in all partitions, few enough for a small log."""

UP_TIMEOUT_S = 240.0
"""Until `kardia up` says that it is up: Spark was seen to need 44 s on busy processors."""

STOP_TIMEOUT_S = 90.0

GROUPS_TIMEOUT_S = 30.0

GROUPS = sorted({plan.group_id for plan in MEMBERS})


class Stage:
    """Brokers, consumers and Kardia; a context manager that ends them all."""

    def __init__(
        self,
        directory: Path,
        version: str,
        *,
        brokers: int = 1,
        seed: int = 0,
        follow_server_log: bool = True,
        engine: str = SPARK,
    ) -> None:
        self.directory = directory
        settings = BrokerSettings(version=version, rotate_kb=ROTATE_KB, rotate_server_kb=ROTATE_SERVER_KB)
        self.cluster = Cluster(directory, settings, brokers, seed, GROUPS)
        self.data = directory / "kardia"
        self.up_log = directory / "up.log"
        self.done: list[dict[str, Any]] = []
        """What was done, with its instant."""
        self.receiver = Receiver(directory / "received.jsonl")
        self._follow_server_log = follow_server_log
        self._engine, self._roles = engine, ROLES_OF[engine]
        self._actors: dict[str, Actor] = {}
        self._returning: set[str] = set()
        """Who is to start as soon as it has ended."""
        self._stack = ExitStack()
        self._up: subprocess.Popen[str] | None = None
        self._ports = dict(zip(self._roles, free_ports(len(self._roles)), strict=True))

    def __enter__(self) -> Self:
        with self._stack:
            self._stack.callback(self._end)
            self.cluster.start()
            self._stack.enter_context(self.receiver)
            self._produce()
            self._stack = self._stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def start_kardia(self) -> None:
        """Start `kardia up` and return when it says that everything is ready."""
        path = self.directory / "kardia.yaml"
        path.write_text(yaml.safe_dump(self._settings()), encoding="utf-8")
        (self.directory / "gc").mkdir()
        self._up = process.spawn(
            [sys.executable, "-m", "cli.main", "up", "--config", str(path)],
            log=self.up_log,
            environ=process.environ() | {"JAVA_TOOL_OPTIONS": f"-Xlog:gc:file={self.directory}/gc/%p.log"},
            cwd=self.directory,
        )
        process.until(
            lambda: "Kardia is up" in self.up_log.read_text() or not self.kardia_runs,
            UP_TIMEOUT_S,
            lambda: f"kardia up was not ready.\n{process.tail(self.up_log)}",
        )

    def start_consumers(self) -> None:
        """Start all members and wait until each has partitions."""
        for plan in MEMBERS:
            self._start(plan)
        for plan in MEMBERS:
            self._actors[plan.client_id].await_assignment()

    @property
    def kardia_runs(self) -> bool:
        """Whether `kardia up` is there."""
        return self._up is not None and self._up.poll() is None

    def roles(self) -> dict[str, psutil.Process]:
        """Processes that `kardia up` has started, by role; those that just fell are missing."""
        found = {}
        with suppress(psutil.Error):
            for child in psutil.Process(self._up.pid).children() if self._up is not None else ():
                with suppress(psutil.Error):
                    named = [word for word in child.cmdline() if word in self._roles]
                    if named:
                        found[named[0]] = child
        return found

    def is_awake(self, role: str) -> bool:
        """Whether a role runs, was not stopped, and answers: one that was just started has to read its tables first."""
        running = self.roles().get(role)
        try:
            runs = running is not None and running.status() != psutil.STATUS_STOPPED
        except psutil.Error:
            return False
        return runs and answers(self._page_of(role))

    def notifier_is_awake(self) -> bool:
        """Whether it runs, and has seen the tables since its start: it answers before."""
        role = self._roles[-1]
        return self.is_awake(role) and counted(self._ports[role], "kardia_notify_looks_total")()

    def unready(self) -> list[str]:
        """Roles that do not run or do not answer."""
        running = self.roles()
        return [role for role in self._roles if role not in running or not answers(self._page_of(role))]

    def _page_of(self, role: str) -> str:
        """What it answers when it is ready."""
        return f"http://{HOST}:{self._ports[role]}{'/readyz' if role in ('serve', 'live') else '/metrics'}"

    def stop_kardia(self) -> int:
        """SIGTERM to `kardia up`; its exit code."""
        return process.stop(self._up, STOP_TIMEOUT_S) if self._up is not None else 0

    def play(self, step: Step) -> None:
        """Do one step, if it still makes sense; it is noted when it was done."""
        at_ms = now_ms()
        if step.whom == BROKER:
            done = self.cluster.act(step.what)
        elif step.whom == EVENTS_TOPIC:
            done = self.cluster.make_again(EVENTS_TOPIC)
        elif step.whom in LOGS:
            done = self.cluster.copy_and_empty(step.whom, step.seconds)
        else:
            done = (self._role_act if step.whom in ROLES else self._member_act)(step)
        if done:
            one = {"at_ms": at_ms, "what": step.what, "whom": step.whom, "seconds": step.seconds}
            self.done.append(one | {"until_ms": now_ms()})

    def tend(self) -> None:
        """Start who was to start and had not ended yet; called all the time."""
        for name in sorted(self._returning):
            if not self._actors[name].running:
                self._returning.discard(name)
                self._start(plan_of(name))

    def well_again(self) -> None:
        """Everything that is away comes back, so that the night ends with all members up."""
        self.cluster.well_again()
        for role in self.roles().values():
            self._signal(role.pid, signal.SIGCONT)
        for plan in MEMBERS:
            actor = self._actors[plan.client_id]
            self._signal(actor.pid, signal.SIGCONT)
            if not actor.running:
                self._start(plan)

    def members_now(self) -> dict[str, set[str]]:
        """Group -> its members, asked of the broker itself."""
        admin = AdminClient({"bootstrap.servers": self.cluster.bootstrap, "log_level": 0})
        described = admin.describe_consumer_groups(GROUPS, request_timeout=GROUPS_TIMEOUT_S)
        told = {group: future.result(GROUPS_TIMEOUT_S) for group, future in described.items()}
        return {group: {member.member_id for member in one.members} for group, one in told.items()}

    def left_behind(self) -> list[str]:
        """Command lines of processes that still work for this Kardia."""
        found = []
        for one in psutil.process_iter(["cmdline"]):
            words = one.info["cmdline"] or []
            if any(str(self.data) in word for word in words):
                found.append(" ".join(words)[:200])
        return found

    def _settings(self) -> dict[str, Any]:
        ports = self._ports
        collect: dict[str, Any] = {"request_log": self.cluster.request_logs, "log_timezone": "UTC"}
        if not self._follow_server_log:
            collect["server_log"] = []
        settings: dict[str, Any] = {
            "cluster": CLUSTER,
            "bootstrap_server": self.cluster.bootstrap,
            "engine": self._engine,
            "data": str(self.data),
            "collect": collect,
            "notify": {"webhook": self.receiver.url + FROM_NOTIFIER},
        }
        if self._engine == LOCAL:
            return settings | {"serve": {"port": ports["live"]}}
        for role in ("collect", "stream", "notify"):
            settings.setdefault(role, {})["metrics_port"] = ports[role]
        return settings | {"serve": {"port": ports["serve"]}}

    def _produce(self) -> None:
        command = [sys.executable, "-m", "demo.traffic", "--bootstrap-server", self.cluster.bootstrap, "--topic", TOPIC]
        command += ["--partitions", str(PARTITIONS), "--rate", str(RECORDS_PER_S)]
        traffic = process.spawn(command, log=self.directory / "traffic.log", environ=process.environ())
        self._stack.callback(process.stop, traffic, 0.5)

    def _start(self, plan: MemberPlan) -> None:
        self._actors[plan.client_id] = Actor(
            plan, self.cluster.bootstrap, self.directory / "consumers" / f"{plan.client_id}.log"
        )

    def _role_act(self, step: Step) -> bool:
        role = self.roles().get(step.whom)
        if role is None:
            return False
        signals = {"kill": signal.SIGKILL, "freeze": signal.SIGSTOP, "thaw": signal.SIGCONT}
        return self._signal(role.pid, signals[step.what])

    def _member_act(self, step: Step) -> bool:
        actor = self._actors.get(step.whom)
        running = actor is not None and actor.running
        if step.what == "again" and actor is not None:
            # Who was fenced by its twin is of no use any more; its application would end.
            actor.stop()
            running = False
        if step.what in ("start", "again"):
            if running:
                self._returning.add(step.whom)
            else:
                self._start(plan_of(step.whom))
            return True
        if actor is None or not running:
            return False
        if step.what == "kill":
            actor.kill()
        elif step.what in ("leave", "stall"):
            with suppress(OSError):  # it may end by itself in this moment
                actor.tell("leave" if step.what == "leave" else f"stall {step.seconds}")
        else:
            self._signal(actor.pid, signal.SIGSTOP if step.what == "freeze" else signal.SIGCONT)
        return True

    @staticmethod
    def _signal(pid: int, number: int) -> bool:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            return False
        return True

    def _end(self) -> None:
        if self._up is not None and self._up.poll() is None:
            for role in self.roles().values():
                self._signal(role.pid, signal.SIGCONT)
            self.stop_kardia()
        for actor in self._actors.values():
            self._signal(actor.pid, signal.SIGCONT)
            actor.stop()
        self.cluster.stop()
        (self.directory / "done.jsonl").write_text("".join(json.dumps(one) + "\n" for one in self.done))


def now_ms() -> int:
    """The wall clock that the broker has as well, epoch ms."""
    return time.time_ns() // 1_000_000
