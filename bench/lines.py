"""Stages without Spark: lines parsed into events, and a whole replay from log to tables; baseline: `cat` of the same
file. And the same of text lines, brokers 2.0 to 2.7, as a share of what JSON lines of the same events reach."""

from __future__ import annotations

import itertools
import multiprocessing
import os
import subprocess
import time
from pathlib import Path

import orjson

from bench.fleet import Fleet
from bench.result import Result, Usage
from ingest.archives.ranges import parse_range, plan
from ingest.dialects.line_patterns import Patterns
from kardia.observe import ObserverSettings
from spark_jobs.lane_model import ObserverFactory
from spark_jobs.replay.run import Inputs, replay

START_MS = 1_790_000_000_000.0
PARSE_LINES = 200_000
REPLAY_LINES = 2_000_000
TEXT_LINES = 200_000
TEXT_ROUNDS = 3
TEXT_TARGET = 50
"""Least rate at which text lines are replayed, in per cent of that of JSON lines."""

_WHOLE = "replayed, log to tables"


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


def json_rate(path: Path, lines: int) -> float:
    """Lines per second of which a JSON parser alone (orjson), a process on each core, decodes the object."""
    size, cores = path.stat().st_size, os.cpu_count() or 1
    ends = [size * core // cores for core in range(cores + 1)]
    with multiprocessing.get_context("spawn").Pool(cores) as pool:
        seconds = pool.starmap(_decoded, [(path, begin, end) for begin, end in itertools.pairwise(ends)])
    return lines / max(seconds)


def _decoded(path: Path, begin: int, end: int) -> float:
    """Seconds to decode the lines that begin between two bytes."""
    started = time.perf_counter()
    with path.open("rb", buffering=1 << 20) as file:
        file.seek(begin)
        if begin:
            begin += len(file.readline())
        for line in file:
            orjson.loads(line[line.index(b"{") : line.rindex(b"}") + 1])
            begin += len(line)
            if begin >= end:
                break
    return time.perf_counter() - started


def parse_stage(directory: Path, scale: float) -> list[Result]:
    """Lines parsed into events by one process: folded into stretches, those that are like others recognised, as a large
    replay does; all decoded, as a small one does; and each by itself."""
    lines = int(PARSE_LINES * scale)
    log = directory / "kafka-request.log"
    write_log(log, lines, Fleet.for_rate())
    baseline = cat_rate(log, lines)
    results: list[Result] = []
    ways = (("folded, recognised", Patterns(), True), ("folded", None, True), ("one by one", None, False))
    for how, patterns, fold in ways:
        rate, cpu_us = _parsed(log, fold=fold, patterns=patterns)
        results.append(Result("lines", f"parsed, one process, {how}", rate, "lines/s", baseline, "cat", cpu_us))
    return results


def _parsed(log: Path, *, fold: bool, patterns: Patterns | None = None) -> tuple[float, float]:
    """Lines per second, and CPU of each line in microseconds."""
    ranges = plan([log])
    parse_range(ranges[0], fold=fold, patterns=patterns)  # imports and caches
    usage, started = Usage(), time.perf_counter()
    parsed = sum(parse_range(piece, fold=fold, patterns=patterns).lines for piece in ranges)
    return parsed / (time.perf_counter() - started), usage.cpu_s() / parsed * 1e6


def text_stage(directory: Path, scale: float) -> list[Result]:
    """Text lines against JSON lines of the same events: parsed by one process, and a whole replay, start-up included.
    What is compared is CPU, and of several rounds the least: a busy machine changes both less than the rate."""
    logs = []
    for kind in ("json", "text"):
        log = directory / kind / "kafka-request.log"
        log.parent.mkdir()
        write_log(log, int(TEXT_LINES * scale), Fleet.for_rate(as_text=kind == "text"))
        logs.append(log)
    best: dict[tuple[str, Path], tuple[float, float]] = {}
    for number in range(TEXT_ROUNDS):
        for log in logs:
            for what, (rate, cpu_us) in (
                ("parsed, one process, folded", _parsed(log, fold=True)),
                ("parsed, one process, one by one", _parsed(log, fold=False)),
                (_WHOLE, _replayed(log, log.parent / f"tables-{number}")),
            ):
                most, least = best.get((what, log), (rate, cpu_us))
                best[what, log] = max(most, rate), min(least, cpu_us)
    as_json, as_text = logs
    return [
        Result(
            "text",
            f"text lines {what}, by CPU",
            best[what, as_json][1] / cpu_us * 100,
            "% of JSON lines",
            cpu_us=cpu_us,
            target=TEXT_TARGET if what == _WHOLE else None,
            more={"lines/s": f"{rate:,.0f}", "of JSON": f"{best[what, as_json][0]:,.0f}"},
        )
        for (what, log), (rate, cpu_us) in best.items()
        if log == as_text
    ]


def _replayed(log: Path, tables: Path) -> tuple[float, float]:
    """The same of a whole replay with a process per core."""
    usage, started = Usage(), time.perf_counter()
    summary = replay(Inputs([log]), tables, ObserverFactory(ObserverSettings(cluster_id="bench")))
    return summary.lines / (time.perf_counter() - started), usage.cpu_s() / summary.lines * 1e6


def replay_stage(directory: Path, scale: float) -> list[Result]:
    """A whole replay with a process per core: request log to committed tables, start-up included."""
    lines = int(REPLAY_LINES * scale)
    log = directory / "kafka-request.log"
    write_log(log, lines, Fleet.for_rate())
    usage, started = Usage(), time.perf_counter()
    summary = replay(Inputs([log]), directory / "tables", ObserverFactory(ObserverSettings(cluster_id="bench")))
    seconds, cpu_us = time.perf_counter() - started, usage.cpu_s() / summary.lines * 1e6
    parsed = json_rate(log, lines)
    return [
        Result(
            "replay",
            "log to tables, start-up included",
            summary.lines / seconds,
            "lines/s",
            cat_rate(log, lines),
            "cat",
            cpu_us,
            200_000,
            {
                "lines": f"{summary.lines:,}",
                "members": summary.members,
                "a JSON parser alone, lines/s": f"{parsed:,.0f}",
                "of that": f"{summary.lines / seconds / parsed * 100:.0f} %",
            },
        )
    ]
