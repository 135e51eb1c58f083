"""Stages without Spark: lines parsed into events, and a whole replay from log to tables; baseline: `cat` of the same
file."""

from __future__ import annotations

import itertools
import subprocess
import time
from pathlib import Path

from bench.fleet import Fleet
from bench.result import Result, Usage
from ingest.offline import parse_range, plan
from kardia.observe import ObserverSettings
from spark_jobs.lane_model import ObserverFactory
from spark_jobs.replay.run import Inputs, replay

START_MS = 1_790_000_000_000.0
PARSE_LINES = 200_000
REPLAY_LINES = 2_000_000


def write_log(path: Path, lines: int, fleet: Fleet) -> float:
    """Write a request log; gives the instant of its last line."""
    at_ms = START_MS
    with path.open("wb", buffering=1 << 20) as file:
        for at_ms, line in itertools.islice(fleet.lines(START_MS), lines):  # noqa: B007
            file.write(line)
    return at_ms


def cat_rate(path: Path, lines: int) -> float:
    """Lines per second that `cat` moves through a pipe: reading the same bytes and doing nothing with them."""
    started = time.perf_counter()
    with subprocess.Popen(["/bin/cat", str(path)], stdout=subprocess.PIPE) as process:
        if process.stdout is None:
            raise RuntimeError("cat has no output")
        while process.stdout.read(1 << 20):
            pass
    return lines / (time.perf_counter() - started)


def parse_stage(directory: Path, scale: float) -> list[Result]:
    """Lines parsed into events by one process: folded into stretches as a replay does, and each by itself."""
    lines = int(PARSE_LINES * scale)
    log = directory / "kafka-request.log"
    write_log(log, lines, Fleet.for_rate())
    ranges = plan([log])
    parse_range(ranges[0])  # imports and caches
    results = []
    for fold, what in ((True, "lines parsed, one process, folded"), (False, "lines parsed, one process, one by one")):
        usage, started = Usage(), time.perf_counter()
        parsed = sum(parse_range(piece, fold=fold).lines for piece in ranges)
        seconds = time.perf_counter() - started
        cpu = usage.cpu_s() / parsed * 1e6
        results.append(Result("lines", what, parsed / seconds, "lines/s", cat_rate(log, lines), "cat", cpu))
    return results


def replay_stage(directory: Path, scale: float) -> list[Result]:
    """A whole replay with a process per core: request log to committed tables, start-up included."""
    lines = int(REPLAY_LINES * scale)
    log = directory / "kafka-request.log"
    write_log(log, lines, Fleet.for_rate())
    usage, started = Usage(), time.perf_counter()
    summary = replay(Inputs([log]), directory / "tables", ObserverFactory(ObserverSettings(cluster_id="bench")))
    seconds = time.perf_counter() - started
    return [
        Result(
            "replay",
            "log to tables, start-up included",
            summary.lines / seconds,
            "lines/s",
            cat_rate(log, lines),
            "cat",
            usage.cpu_s() / summary.lines * 1e6,
            200_000,
            {"lines": f"{summary.lines:,}", "members": summary.members},
        )
    ]
