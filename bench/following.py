"""What `kardia serve --follow-topic` costs and how late it is: from a line in the log to an answer ahead of the tables.

Broker, collector, job and API as in the stage `live`, at its rate and at one that a large cluster has; the API follows
the topic. Timed as there. The baseline is a server of the same tables alone, in the same run and asked in the same way.
"""

from __future__ import annotations

import os
import re
import statistics
import threading
import time
from pathlib import Path

from confluent_kafka import OFFSET_END, Consumer, TopicPartition

from bench.fleet import Fleet
from bench.live import GIVE_UP_S, MIN_PROBES, RATE, WARM_S, Flow, flowing, probes
from bench.processes import role
from bench.result import Result, cpu_seconds, memory_mb
from demo.ports import free_ports
from kardia.events import DEFAULT_LANES

RATES = (RATE, 20_000)
"""Lines a second."""

SECONDS = 60.0
READY_S = 300.0
TARGET_MS = 300.0
TOPIC = "kardia.events"
PROBE = re.compile(rb"probe-\d+-member")
AHEAD = "ahead of the tables"


def _ready(flow: Flow) -> float:
    """Wait until answers are ahead; seconds from now."""
    began_s = time.monotonic()
    while AHEAD not in flow.said.read_text(encoding="utf-8"):
        if time.monotonic() - began_s > READY_S:
            raise RuntimeError(f"it never was ahead of the tables:\n{flow.said.read_text()[-2000:]}")
        time.sleep(0.25)
    return time.monotonic() - began_s


class Topic(threading.Thread):
    """Notes when a record with a probe can be read from the topic."""

    def __init__(self, bootstrap: str) -> None:
        """Begin at the end of the topic."""
        super().__init__(name="topic", daemon=True)
        own = {"bootstrap.servers": bootstrap, "group.id": "bench", "enable.auto.commit": False}
        self._consumer = Consumer(own)
        self._consumer.assign([TopicPartition(TOPIC, lane, OFFSET_END) for lane in range(DEFAULT_LANES)])
        self._ended = threading.Event()
        self.came_s: dict[str, float] = {}
        """Member -> epoch seconds."""

    def run(self) -> None:
        """Read until told to end."""
        while not self._ended.is_set():
            message = self._consumer.poll(0.1)
            if message is not None and message.error() is None:
                for member in PROBE.findall(message.value() or b""):
                    self.came_s.setdefault(member.decode(), time.time())
        self._consumer.close()

    def end(self) -> None:
        """End the thread."""
        self._ended.set()
        self.join()


def _asked(flow: Flow, api: str, seconds: float, first: int, answered: dict[str, float] | None = None) -> list[float]:
    """Latencies of probes, ms."""
    found, lost = probes(flow.writer, api, time.time() + seconds, first, answered)
    if len(found) < MIN_PROBES:
        raise RuntimeError(
            f"{lost} of {lost + len(found)} probes were not answered within {GIVE_UP_S:.0f} s (stage follow). "
            f"Expected: at least {MIN_PROBES} answers. Next: look at what else uses the processors"
        )
    return [value * 1000 for value in found]


def _at(directory: Path, rate: int, scale: float) -> list[Result]:
    """At one rate."""
    with flowing(directory, Fleet.for_rate(rate), follows=True) as flow:
        ready_s, (_, _, serve) = _ready(flow), flow.roles
        time.sleep(WARM_S * min(1.0, scale))
        used = [cpu_seconds(pid) for pid in flow.roles]
        since, lines = time.time(), flow.writer.lines
        topic, answered = Topic(flow.bootstrap), dict[str, float]()
        topic.start()
        ahead = _asked(flow, flow.api, SECONDS * scale, 0, answered)
        topic.end()
        from_topic = [1000 * (at_s - topic.came_s[name]) for name, at_s in answered.items() if name in topic.came_s]
        passed = time.time() - since
        shares = [(cpu_seconds(pid) - before) / passed for pid, before in zip(flow.roles, used, strict=True)]
        written, memory = (flow.writer.lines - lines) / passed, sum(memory_mb(serve).values())
        was_ahead = flow.said.read_text(encoding="utf-8").count("rest on the tables alone, as without") == 0
        (port,) = free_ports(1)
        log, tables = directory / "alone.log", str(directory / "tables")
        with role(log, "serve", "--tables", tables, "--port", str(port)) as alone:
            time.sleep(WARM_S * min(1.0, scale) / 2)
            before, since = cpu_seconds(alone.pid), time.time()
            behind = _asked(flow, f"http://127.0.0.1:{port}", SECONDS * scale, 50_000)
            share_alone = (cpu_seconds(alone.pid) - before) / (time.time() - since)
            memory_alone = sum(memory_mb(alone.pid).values())
    names = ("collect", "stream", "serve")
    more: dict[str, object] = {name: round(share, 2) for name, share in zip(names, shares, strict=True)}
    more |= {"lines/s": round(written), "probes": len(ahead), "cores": os.cpu_count(), "was ahead": was_ahead}
    quantiles, base = (statistics.quantiles(found, n=100) for found in (ahead, behind))
    what = f"at {rate:,} lines/s"
    return [
        *(
            Result(
                "follow",
                f"line to answer, p{at}, {what}",
                quantiles[at - 1],
                "ms",
                base[at - 1],
                "tables alone",
                more=more if at == 50 else {},
            )
            for at in (50, 95)
        ),
        Result(
            "follow",
            f"topic to answer, p95, {what}",
            statistics.quantiles(from_topic, n=100)[94],
            "ms",
            target=TARGET_MS,
            more={"probes": len(from_topic)},
        ),
        Result("follow", f"CPU of the API, {what}", shares[2], "cores", share_alone, "tables alone"),
        Result("follow", f"memory of the API, {what}", memory, "MB", memory_alone, "tables alone"),
        Result("follow", f"until it was ahead, {what}", ready_s, "s"),
    ]


def follow_stage(directory: Path, scale: float) -> list[Result]:
    """Run it at both rates."""
    return [result for rate in RATES for result in _at(directory / str(rate), rate, scale)]
