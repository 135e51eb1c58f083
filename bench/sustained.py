"""How much one process of `kardia live` takes: a large fleet's log that was written already, read to its end.

10,000 groups with 100,000 members form and then live well for a while, in lines as dense as 40,000 a second; the
process reads them as fast as it can, steps its lanes, writes the tables and keeps the view of the API. What it uses of
a core for a line says how many lines a second one core sustains. The baseline is to count the lines with `wc`.
"""

from __future__ import annotations

import json
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import NamedTuple

from bench.fleet import FORMING_MS, LINES_PER_MEMBER_AND_S, Fleet
from bench.live import CLUSTER
from bench.processes import role
from bench.result import Result, cpu_seconds, memory_mb
from demo.ports import free_ports

GROUPS, MEMBERS = 10_000, 10
RATE = 40_000.0
"""Lines a second of the log's own time, and what is required of one core."""

SECONDS = 40.0
"""The log's own time after the groups have formed."""

ASK_EVERY_S = 0.25
GIVE_UP_S = 600.0


class _Written(NamedTuple):
    lines: int
    steady: int
    """Lines behind those with which the groups form."""
    formed_ms: float
    last_ms: float


class _Seen(NamedTuple):
    complete_to_ms: float
    at_s: float
    cpu_s: float


def _written(path: Path, groups: int, seconds: float) -> _Written:
    """The log is written here; it ends a moment before now."""
    members = groups * MEMBERS
    fleet = Fleet(groups, MEMBERS, stretch=members * LINES_PER_MEMBER_AND_S / RATE)
    start_ms = time.time() * 1000 - 1000 * seconds - 5_000
    formed_ms = start_ms + FORMING_MS
    count, steady, last_ms = 0, 0, start_ms
    with path.open("wb", buffering=1 << 20) as log:
        for at_ms, line in fleet.lines(start_ms):
            if at_ms > start_ms + 1000 * seconds:
                break
            log.write(line)
            count, last_ms = count + 1, at_ms
            steady += at_ms >= formed_ms
    return _Written(count, steady, formed_ms, last_ms)


def _complete_to_ms(url: str) -> int:
    """Up to when the log has been read; 0 while nothing has."""
    try:
        with urllib.request.urlopen(url, timeout=30) as answer:  # noqa: S310  always http to this machine
            return int(json.load(answer)["freshness"]["complete_as_of_ms"] or 0)
    except (urllib.error.URLError, OSError):
        return 0


def _counted_s(log: Path) -> float:
    """Seconds that `wc` takes for the log, which is in the page cache."""
    began_s = time.monotonic()
    subprocess.run(["/usr/bin/wc", "-l", str(log)], check=True, stdout=subprocess.DEVNULL)
    return time.monotonic() - began_s


def sustained_stage(directory: Path, scale: float) -> list[Result]:
    """Read the log to its end."""
    log = directory / "kafka-request.log"
    groups = max(10, round(GROUPS * min(1.0, scale)))
    written = _written(log, groups, FORMING_MS / 1000 + SECONDS * min(1.0, scale))
    (port,) = free_ports(1)
    url = f"http://127.0.0.1:{port}/readyz"
    with role(
        directory / "live.log",
        *("live", "--request-log", str(log), "--cluster", CLUSTER, "--log-timezone", "UTC"),
        *("--tables", str(directory / "tables"), "--port", str(port)),
    ) as process:
        seen: list[_Seen] = []
        for until_ms in (written.formed_ms, written.last_ms):
            began_s = time.monotonic()
            while (complete_to_ms := _complete_to_ms(url)) < int(until_ms):
                if process.poll() is not None or time.monotonic() - began_s > GIVE_UP_S:
                    end = (directory / "live.log").read_text()[-2000:]
                    raise RuntimeError(f"the log was not read to its end:\n{end}")
                time.sleep(ASK_EVERY_S)
            seen.append(_Seen(min(complete_to_ms, written.last_ms), time.monotonic(), cpu_seconds(process.pid)))
        memory = sum(memory_mb(process.pid).values())
    formed, ended = seen
    log_ms = written.last_ms - written.formed_ms
    lines = written.steady * (ended.complete_to_ms - formed.complete_to_ms) / log_ms
    cpu_s, passed_s = ended.cpu_s - formed.cpu_s, ended.at_s - formed.at_s
    more = {
        "lines": round(lines),
        "bytes per line": log.stat().st_size // written.lines,
        "lines/s": round(lines / passed_s),
    }
    members = f"{groups * MEMBERS:,} members"
    counted = written.lines / _counted_s(log)
    return [
        Result(
            "sustained",
            f"lines that one core sustains, {members}",
            lines / cpu_s,
            "lines/s",
            counted,
            "wc -l",
            1e6 * cpu_s / lines,
            RATE,
            more,
        ),
        Result(
            "sustained", "CPU from the start until all have joined, each", 1e6 * formed.cpu_s / (groups * MEMBERS), "us"
        ),
        Result("sustained", f"memory with {members}", memory, "MB"),
    ]
