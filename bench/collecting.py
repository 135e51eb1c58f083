"""A collector as a process beside a real broker: catching up with a log that is there already, then following one that
grows by a thousand lines per second. Baseline of the first: `cat` of the same file.

What is timed begins with the first line that it has read, so without its start. Its counters are asked, as Prometheus
would.
"""

from __future__ import annotations

import re
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path

import psutil

from bench.fleet import Fleet
from bench.lines import cat_rate, write_log
from bench.live import CLUSTER, Writer
from bench.processes import role
from bench.result import Result, cpu_seconds
from demo.broker import Broker
from demo.ports import free_ports

LINES = 1_000_000
STEADY_RATE = 1_000
STEADY_S = 30
WARM_S = 5
ASK_EVERY_S = 0.1
GIVE_UP_S = 600

CATCH_UP_TARGET = 200_000
MEMORY_TARGET_MB = 150
STEADY_TARGET = 3.0
"""Per cent of a core."""


class _Counters:
    """What a collector says of itself."""

    def __init__(self, port: int, process: subprocess.Popen[bytes]) -> None:
        self._url = f"http://127.0.0.1:{port}/metrics"
        self._process = process

    def read(self) -> dict[str, float]:
        """Its counters; empty while it does not answer yet."""
        try:
            with urllib.request.urlopen(self._url, timeout=10) as answer:  # noqa: S310  always http to this machine
                text = answer.read().decode()
        except (urllib.error.URLError, OSError):
            return {}
        found = re.findall(r"^kardia_collector_(\w+)(?:\{[^}]*\})? ([0-9.e+]+)$", text, re.MULTILINE)
        sums: dict[str, float] = {}
        for name, value in found:
            sums[name] = sums.get(name, 0.0) + float(value)
        return sums

    def until(self, lines: float) -> dict[str, float]:
        """Its counters, as soon as it has read so many lines."""
        end_s = time.perf_counter() + GIVE_UP_S
        while time.perf_counter() < end_s and self._process.poll() is None:
            found = self.read()
            if found.get("lines_total", 0.0) >= lines:
                return found
            time.sleep(ASK_EVERY_S)
        raise RuntimeError(f"the collector did not come to line {lines:,.0f}")


def collect_stage(directory: Path, scale: float) -> list[Result]:
    """Catch up, then follow."""
    lines = int(LINES * scale)
    log = directory / "kafka-request.log"
    write_log(log, lines, Fleet.for_rate())
    (port,) = free_ports(1)
    with (
        Broker(directory / "broker") as broker,
        role(
            directory / "collect.log",
            *("collect", "--request-log", str(log), "--bootstrap-server", broker.bootstrap, "--cluster", CLUSTER),
            *("--no-offsets", "--log-timezone", "UTC", "--positions", str(directory / "positions")),
            *("--metrics-port", str(port)),
        ) as process,
    ):
        counters = _Counters(port, process)
        first = counters.until(1)
        started, cpu_s = time.perf_counter(), cpu_seconds(process.pid)
        last = counters.until(lines)
        seconds, cpu_s = time.perf_counter() - started, cpu_seconds(process.pid) - cpu_s
        read = last["lines_total"] - first["lines_total"]
        memory_mb = psutil.Process(process.pid).memory_info().rss / 1e6
        steady = _steady(log, process.pid)
    return [
        Result(
            "collect",
            "catching up, per core of CPU",
            read / cpu_s,
            "lines/s",
            cat_rate(log, lines),
            "cat",
            cpu_s / read * 1e6,
            CATCH_UP_TARGET,
            {
                "lines/s by the clock": f"{read / seconds:,.0f}",
                "bytes to the topic per event": round(last["sent_bytes_total"] / last["events_total"], 1),
            },
        ),
        Result("collect", "memory after that", memory_mb, "MB", target=MEMORY_TARGET_MB),
        Result("collect", f"following {STEADY_RATE:,} lines/s", steady, "% of a core", target=STEADY_TARGET),
    ]


def _steady(log: Path, pid: int) -> float:
    """CPU of a collector while its log grows, in per cent of a core."""
    writer = Writer(log, Fleet.for_rate(STEADY_RATE))
    writer.start()
    time.sleep(WARM_S)
    began_s, cpu_s = time.perf_counter(), cpu_seconds(pid)
    time.sleep(STEADY_S)
    cpu_s, seconds = cpu_seconds(pid) - cpu_s, time.perf_counter() - began_s
    writer.end()
    return cpu_s / seconds * 100
