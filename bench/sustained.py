"""How much one process of `kardia live` takes: a large fleet's log that was written already, read to its end.

1,000 groups with 10,000 members, and 10,000 with 100,000, form and then live well for a while, in lines as dense as
40,000 a second; the process reads them as fast as it can, steps its lanes, writes the tables and keeps the view of the
API. What it uses of a core for a line says how many lines a second one core sustains. The baseline is to count them
with `wc`.
"""

from __future__ import annotations

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

GROUPS, MEMBERS = (1_000, 10_000), 10
RATE = 40_000.0
"""Lines a second of the log's own time, and what one core is to sustain."""

SECONDS = 40.0
"""The log's own time after the groups have formed."""

ASK_EVERY_S = 0.1
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


def _written(log: Path, groups: int, seconds: float) -> _Written:
    """The log is whole before anybody reads it: at its end nobody was heard for a while, and that
    members are in danger is another story than that they are well."""
    members = groups * MEMBERS
    fleet = Fleet(groups, MEMBERS, stretch=members * LINES_PER_MEMBER_AND_S / RATE)
    start_ms = time.time() * 1000 - 1000 * seconds - 5_000
    count, formed = 0, 0
    with log.open("wb", buffering=1 << 20) as file:
        for at_ms, line in fleet.lines(start_ms):
            if at_ms > start_ms + 1000 * seconds:
                break
            file.write(line)
            count, formed = count + 1, formed + (at_ms < start_ms + FORMING_MS)
    return _Written(count, formed)


def _seen(process: subprocess.Popen[bytes], url: str, said: Path, lines: int) -> _Seen:
    """Wait until so many lines are read and stepped."""
    began_s, read = time.monotonic(), pulse(url, LINES_READ)
    while (found := read() or 0) < lines:
        if process.poll() is not None or time.monotonic() - began_s > GIVE_UP_S:
            raise RuntimeError(f"the log was not read to its end:\n{said.read_text()[-2000:]}")
        time.sleep(ASK_EVERY_S)
    return _Seen(int(found), time.monotonic(), cpu_seconds(process.pid))


def _counted_s(log: Path) -> float:
    """Seconds that `wc` takes for the log, which is in the page cache."""
    began_s = time.monotonic()
    subprocess.run(["/usr/bin/wc", "-l", str(log)], check=True, stdout=subprocess.DEVNULL)
    return time.monotonic() - began_s


def sustained_stage(directory: Path, scale: float) -> list[Result]:
    """Read the log to its end."""
    return [one for groups in GROUPS for one in _read(directory, max(10, round(groups * min(1.0, scale))), scale)]


def _read(directory: Path, groups: int, scale: float) -> list[Result]:
    log, tables, said = directory / "kafka-request.log", directory / f"tables-{groups}", directory / "live.log"
    written = _written(log, groups, FORMING_MS / 1000 + SECONDS * min(1.0, scale))
    (port,) = free_ports(1)
    url = f"http://127.0.0.1:{port}"
    with role(
        said,
        *("live", "--request-log", str(log), "--cluster", CLUSTER, "--log-timezone", "UTC"),
        *("--tables", str(tables), "--port", str(port)),
    ) as process:
        formed = _seen(process, url, said, written.formed)
        ended = _seen(process, url, said, written.lines)
        memory = sum(memory_mb(process.pid).values())
    # Of a small log most is read before it is asked: then all of it is what is counted, with the start.
    begun = formed if 2 * formed.lines < ended.lines else _Seen(0, 0.0, 0.0)
    lines, cpu_s = ended.lines - begun.lines, ended.cpu_s - begun.cpu_s
    more = {"lines": lines, "bytes per line": log.stat().st_size // written.lines}
    if begun is formed:
        more["lines/s"] = round(lines / (ended.at_s - begun.at_s))
    members = f"{groups * MEMBERS:,} members"
    counted = written.lines / _counted_s(log)
    log.unlink()
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
        Result("sustained", f"CPU of a line until {members} have joined", 1e6 * formed.cpu_s / formed.lines, "us"),
        Result("sustained", f"memory with {members}", memory, "MB"),
    ]
