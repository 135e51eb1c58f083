"""How much one process of `kardia live` takes: a large fleet's log that was written already, read to its end.

10,000 groups with 100,000 members form and then live well for a while, in lines as dense as 40,000 a second; the
process reads them as fast as it can, steps its lanes, writes the tables and keeps the view of the API. What it uses of
a core for a line says how many lines a second one core sustains. The baseline is to count the lines with `wc`.
"""

from __future__ import annotations

import shutil
import subprocess
import time
from pathlib import Path
from typing import NamedTuple

from bench.fleet import FORMING_MS, LINES_PER_MEMBER_AND_S, Fleet
from bench.live import CLUSTER
from bench.processes import role
from bench.result import Result, cpu_seconds, memory_mb
from demo.ports import free_ports
from supervise.roles import pulse

GROUPS, MEMBERS = 10_000, 10
RATE = 40_000.0
"""Lines a second of the log's own time, and what is required of one core."""

SECONDS = 40.0
"""The log's own time after the groups have formed."""

ASK_EVERY_S = 0.25
LINES_READ = "kardia_collector_lines_total"
GIVE_UP_S = 600.0


class _Written(NamedTuple):
    lines: int
    formed: int
    """Lines with which the groups form; they are there first."""


class _Seen(NamedTuple):
    lines: int
    at_s: float
    cpu_s: float


def _written(log: Path, rest: Path, groups: int, seconds: float) -> _Written:
    """Both parts of the log are written here; they end a moment before now."""
    members = groups * MEMBERS
    fleet = Fleet(groups, MEMBERS, stretch=members * LINES_PER_MEMBER_AND_S / RATE)
    start_ms = time.time() * 1000 - 1000 * seconds - 5_000
    count, formed = 0, 0
    with log.open("wb", buffering=1 << 20) as first, rest.open("wb", buffering=1 << 20) as second:
        for at_ms, line in fleet.lines(start_ms):
            if at_ms > start_ms + 1000 * seconds:
                break
            forms = at_ms < start_ms + FORMING_MS
            (first if forms else second).write(line)
            count, formed = count + 1, formed + forms
    return _Written(count, formed)


def _seen(process: subprocess.Popen[bytes], url: str, said: Path, lines: int) -> _Seen:
    """Wait until so many lines are read, and a moment more, in which the lanes take the last of them."""
    began_s, read = time.monotonic(), pulse(url, LINES_READ)
    while (found := read() or 0) < lines:
        if process.poll() is not None or time.monotonic() - began_s > GIVE_UP_S:
            raise RuntimeError(f"the log was not read to its end:\n{said.read_text()[-2000:]}")
        time.sleep(ASK_EVERY_S)
    time.sleep(ASK_EVERY_S)
    return _Seen(int(found), time.monotonic(), cpu_seconds(process.pid))


def _counted_s(log: Path) -> float:
    """Seconds that `wc` takes for the log, which is in the page cache."""
    began_s = time.monotonic()
    subprocess.run(["/usr/bin/wc", "-l", str(log)], check=True, stdout=subprocess.DEVNULL)
    return time.monotonic() - began_s


def sustained_stage(directory: Path, scale: float) -> list[Result]:
    """Read the log to its end."""
    log, rest = directory / "kafka-request.log", directory / "rest.log"
    groups = max(10, round(GROUPS * min(1.0, scale)))
    written = _written(log, rest, groups, FORMING_MS / 1000 + SECONDS * min(1.0, scale))
    (port,) = free_ports(1)
    url = f"http://127.0.0.1:{port}"
    said = directory / "live.log"
    with role(
        said,
        *("live", "--request-log", str(log), "--cluster", CLUSTER, "--log-timezone", "UTC"),
        *("--tables", str(directory / "tables"), "--port", str(port)),
    ) as process:
        formed = _seen(process, url, said, written.formed)
        began_s = time.monotonic()
        with log.open("ab") as end, rest.open("rb") as begin:
            shutil.copyfileobj(begin, end)
        ended = _seen(process, url, said, written.lines)
        memory = sum(memory_mb(process.pid).values())
    lines = ended.lines - formed.lines
    cpu_s, passed_s = ended.cpu_s - formed.cpu_s, ended.at_s - began_s
    more = {
        "lines": lines,
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
