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
    """Lines parsed into events by one process: folded into stretches as a replay does, and each by itself; and lines of
    a broker 2.7, which are text, beside a baseline of the JSON lines."""
    lines = int(PARSE_LINES * scale)
    results: list[Result] = []
    for as_text, named in ((False, "lines"), (True, "text lines")):
        log = directory / f"kafka-request-{named.replace(' ', '-')}.log"
        write_log(log, lines, Fleet.for_rate(as_text=as_text))
        ranges = plan([log])
        parse_range(ranges[0])  # imports and caches
        for number, (fold, how) in enumerate(((True, "folded"), (False, "one by one"))):
            usage, started = Usage(), time.perf_counter()
            parsed = sum(parse_range(piece, fold=fold).lines for piece in ranges)
            rate = parsed / (time.perf_counter() - started)
            cpu = usage.cpu_s() / parsed * 1e6
            base = (results[number].value, "as JSON") if as_text else (cat_rate(log, lines), "cat")
            results.append(Result("lines", f"{named} parsed, one process, {how}", rate, "lines/s", *base, cpu))
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
