"""What the request log costs the broker: a real one under a steady load, its request log off, on for the group APIs,
on with FETCH, and on with FETCH through a queue (log4j's `Async`), in turns on the same running process.

The modes take turns (`ROUNDS` times at each rate), so that each is measured beside the others: the logging
configuration is written anew, and the broker goes on by it within a second. One process sends produce requests at their
instants, one record each, and times them; others consume in a group and commit. Broker CPU is its own, from /proc.
The last rate is as fast as the sender goes with `WINDOW` requests under way. JVM options are those of Kafka's scripts.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from bench.request_log_load import AS_FAST_AS_IT_GOES
from bench.result import Result, cpu_seconds
from demo import broker_logging
from demo.broker import Broker, BrokerSettings

RATES = (200, 1_000, AS_FAST_AS_IT_GOES)
"""Produce requests per second. Each of them is fetched, so there are as many fetches, unless they come together."""

ROUNDS = 5
SECONDS = 5.0
WARM_S = 40.0
"""As fast as it goes and with every line written, so that both compilers of the JVM are done with all that a mode
needs: after 15 s at the measured rate the first turn, that of the log off, still cost twice as much as later ones."""

CONSUMERS = 3
TOPIC = "orders"
PARTITIONS = 3
PATIENCE_S = 60.0

LOAD_MAX = 0.7
"""Load average of a machine that is idle but for whoever sits before it; numbers of a busier one are no page's."""

FETCH = 1


class Mode(NamedTuple):
    """How requests are logged: which APIs' lines are kept, and whether a queue stands before the file."""

    apis: tuple[int, ...]
    asynchronous: bool = False


MODES: dict[str, Mode] = {
    "off": Mode(()),
    "group APIs": Mode(tuple(number for number in broker_logging.APIS if number != FETCH)),
    "with FETCH": Mode(tuple(broker_logging.APIS)),
    "with FETCH, asynchronous": Mode(tuple(broker_logging.APIS), asynchronous=True),
}
"""The filter is that of docs/request-logging.md."""

SYNCHRONOUS = "with FETCH"
"""What the asynchronous mode is held against."""


@dataclass(frozen=True)
class Turn:
    """One mode at one rate for some seconds."""

    rate: int
    mode: str
    produced_per_s: float
    fetched_per_s: float
    """Records that the group read."""
    broker_cpu_s: float
    """CPU seconds of the broker per second."""
    p99_ms: float
    """Of a produce request, from the call to its acknowledgement."""
    log_bytes_per_s: float


def request_log_stage(work: Path, scale: float) -> list[Result]:
    """CPU of the broker, produce rate and latency at each rate and in each mode, beside the log off."""
    seconds = max(1.0, SECONDS * scale)
    busy = os.getloadavg()[0]
    if busy > LOAD_MAX:
        sys.stderr.write(
            f"The machine is busy, load {busy:.1f}, at most {LOAD_MAX} is expected: bench.request_log_page will refuse "
            "these numbers.\n"
        )
    return [result for rate in RATES for result in _results(rate, turns(work / str(rate), rate, seconds, scale))]


def turns(work: Path, rate: int, seconds: float, scale: float = 1.0) -> list[Turn]:
    """Every mode in turn, `ROUNDS` times; each round begins with another mode, so that none is always first."""
    settings = BrokerSettings(as_served=True, heap_mb=1_024, watched_s=1)
    with Broker(work, settings) as broker:
        broker.create_topic(TOPIC, PARTITIONS)
        with _consuming(broker):
            while not _read(broker):  # a group that has read something has something to commit
                _load(broker, rate, 1.0)
            _switch(broker, SYNCHRONOUS)
            _load(broker, AS_FAST_AS_IT_GOES, max(1.0, WARM_S * scale))
            modes = deque(MODES)
            found: list[Turn] = []
            for _ in range(ROUNDS):
                found += [_turn(broker, rate, mode, seconds) for mode in modes]
                modes.rotate()
            return found


def _turn(broker: Broker, rate: int, mode: str, seconds: float) -> Turn:
    _switch(broker, mode)
    before = _counters(broker)
    told = _load(broker, rate, seconds)
    passed = [after - begin for begin, after in zip(before, _counters(broker), strict=True)]
    lasted_s, cpu_s, read, grown = passed
    return Turn(
        rate, mode, told["produced"] / told["lasted_s"], read / lasted_s, cpu_s / lasted_s, told["p99_ms"],
        grown / lasted_s,
    )  # fmt: skip


def _counters(broker: Broker) -> tuple[float, float, float, float]:
    """Seconds of a clock, CPU seconds of the broker, records that were read, and bytes of its request log."""
    return time.monotonic(), cpu_seconds(broker.pid), _read(broker), broker.request_log.stat().st_size


def _read(broker: Broker) -> float:
    """Records that the consumers have told of; before their first words, none."""
    told = [_counted(broker, number) for number in range(CONSUMERS)]
    return sum(float(one.read_text() or 0) for one in told if one.exists())


def _counted(broker: Broker, number: int) -> Path:
    return broker.directory / f"consumer-{number}"


def _switch(broker: Broker, mode: str) -> None:
    """Give the broker another configuration, and wait until it goes by it: the consumers fetch and commit meanwhile."""
    apis, asynchronous = MODES[mode]
    text = broker_logging.log4j2_xml(broker.logs, apis=apis, watched_s=1, asynchronous=asynchronous)
    broker.logging.write_text(text, encoding="utf-8")
    end_s = time.monotonic() + PATIENCE_S
    while time.monotonic() < end_s:
        begin = broker.request_log.stat().st_size
        time.sleep(1.0)  # the window that is looked at, not a wait for something
        with broker.request_log.open("rb") as opened:
            opened.seek(begin)
            lines = opened.read()
        fetches, commits = lines.count(b'"requestApiKey":1,'), lines.count(b'"requestApiKey":8,')
        if (fetches > 0, commits > 0) == (FETCH in apis, bool(apis)) and _has_queue(broker) == asynchronous:
            return
    raise TimeoutError(f"the broker did not take the mode {mode} within {PATIENCE_S:.0f} s")


def _has_queue(broker: Broker) -> bool:
    """Whether log4j has a thread that writes what others have put into a queue."""
    for task in Path(f"/proc/{broker.pid}/task").iterdir():
        with suppress(FileNotFoundError, ProcessLookupError):  # it has ended since it was listed
            if "AsyncApp" in task.joinpath("comm").read_text():  # cut at 15 characters, behind log4j's own prefix
                return True
    return False


def _load(broker: Broker, rate: int, seconds: float) -> dict[str, float]:
    """Send for some seconds; what the sender counted."""
    words = ("send", broker.bootstrap, TOPIC, str(rate), str(seconds))
    done = subprocess.run(
        [sys.executable, "-m", "bench.request_log_load", *words], capture_output=True, text=True, check=True
    )
    told: dict[str, float] = json.loads(done.stdout)
    return told


@contextmanager
def _consuming(broker: Broker) -> Iterator[None]:
    """Consumers of one group meanwhile, each a process."""
    command = [sys.executable, "-m", "bench.request_log_load", "consume", broker.bootstrap, TOPIC]
    consumers = [
        subprocess.Popen([*command, str(_counted(broker, number))], stdin=subprocess.PIPE)
        for number in range(CONSUMERS)
    ]
    try:
        yield
    finally:
        for consumer in consumers:
            consumer.communicate(timeout=PATIENCE_S)  # closes what it reads from, which ends it


def _results(rate: int, found: list[Turn]) -> list[Result]:
    """One line for each mode: medians over the rounds, the log off in the same rounds as the baseline."""
    results: list[Result] = []
    by_mode = {mode: [turn for turn in found if turn.mode == mode] for mode in MODES}
    off = by_mode["off"]
    for mode, some in by_mode.items():
        cpu = statistics.median(turn.broker_cpu_s for turn in some)
        per_request = [turn.broker_cpu_s / turn.produced_per_s * 1e6 for turn in some]
        pairs = [turn.broker_cpu_s / turn.produced_per_s / (one.broker_cpu_s / one.produced_per_s)
                 for turn, one in zip(some, off, strict=True)]  # fmt: skip
        results.append(
            Result(
                "request-log",
                f"{'as fast as it goes' if rate == AS_FAST_AS_IT_GOES else f'{rate:,} requests/s'}, log {mode}",
                cpu * 100,
                "% of a core, broker",
                statistics.median(turn.broker_cpu_s for turn in off) * 100,
                "log off",
                statistics.median(per_request),
                more={
                    "cpu_per_request_to_off": round(statistics.median(pairs), 3),
                    "cpu_per_request_to_off_least": round(min(pairs), 3),
                    "cpu_per_request_to_off_most": round(max(pairs), 3),
                    "read_per_s": round(statistics.median(turn.fetched_per_s for turn in some)),
                    "produced_per_s": round(statistics.median(turn.produced_per_s for turn in some)),
                    "produced_to_off": round(
                        statistics.median(
                            turn.produced_per_s / one.produced_per_s for turn, one in zip(some, off, strict=True)
                        ),
                        3,
                    ),
                    "p99_ms": round(statistics.median(turn.p99_ms for turn in some), 2),
                    "p99_ms_least": round(min(turn.p99_ms for turn in some), 2),
                    "p99_ms_most": round(max(turn.p99_ms for turn in some), 2),
                    "log_kb_per_s": round(statistics.median(turn.log_bytes_per_s for turn in some) / 1e3),
                    "mode": mode,
                    "rate": rate,
                    **(_beside(some, by_mode[SYNCHRONOUS]) if MODES[mode].asynchronous else {}),
                },
            )
        )
    return results


def _beside(some: list[Turn], others: list[Turn]) -> dict[str, list[float]]:
    """What the queue does to the same lines: one ratio for each round, below 1 where it takes less."""
    pairs = list(zip(some, others, strict=True))
    return {
        "cpu_to_synchronous": [
            round(one.broker_cpu_s / one.produced_per_s / (other.broker_cpu_s / other.produced_per_s), 3)
            for one, other in pairs
        ],
        "produced_to_synchronous": [round(one.produced_per_s / other.produced_per_s, 3) for one, other in pairs],
        "p99_to_synchronous": [round(one.p99_ms / other.p99_ms, 3) for one, other in pairs],
    }
