"""From a line in the log to an answer of the API: collector, job and API as processes, a log that grows at a steady
rate.

What is timed: a member joins a group of its own; its line is written to the log at one instant, and the clock stops
when `GET …/groups/{group}/members` names the member. The background is a fleet of 1,500 lines per second. The baseline
is the same background read by a process that only follows the file (`tail -f`): line written to line read.
"""

from __future__ import annotations

import contextlib
import json
import statistics
import subprocess
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from bench.fleet import JOIN, SYNC, Fleet, Member, stamp_of
from bench.processes import role
from bench.result import Result, cpu_seconds, memory_mb
from demo.broker import Broker
from demo.ports import free_ports
from kardia.events import DEFAULT_LANES

RATE = 1_500
SECONDS = 120
"""A whole period of the archive (`archive_every_s` of the job), so that one of its runs is in what is measured."""

WARM_S = 45
"""Until the archive's first run, which loads half of the JVM's classes, is over."""

PROBE_EVERY_S = 0.37
"""No multiple of any period in the flow, so that probes meet every phase of it."""

ASK_EVERY_S = 0.02
GIVE_UP_S = 30.0

QUIET_S = 120.0
"""So long the quiet members are watched: a period of the archive."""

MIN_PROBES = 20
"""Fewer say nothing about a p95; on a machine that is too slow for the rate the stage lasts longer than asked."""

MAX_LOST = 3

PENDING_MAX = 2_000
"""Lines that are written together at most, on a machine that is too slow for the rate."""
CLUSTER = "bench"


class Writer(threading.Thread):
    """Writes the fleet's lines at their instants, and probes in between."""

    def __init__(self, path: Path, fleet: Fleet) -> None:
        """Prepare to write to a file."""
        super().__init__(name="log writer", daemon=True)
        self._path = path
        self._fleet = fleet
        self._lock = threading.Lock()
        self._file = path.open("ab", buffering=0)
        self._ended = threading.Event()
        self.lines = 0

    def run(self) -> None:
        """Write until told to end."""
        lines = self._fleet.lines(time.time() * 1000)
        pending: list[bytes] = []
        for at_ms, line in lines:
            wait_s = at_ms / 1000 - time.time()
            if wait_s > 0.005 or len(pending) >= PENDING_MAX:
                self._flush(pending)
                pending = []
                if self._ended.wait(max(0.0, wait_s)):
                    return
            pending.append(line)

    def _flush(self, pending: list[bytes]) -> None:
        with self._lock:
            self._file.write(b"".join(pending))
            self.lines += len(pending)

    def probe(self, number: int) -> tuple[str, str, float]:
        """Write the lines of a member that joins: (group, member, instant)."""
        group, name = f"probe-{number}", f"probe-{number}-member"
        listed = f'{{"memberId":"{name}","groupInstanceId":null,"metadata":""}}'
        assigned = f'{{"memberId":"{name}","assignment":""}}'
        member = Member(group, name, f"probe-{number}", name, listed, assigned, "10.9.9.9", 30_000 + number, 1)
        with self._lock:
            at_ms = time.time() * 1000
            join = JOIN.format(**_values(member, at_ms, 11, 9, "JOIN_GROUP"))
            sync = SYNC.format(**_values(member, at_ms, 14, 5, "SYNC_GROUP"))
            self._file.write((join + sync).encode())
        return group, name, at_ms / 1000

    def end(self) -> None:
        """End the thread."""
        self._ended.set()
        self.join()
        self._file.close()


def _values(member: Member, at_ms: float, key: int, version: int, name: str) -> dict[str, object]:
    times = {"total": 1.262, "local": 0.7, "remote": 0.2, "number": 3}
    return {"stamp": stamp_of(at_ms), "key": key, "version": version, "name": name, **times, **vars(member)}


def names(url: str, member: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:  # noqa: S310  always http to this machine
            return member in json.dumps(json.load(answer))
    except (urllib.error.URLError, OSError):
        return False


def probes(
    writer: Writer, api: str, until_s: float, first: int = 0, answered: dict[str, float] | None = None
) -> tuple[list[float], int]:
    """Latencies of probes, from number `first` on, and how many were never answered; `answered` gets the instants."""
    latencies: list[float] = []
    lost, number = 0, first
    while (time.time() < until_s or len(latencies) < MIN_PROBES) and lost < MAX_LOST:
        group, member, written_s = writer.probe(number)
        number += 1
        url = f"{api}/api/v1/clusters/{CLUSTER}/groups/{urllib.parse.quote(group)}/members"
        while not names(url, member):
            if time.time() - written_s > GIVE_UP_S:
                lost += 1
                break
            time.sleep(ASK_EVERY_S)
        else:
            latencies.append(time.time() - written_s)
            if answered is not None:
                answered[member] = time.time()
        time.sleep(PROBE_EVERY_S)
    return latencies, lost


def follow(log: Path, writer: Writer, count: int = 40) -> list[float]:
    """Latencies of `tail -f` on the same file."""
    latencies: list[float] = []
    with subprocess.Popen(["/usr/bin/tail", "-n", "0", "-F", str(log)], stdout=subprocess.PIPE) as tail:
        if tail.stdout is None:
            raise RuntimeError("tail has no output")
        time.sleep(1)
        for number in range(count):
            _, member, written_s = writer.probe(100_000 + number)
            for line in tail.stdout:
                if member.encode() in line:
                    latencies.append(time.time() - written_s)
                    break
        tail.terminate()
    return latencies


class Flow(NamedTuple):
    """The whole flow while it runs."""

    writer: Writer
    log: Path
    api: str
    job: int
    """Process of the job."""
    roles: list[int]
    """Processes of collector, job and API."""
    started_s: float
    """From the start of the roles to the first answer about a group."""
    said: Path
    """What the API has said."""
    bootstrap: str
    """The broker of the topic."""


@contextlib.contextmanager
def flowing(directory: Path, fleet: Fleet, *, follows: bool = False) -> Iterator[Flow]:
    """Broker, collector, job and API on a log that grows at the rate of a fleet; `follows`: the API reads the topic."""
    directory.mkdir(exist_ok=True)
    log = directory / "kafka-request.log"
    log.touch()
    (port,) = free_ports(1)
    api = f"http://127.0.0.1:{port}"
    with contextlib.ExitStack() as stack:
        broker = stack.enter_context(Broker(directory / "broker"))
        broker.create_topic("kardia.events", DEFAULT_LANES)
        writer = Writer(log, fleet)
        writer.start()
        stack.callback(writer.end)
        bootstrap = ("--bootstrap-server", broker.bootstrap, "--cluster", CLUSTER)
        collector = stack.enter_context(
            role(
                directory / "collect.log",
                *("collect", "--request-log", str(log), *bootstrap, "--no-offsets", "--log-timezone", "UTC"),
                *("--positions", str(directory / "positions")),
            )
        )
        began = time.time()
        tables = str(directory / "tables")
        Path(tables).mkdir()
        job = stack.enter_context(
            role(
                directory / "stream.log",
                *("stream", *bootstrap, "--tables", tables, "--checkpoint", str(directory / "checkpoint")),
            )
        )
        topic = ("--follow-topic", "kardia.events", *bootstrap[:2], "--checkpoint", str(directory / "checkpoint"))
        said = directory / "serve.log"
        serve = stack.enter_context(
            role(said, "serve", "--tables", tables, "--port", str(port), *(topic if follows else ()))
        )
        group, member, _ = writer.probe(99_999)
        url = f"{api}/api/v1/clusters/{CLUSTER}/groups/{group}/members"
        while not names(url, member):
            if job.poll() is not None or time.time() - began > 300:
                raise RuntimeError(f"the flow did not start:\n{(directory / 'stream.log').read_text()[-2000:]}")
            time.sleep(ASK_EVERY_S)
        yield Flow(
            writer, log, api, job.pid, [collector.pid, job.pid, serve.pid], time.time() - began, said, broker.bootstrap
        )


def quiet_stage(directory: Path, scale: float) -> list[Result]:
    """What collector, job and API use of a core beside twelve members that do nothing else than live."""
    with flowing(directory, Fleet(2, 6)) as flow:
        time.sleep(WARM_S * min(1.0, scale))
        used = [cpu_seconds(pid) for pid in flow.roles]
        since = time.time()
        time.sleep(QUIET_S * scale)
        passed = time.time() - since
        shares = [100 * (cpu_seconds(pid) - before) / passed for pid, before in zip(flow.roles, used, strict=True)]
    more = {name: round(share, 1) for name, share in zip(("collect", "stream", "serve"), shares, strict=True)}
    what = "CPU of all beside 12 quiet members"
    return [Result("live", what, sum(shares), "% of a core", None, "", None, 25.0, more)]


def live_stage(directory: Path, scale: float) -> list[Result]:
    """Run the whole flow at a steady rate and ask it; then beside members that do nothing."""
    with flowing(directory / "busy", Fleet.for_rate(RATE)) as flow:
        writer, job, api = flow.writer, flow.job, flow.api
        time.sleep(WARM_S * min(1.0, scale))
        cpu, since, lines = cpu_seconds(job), time.time(), writer.lines
        latencies, lost = probes(writer, api, time.time() + SECONDS * scale)
        passed = time.time() - since
        cores = (cpu_seconds(job) - cpu) / passed
        rate = (writer.lines - lines) / passed
        memory = memory_mb(job)
        followed = follow(flow.log, writer)
    if len(latencies) < MIN_PROBES or len(followed) < MIN_PROBES:
        raise RuntimeError(
            f"{lost} of {lost + len(latencies)} probes were not answered within {GIVE_UP_S:.0f} s (live stage). "
            f"Expected: at least {MIN_PROBES} answers. Next: look at what else uses the processors, or choose other "
            "stages with --only"
        )
    quantiles = statistics.quantiles([value * 1000 for value in latencies], n=100)
    base = statistics.quantiles([value * 1000 for value in followed], n=100)
    more = {"probes": len(latencies), "lost": lost, "lines/s": round(rate), "cores of the job": round(cores, 2)}
    return [
        Result("start-up", "roles started to first answer", flow.started_s, "s"),
        *(
            Result(
                "live", f"line to answer, p{at}", quantiles[at - 1], "ms", base[at - 1], "tail -f", None, target, info
            )
            for at, target, info in ((50, None, more), (95, 1_100.0, {}), (99, None, {}))
        ),
        *(Result("memory", f"live job, {name}", size, "MB") for name, size in sorted(memory.items())),
        *quiet_stage(directory / "quiet", scale),
    ]
