"""From committed evidence to a received alert: `kardia notify` as a process, a real HTTP receiver, tables that grow.

The same crowd as for the API. Every few seconds a batch foretells that a session runs out, in a group in which all was
well; the clock starts when the batch is committed and stops when the receiver has the alert, as an Alertmanager and as
a webhook. Baseline: one POST to the same receiver.
"""

from __future__ import annotations

import asyncio
import contextlib
import queue
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from multiprocessing.queues import Queue
from pathlib import Path

import aiohttp
import orjson
import psutil
from aiohttp import web

from bench.crowd import Crowd
from bench.growth import PROBE_EVERY, Laid, Proof, growing, lay
from bench.load import cores, pin, quantile
from bench.result import Result, cpu_seconds, memory_mb

GROUPS = 10_000
PROBES = 20
MIN_PROBES = 3
ALERT = "KafkaGroupSessionTimeoutImminent"
START_S, GIVE_UP_S = 180.0, 60.0

TARGET_MS = 1_000.0
"""At the latest a second after the evidence was committed."""


class Receiver:
    """Takes what a notifier sends, as an Alertmanager and as a webhook, and remembers when it came first."""

    def __init__(self) -> None:
        """Nothing has come."""
        self.came_s: dict[tuple[str, str], float] = {}
        """(way, group) -> epoch seconds."""

    async def alerts(self, request: web.Request) -> web.Response:
        """Alerts as Alertmanager's API takes them."""
        now_s = time.time()
        for alert in orjson.loads(await request.read()):
            self._take("Alertmanager", alert["labels"], now_s)
        return web.Response()

    async def event(self, request: web.Request) -> web.Response:
        """A CloudEvent."""
        now_s = time.time()
        self._take("webhook", orjson.loads(await request.read())["data"]["labels"], now_s)
        return web.Response()

    def _take(self, way: str, labels: dict[str, str], now_s: float) -> None:
        if labels["alertname"] == ALERT:
            self.came_s.setdefault((way, labels["group"]), now_s)


@contextlib.asynccontextmanager
async def receiving(receiver: Receiver) -> AsyncIterator[str]:
    """The receiver on a free port of loopback; gives its address."""
    app = web.Application()
    app.router.add_post("/api/v2/alerts", receiver.alerts)
    app.router.add_post("/webhook", receiver.event)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


async def _posts(url: str, count: int) -> list[float]:
    """Times of single POSTs to the receiver, ms."""
    times_ms = []
    body = orjson.dumps([{"labels": {"alertname": "Baseline", "group": "none"}}])
    async with aiohttp.ClientSession() as client:
        for _ in range(count):
            began_s = time.perf_counter()
            async with client.post(f"{url}/api/v2/alerts", data=body) as reply:
                await reply.read()
            times_ms.append((time.perf_counter() - began_s) * 1_000)
    return times_ms


async def _measure(
    laid: Laid, directory: Path, probes: int
) -> tuple[dict[str, list[float]], list[float], list[Result]]:
    receiver = Receiver()
    alone, rest = cores()
    log = directory / "notify.log"
    async with receiving(receiver) as url:
        base_ms = await _posts(url, max(20, probes))
        with log.open("wb") as output:
            process = subprocess.Popen(
                [sys.executable, "-m", "cli.main", "notify", "--tables", str(laid.directory)]
                + ["--state", str(directory / "state"), "--alertmanager", url, "--webhook", f"{url}/webhook"],
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        pin(process.pid, alone)
        try:
            with growing(laid, rest, probing=True) as proofs:
                committed = await _until_told(receiver, proofs, probes, process, log)
                used_s = cpu_seconds(process.pid)
                memory = sum(memory_mb(process.pid).values())
        finally:
            process.terminate()
            await asyncio.to_thread(process.wait)
    delays_ms: dict[str, list[float]] = {"Alertmanager": [], "webhook": []}
    for group, at_s in committed:
        for way, found in delays_ms.items():
            if (way, group) in receiver.came_s:
                found.append(max(0.0, receiver.came_s[way, group] - at_s) * 1_000)
    about = {"CPU s of the notifier": round(used_s, 1)}
    return delays_ms, base_ms, [Result("memory", "notifier", memory, "MB", more=about)]


async def _until_told(
    receiver: Receiver, proofs: Queue[Proof], probes: int, process: subprocess.Popen[bytes], log: Path
) -> list[Proof]:
    """What was foretold and committed after the notifier had told of what it found at its start."""
    committed: list[Proof] = []
    until_s = time.monotonic() + START_S
    while time.monotonic() < until_s and process.poll() is None:
        with contextlib.suppress(queue.Empty):
            while True:
                proof = proofs.get_nowait()
                if receiver.came_s:
                    committed.append(proof)
        if receiver.came_s and len(committed) == 0:
            until_s = time.monotonic() + probes * PROBE_EVERY * 3 + GIVE_UP_S
        told = {group for _, group in receiver.came_s}
        if len(committed) >= probes and all(group in told for group, _ in committed[:probes]):
            return committed[:probes]
        await asyncio.sleep(0.05)
    if len([1 for group, _ in committed if ("webhook", group) in receiver.came_s]) >= MIN_PROBES:
        return committed[:probes]
    raise RuntimeError(
        f"of {len(committed)} foretold timeouts fewer than {MIN_PROBES} were told. Expected: each within a second. "
        f"Next: read what the notifier said:\n{log.read_text(encoding='utf-8')[-2000:]}"
    )


def notify_stage(directory: Path, scale: float) -> list[Result]:
    """Lay the tables, let them grow, wait for the alerts."""
    crowd = Crowd(max(100, int(GROUPS * scale)), 1, hours=1)
    laid = lay(directory / "tables", crowd)
    probes = max(MIN_PROBES, int(PROBES * min(1.0, scale)))
    before = psutil.Process().cpu_affinity()
    psutil.Process().cpu_affinity(list(cores()[1]))
    try:
        delays_ms, base_ms, more = asyncio.run(_measure(laid, directory, probes))
    finally:
        psutil.Process().cpu_affinity(before)
    about = {"of": f"{len(crowd.groups):,} groups, {crowd.size:,} members"}
    return [
        *(
            Result(
                *("notify", f"evidence to {way}, {'longest' if at == 100 else f'p{at}'}", quantile(times_ms, at), "ms"),
                *(quantile(base_ms, at), "one POST", None, TARGET_MS if at == 100 else None),
                {"alerts": len(times_ms), "not told": probes - len(times_ms)} | about if at == 50 else {},
            )
            for way, times_ms in delays_ms.items()
            if times_ms
            for at in (50, 95, 100)
        ),
        *more,
    ]
