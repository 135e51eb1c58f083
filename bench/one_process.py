"""What `kardia live` costs and how late it is: from a line in the log to an answer of the API, in one process.

Three things are measured, each over a log that grows at its own rate: twelve members that do nothing else than live
(what of a core is used, beside a process that only follows the file), some hundred members (memory), and 1,500 lines
per second (how late answers are, as in the stage `live`, with `tail -f` as the baseline of the same run).
"""

from __future__ import annotations

import contextlib
import statistics
import time
from collections.abc import Iterator
from pathlib import Path

from bench.fleet import Fleet
from bench.live import ASK_EVERY_S, CLUSTER, MIN_PROBES, RATE, Writer, follow, names, probes
from bench.processes import role
from bench.result import Result, cpu_seconds, memory_mb
from demo.ports import free_ports

QUIET_S = 60.0
"""So long the quiet members are watched: two samples of health a minute would be chance."""

SETTLED_S = 5.0
SECONDS = 60.0


@contextlib.contextmanager
def _living(directory: Path, fleet: Fleet) -> Iterator[tuple[Writer, str, int, float]]:
    """(What writes the log, the address of the API, the process, seconds to its first answer about a group)."""
    directory.mkdir()
    log = directory / "kafka-request.log"
    log.touch()
    (port,) = free_ports(1)
    api = f"http://127.0.0.1:{port}"
    with contextlib.ExitStack() as stack:
        writer = Writer(log, fleet)
        writer.start()
        stack.callback(writer.end)
        began_s = time.time()
        process = stack.enter_context(
            role(
                directory / "live.log",
                *("live", "--request-log", str(log), "--cluster", CLUSTER, "--log-timezone", "UTC"),
                *("--tables", str(directory / "tables"), "--port", str(port)),
            )
        )
        group, member, _ = writer.probe(99_999)
        url = f"{api}/api/v1/clusters/{CLUSTER}/groups/{group}/members"
        while not names(url, member):
            if process.poll() is not None or time.time() - began_s > 60:
                raise RuntimeError(f"it did not start:\n{(directory / 'live.log').read_text()[-2000:]}")
            time.sleep(ASK_EVERY_S)
        yield writer, api, process.pid, time.time() - began_s


def one_process_stage(directory: Path, scale: float) -> list[Result]:
    """Run it at three rates."""
    found: list[Result] = []
    with _living(directory / "quiet", Fleet(2, 6)) as (_, _, pid, started_s):
        time.sleep(SETTLED_S)
        cpu, since = cpu_seconds(pid), time.time()
        time.sleep(QUIET_S * scale)
        share = (cpu_seconds(pid) - cpu) / (time.time() - since)
        found.append(Result("one process", "started to first answer", started_s, "s", target=3.0))
        found.append(Result("one process", "CPU beside 12 quiet members", share * 100, "% of a core", target=3.0))
    with _living(directory / "hundred", Fleet(17, 6)) as (_, _, pid, _):
        time.sleep(QUIET_S * scale)
        memory = sum(memory_mb(pid).values())
        found.append(Result("one process", "memory with 100 members", memory, "MB", target=350.0))
    with _living(directory / "busy", Fleet.for_rate(RATE)) as (writer, api, pid, _):
        time.sleep(SETTLED_S)
        cpu, since, lines = cpu_seconds(pid), time.time(), writer.lines
        latencies, lost = probes(writer, api, time.time() + SECONDS * scale)
        passed = time.time() - since
        cores, rate = (cpu_seconds(pid) - cpu) / passed, (writer.lines - lines) / passed
        followed = follow(directory / "busy" / "kafka-request.log", writer)
    if len(latencies) < MIN_PROBES or len(followed) < MIN_PROBES:
        raise RuntimeError(f"{lost} probes were not answered; look at what else uses the processors")
    quantiles = statistics.quantiles([value * 1000 for value in latencies], n=100)
    base = statistics.quantiles([value * 1000 for value in followed], n=100)
    more = {"probes": len(latencies), "lines/s": round(rate), "cores": round(cores, 2)}
    found += [
        Result(
            "one process", f"line to answer, p{at}", quantiles[at - 1], "ms", base[at - 1], "tail -f", None, most, info
        )
        for at, most, info in ((50, 150.0, more), (95, 300.0, {}))
    ]
    return found
